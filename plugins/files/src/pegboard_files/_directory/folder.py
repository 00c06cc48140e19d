"""A directory that is held open, so that its members are opened relative to it and not by path; locks on files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from attrs import frozen

from pegboard_files._directory.names import Denied
from pegboard_files._errors import DENIED, HARD_LINKED, os_error

__all__ = ["READING", "Folder", "OpenFile", "Rules", "is_temporary", "lock", "temporary_names"]

# Opening never waits for the writer of a FIFO, and never makes a terminal that of the session. Windows has no such
# flags, and would convert line ends without O_BINARY.
READING = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_FOLDER = READING | getattr(os, "O_DIRECTORY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)

temporary_names = tuple(f".pegboard-tmp-{slot}" for slot in range(16))
"""Names that new files have for an instant before they replace old ones; no tool shows or opens them."""


def is_temporary(name: str) -> bool:
    """Whether a name is one of the temporary names."""
    return name.casefold() in temporary_names


def lock(descriptor: int, *, unknown: bool = True) -> bool:
    """Take the lock of an open file without waiting; False if it is taken, `unknown` if there are no locks here.

    The system releases it when the process ends, also when it is killed.
    """
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


@frozen
class Rules:
    """The rules for paths beneath a base directory; `max_depth` is the number of names that a path may have.

    If the directory is `writable`, the temporary files of killed writers are removed.
    """

    denied: Denied
    hardlinks: bool = True
    max_depth: int = 64
    writable: bool = False

    def check(self, path: str) -> None:
        """Check a path without links. Raises OSError if it is denied."""
        if not self.allow(path):
            raise os_error(DENIED)

    def allow(self, path: str) -> bool:
        """Whether a path without links may be read and written."""
        return path not in self.denied and not is_temporary(path.rpartition("/")[2])

    def check_file(self, status: os.stat_result) -> None:
        """Check the status of a file. Raises OSError if it is not a regular file, or has forbidden further names."""
        if not stat.S_ISREG(status.st_mode):
            raise os_error(errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.ENXIO)
        if status.st_nlink > 1 and not self.hardlinks:
            raise os_error(HARD_LINKED)


class OpenFile(NamedTuple):
    """A regular file, open for reading, with its path beneath the base directory and its status when it was opened."""

    descriptor: int
    path: str
    status: os.stat_result


class Folder:
    """An open directory; `path` is its path beneath the base directory, without links.

    `descriptor` is None on systems that cannot open files relative to a directory (Windows); there `base` is the
    directory's absolute path.
    """

    def __init__(self, path: str, rules: Rules, descriptor: int | None, base: str = "") -> None:
        self.path = path
        self.rules = rules
        self.descriptor = descriptor
        self._base = base

    def at(self, name: str) -> str:
        """The name of a member for a system call, beside `dir_fd=folder.descriptor`."""
        return name if self.descriptor is not None else os.path.join(self._base, name)  # noqa: PTH118 - not a Path

    def path_of(self, name: str) -> str:
        """The path of a member beneath the base directory."""
        return name if self.path == "." else f"{self.path}/{name}"

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """A descriptor of a member, which must not be a link. Raises OSError."""
        return os.open(self.at(name), flags | _NOFOLLOW, mode, dir_fd=self.descriptor)

    def status(self, name: str) -> os.stat_result | None:
        """The status of a member, for a link that of the link itself; None if there is none. Raises OSError."""
        try:
            return os.stat(self.at(name), dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def link_target(self, name: str) -> str | None:
        """The target of a link; None if the member is not a link. Raises OSError."""
        status = self.status(name)
        if status is None or not stat.S_ISLNK(status.st_mode):
            return None
        return os.readlink(self.at(name), dir_fd=self.descriptor)

    def make(self, name: str) -> None:
        """Make a directory, if there is nothing of that name. Raises OSError."""
        try:
            os.mkdir(self.at(name), dir_fd=self.descriptor)
        except FileExistsError:
            return

    def unlink(self, name: str) -> None:
        """Remove a file. Raises OSError."""
        os.unlink(self.at(name), dir_fd=self.descriptor)

    def move(self, name: str, folder: Folder, new: str) -> None:
        """Give a file another name, in this or another directory; a file of that name is replaced. Raises OSError."""
        os.replace(self.at(name), folder.at(new), src_dir_fd=self.descriptor, dst_dir_fd=folder.descriptor)

    def about(self) -> os.stat_result:
        """The status of the directory itself. Raises OSError."""
        return os.stat(self._base if self.descriptor is None else self.descriptor)  # noqa: PTH116 - not a Path

    def holds(self, name: str, descriptor: int) -> bool:
        """Whether this is the name of an open file. Raises OSError."""
        if self.descriptor is None:
            return True  # on Windows no other file can get the name of an open one
        there = self.status(name)
        return there is not None and os.path.samestat(there, os.fstat(descriptor))

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """The members in no particular order, without temporary names. Raises OSError."""
        with os.scandir(self._base if self.descriptor is None else self.descriptor) as found:
            for entry in found:
                if not is_temporary(entry.name):
                    yield entry
                elif self.rules.writable:
                    self._sweep(entry.name)

    def sweep(self) -> bool:
        """Remove the temporary names of killed processes; True if none remain."""
        # Nearly always there are none, and a look at the status is cheaper than a failed open.
        there = [name for name in temporary_names if os.access(self.at(name), os.F_OK, dir_fd=self.descriptor)]
        remaining = [name for name in there if not self._sweep(name)]
        return not remaining

    def _sweep(self, name: str) -> bool:
        try:
            status = self.status(name)
            if status is None or not stat.S_ISREG(status.st_mode):
                return status is None
            descriptor = self.open(name, READING)
        except OSError:
            return False  # removed by another process, or this one may not open it
        try:
            # Its writer holds its lock. Windows has no such locks, and refuses to remove an open file.
            unused = lock(descriptor, unknown=self.descriptor is None)
            if not unused or not self.holds(name, descriptor):
                return False
            if self.descriptor is None:
                os.close(descriptor)
                descriptor = -1
            self.unlink(name)
        except OSError:
            return False  # another process was faster, or it is not a file
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        return True

    @contextmanager
    def file(self, name: str) -> Iterator[OpenFile]:
        """A member that is a regular file and is not denied, open for reading. Raises OSError."""
        path = self.path_of(name)
        self.rules.check(path)
        self._check_no_link(name)
        descriptor = self.open(name, READING)
        try:
            status = os.fstat(descriptor)
            self.rules.check_file(status)
            yield OpenFile(descriptor, path, status)
        finally:
            os.close(descriptor)

    @contextmanager
    def folder(self, name: str) -> Iterator[Folder]:
        """A member that is a directory and is not denied. Raises OSError."""
        path = self.path_of(name)
        self.rules.check(path)
        if self.descriptor is None:
            self._check_no_link(name)
            yield Folder(path, self.rules, None, self.at(name))
            return
        descriptor = self.open(name, _FOLDER)
        try:
            yield Folder(path, self.rules, descriptor)
        finally:
            os.close(descriptor)

    def _check_no_link(self, name: str) -> None:
        """Check a member if opening would follow links. Raises OSError for a link or a junction of Windows."""
        full = self.at(name)
        if self.descriptor is None and os.path.normcase(os.path.realpath(full)) != os.path.normcase(full):
            raise os_error(errno.EXDEV)
