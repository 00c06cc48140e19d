"""Landlock: confinement by the Linux kernel alone, without a program to install."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

__all__ = ["LANDLOCK_NEEDED", "landlock_plan", "landlock_version"]

LANDLOCK_NEEDED: Final = 6
"""The first version that keeps signals from processes outside; without that it is no sandbox."""
_CREATE_RULESET: Final = 444
_VERSION_FLAG: Final = 1

_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE, _IOCTL = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
_ALL: Final = (1 << 16) - 1
_OF_FILES: Final = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_LOOKING: Final = _EXECUTE | _READ | _LIST
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


def landlock_plan(readable: Iterable[str], writable: Iterable[str]) -> dict[str, Any]:
    """What the supervisor asks of the kernel: only these paths can be read, only those be changed.

    No signals reach processes outside, and none of their abstract sockets.
    """
    rules = [(path, _LOOKING) for path in readable]
    rules += [(path, _ALL & ~_IOCTL) for path in writable]
    rules += [(path, _READ | _WRITE | _IOCTL) for path in _DEVICES]
    there = [(path, rights if Path(path).is_dir() else rights & _OF_FILES) for path, rights in rules]
    return {
        "files": _ALL,
        "scopes": _SOCKETS_AND_SIGNALS,
        "rules": [(path, rights) for path, rights in there if os.path.exists(path)],  # noqa: PTH110 - a string
    }
