"""Our own commands by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["COMMANDS"]

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "call": ("_call", "Call a tool."),
    "doctor": ("_doctor", "Say what is wrong, and how to mend it."),
    "lock": ("_lock", "Write down names, schemas and versions as they are now."),
    "new": ("_new", "Start a pack of your own."),
    "plugins": ("_plugins", "List plugins and what became of each."),
    "schema": ("_schema", "Print what a model sees of the tools."),
    "settings": ("_settings", "Show settings and where each came from."),
    "show": ("_show", "Show everything about one tool."),
    "tools": ("_tools", "List the tools on the board."),
    "types": ("_types", "List type handlers, or say which one maps a type."),
}
"""Our own commands: the module of each, which is imported when it runs, and its help."""
