"""One call: what was sent, its progress, and its result."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, final

from pegboard import Chunk, PegboardError, Redaction, Session, Status, ToolCall, ToolResult
from pegboard_inspector._json import dumps
from pegboard_inspector._secrecy import MASK, Secrecy, withheld, without

__all__ = ["Made", "masked"]

CHUNKS: Final = 500
"""Number of chunks that are kept of a call: the last ones. The result shows what the call did."""
LONGEST: Final = 200_000
"""Characters of all these chunks together, at most."""
FRAMES: Final = 50
"""Frames of a traceback that are shown: the innermost ones."""
DEEPEST: Final = 100
"""Arguments that are nested deeper are refused by Pegboard. Here they are text."""


@final
class Held:
    """Text in pieces, with the secrets in it masked: the end is held back for as long as it may be a part of one."""

    def __init__(self, redact: Redaction) -> None:
        self._redact = redact
        self._text = ""
        written = [len(dumps(value)) for value in redact.values]
        # A character of a secret is written as twelve at most, such as two escapes of one outside of 16 bits.
        self._most = 12 * max(written, default=0)

    def add(self, piece: str) -> str:
        """What can be shown, now that this has come."""
        self._text += piece
        whole, cut = self._redact(self._text) if self._most else self._text, max(len(self._text) - self._most, 0)
        # Not in the middle of a secret.
        while cut and self._most and self._redact(self._text[:cut]) + self._redact(self._text[cut:]) != whole:
            cut -= 1
        shown, self._text = self._text[:cut], self._text[cut:]
        return self._redact(shown) if self._most else shown

    def rest(self) -> str:
        """What was held back, when nothing more comes."""
        shown, self._text = self._text, ""
        return self._redact(shown) if self._most else shown


@final
class Made:
    """A call that was made from the page as `call`, or by another call, its `parent`, while that ran.

    `version` says when it was changed last; the page knows it by its `id`, the toolkit by its `call_id`.
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the same word as in the page
        name: str,
        sent: str,
        decoded: Any,
        session: Any,
        changed: Callable[[Made], None],
        *,
        call: ToolCall | None = None,
        parent: Made | None = None,
        call_id: str = "",
    ) -> None:
        self.id = id
        self.name = name
        self.sent = sent
        self.call = call
        self.parent = parent
        self.call_id = call_id or id
        self.asks = 0
        """How many approvals wait that it, made by another call, has asked for."""
        self.version = 0
        self.result: ToolResult | None = None
        self.started = time.time()
        self.task: asyncio.Task[Any] | None = None
        # The arguments as the core has parsed them, repaired too; otherwise what can be parsed of the text.
        self._read = dict(decoded) if isinstance(decoded, Mapping) and decoded else _read(sent)
        # The core masks secrets in failures. Here successes are masked, too: the screen may be seen by other people.
        secrecy = Secrecy(session[name].parameters if name in session else {})
        # Of text that cannot be read, or is no object, it is not known where in it a secret stands.
        self._is_opaque = secrecy.is_needed and not isinstance(self._read, dict) and bool(sent.strip())
        secrets = [self._read] if self._is_opaque else secrecy.values(self._read)
        inherited = () if parent is None else parent.redact.values
        self.redact: Redaction = Redaction([*inherited, *_presets(session, name), *secrets])
        self._held = Held(self.redact)
        self._changed = changed
        self._lock = threading.Lock()
        self._chunks: deque[tuple[int, dict[str, Any]]] = deque()
        self._length = 0
        self._count = 0
        self._progress: tuple[float, float | None, str] | None = None

    @property
    def lineage(self) -> list[Made]:
        """It, the call that made it, and so on up to the call of the page."""
        return [self] if self.parent is None else [self, *self.parent.lineage]

    @property
    def root(self) -> Made:
        """The call of the page that it belongs to."""
        return self.lineage[-1]

    @property
    def status(self) -> Status:
        """How far it is."""
        if self.result is not None:
            return self.result.status
        if self.call is not None:
            return self.call.status
        return Status.AWAITING_APPROVAL if self.asks else Status.RUNNING

    async def run(self, call: ToolCall) -> ToolResult:
        """Run a call of the page to its end."""
        self.task = asyncio.current_task()
        result = await call.execute(on_chunk=self._hear)
        self.finish(result)
        return result

    def finish(self, result: ToolResult) -> None:
        """The call has ended, or a suspended one was resumed."""
        with self._lock:
            self.result = result
            self._changed(self)
            self._keep(self._held.rest())

    def conceal(self, secrets: Iterable[Any]) -> None:
        """Mask these too, from now on: what the user has written into private fields of a form."""
        with self._lock:
            self._keep(self._held.rest())
            self.redact = Redaction([*self.redact.values, *secrets])
            self._held = Held(self.redact)

    def _hear(self, chunk: Chunk) -> None:
        with self._lock:
            self._changed(self)
            if chunk.progress is not None:
                self._progress = (*chunk.progress, chunk.text[:LONGEST])
                return
            if chunk.text:
                self._keep(self._held.add(chunk.text))
            else:
                self._keep(self._held.rest())
                self._keep(chunk.content.to_dict())

    def _keep(self, block: str | dict[str, Any]) -> None:
        if block == "":
            return
        block = {"type": "text", "text": block[-LONGEST:]} if isinstance(block, str) else block
        self._count += 1
        self._chunks.append((self.version, {"number": self._count, **block}))
        self._length += _length(block)
        while len(self._chunks) > CHUNKS or (self._length > LONGEST and len(self._chunks) > 1):
            self._length -= _length(self._chunks.popleft()[1])

    @property
    def shown(self) -> str:
        """The text of the arguments without the secrets in it, in whatever way they were written."""
        if self._is_opaque:
            return MASK
        if not self.redact.values:
            return self.sent
        return self.redact(self.sent) if isinstance(self._read, str) else dumps(self.redact.deep(self._read))

    def state(self, since: int = -1) -> dict[str, Any]:
        """The call as the page shows it, with the chunks since a version and without its result."""
        with self._lock:
            chunks = [block for version, block in self._chunks if version > since]
            progress = self._progress
        shown = {
            "id": self.id,
            "parent": None if self.parent is None else self.parent.id,
            "name": self.name,
            "status": self.status.value,
            "done": self.result is not None,
            "started": self.started,
            "duration": None if self.result is None else self.result.duration,
            "arguments": self.shown,
            "chunks": chunks,
            "count": self._count,
            "progress": progress,
        }
        return self.redact.deep(shown) if self.redact.values else shown

    def outcome(self) -> dict[str, Any] | None:
        """The result as the page shows it; None while the call runs."""
        if self.result is None:
            return None
        error = self.result.error
        shown = self.result.to_dict() | {"text": self.result.text}
        if error is not None:
            details = {
                key: error.details[key] for key in ("problems", "reason", "remedy", "type") if key in error.details
            }
            shown["error"] = {"kind": error.kind, "message": error.message, "details": details}
            if error.exception is not None:
                shown["error"]["traceback"] = "".join(traceback.format_exception(error.exception, limit=-FRAMES))
        return self.redact.deep(shown) if self.redact.values else shown

    def editable(self) -> dict[str, Any]:
        """What goes back into the form: the arguments without the secrets in them, and where these stood."""
        if self._is_opaque:
            return {"arguments": "", "withheld": [()]}
        if not self.redact.values:
            return {"arguments": self.sent, "withheld": []}
        arguments = self._read
        paths = list(withheld(arguments, self.redact.deep(arguments)))
        if () in paths:  # it is all one, or keys are secret
            return {"arguments": "", "withheld": paths}
        return {"arguments": dumps(without(arguments, paths)) if paths else self.sent, "withheld": paths}

    def copies(self, target: str | None, *, has_command: bool = True) -> dict[str, str]:
        """The call as it is written elsewhere: in a program, and at a terminal, where that can name the board."""
        sent = self.shown
        arguments = _read(sent)
        board = "" if target is None else f" --toolkit {shlex.quote(target)}"
        whole = dumps(arguments) if isinstance(arguments, dict) else sent
        tail = f" {shlex.quote(whole)}" if whole.strip() else ""
        written = f", {_python(arguments)}" if isinstance(arguments, dict) else f", {sent!r}" if sent.strip() else ""
        command = {"command": f"pegboard{board} call {shlex.quote(self.name)}{tail}"} if has_command else {}
        return {"python": f"await toolkit.call({json.dumps(self.name)}{written})", **command}


