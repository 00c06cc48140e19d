"""Going through a tree: every file beneath a directory that may be touched, no link followed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from attrs import define, field

from pegboard_files._folder import Folder

__all__ = ["Budget", "files_beneath"]


@define
class Budget:
    """How long and how far a search may go; `spent` says why it ended early, and is empty while it need not."""

    seconds: float = 20.0
    entries: int = 200_000
    spent: str = ""
    _end: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._end = time.monotonic() + self.seconds

    def allows(self, entries: int = 0) -> bool:
        """Whether to go on, after so many more entries."""
        self.entries -= entries
        if self.entries < 0:
            self.spent = self.spent or "there are too many files"
        elif time.monotonic() > self._end:
            self.spent = self.spent or f"it took more than {self.seconds:g} seconds"
        return not self.spent


def files_beneath(folder: Folder, budget: Budget, depth: int | None = None) -> Iterator[tuple[Folder, str]]:
    """The regular files in order of their paths: the directory that holds each, open, and its name.

    Denied ones are left out, as are links and directories deeper than the rules allow.
    """
    depth = folder.rules.max_depth if depth is None else depth
    for name, is_folder in _members(folder, budget):
        if not budget.allows(1):
            return
        if not is_folder:
            yield folder, name
        elif depth > 1:
            # It may have been removed, or not be ours to read.
            with suppress(OSError), folder.folder(name) as inner:
                yield from files_beneath(inner, budget, depth - 1)


def _members(folder: Folder, budget: Budget) -> list[tuple[str, bool]]:
    """The names of files and directories, in order, and which of both they are."""
    found: list[tuple[str, bool]] = []
    for entry in folder.entries():
        if len(found) % 1000 == 999 and not budget.allows():
            break
        if len(found) > budget.entries:
            break
        with suppress(OSError):
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder or entry.is_file(follow_symlinks=False):
                found.append((entry.name, is_folder))
    return sorted(member for member in found if folder.rules.allow(folder.path_of(member[0])))
