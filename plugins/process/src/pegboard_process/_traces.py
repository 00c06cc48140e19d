"""What a call changes for its whole process, undone before the next call begins there."""

from __future__ import annotations

import os
import signal

# `signal.getsignal` makes members of enumerations, which takes longer than all else here.
from _signal import getsignal  # type: ignore[import-not-found]
from contextlib import suppress
from typing import Any, Final, final

__all__ = ["Surroundings"]

_TIMERS: Final = tuple(
    getattr(signal, name) for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF") if hasattr(signal, name)
)
_HANDLED: Final = ("HUP", "INT", "QUIT", "USR1", "USR2", "PIPE", "ALRM", "TERM", "CHLD", "WINCH", "VTALRM", "PROF")
_SIGNALS: Final = tuple(int(getattr(signal, f"SIG{name}")) for name in _HANDLED if hasattr(signal, f"SIG{name}"))


@final
class Surroundings:
    """The working folder, the environment, and what signals do, as a call finds them; no timer runs then."""

    def __init__(self) -> None:
        self._folder = _folder()
        self._variables: dict[Any, Any] = {}
        self._handlers: tuple[Any, ...] = ()
        self.note()

    def note(self) -> None:
        """A call begins. Its module may have been imported since the last one, and have set variables."""
        self._variables, self._handlers = dict(_variables()), _handlers()

    def restore(self) -> None:
        """Make them as they were. What cannot be, such as a folder that is no longer there, stays as it is."""
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        if self._folder is not None and _folder() != self._folder:
            with suppress(OSError):
                os.chdir(self._folder)
        if _variables() != self._variables:
            self._restore_variables()
        if (handlers := _handlers()) != self._handlers:
            self._restore_handlers(handlers)

    def _restore_variables(self) -> None:
        kept, now = self._variables, _variables()
        for key in now.keys() - kept.keys():
            del os.environ[os.environ.decodekey(key)]
        for key, value in kept.items():
            if now.get(key) != value:
                os.environ[os.environ.decodekey(key)] = os.environ.decodevalue(value)

    def _restore_handlers(self, now: tuple[Any, ...]) -> None:
        for number, before, after in zip(_SIGNALS, self._handlers, now, strict=True):
            # What no Python code has set, None, cannot be set by any; and only the main thread sets them.
            if before is not None and before != after:
                with suppress(ValueError, OSError):
                    signal.signal(number, before)


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
