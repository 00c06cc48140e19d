"""Tools as they were when somebody allowed them: what a permission goes by."""

from __future__ import annotations

from typing import Any

from attrs import asdict

from pegboard._base.errors import PegboardError
from pegboard._base.jsonable import digest
from pegboard._base.names import OWN
from pegboard._model.tool import Tool


def facts_of(tool: Tool) -> dict[str, Any]:
    """What a person who allows a tool goes by, JSON-able. Raises `PegboardError` for one that cannot be read."""
    requires = tool.options.requires_approval
    approval = "sometimes" if callable(requires) else "always" if requires else "never"
    said = {"approval": approval, "description": tool.description, "hints": asdict(tool.hints)}
    return {**said, "origin": asdict(tool.origin), "parameters": tool.parameters, "returns": tool.returns}


def fingerprint(tool: Tool) -> str:
    """A hash of what a permission goes by: not whether the tool asks, for it decides that whatever the tool says.

    Empty for a tool that cannot be read, and for the core's own.
    """
    try:
        return (
            ""
            if is_own(tool)
            else str(tool._remember("fingerprint", lambda: digest(facts_of(tool) | {"approval": ""})))
        )
    except PegboardError:
        return ""


def is_own(tool: Tool) -> bool:
    """Whether a tool is one of the core's own."""
    return tool.face is not None or (tool.pack is None and tool.origin.plugin == OWN)
