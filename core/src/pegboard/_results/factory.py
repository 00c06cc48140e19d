"""Outcomes: from a returned value or a raised exception to a `ToolResult`."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, Literal, TypeAlias, final
from weakref import ReferenceType, ref

from pegboard._base import errors
from pegboard._base.effects import AttemptTimeoutError, ClosedError, is_cancellation, pass_interrupt, tried
from pegboard._base.errors import Fault, Suspend, ToolError, describe_exception, traceback_text
from pegboard._base.redaction import Redaction
from pegboard._model import result as results
from pegboard._model.call import Called, CallerSession, ToolCall
from pegboard._model.result import Block, Note, Rendering, Status, TextBlock, ToolOutput, ToolResult, Unread, filled
from pegboard._results.converters import Renderers, guarded, joined, shown

ExposeErrors: TypeAlias = Literal["message", "redacted", "traceback"]
Overflow: TypeAlias = Literal["truncate", "spill"]

# Characters of a page where only single tools bound their output.
SPILL_PAGE: Final = 20_000

MAX_ERROR_TEXT: Final = 20_000
_put: Final = object.__setattr__  # into a result, which is closed for all others
PARTIAL: Final = "Its output until then:"
# What is raised to say more than that the tool failed.
_MEANINGFUL: Final = (Suspend, ToolError, AttemptTimeoutError, errors.MissingContextError, errors.TransferError)
MISSING_VALUE: Final = "this tool cannot run here: a value that the program must provide is missing"


@final
class ResultFactory:
    """Makes results: `expose_errors` is how much of an exception the model sees, `max_output` how many characters.

    Longer text is cut, or with `overflow="spill"` kept in `spill`.
    """

    def __init__(
        self, expose_errors: ExposeErrors = "message", max_output: int | None = None, overflow: Overflow = "truncate"
    ) -> None:
        if expose_errors not in ("message", "redacted", "traceback"):
            raise ValueError(f'expose_errors takes "message", "redacted" or "traceback", got {expose_errors!r}')
        if max_output is not None and max_output < 100:
            raise ValueError(f"max_output is a number of characters, at least 100, got {max_output}")
        self.expose_errors = expose_errors
        self.max_output = max_output
        if overflow not in ("truncate", "spill"):
            raise ValueError(f'overflow takes "truncate" or "spill", got {overflow!r}')
        self.spill = Spill(max_output or SPILL_PAGE) if overflow == "spill" else None

    def success(
        self,
        call: Called,
        value: Any,
        renderers: Renderers,
        max_output: int | None = None,
        session: CallerSession | None = None,
    ) -> ToolResult:
        """The result of a call that returned, in a `session` that may read on in what is too long."""
        if isinstance(value, ToolResult):
            clean = value if value.status is results.SUCCESS else redacted(value, renderers.redact)
            return self._adopted(call, clean, max_output or self.max_output, session)
        if isinstance(value, BaseException):
            return self.failure(call, value, renderers.redact)
        metadata: Mapping[str, Any] = {}
        attachments: tuple[Block, ...] = ()
        if isinstance(value, ToolOutput):
            metadata, attachments, value = value.metadata, value.attachments, value.value
        try:
            found = self._rendered(value, renderers, max_output or self.max_output, session)
        except BaseException as error:  # noqa: BLE001 - a converter, or a value's own methods, may raise anything
            pass_interrupt(error)
            kind = type(value).__qualname__
            message = f"the tool returned a {kind} that cannot be turned into a result"
            message += self.because(error, renderers.redact)
            return self.refusal(call, Status.ERROR, "conversion", message, None, error, attempts=1)
        said = tuple(call.notes), tuple(call.logs), (*call.attachments, *attachments)
        return filled(call.id, call.name, results.SUCCESS, found, value, None, 0.0, 1, *said, metadata)

    def _rendered(
        self, value: Any, renderers: Renderers, limit: int | None, session: CallerSession | None
    ) -> Rendering | results.Unrendered:
        render, lazy = renderers.of(type(value))
        if lazy and (limit is None or is_short(value, limit)):
            return render
        found = render(value)
        if limit is None:
            return found
        content, *rest = results.rendered(value, found)
        return self._bounded(content, limit, session), *rest

    def _bounded(
        self, content: tuple[Block, ...], limit: int | None, session: CallerSession | None
    ) -> tuple[Block, ...]:
        return content if limit is None else tuple(self._bounded_block(block, limit, session) for block in content)

    def _bounded_block(self, block: Block, limit: int, session: CallerSession | None) -> Block:
        if not isinstance(block, TextBlock) or len(block.text) <= limit:
            return block
        if self.spill is None or session is None:
            return TextBlock(shortened(block.text, limit))
        return TextBlock(self.spill.keep(block.text, limit, session))

    def _adopted(
        self, call: Called, result: ToolResult, limit: int | None, session: CallerSession | None
    ) -> ToolResult:
        """A result that the tool made itself, under this call's id and name, and within its bounds."""
        content, value, error = self._bounded(result.content, limit, session), result.value, result.error
        said = (*call.notes, *result.notes), (*call.logs, *result.logs), (*call.attachments, *result.attachments)
        rendered = content, result.data
        return filled(call.id, call.name, result.status, rendered, value, error, 0.0, 1, *said, result.metadata)

    def because(self, error: BaseException, redact: Redaction | None = None) -> str:
        """What follows "it failed": a colon and the message of `error`, as far as the model may see it."""
        return "" if self.expose_errors == "redacted" else f": {self.said(error, redact)}"

    def said(self, error: BaseException, redact: Redaction | None = None) -> str:
        """The message of `error`, as far as the model may see it."""
        if self.expose_errors == "redacted" and not isinstance(error, ToolError | AttemptTimeoutError):
            return "the tool failed"
        message = describe_exception(error)
        if redact is not None:
            message = redact(message)  # before it is cut: half a secret is no longer recognised
        return message if len(message) <= MAX_ERROR_TEXT else shortened(message, MAX_ERROR_TEXT)

    def failure(
        self, call: Called, error: BaseException, redact: Redaction | None = None, attempts: int = 1
    ) -> ToolResult:
        """The result of a call that raised."""
        if self.has_meaning(error):
            return self._meant(call, error, redact)
        attempts = 0 if isinstance(error, ClosedError) else attempts
        return self._result(call, Status.ERROR, *self.told(error, redact), attempts=attempts)

    def has_meaning(self, error: BaseException) -> bool:
        """Whether an exception says more than that the tool failed."""
        return isinstance(error, _MEANINGFUL) or (not isinstance(error, Exception) and is_cancellation(error))

    def told(self, error: BaseException, redact: Redaction | None = None) -> tuple[Unread, str]:
        """The fault of any other exception, as far as a result keeps it, and what the model reads of it."""
        message = self.said(error, redact)
        text = written(error, redact) if self.expose_errors == "traceback" else f"Error: {message}"
        return ("exception", message, None, error), text

    def _meant(self, call: Called, error: BaseException, redact: Redaction | None) -> ToolResult:
        """The result of a call that raised something with a meaning of its own."""
        if isinstance(error, Suspend):
            text = error.reason or f"the answer of {call.name} comes later"
            return self._result(call, Status.SUSPENDED, None, text, error.details)
        if isinstance(error, errors.MissingContextError):
            return self.refusal(call, Status.INVALID, "missing_context", MISSING_VALUE, error.details, error)
        if isinstance(error, errors.TransferError):
            return self.refusal(call, Status.ERROR, "transfer", str(error), error.details, error, attempts=1)
        message = self.said(error, redact)
        details = {"type": type(error).__qualname__}
        if isinstance(error, AttemptTimeoutError):
            details["timeout"] = f"{error.seconds:g}"
            return self._result(call, Status.TIMEOUT, ("timeout", message, details, error), f"Error: {message}")
        if is_cancellation(error):
            fault = "cancelled", "the call was cancelled", details, error
            return self._result(call, Status.CANCELLED, fault, "Error: the call was cancelled")
        return self._result(call, Status.ERROR, ("tool_error", message, details, error), message)

    def with_partial(
        self,
        result: ToolResult,
        yielded: Any,
        limit: int | None,
        redact: Redaction | None,
        session: CallerSession | None = None,
    ) -> ToolResult:
        """A failure with what the tool had yielded until then: for the model after the error, as `metadata["partial"]`.

        An abandoned thread may go on and yield more: that is not in it.
        """
        so_far = list(yielded)
        if not so_far or not result.is_error:
            return result
        value = joined(so_far)
        value = value if redact is None else redact.deep(value)
        # The value's own methods may raise: the program has it, the model has the error.
        bounded = self._bounded(tried(shown, value) or (), limit or self.max_output, session)
        said = (TextBlock(f"{result.text}\n{PARTIAL}"),) if bounded else result.content
        _put(result, "_rendered", ((*said, *bounded), result.data))
        _put(result, "metadata", {**result.metadata, "partial": value})
        return result

    def refusal(
        self,
        call: Called,
        status: Status,
        kind: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        exception: BaseException | None = None,
        *,
        attempts: int = 0,
    ) -> ToolResult:
        """The result of a call that did not run, or not to its end: `message` is written for the model."""
        fault = kind, message, details or {}, exception
        return self._result(call, status, fault, f"Error: {message}", attempts=attempts)

    def not_permitted(self, call: Called) -> ToolResult:
        """The result of a call of a tool whose permission is `never`."""
        remedy = {"remedy": f'toolkit.set_permission({call.name!r}, "always") or "prompt"'}
        return self.refusal(call, Status.DENIED, "denied", f"{call.name} is not permitted", remedy)

    def _result(
        self,
        call: Called,
        status: Status,
        fault: Unread,
        text: str,
        metadata: Mapping[str, Any] | None = None,
        attempts: int = 1,
    ) -> ToolResult:
        said = tuple(call.notes), tuple(call.logs), tuple(call.attachments)
        return filled(call.id, call.name, status, text, None, fault, 0.0, attempts, *said, metadata or {})


