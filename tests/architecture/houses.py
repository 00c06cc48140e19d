"""The rooms of packs that are houses: what each may import of its pack, besides itself.

A room is a folder, or a module that stands beside the folders, each below those that import it. The face of a pack may
import all of them.
"""

from collections.abc import Mapping
from typing import Final

MAY_IMPORT: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "pegboard_agent": {
        "_answer": (),
        "_approval": (),
        "_json_data": (),
        "_stores": (),
        "_usage": (),
        "_limits": ("_usage",),
        "_messages": ("_json_data", "_usage"),
        "_events": ("_json_data", "_messages"),
        "_models": ("_messages",),
        "_json_schema": ("_models",),
        "_request": ("_json_schema",),
        "_conversation": ("_events", "_limits", "_messages", "_request", "_stores"),
        "_conversations": ("_conversation", "_stores"),
        "_run": (
            "_answer",
            "_approval",
            "_conversation",
            "_events",
            "_json_schema",
            "_limits",
            "_messages",
            "_models",
            "_request",
            "_usage",
        ),
        "_sub_agent": ("_conversation", "_events"),
        "_agent": (
            "_answer",
            "_approval",
            "_conversation",
            "_conversations",
            "_events",
            "_limits",
            "_messages",
            "_models",
            "_request",
            "_run",
            "_stores",
            "_sub_agent",
        ),
        "_chat": ("_agent", "_events", "_limits", "_stores"),
    },
    "pegboard_cli": {
        "_options": (),
        "plugin": ("_options",),
        "_output": (),
        "_toolkit": ("plugin", "_options", "_output"),
        "_external": ("plugin", "_toolkit", "_options", "_output"),
        "_checks": ("plugin", "_output"),
        "_trials": (),
        "_commands": ("_toolkit", "_checks", "_trials", "_options", "_output"),
        "_program": ("plugin", "_toolkit", "_commands", "_external", "_options", "_output"),
    },
    "pegboard_files": {
        "_errors": (),
        "_directory": ("_errors",),
        "_text": ("_directory", "_errors"),
        "_settings": ("_directory",),
        "_confined": ("_directory", "_errors", "_settings"),
        "_tools": ("_directory", "_errors", "_settings", "_text"),
    },
    "pegboard_mcp": {
        "_arguments": (),
        "_wire": (),
        "_auth": ("_arguments", "_wire"),
        "_client": ("_arguments", "_auth", "_wire"),
        "_server": ("_arguments", "_auth", "_client", "_wire"),
        "_settings": ("_client",),
        "_command": ("_auth", "_server", "_settings", "_wire"),
    },
    "pegboard_shell": {
        "_settings": (),
        "_policy": (),
        "_running": (),
        "_sandbox": ("_policy", "_running"),
        "_surroundings": ("_sandbox",),
        "_performing": ("_running", "_sandbox", "_surroundings"),
        "_tools": ("_performing", "_policy", "_sandbox", "_settings", "_surroundings"),
    },
}

MOST_MODULES: Final = {
    "pegboard_agent": 36,
    "pegboard_cli": 38,
    "pegboard_files": 20,
    "pegboard_mcp": 50,
    "pegboard_shell": 18,
}

FEWEST_LINES: Final = 25
"""What makes a module, unless it is a face."""

FACES: Final = ("__init__.py", "__main__.py", "plugin.py")