def masked(record: Mapping[str, Any], session: Session) -> dict[str, Any]:
    """A recorded call as the page shows it: without what it shows of no call."""
    name, arguments = record["name"], _read(record["arguments"] or "")
    schema: Any = {}
    with suppress(PegboardError):  # it is broken, or not registered any more
        schema = session[name].parameters
    redact = Redaction([*_presets(session, name), *Secrecy(schema).values(arguments)])
    if not redact.values:
        return dict(record)
    if isinstance(arguments, dict):
        record = {**record, "arguments": dumps(redact.deep(arguments))}
    shown: dict[str, Any] = redact.deep(dict(record))
    return shown


def _length(block: Mapping[str, Any]) -> int:
    return len(block.get("text") or block.get("data") or "")


def _presets(session: Any, name: str) -> list[Any]:
    """The secrets that the program has preset."""
    presets = session.presets_of(name).values() if name in session else ()
    return [each.value for each in presets if each.secret and each.computed is None]


def _read(sent: str) -> Any:
    try:
        found = json.loads(sent)
    except (ValueError, RecursionError):
        return sent
    return sent if sent.count("[") + sent.count("{") > DEEPEST and _is_deep(found) else found


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for each in level if isinstance(each, dict | list) for inner in _inside(each)]
    return bool(level)


def _inside(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _python(value: Any) -> str:
    """A value from JSON as Python writes it, with the quotes that people write."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_python(key)}: {_python(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_python, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)
    return re.sub(r"^(-?)(inf|nan)$", r'float("\1\2")', repr(value))
