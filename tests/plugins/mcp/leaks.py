"""What a test must not leave behind."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import eventually
from tests.support.warm import warm_processes

__all__ = ["children", "nothing_left"]


def children() -> set[int]:
    """The processes that this one started, theirs included."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    found: set[int] = set()
    grown = {os.getpid()}
    while grown:
        grown = {pid for pid, parent in parents.items() if parent in grown and pid not in found}
        found |= grown
    return found


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("pegboard-mcp")}


@pytest.fixture(name="nothing_left")
def nothing_left() -> Iterator[None]:
    """Fails where a process or a thread of the pack outlives the test for long."""
    before, running = children(), threads()
    yield
    eventually(lambda: not (children() - before - warm_processes() or threads() - running))
    assert children() - before - warm_processes() == set()
    assert threads() - running == set()
