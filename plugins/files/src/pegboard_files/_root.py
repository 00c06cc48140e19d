"""Confinement: files are opened relative to a directory that is held open, and never outside it.

Checking a resolved path and opening it afterwards can be raced by whoever swaps a directory with a link in between.
Here nothing is checked first: the kernel refuses to leave the directory while it opens (`openat2`), or, where there is
no such call, each component is opened relative to the one before without following links.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

__all__ = ["Opener", "Root", "open_beneath", "open_by_walking"]

Opener: TypeAlias = Callable[[int, str, int], int]
"""Opens a relative path beneath a directory: (its descriptor, path, `os.open` flags) -> descriptor, or OSError."""

_MAX_LINKS = 40  # as Linux
_MAX_DEPTH = 256  # the walk holds a descriptor for each level
_MAX_PATH = 4096  # bytes, as Linux


class Root:
    """A directory that is held open for life: it stays the same one, whatever happens to its path.

    Links are followed as long as they stay inside; absolute links are refused, wherever they lead. Raises OSError if
    the directory cannot be opened, and on systems that cannot open files relative to a directory (Windows).
    """

    def __init__(self, path: str, opener: Opener | None = None) -> None:
        if os.open not in os.supports_dir_fd:
            raise OSError(errno.ENOTSUP, "this system cannot confine file tools to a directory", path)
        self.path = str(Path(path).absolute())
        # Opened without O_PATH where that is unknown; either way relative opens need no more than this descriptor.
        self._descriptor = os.open(self.path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY)
        self._open = opener or (open_beneath if sys.platform == "linux" else open_by_walking)

    @contextmanager
    def file(self, path: str) -> Iterator[int]:
        """A regular file, open for reading.

        Raises OSError, with EISDIR for a directory and ENXIO for what is neither. Never waits for a FIFO's writer.
        """
        with self._opened(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY) as descriptor:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise _os_error(errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO)
            yield descriptor

    @contextmanager
    def directory(self, path: str) -> Iterator[int]:
        """A directory, open for listing. Raises OSError."""
        with self._opened(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK) as descriptor:
            yield descriptor

    def relative(self, path: str) -> str:
        """An absolute path inside the directory as a relative one; any other path as it is."""
        if path == self.path:
            return "."
        prefix = self.path.rstrip("/") + "/"
        return path[len(prefix) :].lstrip("/") or "." if path.startswith(prefix) else path

    @contextmanager
    def _opened(self, path: str, flags: int) -> Iterator[int]:
        relative = self.relative(path)
        if relative.startswith("/"):
            raise _os_error(errno.EXDEV)
        encoded = _encoded(relative)
        if encoded.count(b"/") >= _MAX_DEPTH or len(encoded) >= _MAX_PATH:
            raise _os_error(errno.ENAMETOOLONG)
        descriptor = self._open(self._descriptor, relative, flags | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def __reduce__(self) -> tuple[type[Root], tuple[str, Opener]]:
        """Copies and other processes open the directory anew: a copied number would be somebody else's file."""
        return Root, (self.path, self._open)

    def __del__(self) -> None:
        descriptor = self.__dict__.pop("_descriptor", None)
        if descriptor is not None:
            os.close(descriptor)


def _encoded(path: str) -> bytes:
    """The path as the system knows it. Raises OSError for text that can be no path."""
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        raise _os_error(errno.EILSEQ) from None
    # C would read only what stands before a NUL.
    if not encoded or b"\0" in encoded:
        raise _os_error(errno.EINVAL)
    return encoded


def open_by_walking(root: int, path: str, flags: int) -> int:
    """Open component by component, resolving links by hand. An `Opener` for every POSIX system.

    `..` goes back to the descriptor that was opened before, so that a directory that is moved away meanwhile leads
    nowhere.
    """
    opened: list[int] = []
    names = path.split("/")[::-1]
    links = 0
    try:
        while names:
            here = opened[-1] if opened else root
            name = names.pop()
            if name == "..":
                _leave(opened)
            elif name in ("", "."):
                continue
            elif (target := _link_target(here, name)) is not None:
                links += 1
                if links > _MAX_LINKS:
                    raise _os_error(errno.ELOOP)
                if target.startswith("/"):
                    raise _os_error(errno.EXDEV)
                names.extend(target.split("/")[::-1])
            elif names:
                _enter(opened, here, name)
            else:
                return os.open(name, flags | os.O_NOFOLLOW, dir_fd=here)
        return os.open(".", flags, dir_fd=opened[-1] if opened else root)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _enter(opened: list[int], here: int, name: str) -> None:
    if len(opened) >= _MAX_DEPTH:
        raise _os_error(errno.ENAMETOOLONG)
    # O_DIRECTORY: with O_PATH, O_NOFOLLOW alone would open a link itself.
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    opened.append(os.open(name, flags, dir_fd=here))


def _leave(opened: list[int]) -> None:
    if not opened:
        raise _os_error(errno.EXDEV)
    os.close(opened.pop())


def _link_target(directory: int, name: str) -> str | None:
    """Where a link leads; None if it is none. Raises OSError if it is not there."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise


_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_ATTEMPTS = 64


def open_beneath(root: int, path: str, flags: int) -> int:
    """Open by `openat2`, in one call of the kernel. An `Opener` for Linux.

    Falls back to walking where the kernel is older, a sandbox forbids the call, or directories are being moved so
    fast that the kernel gives up.
    """
    for _ in range(_ATTEMPTS):
        result = _openat2()(root, path, flags)
        if result >= 0:
            return result
        if -result in (errno.ENOSYS, errno.EPERM):
            break
        if -result not in (errno.EAGAIN, errno.EINTR):
            raise _os_error(-result)
    return open_by_walking(root, path, flags)


@functools.cache
def _openat2() -> Opener:
    """`openat2` as the C library does not offer it: a descriptor, or the negative error number."""
    try:
        import ctypes
    except ImportError:
        return lambda *_: -errno.ENOSYS
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    syscall.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]

    def call(root: int, path: str, flags: int) -> int:
        # struct open_how: flags, mode, resolve
        how = (ctypes.c_uint64 * 3)(flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
        result = int(syscall(_SYS_OPENAT2, root, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how)))
        return result if result >= 0 else -ctypes.get_errno()

    return call


def _os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
