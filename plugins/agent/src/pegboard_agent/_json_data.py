"""JSON data: the content of events and messages in a form for a page or a log."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pegboard import ApprovalRequest, Chunk, ToolCall, ToolResult

__all__ = ["json_data"]


def json_data(value: Any) -> Any:
    """A value in a form that `json.dumps` and every reader of JSON take.

    NaN and infinities become null, a lone surrogate U+FFFD. A value without a form in JSON becomes the name of its
    class, because its text could hold anything.
    """
    match _members(value):
        case None | bool() | int() as plain:
            return plain
        case str() as text:
            return _text(text)
        case float() as number:
            return number if math.isfinite(number) else None
        case Mapping() as members:
            return {_text(str(name)): json_data(member) for name, member in members.items()}
        case list() | tuple() | set() | frozenset() as items:
            return [json_data(item) for item in items]
    return type(value).__name__


def _members(value: Any) -> Any:
    """The members of a record that a page may show; any other value unchanged."""
    match value:
        case ToolCall():
            return {"id": value.id, "name": value.name, "arguments": value.arguments}
        case ApprovalRequest(tool=tool, call_id=call_id, arguments=arguments, reason=reason, form=form):
            shown = {"call_id": call_id, "tool": tool.name, "arguments": arguments, "reason": reason}
            return shown if form is None else {**shown, "form": form}
        case Chunk(progress=progress):
            report = None if progress is None else progress._asdict()
            return {"call_id": value.call_id, "name": value.name, "content": value.content, "progress": report}
        case ToolResult():  # without the metadata, which belongs to the program
            return {name: member for name, member in value.to_dict().items() if name != "metadata"}
    return value.to_dict() if hasattr(value, "to_dict") else value


def _text(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
