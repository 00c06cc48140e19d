"""Calls that must not run twice: the first of each key runs, and the others get what it came to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, final

from pegboard import Note, Status, ToolCall, ToolResult, Verdict
from pegboard_journal._entry import Row, canonical, fingerprint
from pegboard_journal._key import key_of
from pegboard_journal._recorder import Record
from pegboard_journal._results import from_data, refused
from pegboard_journal._store import JournalError

if TYPE_CHECKING:
    from pegboard_journal._recorder import Recorder
    from pegboard_journal._store import Store

__all__ = ["ELSEWHERE", "Once"]

ELSEWHERE: Final = object()
"""The call with that key runs, here or in another program."""


@final
class Once:
    """Claims keys for the calls of one toolkit."""

    def __init__(self, recorder: Recorder, store: Store) -> None:
        self._recorder = recorder
        self._store = store

    def check(self, call: ToolCall, name: str) -> Verdict | None:
        """Ask about a call whose key was claimed by a process that is gone: nothing tells whether it ran."""
        last = self._last(_claim(call, name))
        if last is None or not self._is_unknown(last):
            return None
        return Verdict(permission="prompt", reason=_UNKNOWN.format(call.name, last.id))

    def begin(self, call: ToolCall, record: Record, name: str) -> ToolResult | object | None:
        """What a call is answered with, `ELSEWHERE`, or None: then it runs, and its claim is recorded.

        `name` is the one that the tool is registered under, whatever the session calls it.
        """
        record.key, record.keeps = key_of(call), True
        claim, digest = _claim(call, name), self._digest(call, record)
        try:
            last = self._last(claim)
            found = None if last is None else self._found(call, record, last, digest)
        except JournalError as error:
            self._recorder.failed(error)
            message = f"{call.name} was not run: whether it has run before could not be looked up"
            return refused(call, "journal", message, remedy=str(error))
        if found is not None:
            record.keeps = False
            return found
        turn = 1 if last is None else (last.turn or 0) + 1
        row = self._recorder.intend(call, record, claim=claim, turn=turn, fingerprint=digest)
        if isinstance(row, ToolResult):
            return row
        return ELSEWHERE if row is None else None

    def _digest(self, call: ToolCall, record: Record) -> str:
        redact, settings = record.redact, self._recorder.settings
        text = canonical(call.arguments) if redact is None else redact(canonical(redact.deep(call.arguments)))
        return fingerprint(text, settings.key)

    def _last(self, claim: str) -> Row | None:
        """The row that claimed a key last."""
        found = self._store.rows("claim = ? AND claim IS NOT NULL", claim, order="turn DESC", limit=1)
        return found[0] if found else None

    def _outcome(self, claimed: Row) -> Row | None:
        found: Row | None = None
        while after := self._store.rows("follows = ?", (found or claimed).seq, limit=1):
            (found,) = after
        return found

    def _is_unknown(self, claimed: Row) -> bool:
        # In this order: a process may write an outcome and end in between.
        return not self._store.is_alive(claimed.process or "0") and self._outcome(claimed) is None

    def _found(self, call: ToolCall, record: Record, claimed: Row, digest: str) -> ToolResult | object | None:
        if claimed.fingerprint != digest:
            message = f"{call.name} was not run: a call with the same key had other arguments"
            return refused(call, "idempotency", message, remedy="give each call a key of its own")
        outcome = self._outcome(claimed)
        if outcome is None:
            if not self._is_unknown(claimed):
                return ELSEWHERE
            if record.approved:
                return None
            message = f"{call.name} was not run: a call with the same key was broken off, and may have run"
            return refused(call, "idempotency", message, Status.DENIED, entry=claimed.id)
        if outcome.status == Status.SUSPENDED:
            message = f"{call.name} was not run: a call with the same key waits for its answer"
            return refused(call, "idempotency", message, entry=outcome.id)
        if outcome.kept is None:
            return None
        note = Note("it ran before with the same key, and this is what it came to then", kind="once")
        data: dict[str, Any] = json.loads(outcome.kept)
        return from_data(call, data, note)


_UNKNOWN: Final = "a call of {} with the same key was broken off, and may have run: entry {} of the journal"


def _claim(call: ToolCall, name: str) -> str:
    return fingerprint(canonical([name, call.session.id, key_of(call)]))
