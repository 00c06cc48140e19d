"""Presence: how one process sees that another one still lives, by a lock that ends with it."""

from __future__ import annotations

import os
import secrets
import sys
from typing import ClassVar, final

__all__ = ["Presence"]

if sys.platform == "win32":
    import msvcrt

    def _locked(descriptor: int, place: int, exclusive: bool) -> bool:
        os.lseek(descriptor, place, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _freed(descriptor: int, place: int) -> None:
        os.lseek(descriptor, place, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _locked(descriptor: int, place: int, exclusive: bool) -> bool:
        # Those who only look share the lock: of two at once none takes the other for the process.
        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        try:
            fcntl.lockf(descriptor, kind | fcntl.LOCK_NB, 1, place)
        except OSError:
            return False
        return True

    def _freed(descriptor: int, place: int) -> None:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, place)


@final
class Presence:
    """The place of this process in a file: one byte that it holds locked until it ends, however it ends.

    The file stays empty. It is never closed: that would end all locks of the process on it.
    """

    _known: ClassVar[dict[tuple[str, int], Presence]] = {}

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        self.token = secrets.randbits(31)
        while not _locked(self._descriptor, self.token, exclusive=True):
            self.token = secrets.randbits(31)

    @classmethod
    def at(cls, path: str) -> Presence:
        """The one of this process at that path; a forked process has its own."""
        key = os.path.realpath(path), os.getpid()
        found = cls._known.get(key)
        return found or cls._known.setdefault(key, cls(path))

    def is_alive(self, token: int) -> bool:
        """Whether the process with that token still lives."""
        if token == self.token:
            return True
        if not _locked(self._descriptor, token, exclusive=False):
            return True
        _freed(self._descriptor, token)
        return False
