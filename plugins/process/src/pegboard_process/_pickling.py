"""A job on its way to another process, and what comes back, with errors that say what could not travel."""

from __future__ import annotations

import copyreg
import inspect
import io
import pickle
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from pegboard import CancelToken, Emitter, Job, ToolCall, TransferError, describe_exception
from pegboard_process._worker import LOST, RAISED, STUCK, job_call, job_emitter, job_token

__all__ = ["RemoteError", "pack", "read", "unpack"]

_ELSEWHERE: Final = 'or let the tool run here, with backend="thread"'
_PLAIN: Final = "plain data, or objects of classes at the top level of a module"
_ARGUMENT: Final = f"pass {_PLAIN}; make connections, locks and open files inside the tool; {_ELSEWHERE}"
_FUNCTION: Final = (
    "the process finds it by name: define it at the top level of a module that can be imported, not inside a function "
    f"nor in an interactive session; {_ELSEWHERE}"
)
_RETURNED: Final = f"return {_PLAIN}, or write large things to a file and return its name; {_ELSEWHERE}"


class RemoteError(Exception):
    """Stands for an exception that a tool raised in another process and that cannot be pickled."""


class _RemoteTraceback(Exception):  # noqa: N818 - no error of its own: the cause of one, for whoever reads the log
    """The traceback in the tool's process."""

    def __init__(self, text: str) -> None:
        super().__init__(text)

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def pack(job: Job) -> tuple[bytes, bool]:
    """A job as bytes, and whether it asks for its token. Raises `TransferError` saying what cannot be pickled."""
    args, kwargs = job.arguments()
    asked: list[CancelToken] = []
    header = pickle.dumps((job.call.id, job.call.name, job.emitter.heard))
    try:
        return header + _pickled((job.function, args, kwargs), job, asked), bool(asked)
    except Exception as error:
        raise _blamed(job, args, kwargs, error) from error


def _pickled(value: Any, job: Job, asked: list[CancelToken]) -> bytes:
    def token(given: CancelToken) -> tuple[Any, ...]:
        if given is not job.token:
            raise TypeError("cannot pickle the CancelToken of another call")
        asked.append(given)
        return job_token, ()

    def emitter(given: Emitter) -> tuple[Any, ...]:
        if given is not job.emitter:
            raise TypeError("cannot pickle the Emitter of another call")
        return job_emitter, ()

    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL)
    call = partial(_call, job.emitter)
    pickler.dispatch_table = {**copyreg.dispatch_table, CancelToken: token, Emitter: emitter, ToolCall: call}
    pickler.dump(value)
    return stream.getvalue()


def _call(emitter: Emitter, call: ToolCall) -> tuple[Any, ...]:
    by_hand = call.emitter is emitter
    return job_call, (call.id, call.name, call.arguments, dict(call.provider_meta), dict(call.typed), by_hand)


def _blamed(job: Job, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception) -> TransferError:
    """What of a job it is that cannot be pickled. Parameters that the model does not know are named in details only."""
    reason = _reason_against(job.function, job)
    if reason is not None:
        return TransferError("the function of this tool cannot be sent to a process", _details(reason, _FUNCTION))
    for name, value in _named(job, args, kwargs).items():
        reason = _reason_against(value, job)
        if reason is None:
            continue
        kind = type(value).__qualname__
        details = {"parameter": name, "type": kind, **_details(reason, _ARGUMENT)}
        what = f"the value of {name!r} (a {kind})" if name in job.shown else "a value that the program provides"
        return TransferError(f"{what} cannot be sent to the process of this tool", details)
    details = _details(_described(error), _ARGUMENT)
    return TransferError("the arguments cannot be sent to the process of this tool", details)


def _named(job: Job, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return dict(inspect.signature(job.function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {**{f"argument {index}": value for index, value in enumerate(args)}, **kwargs}


def _reason_against(value: Any, job: Job) -> str | None:
    try:
        _pickled(value, job, [])
    except Exception as error:  # noqa: BLE001 - the value's own methods are at work here
        return _described(error)
    return None


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {describe_exception(error)}"


def _details(reason: str, remedy: str) -> dict[str, str]:
    return {"reason": reason, "remedy": remedy}


def unpack(kind: bytes, content: bytes, job: Job) -> Any:
    """What a tool returned in its process; raises what it raised there, and `TransferError` for what cannot travel."""
    opened = read(content)
    if kind == LOST:
        raise TransferError("this tool cannot be called in its process", _details(opened, _FUNCTION))
    if kind == STUCK:
        cls, reason = opened
        message = f"what this tool gave (a {cls}) cannot be sent back from its process"
        raise TransferError(message, {"type": cls, **_details(reason, _RETURNED)})
    *outcome, logs, attachments = opened
    job.call.logs.extend(logs)
    job.call.attachments.extend(attachments)
    if kind == RAISED:
        raise _raised(*outcome)
    return outcome[0]


def read(content: bytes) -> Any:
    """What a tool sent from its process. Raises `TransferError`."""
    try:
        return pickle.loads(content)  # noqa: S301 - from a process of our own
    except Exception as error:
        message = "what this tool gave cannot be read back from its process"
        raise TransferError(message, _details(_described(error), _RETURNED)) from error


def _raised(sent: bytes | None, kind: str, message: str, trace: str) -> BaseException:
    error = None if sent is None else _opened(sent)
    if error is None:
        error = RemoteError(message if message.startswith(kind) else f"{kind}: {message}")
    error.__cause__ = _RemoteTraceback(trace)
    return error


def _opened(sent: bytes) -> BaseException | None:
    try:
        error = pickle.loads(sent)  # noqa: S301 - as above
    except Exception:  # noqa: BLE001 - then its type and message have to do
        return None
    return error if isinstance(error, BaseException) else None
