"""Writing so that a file is always either the old one or the new one, whoever reads, writes or is killed meanwhile.

The new content goes into a file without a name (O_TMPFILE), which vanishes with the process that writes it. Only when
all of it is there, and on the disk, the file gets a name and takes the place of the old one. Between these two calls it
has a temporary name. If the process is killed in that instant, the name stays, and the next write in the directory
removes it: a lock that ends with its process tells which names nobody uses any more. Where files without a name are
unknown (macOS, some file systems), the temporary name is there from the start.
"""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from pegboard_files._folder import READING, Folder, temporary_names
from pegboard_files._messages import ODD_NAME, PROTECTED, os_error
from pegboard_files._names import is_odd

__all__ = ["replacement", "write_all"]

_WRITING = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_ROUNDS = 200  # of ten milliseconds, until a temporary name is free


@contextmanager
def replacement(folder: Folder, name: str, old: os.stat_result | None, *, sync: bool) -> Iterator[int]:
    """A descriptor for the new content of a file, open for writing and reading; at the end it becomes the file.

    `old` is the status of the file that goes, None where there is none; the new one takes over its owner, mode and
    extended attributes. With `sync` the content is on the disk before it has its name, and the name before this
    returns. Raises OSError, and leaves everything as it was.
    """
    if old is None and is_odd(name):
        raise os_error(ODD_NAME)
    if old is not None and not old.st_mode & 0o222:
        raise os_error(PROTECTED)
    for slot in temporary_names:
        _sweep(folder, slot)
    new = _NewFile(folder, 0o666 if old is None else 0o600)
    try:
        yield new.descriptor
        if old is not None:
            _take_over(new.descriptor, old, folder, name)
        if sync:
            os.fsync(new.descriptor)
        new.publish(name, fresh=old is None)
    finally:
        new.discard()
    if sync and folder.descriptor is not None:
        os.fsync(folder.descriptor)


def write_all(descriptor: int, pieces: Iterable[bytes]) -> None:
    """Write all of it. Raises OSError."""
    for piece in pieces:
        left = memoryview(piece)
        while left:
            left = left[os.write(descriptor, left) :]


class _NewFile:
    """A file in the making: without a name, or with a temporary one."""

    def __init__(self, folder: Folder, mode: int) -> None:
        self._folder = folder
        self._slot: str | None = None
        self.descriptor = _unnamed(folder, mode)
        if self.descriptor < 0:
            self.descriptor, self._slot = _in_a_slot(lambda slot: _created(folder, slot, mode))

    def publish(self, name: str, *, fresh: bool) -> None:
        """Give the file its name, which it takes from another, unless it is `fresh` and there is none."""
        if self._slot is None:
            if fresh and _linked(self._folder, self.descriptor, name):
                return
            _lock(self.descriptor)
            _, self._slot = _in_a_slot(lambda slot: 0 if _linked(self._folder, self.descriptor, slot) else None)
        if self._folder.descriptor is None:
            self._close()  # Windows renames no open file
        self._folder.rename(self._slot, name)
        self._slot = None

    def discard(self) -> None:
        """Close it; whatever was not published is gone."""
        if self._folder.descriptor is None:
            self._close()  # nor does it remove one
        if self._slot is not None:
            with suppress(OSError):
                self._folder.unlink(self._slot)
        self._close()

    def _close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _in_a_slot(attempt: Callable[[str], int | None]) -> tuple[int, str]:
    """What the attempt yields at the first temporary name that it takes, and that name. Waits while all are in use."""
    for _ in range(_ROUNDS):
        # In any order, or writers at the same time would all try the same ones.
        for slot in random.sample(temporary_names, len(temporary_names)):
            taken = attempt(slot)
            if taken is not None:
                return taken, slot
        time.sleep(0.01)
    raise os_error(errno.EBUSY)


def _unnamed(folder: Folder, mode: int) -> int:
    """A file without a name that can get one; -1 where there is no such thing."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or folder.descriptor is None:
        return -1
    try:
        descriptor = os.open(".", flag | _WRITING, mode, dir_fd=folder.descriptor)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            return -1
        raise
    if os.path.exists(_link_of(descriptor)):  # noqa: PTH110 - not where /proc is missing
        return descriptor
    os.close(descriptor)
    return -1


def _link_of(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _linked(folder: Folder, descriptor: int, name: str) -> bool:
    """Give a file without a name this one; False if it is taken."""
    try:
        os.link(_link_of(descriptor), name, dst_dir_fd=folder.descriptor, follow_symlinks=True)
    except FileExistsError:
        return False
    return True


def _created(folder: Folder, slot: str, mode: int) -> int | None:
    """A new file under a temporary name, locked; None if the name is taken."""
    try:
        descriptor = folder.open(slot, _WRITING | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return None
    try:
        # Somebody who cleans up may have found it before it was locked.
        if _lock(descriptor) and _is(folder, slot, descriptor):
            return descriptor
    except OSError:
        folder.unlink(slot)
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _sweep(folder: Folder, slot: str) -> None:
    """Remove a temporary name that a killed process has left."""
    try:
        if folder.status(slot) is None:
            return
        descriptor = folder.open(slot, READING)
    except OSError:
        return  # gone meanwhile, or not ours to open
    try:
        if _lock(descriptor, unknown=False) and _is(folder, slot, descriptor):
            folder.unlink(slot)
    except OSError:
        return  # another one was faster
    finally:
        os.close(descriptor)


def _is(folder: Folder, name: str, descriptor: int) -> bool:
    if folder.descriptor is None:
        return True
    there = folder.status(name)
    return there is not None and os.path.samestat(there, os.fstat(descriptor))


def _lock(descriptor: int, *, unknown: bool = True) -> bool:
    """Take the lock of an open file, without waiting; False if somebody has it, `unknown` where there are none."""
    try:
        import fcntl
    except ImportError:
        return unknown
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return unknown
    return True


def _take_over(descriptor: int, old: os.stat_result, folder: Folder, name: str) -> None:
    """Owner, mode and extended attributes, as far as the system allows it; never the right to act as the owner."""
    if hasattr(os, "fchown"):
        for owner in (old.st_uid, -1):
            with suppress(OSError):
                os.fchown(descriptor, owner, old.st_gid)
                break
    if hasattr(os, "listxattr"):
        with suppress(OSError), folder.file(name) as source:
            wanted = (each for each in os.listxattr(source.descriptor) if not each.startswith("security."))
            for attribute in wanted:
                with suppress(OSError):
                    os.setxattr(descriptor, attribute, os.getxattr(source.descriptor, attribute))
    if folder.descriptor is not None:
        os.fchmod(descriptor, old.st_mode & 0o777)
