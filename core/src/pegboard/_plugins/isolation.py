"""Isolation: running a plugin's code so that nothing it does reaches the host, and saying what it did."""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from types import ModuleType
from typing import Any, NamedTuple

from pegboard._base.effects import is_interrupt
from pegboard._base.errors import describe_exception

__all__ = ["Outcome", "isolated", "traceback_text"]

# Modules that everybody's code leans on: a plugin that replaces a part of them changes other plugins' behaviour.
_SHARED = ("builtins", "json", "os", "socket", "threading", "time")


class Outcome(NamedTuple):
    """How plugin code ended: a value or an error; `notes` say what else it did; `seconds` is its wall time."""

    value: Any = None
    error: BaseException | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


def isolated(action: Callable[[], Any], *, watch: bool = False) -> Outcome:
    """Run `action`; whatever it raises is in the outcome, SystemExit included. Only a real Ctrl-C passes through.

    What it prints goes to standard error, for a host may speak a protocol on standard output; `sys.path` is
    restored. With `watch`, a replaced attribute of a shared module is named, but left in place.
    """
    spill = _Spill()
    path, entries = sys.path, list(sys.path)
    shared = _shared() if watch else []
    value, error = None, None
    started = time.perf_counter()
    try:
        with redirect_stdout(spill):
            value = action()
    except BaseException as raised:  # a plugin may raise anything, and must take nobody down
        if is_interrupt(raised):
            raise
        error = raised
    seconds = time.perf_counter() - started
    notes = ["printed to standard output (shown on standard error instead)"] if spill.used else []
    if sys.path is not path or sys.path != entries:
        notes.append("changed sys.path (restored)")
        sys.path = path
        path[:] = entries
    notes.extend(f"replaced {name} for the whole process" for name in _replaced(shared))
    return Outcome(value, error, tuple(notes), seconds)


def traceback_text(error: BaseException | None) -> str:
    """The formatted traceback; empty without an error, and never an exception of its own."""
    if error is None:
        return ""
    try:
        import traceback

        return "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001 - an exception that cannot be formatted is still reported
        return describe_exception(error)


class _Spill:
    """Stands in for standard output: standard error that remembers whether it was written to."""

    def __init__(self) -> None:
        self.used = False

    def write(self, text: str) -> int:
        """Write to standard error, where there is one."""
        self.used = True
        return len(text) if sys.stderr is None else sys.stderr.write(text)

    def close(self) -> None:
        """Do nothing: standard error is everybody's."""

    def __getattr__(self, name: str) -> Any:
        # For code that wants `buffer`, `encoding`, `reconfigure`; without a console (pythonw) there is none of them.
        return getattr(sys.stderr, name)


def _shared() -> list[tuple[ModuleType, dict[str, Any]]]:
    return [(module, dict(vars(module))) for name in _SHARED if (module := sys.modules.get(name)) is not None]


def _replaced(before: list[tuple[ModuleType, dict[str, Any]]]) -> list[str]:
    changed = [pair for pair in before if not _same(vars(pair[0]), pair[1])]
    return [
        f"{module.__name__}.{name}"
        for module, attributes in changed
        for name, value in sorted(attributes.items())
        if vars(module).get(name) is not value and not name.startswith("__") and name != "_"
    ]


def _same(now: dict[str, Any], before: dict[str, Any]) -> bool:
    # By identity and in one go: this runs for every plugin. Names that were added stand at the end and do no harm.
    return len(now) >= len(before) and all(map(operator.is_, now.values(), before.values()))
