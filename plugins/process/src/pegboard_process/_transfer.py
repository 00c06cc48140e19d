"""A job on its way to another process, and what comes back, with errors that say what could not travel.

The child trusts its parent and unpickles what it gets. The parent does not trust the child: `_data` reads its answers.
"""

from __future__ import annotations

import builtins
import copyreg
import inspect
import io
import pickle
from asyncio import CancelledError
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from pegboard import Block, CancelToken, Emitter, Job, PegboardError, Suspend, ToolCall, ToolError, TransferError
from pegboard.inspection import HookName, Plugins
from pegboard_process._answer import reason_of
from pegboard_process._carrier import carried
from pegboard_process._data import decoded
from pegboard_process._errors import RemoteError, UnexpectedAnswerError
from pegboard_process._pipe import RAISED, STUCK, UNREADABLE
from pegboard_process._worker import job_call, job_emitter, job_token

__all__ = ["installed_packs", "named", "opened", "pack", "pass_on", "raised", "unpack"]

_PROTOCOL: Final = pickle.HIGHEST_PROTOCOL
_PLAIN: Final = frozenset({str, bytes, int, float, bool, type(None)})
"""What says nothing of the call."""
_ELSEWHERE: Final = 'or let the tool run here, with backend="thread"'
_ARGUMENT: Final = (
    "pass plain data, or objects of classes at the top level of a module; "
    f"make connections, locks and open files inside the tool; {_ELSEWHERE}"
)
_FUNCTION: Final = (
    "the process finds it by name: define it at the top level of a module that can be imported, not inside a function "
    f"nor in an interactive session; {_ELSEWHERE}"
)
_RETURNED: Final = f"return data, or write large things to a file and return its name; {_ELSEWHERE}"


class _RemoteTraceback(Exception):  # noqa: N818 - no error of its own: the cause of one, for the log
    """The traceback in the tool's process."""

    def __init__(self, text: str) -> None:
        super().__init__(text)

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def installed_packs(plugins: Plugins, *hooks: HookName) -> tuple[str, ...]:
    """The installed packs that answer one of these hooks, for a worker to have them too."""
    origins = [each.origin for hook in hooks for each in plugins.contributions(hook) if not each.builtin]
    return tuple(sorted({each.plugin for each in origins if each.distribution is not None and each.plugin is not None}))


def pack(job: Job, packs: tuple[str, ...]) -> tuple[bytes, bool]:
    """A job as bytes, and whether it asks for its token. Raises `TransferError` saying what cannot be pickled."""
    args, kwargs = job.arguments()
    tokens: list[CancelToken] = []
    header = pickle.dumps((job.call.id, job.call.name, job.emitter.heard, packs, carried()), _PROTOCOL)
    try:
        if _PLAIN.issuperset(map(type, args)) and _PLAIN.issuperset(map(type, kwargs.values())):
            return header + pickle.dumps((job.function, args, kwargs), _PROTOCOL), False
        return header + _pickled((job.function, args, kwargs), job, tokens), bool(tokens)
    except Exception as error:
        raise _blamed(job, args, kwargs, error) from error


def _pickled(value: Any, job: Job, tokens: list[CancelToken]) -> bytes:
    def token(given: CancelToken) -> tuple[Any, ...]:
        if given is not job.token:
            raise TypeError("cannot pickle the CancelToken of another call")
        tokens.append(given)
        return job_token, ()

    def emitter(given: Emitter) -> tuple[Any, ...]:
        if given is not job.emitter:
            raise TypeError("cannot pickle the Emitter of another call")
        return job_emitter, ()

    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, _PROTOCOL)
    call = partial(_call, job.emitter)
    pickler.dispatch_table = {**copyreg.dispatch_table, CancelToken: token, Emitter: emitter, ToolCall: call}
    pickler.dump(value)
    return stream.getvalue()


def _call(emitter: Emitter, call: ToolCall) -> tuple[Any, ...]:
    by_hand = call.emitter is emitter
    return job_call, (call.id, call.name, call.arguments, dict(call.provider_meta), dict(call.typed), by_hand)


def _blamed(job: Job, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception) -> TransferError:
    """The part of a job that cannot be pickled. Parameters that the model does not know are named in details only."""
    reason = _reason_against(job.function, job)
    if reason is not None:
        return TransferError("the function of this tool cannot be sent to a process", _details(reason, _FUNCTION))
    for name, value in named(job, args, kwargs).items():
        reason = _reason_against(value, job)
        if reason is None:
            continue
        kind = type(value).__qualname__
        details = {"parameter": name, "type": kind, **_details(reason, _ARGUMENT)}
        what = f"the value of {name!r} (a {kind})" if name in job.shown else "a value that the program provides"
        return TransferError(f"{what} cannot be sent to the process of this tool", details)
    details = _details(reason_of(error), _ARGUMENT)
    return TransferError("the arguments cannot be sent to the process of this tool", details)


