"""Landlock: confinement by the Linux kernel alone, without a program to install."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

__all__ = ["landlock_plan", "landlock_version"]

_CREATE_RULESET: Final = 444
_VERSION_FLAG: Final = 1

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_OF_FILES: Final = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_LOOKING: Final = _EXECUTE | _READ | _LIST
_BIND_AND_CONNECT: Final = 0b11
_SOCKETS_AND_SIGNALS: Final = 0b11

_DEVICES: Final = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")


@functools.cache
def landlock_version() -> int:
    """The version of Landlock that the kernel offers; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    import ctypes

    try:
        library = ctypes.CDLL(None, use_errno=True)
        return max(0, int(library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))))
    except (OSError, AttributeError):
        return 0


def landlock_plan(version: int, readable: Iterable[str], writable: Iterable[str], *, network: bool) -> dict[str, Any]:
    """What the supervisor asks of the kernel: only these paths can be read, only those be changed.

    Without `network` no TCP (from version 4 on); from version 6 on no signals to processes outside and none of their
    abstract sockets.
    """
    files = (1 << 13) - 1
    files |= sum(right for right, since in ((_REFER, 2), (_TRUNCATE, 3), (_IOCTL, 5)) if version >= since)
    rules = [(path, _LOOKING) for path in readable]
    rules += [(path, files & ~_IOCTL) for path in writable]
    rules += [(path, _READ | _WRITE | _IOCTL) for path in _DEVICES]
    there = ((path, rights if Path(path).is_dir() else rights & _OF_FILES) for path, rights in rules)
    return {
        "files": files,
        "network": _BIND_AND_CONNECT if version >= 4 and not network else 0,
        "scopes": _SOCKETS_AND_SIGNALS if version >= 6 else 0,
        "size": 8 if version < 4 else 16 if version < 6 else 24,
        "rules": [(path, rights & files) for path, rights in there if os.path.exists(path)],  # noqa: PTH110 - a string
    }
