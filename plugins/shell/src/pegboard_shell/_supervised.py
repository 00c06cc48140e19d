"""A supervised process: a command, seen through the socket and the pipes of its supervisor."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from typing import Final, final

from pegboard_shell._launch import Launch, supervisor_arguments
from pegboard_shell._process import Event

__all__ = ["SupervisedProcess"]

_BLOCK: Final = 64 * 1024
_GOODBYE: Final = 0.1
"""Seconds that a supervisor has to go when all is done."""
_PATIENCE: Final = 15.0
"""Seconds that it has otherwise. Then it is killed, and processes that the command left running are not ended."""


@final
class SupervisedProcess:
    """Starts a command under a supervisor. Raises OSError where that cannot be started."""

    def __init__(self, launch: Launch) -> None:
        self._control, theirs = socket.socketpair()
        try:
            options = launch.options() | {"stdin": theirs}
            self._supervisor = subprocess.Popen(supervisor_arguments(launch), **options)  # noqa: S603 - that is what it is for
        except BaseException:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._pid = 0
        self._said = b""
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
        # What the command said stands before that it has ended.
        return sorted(events, key=lambda event: event[0] == "ended")

    def _heard(self, data: bytes) -> list[Event]:
        if not data and not self._ended:  # the supervisor was killed
            self.force()
            return [("ended", b"9 1")]
        *lines, self._said = (self._said + data).split(b"\n")
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
