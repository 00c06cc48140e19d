"""Commands: a module for each of Pegboard's own, by its name, with `command`.

In come the arguments and the board that they name; out goes an exit code, and what is printed through `_output`.
"""
