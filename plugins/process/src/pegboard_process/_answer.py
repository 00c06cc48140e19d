"""What a tool returned, yielded or raised, as data; made in the tool's process.

Plain data goes as it is: the toolkit makes the result of it, as of a value of its own. A value of any other class is
made a result here, where its class is known, by the packs of types that the toolkit has.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from inspect import isgenerator
from typing import Any, TypeAlias, final

from pegboard import Block, CancelToken, Chunk, Suspend, ToolResult, describe_exception
from pegboard_process import _pipe
from pegboard_process._data import NotDataError, encoded
from pegboard_process._pipe import ITEM, RAISED, RETURNED, STUCK

__all__ = ["Answers", "fitting", "performed", "reason_of", "reported"]

Convert: TypeAlias = Callable[[Any], Any]
Say: TypeAlias = Callable[[bytes, bytes], object]
Collected: TypeAlias = "tuple[list[str], list[Block]]"
"""What a call has logged and attached."""


@final
class StuckError(Exception):
    """A value has no form as data (a lock, a connection, an open file), or is too large: `what` says which."""

    def __init__(self, what: str, cls: str, reason: str) -> None:
        super().__init__(what, cls, reason)
        self.what = what
        self.cls = cls
        self.reason = reason


@final
class Answers:
    """The answers of one function, as data; `packs` are those that map types."""

    def __init__(self, function: Callable[..., Any], packs: tuple[str, ...]) -> None:
        self._function = function
        self._packs = packs
        self._convert = getattr(getattr(function, "__pegboard_tool__", None), "converter", None)  # as decorated

    def returned(self, value: Any, logs: list[str], attachments: list[Block]) -> bytes:
        """The value, and what was logged and attached. Raises `StuckError`."""
        if isinstance(value, BaseException):
            raise value
        if self._convert is None:
            try:
                return encoded([value, logs, attachments])
            except NotDataError:
                pass
        key = self._function.__module__, self._function.__qualname__
        return encoded([self._result(key, value, self._promise()), logs, attachments])

    def item(self, value: Any) -> bytes:
        """A value that was yielded. Raises `StuckError`."""
        try:
            return encoded(value)
        except NotDataError:
            result = self._result(None, value, {})
            return encoded(result.data if result.data is not None else list(result.content) or None)

    def _promise(self) -> dict[str, Any]:
        """What the function's annotation says of its value."""
        from typing import get_type_hints

        try:
            hints = get_type_hints(self._function, include_extras=True)
        except Exception:  # noqa: BLE001 - the toolkit has read them, or the tool has a schema of its own
            return {}
        return {"return": hints["return"]} if "return" in hints else {}

    def _result(self, key: Any, value: Any, promise: dict[str, Any]) -> ToolResult:
        convert = self._convert if key else None
        result = _maker(self._packs).made(key, value, promise, convert)
        if isinstance(result.data, str) and _is_handle(value):
            cls = type(value).__qualname__
            raise StuckError(f"a {cls}", cls, _reason_against(value))
        metadata = {str(name): _data_of(self._packs, each) for name, each in result.metadata.items()}
        made = result.status, result.content, result.data, result.error, 0.0, 1, result.notes, result.logs
        return ToolResult("", "", *made, result.attachments, metadata)


@final
class _Maker:
    """Makes results of values as a toolkit with these packs does."""

    def __init__(self, packs: tuple[str, ...]) -> None:
        from pegboard import Toolkit

        self._toolkit = Toolkit(plugins=packs)
        self._names: dict[Any, str] = {}
        self._value: Any = None

    def made(self, key: Any, value: Any, promise: Mapping[str, Any], convert: Convert | None = None) -> ToolResult:
        """What becomes of a value that a function returns; `key` stands for its promise and its converter."""
        if key not in self._names:
            self._names[key] = self._registered(f"answer_{len(self._names)}", promise, convert)
        self._value = value
        try:
            return self._toolkit.call_sync(self._names[key])
        finally:
            self._value = None

    def _registered(self, name: str, promise: Mapping[str, Any], convert: Convert | None) -> str:
        from pegboard import RegistrationError, tool

        def answer() -> Any:
            return self._value

        for hints in (promise, {}):
            answer.__annotations__ = dict(hints)
            with suppress(RegistrationError):  # a type that the program alone knows
                self._toolkit.register(tool(name=name, backend="inline", converter=convert)(answer))
                break
        return name


