"""Writing so that a file is always either the old one or the new one, even if the writer is killed.

The new content goes into a file without a name (O_TMPFILE), which disappears with the process that writes it. When all
of the content is written, and on the disk, a file that did not exist before gets its name: a kill leaves no file then.
A file that replaces another one needs a temporary name first, for there is no call that does both. Everything else is
done before, so that the two calls follow each other. If the process is killed between them, the temporary name stays.

The next use of any tool removes it. For that the temporary names of all writes beneath a base directory are in that
directory itself, not beside the files. A lock that ends with its process shows which names are no longer in use. Both
directories are held open, so the move goes to the right directory, even if directories are renamed at the same time.
Only the file's own directory is synced: if the power fails and the temporary name comes back, it is removed in the same
way. If the move is impossible (another file system, a base directory that cannot be written to) the name is beside the
file. Then the next write there removes it, or a listing or a search of the directory.

On systems without nameless files (macOS, some file systems), the file has the temporary name from the start.
"""

from __future__ import annotations

import errno
import os
import random
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from pegboard_files._directory.bytes import blocks
from pegboard_files._directory.folder import Folder, lock, temporary_names
from pegboard_files._directory.names import is_odd
from pegboard_files._errors import ODD_NAME, PROTECTED, os_error

__all__ = ["replacement", "write_all"]

T = TypeVar("T")

_WRITING = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_ROUNDS = 200  # of ten milliseconds, until a temporary name is free


@contextmanager
def replacement(folder: Folder, name: str, old: os.stat_result | None, *, base: Folder, sync: bool) -> Iterator[int]:
    """A descriptor for the new content of a file, open for writing and reading; at the end it becomes the file.

    `old` is the status of the replaced file, None if there is none; the new one takes over its owner, mode and extended
    attributes. `base` is the directory of temporary names. With `sync` the content is on the disk before the file has
    its name, and the name is before this returns. Raises OSError; then nothing has changed.
    """
    if old is None and is_odd(name):
        raise os_error(ODD_NAME)
    if old is not None and not old.st_mode & 0o222:
        raise os_error(PROTECTED)
    folder.sweep()
    with _new_file(folder, _places(folder, base), old) as new:
        yield new.descriptor
        try:
            new.become(name, sync=sync)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # The two may be places of one file system: only the attempt shows whether the move is possible.
            with _new_file(folder, [folder], old) as beside:
                write_all(beside.descriptor, blocks(new.descriptor, 0, sys.maxsize))
                beside.become(name, sync=sync)
    if sync and folder.descriptor is not None:
        os.fsync(folder.descriptor)


def write_all(descriptor: int, pieces: Iterable[bytes]) -> None:
    """Write all pieces. Raises OSError."""
    for piece in pieces:
        remaining = memoryview(piece)
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]


def _places(folder: Folder, base: Folder) -> list[Folder]:
    """The directories for a temporary name, the best one first."""
    # On Windows a file gets the rights of the directory in which it is made, and keeps them when it is moved.
    if folder.path == "." or folder.descriptor is None or folder.about().st_dev != base.about().st_dev:
        return [folder]
    return [base, folder]


@contextmanager
def _new_file(folder: Folder, places: list[Folder], old: os.stat_result | None) -> Iterator[_NewFile]:
    new = _NewFile(folder, places, old)
    try:
        yield new
    finally:
        new.discard()


