"""`python -m pegboard_cli` is `pegboard`."""

from pegboard_cli import main

main()
