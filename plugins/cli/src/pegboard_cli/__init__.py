"""The `pegboard` command: lists, calls and checks tools, and starts packs. `main` is its entry point.

Not a plugin itself: it works where every plugin is broken or blocked. Packs add commands through the hook
`provide_commands`.
"""

from pegboard_cli._program import main

__all__ = ["main"]
