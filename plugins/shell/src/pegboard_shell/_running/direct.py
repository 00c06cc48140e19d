"""A direct process: a command without a supervisor, where there can be none."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from contextlib import suppress
from typing import IO, Final, final

from pegboard_shell._running.process import Event, Launch

__all__ = ["DirectProcess", "killer"]

_BLOCK: Final = 64 * 1024
_MOST_WAITING: Final = 16


@final
class DirectProcess:
    """Starts a command: on Windows, and in programs that are frozen into one file. Raises OSError.

    What left the command's group (Windows: its tree) is not found at its end, and none of the limits holds.
    """

    def __init__(self, launch: Launch, *, windows: bool = os.name == "nt") -> None:
        self._windows = windows
        self._process = subprocess.Popen(launch.argv, **launch.options())  # noqa: S603 - that is what it is for
        self._events: queue.Queue[Event] = queue.Queue(_MOST_WAITING)
        self._closed = threading.Event()
        self._readers = [
            threading.Thread(target=self._read, args=(name, pipe), daemon=True)
            for name, pipe in (("stdout", self._process.stdout), ("stderr", self._process.stderr))
        ]
        for thread in (*self._readers, threading.Thread(target=self._wait, daemon=True)):
            thread.start()

    def _read(self, name: str, pipe: IO[bytes]) -> None:
        with suppress(OSError, ValueError), pipe:
            while (data := os.read(pipe.fileno(), _BLOCK)) and self._say((name, data)):
                continue

    def _wait(self) -> None:
        code = self._process.wait()
        self._signal_group("SIGKILL")  # what the command left behind, and what may hold our pipes
        for reader in self._readers:
            reader.join(1.0)
        status = -code if code < 0 else code << 8
        self._say(("ended", f"{status} {sum(reader.is_alive() for reader in self._readers)}".encode()))

    def _say(self, event: Event) -> bool:
        while not self._closed.is_set():
            with suppress(queue.Full):
                self._events.put(event, timeout=0.1)
                return True
        return False

    def poll(self, seconds: float) -> list[Event]:
        """What happened, within so many seconds at most."""
        try:
            events = [self._events.get(timeout=max(seconds, 0.001))]
        except queue.Empty:
            return []
        with suppress(queue.Empty):
            while True:
                events.append(self._events.get_nowait())
        return events

    def end(self) -> None:
        """Ask the command and its group to end."""
        if self._windows:
            self.force()  # nothing there can be asked
        else:
            self._signal_group("SIGTERM")

    def force(self) -> None:
        """Kill the command and its group."""
        if not self._windows:
            self._signal_group("SIGKILL")
        elif self._process.poll() is None:
            subprocess.run(killer(self._process.pid), check=False, capture_output=True)  # noqa: S603 - a fixed command
        with suppress(OSError):
            self._process.kill()

    def _signal_group(self, name: str) -> None:
        if not self._windows:  # which has neither groups of this kind nor these signals
            with suppress(OSError):
                os.killpg(self._process.pid, getattr(signal, name))

    def close(self) -> None:
        """Let go of the threads; each closes its own pipe when it can."""
        self._closed.set()


def killer(pid: int) -> list[str]:
    """The command that ends a process and everything below it on Windows."""
    return ["taskkill", "/PID", str(pid), "/T", "/F"]
