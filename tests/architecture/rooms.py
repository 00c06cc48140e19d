"""The rooms of the core: what each may import besides itself and Python, as in `docs/internals/architecture.md`.

A room is a folder, or a module that stands beside the folders.
"""

from typing import Final

DATA: Final = ("_base", "_model", "extension", "_schema", "_types")
VALUES: Final = (*DATA, "_arguments", "_injection", "_results")
WINGS: Final = (*VALUES, "hookspecs", "_tools", "_plugins", "_board", "_execution")

MAY_IMPORT: Final[dict[str, tuple[str, ...]]] = {
    "_base": (),
    "_model": ("_base",),
    "extension": ("_base", "_model"),
    "hookspecs": ("_base", "_model", "extension"),
    "_schema": ("_base", "_model", "extension"),
    "_types": ("_base", "_model", "extension", "_schema"),
    "_arguments": DATA,
    "_injection": DATA,
    "_results": DATA,
    "_tools": VALUES,
    "_plugins": (*DATA, "hookspecs"),
    "_board": ("_base", "_model", "extension"),
    "_execution": VALUES,
    "builtin": (*WINGS, "pegboard"),
    "_toolkit": (*WINGS, "builtin"),
    "inspection": (*WINGS, "builtin", "_toolkit"),
}

DOORS: Final[dict[str, tuple[str, ...]]] = {
    "asyncio": ("_base", "_execution"),
    "cattrs": ("_plugins",),
    "importlib.metadata": ("_plugins",),
    "importlib_metadata": ("_plugins",),
    "jsonschema": ("_schema",),
    "pluggy": ("_plugins", "hookspecs"),
    "referencing": ("_schema",),
}
"""Which rooms may load a library; `_base` makes one of asyncio's exceptions, nothing else."""

# What holds, lowered as the core shrinks.
MOST_LINES: Final = 13_758
"""Code lines of the core, without docstrings and comments."""
MOST_TOKENS: Final = 140_152
"""Python's own tokens in them: a limit of lines alone rewards long lines."""
MOST_MODULES: Final = 97
MOST_ENTRIES: Final = 20
"""What the folder of the core shows."""

WALKS: Final = {
    "toolkit": 29,
    "registration": 15,
    "first call": 18,
    "warm call": 4,
    "refused call": 10,
    "suspended call": 10,
}
"""How many files of the core may run for a toolkit without plugins, a function that becomes its tool, and its calls."""


def room(module: str) -> str:
    """The room that a module of the core stands in; that of the face is `pegboard`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]