class _NewFile:
    """A new file without a name, or with a temporary one, in the first of the `places` that takes it."""

    def __init__(self, folder: Folder, places: list[Folder], old: os.stat_result | None) -> None:
        self._folder = folder
        self._places = places
        self._old = old
        self._temporary: tuple[Folder, str] | None = None
        mode = 0o666 if old is None else 0o600
        self.descriptor = _unnamed(folder, mode)
        if self.descriptor < 0:
            self.descriptor = _in_a_slot(places, lambda place, slot: self._create(place, slot, mode))

    def _create(self, place: Folder, slot: str, mode: int) -> int | None:
        """A new file under a temporary name, locked; None if the name is taken."""
        try:
            descriptor = place.open(slot, _WRITING | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            return None
        try:
            # Another process may have removed it before it was locked.
            if lock(descriptor) and place.holds(slot, descriptor):
                self._temporary = place, slot
                return descriptor
        except OSError:
            place.unlink(slot)
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def become(self, name: str, *, sync: bool) -> None:
        """Give the file its name; an old file of that name is replaced. Raises OSError."""
        if self._old is not None:
            _take_over(self.descriptor, self._old, self._folder, name)
        elif self._temporary is not None and self._temporary[0] is not self._folder:
            _take_group(self.descriptor, self._folder)
        if sync:
            os.fsync(self.descriptor)
        if self._temporary is None:
            self._link(name)
            return
        if self._folder.descriptor is None:
            self._close()  # Windows does not rename an open file
        place, slot = self._temporary
        place.move(slot, self._folder, name)
        self._temporary = None

    def _link(self, name: str) -> None:
        source, directory = _link_of(self.descriptor), self._folder.descriptor
        if self._old is None:
            try:
                os.link(source, name, dst_dir_fd=directory, follow_symlinks=True)
            except FileExistsError:
                pass  # another process has just made one
            else:
                return
        lock(self.descriptor)

        def take(place: Folder, slot: str) -> OSError | bool | None:
            start = place.descriptor
            self._temporary = place, slot  # set before the link exists: an interrupt may come at any time
            try:
                os.link(source, slot, dst_dir_fd=start, follow_symlinks=True)
            except OSError as error:
                self._temporary = None
                if error.errno == errno.EEXIST:
                    return None
                raise
            try:
                os.replace(slot, name, src_dir_fd=start, dst_dir_fd=directory)
            except OSError as error:
                self._remove()
                return error  # no other place helps: a file that had a name once gets no second one
            self._temporary = None
            return True

        done = _in_a_slot(self._places, take)
        if isinstance(done, OSError):
            raise done

    def discard(self) -> None:
        """Close the file, and remove it if it has not got its name."""
        if self._folder.descriptor is None:
            self._close()  # Windows does not remove an open file either
        self._remove()
        self._close()

    def _remove(self) -> None:
        if self._temporary is not None:
            place, slot = self._temporary
            with suppress(OSError):
                if self.descriptor < 0 or place.holds(slot, self.descriptor):
                    place.unlink(slot)
            self._temporary = None

    def _close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _in_a_slot(places: list[Folder], attempt: Callable[[Folder, str], T | None]) -> T:
    """The result of the attempt with the first temporary name that works. Waits while all names are in use.

    After an OSError in one place it tries the next. Raises the OSError of the last place.
    """
    # In random order, so that writers at the same time do not all try the same names.
    slots = random.sample(temporary_names, len(temporary_names))
    for _ in range(_ROUNDS):
        for place in places:
            try:
                for slot in slots:
                    taken = attempt(place, slot)
                    if taken is not None:
                        return taken
            except OSError:
                if place is places[-1]:
                    raise
        time.sleep(0.01)
    raise os_error(errno.EBUSY)


def _unnamed(folder: Folder, mode: int) -> int:
    """A file without a name that can get one; -1 if the system has no such files."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or folder.descriptor is None:
        return -1
    try:
        descriptor = os.open(".", flag | _WRITING, mode, dir_fd=folder.descriptor)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            return -1
        raise
    if os.path.exists(_link_of(descriptor)):  # noqa: PTH110 - false if /proc is missing
        return descriptor
    os.close(descriptor)
    return -1


def _link_of(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _take_group(descriptor: int, folder: Folder) -> None:
    """Give a new file that was made in another directory the group that its own directory would have given it."""
    if hasattr(os, "fchown"):
        around = folder.about()
        # On Linux the mode of the directory decides; other systems always take its group.
        inherited = sys.platform != "linux" or around.st_mode & stat.S_ISGID
        with suppress(OSError):
            os.fchown(descriptor, -1, around.st_gid if inherited else os.getegid())


def _take_over(descriptor: int, old: os.stat_result, folder: Folder, name: str) -> None:
    """Take over owner, mode and extended attributes, as far as the system allows it, but never set-ID bits."""
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
