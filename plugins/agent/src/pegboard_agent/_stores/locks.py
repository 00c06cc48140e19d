"""Locks beside a file: for the process that writes to it, and for the one with the turn in a conversation."""

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
"""The number of a writer's lock; those of conversations are higher."""

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
        """Lock one byte far after the end of the file; the system releases it when the process ends."""
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, number)
        except (BlockingIOError, PermissionError):  # both mean that another process holds it
            return False
        return True

    def _unlock(descriptor: int, number: int) -> None:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, number)


@final
class FileLocks:
    """The locks of one file, in the file `<path>.lock` beside it, which stays empty and is never removed.

    They belong to a process: a forked process holds none of them, and closing the file anywhere in the process releases
    all. So there is one object for each file, and only this object opens the lock file.
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
        """The locks of a file: one object for each file in this process."""
        real = os.path.realpath(path)
        with cls._making:
            found = cls._known.get(real)
            if found is None:
                found = cls._known[real] = cls(f"{real}.lock")
            return found

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock of the writer inside the block, which is short."""
        self._refresh()
        with self._writes:
            descriptor = self._open()
            _lock(descriptor, WRITER, wait=True)
            try:
                yield
            finally:
                _unlock(descriptor, WRITER)

    async def take(self, number: int) -> bool:
        """Take the lock of a number; False if another process has it. Raises OSError if no lock file can be made."""
        self._refresh()
        with self._guard:
            taken = _lock(self._open(), number, wait=False)
            if taken:
                self._held.add(number)
            return taken

    async def free(self, number: int) -> None:
        """Release the lock of a number."""
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
        """In a forked process, forget the locks of its parent."""
        if self._process != os.getpid():
            self._process, self._held = os.getpid(), set()
            self._guard, self._writes = threading.Lock(), threading.Lock()
