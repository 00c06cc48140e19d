"""Recording: one row for each call that a caller made, and a row before it for a call with an effect."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, final

import attrs

from pegboard import Redaction, Status, Tool, ToolCall, ToolResult
from pegboard_journal._entry import PRUNED, RUNNING, Row, canonical, decoded, fingerprint, plain
from pegboard_journal._results import refused, to_data
from pegboard_journal._settings import Settings, age
from pegboard_journal._store import CURRENT, JournalError, Store
from pegboard_journal._urls import opened

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from pegboard import EnteredCall

__all__ = ["RECORD", "Record", "Recorder", "has_effect"]

_UNREAD: Final = object()
_HOUR: Final = 3600.0


@attrs.define(eq=False)
class Record:
    """What the journal knows of a call that runs."""

    entered: EnteredCall
    redact: Redaction | None
    """None where the secrets of the call are not known yet: some are computed when it runs."""
    parent: str | None
    session: str | None
    """The name of the session; for what a tool calls in turn, of that of its own call."""
    id: str
    started: float
    began: float
    arguments: Any = _UNREAD
    """As they were decoded, and after what an approver has changed."""
    decided_by: str | None = None
    approved: bool = False
    attempts: int = 1
    intent: Row | None = None
    key: str | None = None
    """That of a tool that runs once."""
    keeps: bool = False
    """Whether the result is kept for who calls with that key again."""
    texts: dict[str, tuple[Any, str]] = attrs.field(factory=dict)
    """Arguments and result as text without secrets, each with what it was made of."""


RECORD: Final[ContextVar[Record | None]] = ContextVar("pegboard-journal", default=None)
"""That of the call that runs here."""


def has_effect(tool: Tool) -> bool:
    """Whether a call of a tool may change something that a second one would change again."""
    return tool.hints.read_only is not True and tool.hints.idempotent is not True


@final
class Recorder:
    """Records the calls of one toolkit. Without a store it only `follows` them for a cassette, and not for a cache."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store: Store | None = None if settings.url is None else opened(settings.url)
        self.follows = self.store is not None or settings.replays
        self._prefix = secrets.token_hex(4)
        self._count = count(1).__next__
        self._missing = 0
        self._reason = ""
        self._pruned = 0.0
        self._unpruned = ""
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._thread: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def _new_id(self, now: float) -> str:
        return f"{int(now * 1e6):014x}-{self._prefix}-{self._count():x}"

    @property
    def problems(self) -> tuple[str, ...]:
        """What is missing in the journal, and what should no longer be in it."""
        missing = f"{self._missing} rows are missing in the journal, for they could not be written: {self._reason}"
        return (*([missing] if self._missing else []), *([self._unpruned] if self._unpruned else []))

    # As a source without tools ---------------------------------------------------------------------------------

    name = "journal"

    def tools(self) -> tuple[Any, ...]:
        """None: the toolkit shows `problems`, and closes the journal when it is closed."""
        return ()

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Gives what closes the journal."""
        return self.close

    @property
    def features(self) -> tuple[str, ...]:
        """What the inspector finds here: `earlier_calls`, where calls are recorded."""
        return () if self.store is None else ("calls",)

    def earlier_calls(self, before: float, most: int) -> list[dict[str, Any]]:
        """The last calls that began before a moment, the latest first, with arguments and results as they are kept.

        Raises `JournalError` if they cannot be read.
        """
        where = f"this.started < ? AND this.status <> '{PRUNED}' AND {CURRENT}"
        rows = [] if self.store is None else self.store.rows(where, before, order="seq DESC", limit=most)
        return [_shown(row) for row in rows]

    def failed(self, error: JournalError) -> None:
        """Count a row that could not be written."""
        self._missing += 1
        self._reason = str(error)
        if "logging" in sys.modules:
            sys.modules["logging"].getLogger("pegboard").warning("%s", error)

    # Around whole calls ----------------------------------------------------------------------------------------

    def around(self, call: EnteredCall, proceed: Callable[[], Any]) -> Any:
        """Run a call and record it."""
        outer = RECORD.get()
        parent = call.parent or (None if outer is None else outer.entered.call_id)
        session = None if outer is None else outer.session
        if session is None and call.session is not None:
            session = call.session.id
        now = time.time()
        record = Record(call, call.redact, parent, session, self._new_id(now), now, time.perf_counter())
        if self.store is not None and call.shared is not None:
            call.shared["texts"] = partial(_texts, record)
        token = RECORD.set(record)
        result = None
        try:
            result = proceed()
        finally:
            RECORD.reset(token)
            if result is None or isinstance(result, ToolResult):
                self._ended(record, result)
        return result if isinstance(result, ToolResult) else self._awaited(result, record)

    async def _awaited(self, result: Any, record: Record) -> ToolResult:
        token = RECORD.set(record)
        try:
            while not isinstance(result, ToolResult):
                result = await result
        except BaseException:  # the caller was cancelled
            self._ended(record, None)
            raise
        finally:
            with suppress(ValueError):  # a coroutine that is collected is closed in another context
                RECORD.reset(token)
        if self.store is not None:
            await self.aside(self._ended, record, result)
        return result

    def hear(self, what: str, details: Mapping[str, Any]) -> None:
        """Note what happens to the call that runs here, and record a suspended one that was answered."""
        if what == "resumed":
            self._resumed(details["call"], details["result"])
            return
        record = RECORD.get()
        if record is None:
            return
        if what == "retry":
            record.attempts = details["attempt"] + 1
        elif what == "denial":
            record.decided_by = details["by"]
        elif what == "approval":
            record.decided_by = "approver"
            record.approved = details["answer"] == "approved"

    def _ended(self, record: Record, result: ToolResult | None) -> None:
        if self.store is None:
            return
        try:
            self.store.append(self._outcome(record, result))
        except JournalError as error:
            self.failed(error)
        else:
            self._prune(self.store)

    # Rows ------------------------------------------------------------------------------------------------------

    def _row(self, record: Record, name: str, **members: Any) -> Row:
        """The row of a call as far as it is known; `members` are what is known besides."""
        entered, redact = record.entered, record.redact
        tool, session = entered.tool, entered.session
        shown = redact if redact is not None and redact.values else str
        origin = None if tool is None else tool.origin
        return Row(
            id=record.id,
            call_id=plain(shown(entered.call_id)) or "",
            tool=plain(shown(name)) or "",
            version=None if origin is None else plain(origin.version),
            origin=None if origin is None else plain(origin.distribution or origin.plugin),
            session=plain(record.session),
            subject=None if session is None else _name(session.subject),
            agent=_name(entered.agent),
            parent=None if record.parent is None else plain(shown(record.parent)),
            backend=None if tool is None else tool.options.backend,
            started=record.started,
            arguments=self._content(_arguments, record),
            key=None if record.key is None else plain(shown(record.key)),
            **members,
        )

    def _content(self, text: Callable[..., str | None], *of: Any) -> str | None:
        """What is kept of arguments or a result, of which that makes the text."""
        settings = self.settings
        found = None if settings.content == "none" else text(*of)
        if found is None or settings.content == "redacted":
            return found
        return fingerprint(found, settings.key if settings.content == "keyed" else None)

    def _outcome(self, record: Record, result: ToolResult | None) -> Row:
        follows = None if record.intent is None else record.intent.seq
        if result is not None:
            return self._row(record, result.name, follows=follows, **self._ending(record, result))
        tool, seconds = record.entered.tool, time.perf_counter() - record.began
        name = "" if tool is None else tool.name
        ending = {"status": Status.CANCELLED.value, "duration": seconds, "attempts": record.attempts}
        return self._row(record, name, follows=follows, decided_by=record.decided_by, **ending)

    def _ending(self, record: Record, result: ToolResult) -> dict[str, Any]:
        redact = record.redact
        denied = result.status is Status.DENIED
        return {
            "duration": result.duration,
            "status": result.status.value,
            "attempts": result.attempts,
            "result": self._content(_result, record, result),
            "decided_by": record.decided_by or ("permission" if denied else None),
            "kept": canonical(to_data(result, redact or Redaction())) if record.keeps and _is_final(result) else None,
        }

    def _resumed(self, call: ToolCall, result: ToolResult) -> None:
        """Record the answer of a suspended call, in the place of the row that says it is suspended."""
        if self.store is None:
            return
        from pegboard import EnteredCall

        entered = EnteredCall(call.session[call.name], None, None, call.redact or Redaction(), call.session, call.id)
        now = time.time()
        session = plain(getattr(call.session, "id", None))
        record = Record(entered, entered.redact, None, session, self._new_id(now), now, 0.0)
        try:
            row = self._row(record, call.name, **self._ending(record, result))._replace(arguments=None)
            # What a tool called in turn is recorded with the session of the tool's own call.
            within = "(coalesce(session, '') = ? OR parent IS NOT NULL)"
            fits = f"call_id = ? AND tool = ? AND status = 'suspended' AND {within}"
            found = self.store.rows(fits, row.call_id, row.tool, session or "", order="seq DESC", limit=1)
            if found:
                names = ("id", "parent", "session", "agent", "started", "arguments", "key")
                known = {name: getattr(found[0], name) for name in names}
                if found[0].key is not None:  # the answer of one that runs once is kept like any other
                    known["kept"] = canonical(to_data(result, entered.redact))
                row = row._replace(follows=found[0].seq, **known)
            self.store.append(row)
        except JournalError as error:
            self.failed(error)

    # Intents ---------------------------------------------------------------------------------------------------

    def intend(self, call: ToolCall, record: Record, **claim: Any) -> ToolResult | Row | None:
        """Record that a call with an effect begins: its row, the refusal, or None where its claim was taken."""
        store = self.store
        if store is None:
            return None
        try:
            more = {"status": RUNNING, "process": store.process, "decided_by": record.decided_by}
            row = self._row(record, call.name, **more, **claim)
            record.intent = store.append(row, durable=True)
        except (JournalError, OSError) as error:
            self.failed(error if isinstance(error, JournalError) else JournalError(f"journal {store.place}: {error}"))
            if self.settings.on_failure == "run" and not claim:
                return None
            message = f"{call.name} was not run: what it does could not be recorded"
            return refused(call, "journal", message, remedy=self._reason)
        return record.intent

    def _prune(self, store: Store) -> None:
        """Remove what is older than it has to be, once an hour."""
        retain, now = self.settings.retain, time.time()
        if retain is None or now - self._pruned < _HOUR:
            return
        self._pruned = now
        try:
            store.prune(now - age(retain).total_seconds())
            self._unpruned = ""
        except JournalError as error:
            self._unpruned = f"old rows could not be removed from the journal: {error}"

    # Threads ---------------------------------------------------------------------------------------------------

    async def aside(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run what waits for the store in a thread of its own, while the loop goes on."""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        if self._pid != os.getpid():
            self._forget()
        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "pegboard-journal")
            # Submitted under the lock: `close` must not come in between.
            future = asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:  # what was begun is written, and has to be known before the call ends
            await asyncio.wait([future])
            raise

    def close(self) -> None:
        """Close the store, and end the thread. What is recorded later opens it again."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None and self._pid == os.getpid():
            thread.shutdown()
        if self.store is not None:
            self.store.close()


def _texts(record: Record, result: ToolResult) -> tuple[str | None, str | None]:
    return _arguments(record), _result(record, result)


def _arguments(record: Record) -> str | None:
    if record.arguments is _UNREAD:
        record.arguments = decoded(record.entered.arguments)
    return _text(record, "arguments", record.arguments, record.arguments)


def _result(record: Record, result: ToolResult) -> str | None:
    data = result.data if result.error is None else result.error.message
    return _text(record, "result", result, result.text if data is None else data)


def _text(record: Record, name: str, source: Any, data: Any) -> str | None:
    """JSON text without secrets, in no form; it is made once of each source. None where the secrets are not known."""
    redact, known = record.redact, record.texts.get(name)
    if redact is None:
        return None
    if known is None or known[0] is not source:
        text = redact(canonical(redact.deep(data))) if redact.values else canonical(data)
        record.texts[name] = known = source, text
    return known[1]


def _shown(row: Row) -> dict[str, Any]:
    names = ("started", "duration", "status", "arguments", "result")
    answered = row.status == Status.SUCCESS and not row.attempts
    key = " with the same key" if row.key else ""
    notes = [f"it did not run: it was given the answer of an earlier call{key}"] if answered else []
    return {"id": row.call_id, "name": row.tool, "notes": notes, **{name: getattr(row, name) for name in names}}


def _name(value: Any) -> str | None:
    """A name for who acts: text as it is, else what is called `name` or `id` on it, else its class."""
    if value is None or isinstance(value, str | int):
        return plain(value)
    named = getattr(value, "name", None) or getattr(value, "id", None)
    return plain(named if isinstance(named, str | int) else type(value).__qualname__)


def _is_final(result: ToolResult) -> bool:
    """Whether a second call could only come to the same: a success, or an error that the tool says is final."""
    if result.status is Status.SUCCESS:
        return True
    from math import inf

    from pegboard import ToolError

    raised = None if result.error is None else result.error.exception
    default = inf if isinstance(raised, ToolError) else 0.0
    after = getattr(raised, "retry_after", None)
    return result.status is Status.ERROR and (default if after is None else after) == inf
