"""Residue: what is left open when everything should be over."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import frozen

from tests.support.waiting import PATIENCE, eventually, stacks

__all__ = ["Open", "held_in_circles"]


@frozen
class Open:
    """What this program has open: threads, files and child processes, the latter two where the system tells."""

    threads: frozenset[threading.Thread]
    files: int
    processes: frozenset[str]

    @classmethod
    def now(cls) -> Open:
        """What is open now."""
        return cls(frozenset(threading.enumerate()), _open_files(), _children())

    def residue(self, seconds: float = PATIENCE) -> list[str]:
        """What is open now, was not then, and stays open."""
        eventually(lambda: not self._more(), seconds)
        return self._more()

    def _more(self) -> list[str]:
        now = Open.now()
        threads = sorted(thread.name for thread in now.threads - self.threads)
        found = [f"threads are left: {threads}\n{stacks()}"] if threads else []
        if now.files > self.files:
            found.append(f"{now.files} files are open, {self.files} were")
        return found + [f"the process {process} is left" for process in sorted(now.processes - self.processes)]


def _open_files() -> int:
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return 0


def _children() -> frozenset[str]:
    found: set[str] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        try:
            found.update(task.read_text().split())
        except OSError:
            continue  # a thread that ended meanwhile
    return frozenset(found)


def held_in_circles(work: Callable[[], Any]) -> Counter[str]:
    """What of Pegboard holds itself in a circle when that work is done, so that only the collector finds it."""
    work()  # what is made once stays
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        work()
        gc.collect()
        found = [type(each) for each in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    return Counter(each.__qualname__ for each in found if each.__module__.startswith(("pegboard", "ray")))
