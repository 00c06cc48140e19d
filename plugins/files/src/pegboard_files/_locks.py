"""Locks on open files: they end with the process that holds them, however it ends."""

from __future__ import annotations

__all__ = ["lock"]


def lock(descriptor: int, *, unknown: bool = True) -> bool:
    """Take the lock of an open file without waiting; False if it is taken, `unknown` where there are no locks."""
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
