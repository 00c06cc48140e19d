"""What a call changes for its whole process, undone before the next call begins there."""

from __future__ import annotations

import os
import signal
import sys

# `signal.getsignal` makes members of enumerations, which takes longer than all else here.
from _signal import getsignal  # type: ignore[import-not-found]
from contextlib import suppress
from typing import Any, Final, final

__all__ = ["Surroundings"]

_HANDLED: Final = ("HUP", "INT", "QUIT", "USR1", "USR2", "PIPE", "ALRM", "TERM", "CHLD", "WINCH", "VTALRM", "PROF")
_SIGNALS: Final = tuple(int(getattr(signal, f"SIG{name}")) for name in _HANDLED if hasattr(signal, f"SIG{name}"))


@final
class Surroundings:
    """The working folder, the environment, and what signals do, as a call finds them; no alarm is set then."""

    def __init__(self) -> None:
        self._folder = _folder()
        self._modules = 0
        self._names: list[Any] = []
        self._values: list[Any] = []
        self._handlers: tuple[Any, ...] = ()
        self.note()

    def note(self) -> None:
        """A call begins. If modules were imported for it, what they have set is there to stay."""
        if len(sys.modules) != self._modules:
            variables = _variables()
            self._names, self._values, self._handlers = list(variables), list(variables.values()), _handlers()
            self._modules = len(sys.modules)

    def restore(self) -> None:
        """Make them as they were. What cannot be, such as a folder that is no longer there, stays as it is."""
        _set_timer("ITIMER_REAL")
        if self._folder is not None and _folder() != self._folder:
            with suppress(OSError):
                os.chdir(self._folder)
        variables = _variables()
        # Lists compare what is the same object in no time, dicts do not.
        if list(variables) != self._names or list(variables.values()) != self._values:
            self._restore_variables(dict(variables))
        if (handlers := _handlers()) != self._handlers:
            self._restore_handlers(handlers)
        self._modules = len(sys.modules)  # what the call itself has imported has set nothing that stays

    def _restore_variables(self, now: dict[Any, Any]) -> None:
        kept = dict(zip(self._names, self._values, strict=True))
        for key in now.keys() - kept.keys():
            del os.environ[os.environ.decodekey(key)]
        for key, value in kept.items():
            if now.get(key) != value:
                os.environ[os.environ.decodekey(key)] = os.environ.decodevalue(value)
        self._names, self._values = list(_variables()), list(_variables().values())  # in another order

    def _restore_handlers(self, now: tuple[Any, ...]) -> None:
        _set_timer("ITIMER_VIRTUAL")
        _set_timer("ITIMER_PROF")
        for number, before, after in zip(_SIGNALS, self._handlers, now, strict=True):
            # What no Python code has set, None, cannot be set by any; and only the main thread sets them.
            if before is not None and before != after:
                with suppress(ValueError, OSError):
                    signal.signal(number, before)


def _set_timer(name: str) -> None:
    if (timer := getattr(signal, name, None)) is not None:
        signal.setitimer(timer, 0)


def _folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - in each call
    except OSError:  # it was removed
        return None


def _variables() -> dict[Any, Any]:
    # As they are kept: to read them takes long, for each is decoded.
    return os.environ._data  # type: ignore[attr-defined,no-any-return]


def _handlers() -> tuple[Any, ...]:
    return tuple(map(getsignal, _SIGNALS))
