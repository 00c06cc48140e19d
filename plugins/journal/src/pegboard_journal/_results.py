"""Results as data, for cassettes and for calls that run once; and results of calls that are answered instead of run."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from pegboard import (
    AudioBlock,
    Block,
    DataBlock,
    Fault,
    FileBlock,
    ImageBlock,
    LinkBlock,
    Note,
    Redaction,
    Status,
    TextBlock,
    ToolCall,
    ToolResult,
    VideoBlock,
)

__all__ = ["IMMUTABLE", "answered", "from_data", "is_fixed", "own", "refused", "to_data", "without_secrets"]

_BLOCKS: Final[Mapping[str, Any]] = {
    cls.__name__.removesuffix("Block").lower(): cls
    for cls in (AudioBlock, DataBlock, FileBlock, ImageBlock, LinkBlock, TextBlock, VideoBlock)
}
IMMUTABLE: Final = frozenset({str, int, float, bool, type(None)})


def to_data(result: ToolResult, redact: Redaction | None) -> dict[str, Any]:
    """What of a result another call may be answered with, without secrets and without times."""
    whole = result.to_dict()
    names = ("status", "content", "data", "error", "attachments", "metadata")
    kept = {name: whole[name] for name in names if whole[name] not in (None, [], {})}
    return kept if redact is None else dict(without_secrets(kept, redact))


def without_secrets(data: Any, redact: Redaction) -> Any:
    """A copy of JSON data without the secrets in it, numbers included."""
    if isinstance(data, dict):
        return {redact(key): without_secrets(value, redact) for key, value in data.items()}
    if isinstance(data, list):
        return [without_secrets(value, redact) for value in data]
    if data is None or isinstance(data, bool):
        return data
    text = str(data)
    shown = redact(text)
    return data if shown == text else shown


def from_data(call: ToolCall, data: Mapping[str, Any], note: Note) -> ToolResult:
    """The answer of a call that was recorded."""
    error = data.get("error")
    value = deepcopy(data.get("data"))
    return ToolResult(
        call.id,
        call.name,
        Status(data["status"]),
        [_block(each) for each in data.get("content", ())],
        value,
        None if error is None else Fault(error["kind"], error["message"]),
        attempts=0,
        notes=(*call.notes, note),
        attachments=tuple(_block(each) for each in data.get("attachments", ())),
        metadata=data.get("metadata", {}),
        value=value,
    )


def answered(call: ToolCall, result: ToolResult, note: Note) -> ToolResult:
    """The result of another call for this one."""
    return _copied(result, call.id, call.name, (*call.notes, note))


def own(result: ToolResult, *notes: Note) -> ToolResult:
    """A copy of a result with other notes, for who keeps it while its caller may change it."""
    return _copied(result, result.call_id, result.name, notes)


def is_fixed(result: ToolResult) -> bool:
    """Whether there is nothing in the data of a result that its caller could change."""
    return type(result.data) in IMMUTABLE and type(result.value) in IMMUTABLE


def _copied(result: ToolResult, call_id: str, name: str, notes: tuple[Note, ...]) -> ToolResult:
    data = result.data if type(result.data) in IMMUTABLE else deepcopy(result.data)
    return ToolResult(
        call_id,
        name,
        result.status,
        result.content,
        data,
        result.error,
        attempts=0,
        notes=notes,
        attachments=result.attachments,
        metadata=result.metadata,
        value=result.value if type(result.value) in IMMUTABLE else deepcopy(data),
    )


def refused(call: ToolCall, kind: str, message: str, status: Status = Status.ERROR, **details: Any) -> ToolResult:
    """The result of a call that the journal keeps from running."""
    fault = Fault(kind, message, details)
    return ToolResult(call.id, call.name, status, f"Error: {message}", error=fault, attempts=0, notes=(*call.notes,))


def _block(data: Mapping[str, Any]) -> Block:
    block: Block = _BLOCKS[data["type"]](**{name: value for name, value in data.items() if name != "type"})
    return block
