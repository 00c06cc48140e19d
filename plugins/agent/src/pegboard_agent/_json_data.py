"""JSON data: what events and messages hold, as a page or a log can take it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from pegboard import ApprovalRequest, Chunk, ToolCall, ToolResult

__all__ = ["json_data"]


def json_data(value: Any) -> Any:
    """A value as `json.dumps` takes it, and every reader of JSON: infinities and NaN become null.

    Of results the `metadata` is left out, which is the program's own. What JSON has no form for becomes the name of its
    class: its text could hold anything.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(name): json_data(member) for name, member in value.items()}
        case ToolCall(id=call_id, name=name, arguments=arguments):
            return {"id": call_id, "name": name, "arguments": json_data(arguments)}
        case ApprovalRequest(tool=tool, call_id=call_id, arguments=arguments, reason=reason):
            return {"call_id": call_id, "tool": tool.name, "arguments": json_data(arguments), "reason": reason}
        case Chunk(call_id=call_id, name=name, content=content, progress=progress):
            told = None if progress is None else {"done": progress.done, "total": progress.total}
            return {"call_id": call_id, "name": name, "content": json_data(content), "progress": json_data(told)}
        case ToolResult():
            return json_data({name: member for name, member in value.to_dict().items() if name != "metadata"})
        case _ if hasattr(value, "to_dict"):
            return json_data(value.to_dict())
        case Iterable():
            return [json_data(member) for member in value]
    return type(value).__name__
