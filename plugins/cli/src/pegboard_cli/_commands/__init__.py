"""Commands: a module for each of Pegboard's own, by its name, with `command`.

In come the arguments and the toolkit that they name; out goes an exit code, and text printed through `_output`.
"""
