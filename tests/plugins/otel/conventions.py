"""What the semantic conventions for generative AI say of tools, to check spans and metrics against.

`conventions.json` holds facts (names, types, units, levels) of `model/gen-ai` in the repository (Apache-2.0) and at the
commit that it names, and none of the text; `extract.py` made it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_SAID: Final[Any] = json.loads(Path(__file__).with_name("conventions.json").read_text("utf-8"))
COMMIT: Final[str] = _SAID["commit"]
SCHEMA_URL: Final[str] = _SAID["schema_url"]
SPAN: Final[Any] = _SAID["span"]
METRIC: Final[Any] = _SAID["metric"]
# From the text of the attributes.
OPERATION: Final = "execute_tool"
TOOL_TYPES: Final = {"function", "extension", "datastore"}
# Structures are JSON text, as spans may hold them; of the attributes from other conventions there is `error.type`.
_TYPES: Final = {"string": str, "any": str, None: str}


def names(kind: Any, level: str) -> set[str]:
    """The attributes of a span or a metric that have one level."""
    return {name for name, described in kind["attributes"].items() if described["level"] == level}


def check(kind: Any, attributes: Mapping[str, Any], *, failed: bool, content: bool = False) -> None:
    """Check by names, types and levels what a span or a point says: no more than the conventions have, no less."""
    for name, value in attributes.items():
        described = kind["attributes"][name]
        assert type(value) is _TYPES[described["type"]]
        assert value in described.get("members", [value])
        assert described["level"] != "opt_in" or content
    assert names(kind, "required") <= attributes.keys()
    assert attributes["gen_ai.tool.type"] in TOOL_TYPES
    assert failed is ("error.type" in attributes)
