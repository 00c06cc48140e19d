"""The rooms of packs that are houses: what each may import of its pack, besides itself.

A room is a folder, or a module that stands beside the folders, each below those that import it. The face of a pack may
import all of them.
"""

from collections.abc import Mapping
from typing import Final

MAY_IMPORT: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "pegboard_mcp": {
        "_arguments": (),
        "_wire": (),
        "_auth": ("_arguments", "_wire"),
        "_client": ("_arguments", "_auth", "_wire"),
        "_server": ("_arguments", "_auth", "_client", "_wire"),
        "_settings": ("_client",),
        "_command": ("_auth", "_server", "_settings", "_wire"),
    },
}

MOST_MODULES: Final = {"pegboard_mcp": 40}

FEWEST_LINES: Final = 25
"""What makes a module, unless it is a face."""

FACES: Final = ("__init__.py", "__main__.py", "plugin.py")