def is_short(value: Any, limit: int) -> bool:
    """Whether the text of an immutable value is no longer than `limit` for sure, which is at least 100."""
    kind = type(value)
    return len(value) <= limit if kind is str else kind is not int or value.bit_length() < 300


def finished(
    result: ToolResult, duration: float, attempts: int | None = None, retries: Iterable[Mapping[str, Any]] = ()
) -> ToolResult:
    """The same result with its duration (seconds), its number of attempts and what is told of those that failed."""
    _put(result, "duration", duration)
    if attempts is not None:
        _put(result, "attempts", attempts)
    if retries:
        # Metadata of that name is the tool's own affair.
        _put(result, "metadata", {"retries": list(retries), **result.metadata})
    return result


def gathered(result: ToolResult, call: ToolCall) -> None:
    """Give a result what was noted, logged and attached to its call."""
    _put(result, "_notes", tuple(call.notes))
    _put(result, "logs", tuple(call.logs))
    _put(result, "attachments", tuple(call.attachments))


def redacted(result: ToolResult, redact: Redaction | None) -> ToolResult:
    """The same result without secrets: in its logs, its notes and its repr, and, if it is none of success, anywhere.

    What a tool returns is its own affair.
    """
    if redact is None:
        return result
    _put(result, "logs", redact.deep(result.logs))
    notes = tuple(Note(redact(note), kind=note.kind, path=note.path) for note in result.notes)
    _put(result, "_notes", notes)
    if result.status is Status.SUCCESS:
        _put(result, "_rendered", partial(guarded, result._rendered, redact))
        return result
    for name in ("attachments", "metadata", "value"):
        _put(result, name, redact.deep(getattr(result, name)))
    _put(result, "_rendered", redact.deep((result.content, result.data)))
    error = result.error
    if error is not None:
        fault = Fault(error.kind, redact(error.message), redact.deep(error.details), error.exception)
        _put(result, "_fault", fault)
    return result


