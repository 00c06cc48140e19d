"""Locks beside a file: which process writes to it, and which one has the turn in a conversation of it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final
from weakref import WeakValueDictionary, finalize

from pegboard.inspection import regular
from pegboard_agent._stores.turns import Turns

__all__ = ["FileLocks"]

WRITER: Final = 0
"""The number of the lock that a writer holds; those of conversations are above."""

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int, number: int, *, wait: bool) -> bool:
        while True:
            os.lseek(descriptor, number % 2**31, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except PermissionError:
                if not wait:
                    return False
                time.sleep(0.001)
            else:
                return True

    def _unlock(descriptor: int, number: int) -> None:
        os.lseek(descriptor, number % 2**31, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int, number: int, *, wait: bool) -> bool:
        """Lock one byte, far beyond the end of the file; the system releases it when the process ends."""
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, number)
        except (BlockingIOError, PermissionError):  # either says that another process holds it
            return False
        return True

    def _unlock(descriptor: int, number: int) -> None:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, number)


@final
class FileLocks:
    """The locks of one file, in the file `<path>.lock` beside it, which stays empty and is never removed.

    They are those of a process: what it forks holds none of them, and closing the file anywhere in the process releases
    them all. So there is one of these for each file, and it alone opens the other one.
    """

    _known: Final[WeakValueDictionary[str, FileLocks]] = WeakValueDictionary()
    _making: Final = threading.Lock()

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._held: set[int] = set()
        self._process = os.getpid()
        self._guard = threading.Lock()
        self._writes = threading.Lock()
        self.turns = Turns(self)

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> FileLocks:
        """The locks of that file, the same ones for all that ask in this process."""
        real = os.path.realpath(path)
        with cls._making:
            found = cls._known.get(real)
            if found is None:
                found = cls._known[real] = cls(f"{real}.lock")
            return found

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the one writer, for an instant."""
        self._refresh()
        with self._writes:
            descriptor = self._open()
            _lock(descriptor, WRITER, wait=True)
            try:
                yield
            finally:
                _unlock(descriptor, WRITER)

    async def take(self, number: int) -> bool:
        """Hold the number, if no other process does. Raises OSError where no file can be made."""
        self._refresh()
        with self._guard:
            taken = _lock(self._open(), number, wait=False)
            if taken:
                self._held.add(number)
            return taken

    async def free(self, number: int) -> None:
        """Hold it no longer."""
        with self._guard:
            if number in self._held and self._process == os.getpid() and self._descriptor is not None:
                self._held.discard(number)
                _unlock(self._descriptor, number)

    def _open(self) -> int:
        if self._descriptor is None:
            self._descriptor = regular(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
            finalize(self, os.close, self._descriptor)
        return self._descriptor

    def _refresh(self) -> None:
        """Hold nothing of what the process held that this one was forked from."""
        if self._process != os.getpid():
            self._process, self._held = os.getpid(), set()
            self._guard, self._writes = threading.Lock(), threading.Lock()
