"""Journal: one record of what tools did, for audits, replay in tests, cached answers and calls that must run once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard import Command, Guard, Injector, Middleware, PegboardError, SettingsError, hookimpl
from pegboard_journal._key import IdempotencyKey, key_of
from pegboard_journal._settings import Settings

if TYPE_CHECKING:
    from pegboard_journal._answers import Answers
    from pegboard_journal._entry import Entry
    from pegboard_journal._journal import Flaw, Journal, ToolFigures
    from pegboard_journal._store import JournalError

__all__ = [
    "Entry",
    "Flaw",
    "IdempotencyKey",
    "Journal",
    "JournalError",
    "Settings",
    "ToolFigures",
    "provide_commands",
    "provide_guards",
    "provide_injectors",
    "provide_middleware",
    "provide_tools",
    "settings_type",
]

_INNERMOST = 1_000_000
# Loaded on first use: an installed pack without a url costs next to nothing.
_HOMES = {
    "Entry": "_entry",
    "Flaw": "_journal",
    "Journal": "_journal",
    "JournalError": "_store",
    "ToolFigures": "_journal",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pegboard_journal' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"pegboard_journal.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__


def _run(url: str | None, arguments: list[str]) -> int:
    from pegboard_journal._command import run

    return run(url, arguments)


def _of_toolkit(settings: Settings) -> Answers | None:
    """What answers and records the calls of a toolkit; None where the journal is off.

    Raises `JournalError` for a URL that names no store, `PegboardError` for a cassette that cannot be read.
    """
    if settings.is_on and not settings.made:
        from pegboard_journal._answers import Answers

        settings.made["answers"] = Answers(settings)
    return settings.made.get("answers")


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@hookimpl
def provide_tools(settings: Settings) -> Iterable[Any]:
    """No tools: a source that says what could not be recorded, and that ends with the toolkit."""
    answers = _of_toolkit(settings)
    return () if answers is None else [answers.recorder]


@hookimpl
def provide_injectors() -> Iterable[Injector]:
    """`IdempotencyKey` as a parameter."""
    return [Injector(IdempotencyKey, key_of)]


@hookimpl
def provide_middleware(settings: Settings) -> Iterable[Middleware]:
    """What records whole calls, and nearest to the tools what answers calls instead of them."""
    answers = _of_toolkit(settings)
    if answers is None:
        return ()
    recorder, look_up = answers.recorder, answers.looked_up
    whole = Middleware(recorder.around, "journal", whole=True, told=recorder.hear)
    return [
        *([whole] if recorder.follows else []),
        Middleware(answers.around, "journal", answers.concerns_plain, _INNERMOST, answer=look_up),
        Middleware(answers.around_awaited, "journal", answers.concerns_awaited, _INNERMOST, answer=look_up),
    ]


@hookimpl
def provide_guards(settings: Settings) -> Iterable[Guard]:
    """What asks about calls that may have run before, where there are tools that must run once.

    Raises `SettingsError` for a store or a cassette that cannot be had: a toolkit must not run without them.
    """
    try:
        answers = _of_toolkit(settings)
    except PegboardError as error:
        raise SettingsError(str(error)) from error
    if not settings.once or answers is None:
        return ()
    return [Guard(lambda tool: None, check=answers.check, name="journal")]


@hookimpl
def provide_commands(settings: Settings) -> Iterable[Command]:
    """`pegboard journal`."""
    return [Command("journal", "Read, check and prune the journal of calls.", partial(_run, settings.url))]