def shortened(text: str, limit: int) -> str:
    """Head and tail of a text that is longer than `limit` characters, saying how much was cut between them."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[... {len(text) - head - tail} of {len(text)} characters cut here ...]\n{text[-tail:]}"


def written(error: BaseException, redact: Redaction | None = None) -> str:
    """The traceback of an exception, without secrets, at a length that can be read."""
    text = traceback_text(error)
    return shortened(text if redact is None else redact(text), MAX_ERROR_TEXT)


# How much text is kept in all; the oldest goes first.
KEPT_CHARACTERS: Final = 64_000_000


@final
class Spill:
    """Keeps long texts of one toolkit in memory, and reads them page by page to the sessions that may."""

    def __init__(self, page: int, kept: int = KEPT_CHARACTERS) -> None:
        self._page = page
        self._kept = kept
        # By handle; each with what the sessions are told by that may read it, which it does not keep alive.
        self._texts: dict[str, tuple[str, tuple[ReferenceType[Any], ...]]] = {}
        self._lock = threading.Lock()

    def keep(self, text: str, limit: int, session: CallerSession) -> str:
        """The first `limit` characters, and where that session, and the wider ones, get the rest."""
        import secrets

        with self._lock:
            handle = f"output_{secrets.token_hex(8)}"
            self._texts[handle] = text, tuple(map(ref, session.lineage()))
            while len(self._texts) > 1 and sum(len(each) for each, _ in self._texts.values()) > self._kept:
                del self._texts[next(iter(self._texts))]
        rest = f'the rest: read_output(handle="{handle}", offset={limit})'
        return f"{text[:limit]}\n[{limit} of {len(text)} characters; {rest}]"

    def read(self, handle: str, offset: int, reader: object) -> str:
        """A page of a kept text, and where the rest is to be had.

        Raises `ToolError`, in the same words, for a text that is not kept and for one that this reader may not read.
        """
        text, readers = self._texts.get(handle, ("", ()))
        if not any(each() is reader for each in readers):
            raise ToolError(f"no output {handle!r} is kept (any more); call the tool again")
        end = offset + self._page
        page = text[offset:end]
        if end >= len(text):
            return page
        rest = f'the rest: read_output(handle="{handle}", offset={end})'
        return f"{page}\n[up to {end} of {len(text)} characters; {rest}]"
