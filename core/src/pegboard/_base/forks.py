"""Forks: what a child of `os.fork` makes anew, for it has none of its parent's other threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_renewed: Final[WeakKeyDictionary[Any, Callable[[Any], object]]] = WeakKeyDictionary()


def after_fork(owner: T, renew: Callable[[T], object]) -> None:
    """Call `renew(owner)` in each child of a fork, as long as the owner lives."""
    _renewed[owner] = renew


def guarded(lock: Any) -> None:
    """Let no fork happen while another thread holds a lock of the whole process: the child would never get it."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


def _renew() -> None:
    for owner, renew in list(_renewed.items()):
        renew(owner)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