@cache
def _maker(packs: tuple[str, ...]) -> _Maker:
    return _Maker(packs)


def _data_of(packs: tuple[str, ...], value: Any) -> Any:
    try:
        encoded(value)
    except NotDataError:
        return _maker(packs).made(None, value, {}).data
    return value


def _is_handle(value: Any) -> bool:
    """Whether a value belongs to its process: it has no text of its own, and cannot be pickled."""
    return "__str__" not in {name for cls in type(value).__mro__[:-1] for name in vars(cls)} and bool(
        _reason_against(value)
    )


def _reason_against(value: Any) -> str:
    try:
        pickle.dumps(value)
    except Exception as error:  # noqa: BLE001 - the value's own methods are at work here
        return reason_of(error)
    return ""


def performed(
    call: Callable[[], Any], answers: Answers, token: CancelToken, say: Say, collected: Callable[[], Collected]
) -> tuple[bytes, bytes]:
    """Run a tool: the kind and the content of its answer. What a generator yields is sent at once."""
    try:
        value = call()
        if isgenerator(value):
            value = _drawn(value, answers, token, say)
        return RETURNED, fitting(answers.returned(value, *collected()), value)
    except StuckError as stuck:
        return STUCK, encoded([stuck.what, stuck.cls, stuck.reason])
    except BaseException as error:  # noqa: BLE001 - whatever a tool raises, or its value's methods, is the outcome
        return _raised(error, *collected())


def reported(chunk: Chunk) -> bytes:
    """What a tool emits, as `pass_on` reads it."""
    return encoded((chunk.content, *(chunk.progress or ())))


def fitting(content: bytes, value: Any) -> bytes:
    """What is to be sent for a value. Raises `StuckError` for more than a message may have."""
    if len(content) > _pipe.MAX_CONTENT:
        sizes = f"{len(content):,} bytes, and a message has at most {_pipe.MAX_CONTENT:,} bytes"
        raise StuckError(sizes, type(value).__qualname__, "it is too large")
    return content


def _raised(error: BaseException, logs: list[str], attachments: Sequence[Block]) -> tuple[bytes, bytes]:
    try:
        return RAISED, fitting(raised_answer(error, logs, attachments), error)
    except StuckError as stuck:
        return STUCK, encoded([stuck.what, stuck.cls, stuck.reason])


def _drawn(stream: Generator[Any, Any, Any], answers: Answers, token: CancelToken, say: Say) -> Any:
    """Send what a generator yields until it, or its job, has ended. Returns what the generator returned."""
    with closing(stream):
        while not token.cancelled:
            try:
                item = next(stream)
            except StopIteration as stop:
                return stop.value
            say(ITEM, fitting(answers.item(item), item))
    return None


def raised_answer(error: BaseException, logs: list[str], attachments: Sequence[Block]) -> bytes:
    """An exception: the names of its classes, its message, its notes and its traceback."""
    names = [f"{cls.__module__}.{cls.__qualname__}" for cls in type(error).__mro__]
    details = _suspended(error) if isinstance(error, Suspend) else {}
    wanted = getattr(error, "retry_after", None)
    retry_after = wanted if isinstance(wanted, int | float) else None
    notes = [note for note in getattr(error, "__notes__", ()) if isinstance(note, str)]
    described = [type(error).__qualname__, names, _message(error), notes, details, retry_after, _traceback(error)]
    try:
        return encoded([described, logs, list(attachments)])
    except NotDataError:  # what was attached must not hide the error
        return encoded([described, logs, []])


def _suspended(error: Suspend) -> dict[str, Any]:
    details = {name: _data_of((), value) for name, value in error.details.items()}
    return {"reason": str(error.reason), "details": details}


def _message(error: BaseException) -> str:
    if not isinstance(error, Exception) or isinstance(error, BaseExceptionGroup):
        return describe_exception(error)
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - a broken __str__ may raise anything
        return describe_exception(error)


def _traceback(error: BaseException) -> str:
    try:
        # The first frame is that of the process's own loop.
        lines = traceback.format_exception(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
    except Exception:  # noqa: BLE001 - formatting calls the exception's own __str__
        return describe_exception(error)
    return "".join(lines)


def reason_of(error: BaseException) -> str:
    """An exception in a line."""
    return f"{type(error).__name__}: {describe_exception(error)}"
