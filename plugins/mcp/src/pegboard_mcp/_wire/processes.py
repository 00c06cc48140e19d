"""Processes that end with this one, and with their servers: children that a server leaves behind are ended too."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Final, final

__all__ = ["end_groups", "new_loop"]

SCRIPT: Final = """
import os, signal, sys, time
groups = set()
for line in sys.stdin.buffer:
    (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
for each in (signal.SIGTERM, signal.SIGKILL):
    for group in groups:
        try:
            os.killpg(group, each)
        except OSError:
            pass
    time.sleep(0.5 if groups else 0)
"""
PATIENCE: Final = 0.5
KEEPER_PATIENCE: Final = 1.0


@final
class Keeper:
    """A small process that ends what this one started, should this one be killed before it can do so itself.

    It knows the process groups that run; the end of its stdin is the end of this process.
    """

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def add(self, group: int) -> None:
        """End that group when this process ends, however it does."""
        with self._lock:
            self._groups.add(group)
            if self._process is None or self._process.poll() is not None:
                self._process = _started()
                self._tell(*(f"+{each}" for each in self._groups))
            else:
                self._tell(f"+{group}")

    def remove(self, group: int) -> None:
        """It has ended; with the last one the keeper ends too."""
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}")
            process = None if self._groups else self._process
            if process is None or process.stdin is None:
                return
            self._process = None
            with suppress(OSError):
                process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(KEEPER_PATIENCE)

    def _tell(self, *lines: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
                self._process.stdin.flush()


def _started() -> subprocess.Popen[bytes] | None:
    nothing = subprocess.DEVNULL
    with suppress(OSError):  # no interpreter of its own: where Python is a part of another program
        return subprocess.Popen(  # noqa: S603 - this interpreter, with the words above
            [sys.executable, "-I", "-S", "-c", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=nothing,
            stderr=nothing,
            start_new_session=True,
        )
    return None


KEEPER: Final = Keeper()


def new_loop() -> tuple[asyncio.AbstractEventLoop, list[int]]:
    """A loop, and the list where the processes are noted that are started on it; the SDK does not tell which."""
    started: list[int] = []
    if sys.platform == "win32":
        return asyncio.new_event_loop(), started  # where the SDK puts a server's children into a job of their own

    class Noting(asyncio.SelectorEventLoop):
        async def subprocess_exec(self, *arguments: Any, **options: Any) -> Any:
            transport, protocol = await super().subprocess_exec(*arguments, **options)
            started.append(transport.get_pid())
            KEEPER.add(transport.get_pid())
            return transport, protocol

    return Noting(), started


def end_groups(leaders: list[int]) -> None:
    """End whatever is left of the groups of processes that lead one each: at first by SIGTERM."""
    if sys.platform == "win32":
        return
    for each in (signal.SIGTERM, signal.SIGKILL):
        for leader in leaders:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, each)
        deadline = time.monotonic() + PATIENCE
        while any(map(_is_there, leaders)) and time.monotonic() < deadline:
            time.sleep(0.02)
    for leader in leaders:
        KEEPER.remove(leader)


def _is_there(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
