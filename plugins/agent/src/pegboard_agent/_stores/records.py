"""Records: the form in which a conversation is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["checked", "is_record", "kind_of", "waits"]

KINDS: Final = (
    ("message", "role"),
    ("answers", "answers"),
    *((name, name) for name in ("begun", "parked", "shown", "system_prompt", "trimmed")),
)
"""The kinds of records, the frequent ones first, and the member that marks each."""


def kind_of(record: Mapping[str, Any]) -> str:
    """The kind of a record: `message`, or the name of the member that marks it, such as `answers`."""
    for kind, member in KINDS:
        if member in record:
            return kind
    return "answers"


def checked(record: Any) -> dict[str, Any]:
    """A copy of a record. Raises ValueError for an invalid one."""
    if not is_record(record):
        raise ValueError(f"this is no record of a conversation: {str(record)[:200]}")
    return dict(record)


def waits(records: list[dict[str, Any]]) -> bool:
    """Whether the last message of a conversation has parked a call, which may still be owed its answer."""
    for record in reversed(records):
        if (kind := kind_of(record)) in ("message", "parked"):
            return kind == "parked"
    return False


def is_record(record: Any) -> bool:
    """Whether a value is a record as `ConversationStore` documents it; any program may have written to a store."""
    if not isinstance(record, (dict, Mapping)):  # a dict is known at once
        return False
    match kind_of(record):
        case "message":
            return _is_message(record)
        case "begun":
            return isinstance(record["begun"], str) and isinstance(record.get("agent"), str)
        case "parked":
            return _is_number(record["parked"]) and isinstance(record.get("reason", ""), str)
        case "shown":
            return isinstance(record["shown"], list) and all(isinstance(name, str) for name in record["shown"])
        case "system_prompt":
            return isinstance(record["system_prompt"], str)
        case "trimmed":
            return _is_number(record["trimmed"]) and isinstance(record.get("summary", ""), str)
    messages = record.get("messages")
    if not _is_number(record.get("answers")) or not isinstance(messages, list) or not messages:
        return False
    return all(map(_is_message, messages)) and all(isinstance(each["content"], list) for each in messages[1:])


def _is_message(message: Any) -> bool:
    if not isinstance(message, (dict, Mapping)) or not isinstance(message.get("role"), str):
        return False
    calls = message.get("tool_calls") or []
    content = isinstance(message.get("content", 0), (str, list, type(None)))
    return content and isinstance(calls, list) and all(map(_is_call, calls))


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, (dict, Mapping)) else None
    if not isinstance(function, (dict, Mapping)):
        return False
    named = isinstance(call.get("id"), str) and isinstance(function.get("name"), str)
    return named and isinstance(function.get("arguments"), str)


def _is_number(number: Any) -> bool:
    return type(number) is int and number >= 0
