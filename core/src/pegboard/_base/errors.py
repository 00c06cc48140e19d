"""Exceptions that a program meets, and the fault record that a result carries."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen


class PegboardError(Exception):
    """The base of every error that Pegboard raises towards the program (never out of a call).

    Args:
        message: What is wrong and what to do.
        details: Data for the program alone: where such an error becomes a result, a model reads the message. None for
            none.
    """

    def __init__(self, message: str = "", details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = dict(details or {})


class RegistrationError(PegboardError):
    """Something cannot become a tool; the message names the tool, the parameter and the remedy."""


class ConflictError(RegistrationError):
    """Two sides claim the same name or type; the message names both."""


class UnknownNameError(PegboardError, KeyError):
    """A name that is not there; the message offers the nearest ones. A `KeyError`, as a mapping would raise."""

    # KeyError shows repr(args[0]); a sentence reads better as it is.
    __str__ = Exception.__str__


class PluginError(PegboardError):
    """A plugin could not be loaded, raised only with `on_plugin_error="raise"`."""


class SettingsError(PegboardError):
    """A setting is unknown or has the wrong type; the message names source, key and the nearest valid key."""


class TransferError(PegboardError):
    """A value cannot be sent to a tool's process, or back; `details` name it for the program and say what to do."""


class ToolError(Exception):
    """Raised by a tool to tell the model something: the message is shown to the model exactly as it is."""


class Suspend(Exception):  # noqa: N818 - a request, not a failure; the contract names it so
    """Raised by a tool whose answer comes later: the result is `suspended` until `toolkit.resume(call_id, value)`.

    Args:
        reason: What the call waits for, or the question.
        resume: Function, sync or async, that makes the tool's value from the answer; it may raise `Suspend` again. None
            takes the answer as the value.
        details: Data for the program, which the result has as `metadata`; `form` is the JSON Schema of an answer.
    """

    def __init__(self, reason: str = "", resume: Callable[[Any], Any] | None = None, **details: Any) -> None:
        super().__init__(reason)
        self.reason = reason
        self.resume = resume
        self.details = details


def check_options(of: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raises TypeError for an option that does not exist, with the nearest one that does."""
    for name in given:
        if name not in known:
            raise TypeError(f"{of} has no option {name!r}. {suggestion(name, known, noun='options')}")


class Mismatch(ValueError):  # noqa: N818 - control flow between compiled checks and the explainer, never shown
    """A JSON value does not fit a type plan. Type handlers may raise it (or any other exception) from `structure`.

    Args:
        args: The message, as of any exception.
        located: Single problems of a judge that finds several at once: the keys and indices that lead from the value to
            its part, and what is wrong there.
    """

    located: tuple[tuple[Sequence[str | int], str], ...] = ()

    def __init__(self, *args: object, located: Iterable[tuple[Sequence[str | int], str]] = ()) -> None:
        super().__init__(*args)
        self.located = tuple(located)


class BareMismatch(Mismatch):
    """A mismatch that says no more than that: what compiled checks raise, made without a call of `__init__`."""

    __init__ = ValueError.__init__


class MissingContextError(Exception):
    """A context parameter found no object; becomes an `invalid` result whose details are for the program alone."""

    def __init__(self, details: Mapping[str, Any]) -> None:
        super().__init__("a value that the program must provide is missing")
        self.details = dict(details)


@frozen(slots=False)  # half the time of slots, and every failed call makes one
class Fault:
    """What went wrong in a call.

    Args:
        kind: What kind of failure it is, as a word that programs can compare.
        message: Text for the model.
        details: Data for the program.
        exception: The exception, where there was one. It does not cross processes.
    """

    kind: str
    message: str
    details: Mapping[str, Any] = field(factory=dict, repr=False)
    exception: BaseException | None = field(default=None, repr=False, eq=False)


def describe_exception(error: BaseException) -> str:
    """Return the message of an exception, or its type's name where there is none. Never raises.

    Args:
        error: The exception.
    """
    try:
        message = str(error)
        if isinstance(error, BaseExceptionGroup):
            return f"{error.message}: {'; '.join(map(_with_name, error.exceptions[:5]))}"
    except BaseException:  # noqa: BLE001 - a broken __str__ may raise anything, and the call must still end in a result
        return f"{type(error).__name__} (its message could not be read)"
    if message and isinstance(error, Exception) and not isinstance(error, KeyError):
        return message
    # A bare key, or the 3 of SystemExit(3), says nothing by itself.
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def traceback_text(error: BaseException) -> str:
    """The formatted traceback, and never an exception of its own."""
    try:
        import traceback

        return "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001 - formatting calls the exception's own __str__
        return describe_exception(error)


def _with_name(error: BaseException) -> str:
    name, text = type(error).__name__, describe_exception(error)
    return text if text.startswith(name) else f"{name}: {text}"


# Letters that are invisible, with the selectors of variants that make no emoji.
_BLANK: Final = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"


def spelled_out(text: str) -> str:
    r"""Text from outside, for a terminal: what moves a cursor, turns text around or is unseen reads as `\u202e`.

    Letters, signs, blanks, line breaks and tabs stay as they are; whatever else there is in Unicode is spelled.

    Args:
        text: The text.
    """
    return re.sub("[^\n\t -~\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]", _spelled, text)


def _spelled(found: re.Match[str]) -> str:
    letter = found.group()
    return letter if letter.isprintable() and not re.match(_BLANK, letter) else letter.encode("unicode_escape").decode()


def nearest(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """The known names closest to `name`, best first, deterministic."""
    import difflib

    folded = {candidate.casefold(): candidate for candidate in sorted(known, reverse=True)}
    return [folded[key] for key in difflib.get_close_matches(str(name).casefold(), sorted(folded), n=limit, cutoff=0.6)]


def suggestion(name: str, known: Iterable[str], *, noun: str = "names") -> str:
    """A sentence that follows "unknown X": the nearest known names, else all of them, else that there are none.

    Args:
        name: The unknown name.
        known: The names that there are.
        noun: What they are names of, in the plural.
    """
    candidates = sorted(known)
    close = nearest(name, candidates)
    if close:
        return f"Did you mean {' or '.join(repr(candidate) for candidate in close)}?"
    if not candidates:
        return f"There are no {noun}."
    shown = ", ".join(candidates[:12]) + (f" and {len(candidates) - 12} more" if len(candidates) > 12 else "")
    return f"Known {noun}: {shown}."
