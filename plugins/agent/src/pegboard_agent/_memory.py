"""Memory: what was said, in the program or in a file."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

from pegboard.inspection import regular

__all__ = ["Memory"]


_log: Final = logging.getLogger("pegboard.agent")


@final
class Memory:
    """Conversations of an agent. `Memory(path)` keeps them in a file of JSON lines, one written as it happens.

    A line that the end of a program has torn is ignored, and so is any other that cannot be read: the log says so, and
    the file keeps them, for nothing is ever taken out of it. Who else has an account there cannot read a file that is
    made here. Raises OSError for what is no regular file: a link, a FIFO, a device.

    Each conversation is a list of records: messages as chat completions take them, `{"answers": n, "messages": [...]}`
    for call number n of the last message, `{"parked": n, ...}` for one that waits, `{"begun": id, "agent": name}`
    for a conversation with a sub-agent, and `{"system_prompt": text}` for what a function gave as that.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._records: dict[str | None, list[dict[str, Any]]] = {}
        if self._path is not None:
            self._read(self._path)

    def _read(self, path: Path) -> None:
        try:
            with open(path, "rb", opener=regular) as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return
        unread = 0
        for line in filter(None, lines[:-1]):
            unread += not self._take(line)
        self._take(lines[-1])  # nothing, or a torn one
        if unread:
            _log.warning("%s: %d of %d lines cannot be read; they stay in the file", path, unread, len(lines) - 1)

    def _take(self, line: bytes) -> bool:
        """Whether a line could be read."""
        try:
            entry = json.loads(line)
            session_id, record = entry.get("session_id"), entry["record"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return False
        if not _is_record(record) or not isinstance(session_id, (str, type(None))):
            return False
        self._records.setdefault(session_id, []).append(record)
        return True

    @property
    def session_ids(self) -> list[str | None]:
        """The conversations that there are, None for the one without an id."""
        return list(self._records)

    def records(self, session_id: str | None = None) -> list[dict[str, Any]]:
        """Everything of a conversation, oldest first."""
        return list(self._records.get(session_id, ()))

    def append(self, record: Mapping[str, Any], session_id: str | None = None) -> None:
        """Add to a conversation.

        Raises ValueError for what is no record, OSError where the file cannot be written, or is no regular file.
        """
        if not _is_record(record):
            raise ValueError(f"this is no record of a conversation: {str(record)[:200]}")
        if self._path is not None:
            line = json.dumps({"session_id": session_id, "record": record}, ensure_ascii=False)
            with open(self._path, "a+b", buffering=0, opener=_private) as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(0, end - 1))
                begun = b"" if file.read(1) in (b"", b"\n") else b"\n"  # a torn line is left to itself
                file.write(begun + line.encode("utf-8", "replace") + b"\n")
        self._records.setdefault(session_id, []).append(dict(record))


def _private(path: str, flags: int) -> int:
    return regular(path, flags, 0o600)


def _is_record(record: Any) -> bool:
    """Whether this is what the class says that records are; files may have been written by anything."""
    if not isinstance(record, Mapping):
        return False
    if "role" in record:
        return _is_message(record)
    if "begun" in record:
        return isinstance(record["begun"], str) and isinstance(record.get("agent"), str)
    if "system_prompt" in record:
        return isinstance(record["system_prompt"], str)
    if "parked" in record:
        return _is_number(record["parked"]) and isinstance(record.get("reason", ""), str)
    messages = record.get("messages")
    if not _is_number(record.get("answers")) or not isinstance(messages, list) or not messages:
        return False
    return all(map(_is_message, messages)) and all(isinstance(each["content"], list) for each in messages[1:])


def _is_message(message: Any) -> bool:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        return False
    calls = message.get("tool_calls") or []
    content = isinstance(message.get("content", 0), (str, list, type(None)))
    return content and isinstance(calls, list) and all(map(_is_call, calls))


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return False
    return all(isinstance(text, str) for text in (call.get("id"), function.get("name"), function.get("arguments")))


def _is_number(number: Any) -> bool:
    return type(number) is int and number >= 0
