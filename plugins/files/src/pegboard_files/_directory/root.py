"""The base directory: from paths of a model to open files and directories, none of them outside."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pegboard_files._directory.folder import READING, Folder, OpenFile, Rules
from pegboard_files._directory.names import Denied, check_path, folded, is_odd
from pegboard_files._directory.opening import MAX_LINKS, Opened, Opener, open_beneath, open_by_walking
from pegboard_files._errors import ODD_NAME, os_error

__all__ = ["Root"]

_ALL_ALLOWED = Rules(Denied(()), max_depth=256)
_TICK = 2_000_000_000  # nanoseconds; two changes of a directory within one may bear the same time


class Root:
    """A directory that is held open: it stays the same directory, whatever happens to its path.

    Links are followed as long as they stay inside; absolute links are refused, wherever they lead. A tool that changes
    files holds `writing`, so that two edits of one program never work on the same text. Before each use the temporary
    files of killed writers in the directory are removed, if the rules allow writing. Raises OSError if the directory
    cannot be opened.
    """

    def __init__(self, path: str, rules: Rules = _ALL_ALLOWED, opener: Opener | None = None) -> None:
        self.path = str(Path(path).absolute())
        self.rules = rules
        self.writing = threading.Lock()
        self._opener = opener or (open_beneath if sys.platform == "linux" else open_by_walking)
        self._swept = -1  # the time of its last change, as of the last sweep after which no temporary file remained
        self._hold()

    def _hold(self) -> None:
        # Some systems have no O_PATH. Relative opens need only this descriptor, with or without it.
        self._descriptor = os.open(self.path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY)

    @property
    def base(self) -> Folder:
        """The directory itself."""
        return Folder(".", self.rules, self._descriptor)

    def _sweep(self) -> None:
        """Remove the temporary files of killed writers, unless the directory has not changed since the last sweep."""
        if not self.rules.writable:
            return
        with suppress(OSError):  # the read that follows will report what is wrong
            changed = self.base.about().st_mtime_ns
            if changed != self._swept and self.base.sweep() and time.time_ns() - changed > _TICK:
                self._swept = changed

    @contextmanager
    def file(self, path: str) -> Iterator[OpenFile]:
        """A regular file, open for reading.

        Raises OSError, with EISDIR for a directory and ENXIO for a FIFO, a socket or a device. It waits for no writer
        of a FIFO.
        """
        self._sweep()
        opened = self._open(self._checked(path), READING)
        try:
            self.rules.check(opened.path)
            status = os.fstat(opened.descriptor)
            self.rules.check_file(status)
            yield OpenFile(opened.descriptor, opened.path, status)
        finally:
            os.close(opened.descriptor)

    @contextmanager
    def folder(self, path: str) -> Iterator[Folder]:
        """A directory, open for listing. Raises OSError."""
        self._sweep()
        with self._folder(self._checked(path)) as folder:
            self.rules.check(folder.path)
            yield folder

    @contextmanager
    def place(self, path: str, *, make_parents: bool = False) -> Iterator[tuple[Folder, str]]:
        """The place of an existing or new file: an open directory, and a name in it that is not a link.

        Raises OSError. Links are followed, even if their target does not exist yet; with `make_parents` the missing
        directories of the path are made.
        """
        self._sweep()
        path = self._checked(path)
        for _ in range(MAX_LINKS):
            parent, _, name = path.rpartition("/")
            if name in ("", ".", ".."):
                raise os_error(errno.EISDIR)
            with self._parent(parent or ".", make_parents) as folder:
                self.rules.check(folder.path_of(name))
                target = folder.link_target(name)
                if target is None:
                    yield folder, name
                    return
                path = self._checked(self._followed(folder, target))
        raise os_error(errno.ELOOP)

    def relative(self, path: str) -> str:
        """An absolute path inside the directory as a relative one; any other path unchanged."""
        if path == self.path:
            return "."
        prefix = self.path.rstrip("/") + "/"
        return path[len(prefix) :].lstrip("/") or "." if path.startswith(prefix) else path

    def _checked(self, path: str) -> str:
        """The path as a relative one that may be opened. A denied path is refused whether it exists or not."""
        path = self.relative(path)
        if path.startswith("/"):
            raise os_error(errno.EXDEV)
        check_path(path, self.rules.max_depth)
        if ".." not in path:
            self.rules.check(folded(path))
        return path

    def _open(self, path: str, flags: int) -> Opened:
        return self._opener(self._descriptor, path, flags | os.O_CLOEXEC)

    @contextmanager
    def _folder(self, path: str) -> Iterator[Folder]:
        opened = self._open(path, READING | os.O_DIRECTORY)
        try:
            yield Folder(opened.path, self.rules, opened.descriptor)
        finally:
            os.close(opened.descriptor)

    @contextmanager
    def _parent(self, path: str, make: bool) -> Iterator[Folder]:
        if make and not self._is_there(path):
            self._make(path)
        with self._folder(path) as folder:
            yield folder

    def _is_there(self, path: str) -> bool:
        try:
            with self._folder(path):
                return True
        except FileNotFoundError:
            return False

    def _make(self, path: str) -> None:
        """Make the missing directories. None is made after `..`, which would lead to another place."""
        names = [name for name in path.split("/") if name not in ("", ".")]
        if ".." in names:
            raise os_error(errno.ENOENT)
        for end, name in enumerate(names):
            with self._folder("/".join(names[:end]) or ".") as folder:
                self.rules.check(folder.path_of(name))
                if is_odd(name) and folder.status(name) is None:
                    raise os_error(ODD_NAME)
                folder.make(name)

    def _followed(self, folder: Folder, target: str) -> str:
        """The path of a link's target; `folder` is the link's directory."""
        if target.startswith("/"):
            raise os_error(errno.EXDEV)
        return f"{folder.path}/{target}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Open the same directory again for a copy or in another process: a copied descriptor would be another file."""
        return _reopened, (type(self), self.path, self.rules, self._opener, self._identity())

    def _identity(self) -> tuple[int, int]:
        status = os.stat(self.__dict__.get("_descriptor", self.path))  # noqa: PTH116 - mostly no path
        return status.st_dev, status.st_ino

    def __del__(self) -> None:
        descriptor = self.__dict__.pop("_descriptor", None)
        if descriptor is not None:
            os.close(descriptor)


def _reopened(cls: type[Root], path: str, rules: Rules, opener: Opener, identity: tuple[int, int]) -> Root:
    """A copy of a root. Raises OSError if another directory has its path by now."""
    root = cls(path, rules, opener)
    if root._identity() != identity:
        raise os_error(errno.ESTALE)
    return root