def named(job: Job, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a call by the names of the parameters."""
    try:
        return dict(inspect.signature(job.function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {**{f"argument {index}": value for index, value in enumerate(args)}, **kwargs}


def _reason_against(value: Any, job: Job) -> str | None:
    try:
        _pickled(value, job, [])
    except Exception as error:  # noqa: BLE001 - the value's own methods are at work here
        return reason_of(error)
    return None


def _details(reason: str, remedy: str) -> dict[str, str]:
    return {"reason": reason, "remedy": remedy}


def opened(content: bytes) -> Any:
    """The content of an answer. Raises `UnexpectedAnswerError` for what is no data."""
    try:
        return decoded(content)
    except ValueError:
        raise UnexpectedAnswerError from None


def pass_on(job: Job, content: bytes) -> None:
    """Report a chunk: a block, and the progress if there is one."""
    answer = opened(content)
    block, *far = answer if isinstance(answer, list) and answer else (None,)
    has_progress = len(far) in (0, 2) and all(isinstance(each, int | float | None) for each in far)
    if not (has_progress and isinstance(block, Block)):
        raise UnexpectedAnswerError
    if far:
        job.emitter.progress(far[0], far[1], block.text)
    else:
        job.emit(block)


def unpack(kind: bytes, content: bytes, job: Job) -> Any:
    """What a tool returned in its process; raises what it raised there, and `TransferError` for what cannot travel."""
    answer = opened(content)
    try:
        if kind == UNREADABLE:
            raise TransferError("this tool cannot be called in its process", _details(_text(answer), _FUNCTION))
        if kind == STUCK:
            what, cls, reason = map(_text, answer)
            message = f"what this tool gave ({what}) cannot be sent back from its process"
            raise TransferError(message, {"type": cls, **_details(reason, _RETURNED)})
        outcome, logs, attachments = answer
        error = raised(job.policy.retry_on, *outcome) if kind == RAISED else None
        job.call.logs.extend(list(map(_text, logs)))
        job.call.attachments.extend([each for each in attachments if _is(each, Block)])
    except (TypeError, ValueError):
        raise UnexpectedAnswerError from None
    if error is not None:
        raise error
    return outcome


def _is(value: Any, cls: type) -> bool:
    if not isinstance(value, cls):
        raise TypeError
    return True


def _text(value: Any) -> str:
    _is(value, str)
    return value  # type: ignore[no-any-return]


def raised(
    retried: Iterable[type[BaseException]],
    cls: Any,
    names: Any,
    message: Any,
    notes: Any,
    details: Any,
    retry_after: Any,
    trace: Any,
) -> BaseException:
    """What stands here for an exception of the process: no class is looked up but those that are listed here.

    The rest is what `raised_answer` has of it. Raises TypeError or ValueError for anything else.
    """
    names = list(map(_text, names))
    error: BaseException
    if "pegboard._base.errors.Suspend" in names:
        error = Suspend(_text(details["reason"]), **details["details"])
    elif "asyncio.exceptions.CancelledError" in names:
        error = CancelledError(_text(message))
    else:
        made = _class(_text(cls), names, retried)
        error = made.__new__(made, _text(message))
        if isinstance(retry_after, int | float):
            error.retry_after = retry_after
    for note in notes:
        error.add_note(_text(note))
    error.__cause__ = _RemoteTraceback(_text(trace))
    return error


# What a program asks of an exception is what it is called; these are safe to make without what they are made with.
_KNOWN: Final[dict[str, type[Exception]]] = {
    f"{cls.__module__}.{cls.__qualname__}": cls
    for cls in (*(each for each in vars(builtins).values() if isinstance(each, type)), ToolError, PegboardError)
    if issubclass(cls, Exception)
    and not issubclass(cls, StopIteration | StopAsyncIteration | ExceptionGroup | UnicodeError | Warning)
    and cls is not Exception
}


def _class(name: str, names: list[str], retried: Iterable[type[BaseException]]) -> type[RemoteError]:
    """A class of that name, below those of its bases that are known here."""
    known = {**_KNOWN, **{f"{cls.__module__}.{cls.__qualname__}": cls for cls in retried}}
    nearest = next((known[each] for each in names if each in known), Exception)
    bases = (RemoteError,) if issubclass(RemoteError, nearest) else (RemoteError, nearest)
    try:
        return type(name, bases, {"__module__": RemoteError.__module__, "__init__": _nothing})
    except TypeError:  # a class that allows no subclass, or none of this kind
        return RemoteError


def _nothing(self: Any, *given: Any) -> None:
    """An exception is not made with what it was made with."""
