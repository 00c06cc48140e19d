"""Processes: how a command is started on this platform, and what is known of it through its supervisor."""

from __future__ import annotations

import marshal
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, final

from attrs import field, frozen

__all__ = ["Event", "Launch", "Process", "SupervisedProcess", "can_supervise", "supervisor_arguments"]

SUPERVISOR: Final = str(Path(__file__).parent)
"""Where the supervisor is. It is imported there, not run as a script, which would be compiled for each command."""
_BEGIN: Final = "import sys; sys.path.append(sys.argv.pop(1)); import supervisor; supervisor.main()"

# By their values: the names are there on Windows only.
_NEW_GROUP: Final = 0x0000_0200
_NO_WINDOW: Final = 0x0800_0000

_BLOCK: Final = 64 * 1024
_GOODBYE: Final = 0.1
"""Seconds that a supervisor has to go when all is done."""
_PATIENCE: Final = 15.0
"""Seconds that it has otherwise. Then it is killed, and processes that the command left running are not ended."""

Event: TypeAlias = tuple[str, bytes]
"""`stdout` and `stderr` with what was written; `started` with the process's number; `failed` with that of an error;
`ended` with the wait status and the number of processes that are left."""


@frozen
class Launch:
    """A command with everything that it starts with: `grace` is in seconds, `limits` by the names of `resource`.

    `confinement` is what the supervisor does before the command begins. `monitor` says that the process that is started
    only watches over the command.
    """

    argv: tuple[str, ...]
    directory: str
    environment: Mapping[str, str] = field(repr=False)
    limits: Mapping[str, int] = field(factory=dict)
    grace: float = 0.5
    confinement: Mapping[str, Any] = field(factory=dict, repr=False)
    monitor: bool = False

    def options(self, *, windows: bool = os.name == "nt") -> dict[str, Any]:
        """The options of `subprocess.Popen`: pipes for the output, a session or group of its own, no console."""
        options: dict[str, Any] = {
            "cwd": self.directory,
            "env": dict(self.environment),
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "bufsize": 0,
            "close_fds": True,
        }
        return options | ({"creationflags": _NEW_GROUP | _NO_WINDOW} if windows else {"start_new_session": True})


def can_supervise() -> bool:
    """Whether commands run under a supervisor: on POSIX, where this program's interpreter can run a script."""
    return os.name == "posix" and bool(sys.executable) and not getattr(sys, "frozen", False)


def supervisor_arguments(launch: Launch) -> list[str]:
    """The command line of the supervisor of a command."""
    config: dict[str, Any] = {
        "grace": launch.grace,
        "limits": dict(launch.limits),
        "confinement": dict(launch.confinement),
        "monitor": launch.monitor,
    }
    return [sys.executable, "-I", "-S", "-c", _BEGIN, SUPERVISOR, marshal.dumps(config).hex(), *launch.argv]


class Process(Protocol):
    """A command that was started: what a run needs of it, however that was."""

    def poll(self, seconds: float) -> list[Event]:
        """What happened, within so many seconds at most."""

    def end(self) -> None:
        """Have it ended, gently at first; from any thread. A later `ended` says that it has."""

    def force(self) -> None:
        """Kill it, now."""

    def close(self) -> None:
        """Give back pipes and handles, whether or not another process still holds the other ends."""


@final
class SupervisedProcess:
    """Starts a command under a supervisor. Raises OSError where that cannot be started."""

    def __init__(self, launch: Launch) -> None:
        self._control, far_end = socket.socketpair()
        try:
            options = launch.options() | {"stdin": far_end}
            self._supervisor = subprocess.Popen(supervisor_arguments(launch), **options)  # noqa: S603 - that is what it is for
        except BaseException:
            self._control.close()
            raise
        finally:
            far_end.close()
        self._pid = 0
        self._unread = b""
        self._ended = False
        self._selector = selectors.DefaultSelector()
        for name, source in self._sources().items():
            os.set_blocking(source, False)
            self._selector.register(source, selectors.EVENT_READ, name)

    def _sources(self) -> dict[str, int]:
        out, err = self._supervisor.stdout, self._supervisor.stderr
        assert out is not None  # noqa: S101 - both are pipes
        assert err is not None  # noqa: S101 - as above
        return {"stdout": out.fileno(), "stderr": err.fileno(), "control": self._control.fileno()}

    def poll(self, seconds: float) -> list[Event]:
        """What happened, within so many seconds at most."""
        events: list[Event] = []
        for key, _ in self._selector.select(seconds):
            try:
                data = os.read(key.fd, _BLOCK)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data:
                self._selector.unregister(key.fd)
            if key.data == "control":
                events += self._heard(data)
            elif data:
                events.append((key.data, data))
        # What the command wrote stands before that it has ended.
        return sorted(events, key=lambda event: event[0] == "ended")

    def _heard(self, data: bytes) -> list[Event]:
        if not data and not self._ended:  # the supervisor was killed
            self.force()
            return [("ended", b"9 1")]
        *lines, self._unread = (self._unread + data).split(b"\n")
        events = []
        for line in lines:
            word, _, rest = line.partition(b" ")
            if word == b"started":
                self._pid = int(rest)
            self._ended = self._ended or word == b"ended"
            events.append((word.decode("ascii"), rest))
        return events

    def end(self) -> None:
        """Have the supervisor end the command: TERM, grace, KILL."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def force(self) -> None:
        """Kill the command. The supervisor, which the command may have stopped, is to go on and end all the rest."""
        for group, number in ((self._pid, signal.SIGKILL), (self._supervisor.pid, signal.SIGCONT)):
            if group:
                with suppress(OSError):
                    os.killpg(group, number)

    def close(self) -> None:
        """Close our ends of all pipes, even if other processes still hold theirs, and have the supervisor reaped."""
        self._selector.close()
        for file in (self._supervisor.stdout, self._supervisor.stderr, self._control):
            if file is not None:
                file.close()
        try:
            self._supervisor.wait(_GOODBYE)
        except subprocess.TimeoutExpired:  # on a busy machine; the caller need not wait for that
            threading.Thread(target=self._see_off, name="pegboard-shell", daemon=True).start()

    def _see_off(self) -> None:
        try:
            self._supervisor.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()
