"""Opening files beneath a directory, and never outside it: two engines with the same answers.

Checking a resolved path and opening it afterwards is a race: a directory may be swapped for a link in between.
Here nothing is checked first: the kernel refuses to leave the directory while it opens (`openat2`), or each component
is opened relative to the one before without following links (the walk). Only the walk follows links, one at a time, so
that both engines know the real path of the file that they opened.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from pegboard_files._directory.names import folded
from pegboard_files._errors import os_error

__all__ = ["MAX_LINKS", "Opened", "Opener", "open_beneath", "open_by_walking"]

MAX_LINKS = 40  # as on Linux
_MAX_DEPTH = 256  # the walk holds a descriptor for each level


class Opened(NamedTuple):
    """An open descriptor, and its path relative to the root, without links; "." is the root."""

    descriptor: int
    path: str


Opener: TypeAlias = Callable[[int, str, int], Opened]
"""Opens a relative path beneath a directory: (its descriptor, path, `os.open` flags) -> `Opened`, or OSError."""


def open_by_walking(root: int, path: str, flags: int) -> Opened:
    """Open component by component, and resolve links. An `Opener` for every POSIX system.

    `..` goes back to the descriptor that was opened before, so a directory that is moved at the same time does not lead
    outside.
    """
    way = _Way(root)
    names = path.split("/")[::-1]
    links = 0
    try:
        while names:
            name = names.pop()
            if name == "..":
                way.leave()
            elif name in ("", "."):
                continue
            elif (target := _link_target(way.here, name)) is not None:
                links += 1
                if links > MAX_LINKS:
                    raise os_error(errno.ELOOP)
                if target.startswith("/"):
                    raise os_error(errno.EXDEV)
                names.extend(target.split("/")[::-1])
            elif names:
                way.enter(name)
            else:
                return Opened(os.open(name, flags | os.O_NOFOLLOW, dir_fd=way.here), way.path_of(name))
        return Opened(os.open(".", flags, dir_fd=way.here), way.path_of())
    finally:
        way.close()


class _Way:
    """The directories of a walk from the root to its current place, all open."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._opened: list[int] = []
        self._names: list[str] = []

    @property
    def here(self) -> int:
        return self._opened[-1] if self._opened else self._root

    def path_of(self, *name: str) -> str:
        return "/".join([*self._names, *name]) or "."

    def enter(self, name: str) -> None:
        if len(self._opened) >= _MAX_DEPTH:
            raise os_error(errno.ENAMETOOLONG)
        # O_DIRECTORY: with O_PATH, O_NOFOLLOW alone would open a link itself.
        flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        self._opened.append(os.open(name, flags, dir_fd=self.here))
        self._names.append(name)

    def leave(self) -> None:
        if not self._opened:
            raise os_error(errno.EXDEV)
        os.close(self._opened.pop())
        self._names.pop()

    def close(self) -> None:
        for descriptor in self._opened:
            os.close(descriptor)


def _link_target(directory: int, name: str) -> str | None:
    """The target of a link; None if the name is not a link. Raises OSError if there is no such name."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise


_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_ATTEMPTS = 64
# The reasons: links; an older kernel; a sandbox that forbids the call; directories that move too fast for the kernel.
_WALK_INSTEAD = (errno.ELOOP, errno.ENOSYS, errno.EPERM, errno.EAGAIN, errno.EINTR)


def open_beneath(root: int, path: str, flags: int) -> Opened:
    """Open by `openat2`, in one call of the kernel. An `Opener` for Linux.

    It walks if the path holds a link, and if the kernel does not have the call or a sandbox forbids it.
    """
    number = 0
    for _ in range(_ATTEMPTS):
        result = _openat2()(root, path, flags)
        if result >= 0:
            return Opened(result, folded(path))
        number = -result
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    if number in _WALK_INSTEAD:
        return open_by_walking(root, path, flags)
    raise os_error(number)


@functools.cache
def _openat2() -> Callable[[int, str, int], int]:
    """`openat2`, which the C library does not offer: it returns a descriptor, or the negative error number."""
    try:
        import ctypes
    except ImportError:
        return lambda *_: -errno.ENOSYS
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    syscall.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
    resolve = _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS | _RESOLVE_NO_SYMLINKS

    def call(root: int, path: str, flags: int) -> int:
        how = (ctypes.c_uint64 * 3)(flags, 0, resolve)  # struct open_how: flags, mode, resolve
        result = int(syscall(_SYS_OPENAT2, root, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how)))
        return result if result >= 0 else -ctypes.get_errno()

    return call
