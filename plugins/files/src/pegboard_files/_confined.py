"""The confinement for other packs: reading and writing whole files of a directory for a model."""

from __future__ import annotations

import os
from collections.abc import Iterable

from pegboard_files._directory.bytes import read_span
from pegboard_files._directory.folder import Rules
from pegboard_files._directory.named_root import open_root
from pegboard_files._directory.names import Denied
from pegboard_files._directory.replacing import replacement, write_all
from pegboard_files._errors import UnsuitableError, refusals, shown
from pegboard_files._settings import DEFAULT_DENY, DEFAULT_MAX_BYTES, DEFAULT_MAX_DEPTH

__all__ = ["ConfinedFolder"]


class ConfinedFolder:
    """A directory that paths of a model cannot leave, for packs whose tools take or make files.

    As with `FileTools`, the directory is opened once and held open, no path is checked first and opened later, and
    paths that match `deny` are neither read nor written. Raises OSError if the directory cannot be opened, ValueError
    for a pattern that no path can match.
    """

    def __init__(
        self,
        base_dir: str | os.PathLike[str],
        *,
        deny: Iterable[str] = DEFAULT_DENY,
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        self.max_bytes = max_bytes
        self._root = open_root(os.fspath(base_dir), Rules(Denied(deny), max_depth=DEFAULT_MAX_DEPTH, writable=True))

    @property
    def base_dir(self) -> str:
        """The absolute path of the directory when it was opened."""
        return self._root.path

    def read(self, path: str) -> bytes:
        """The content of a file. Raises `FileToolError`, whose message is for the model."""
        with refusals(path, listed=False), self._root.file(path) as file:
            content = read_span(file.descriptor, 0, self.max_bytes + 1)
        if len(content) > self.max_bytes:
            raise UnsuitableError(f"{shown(path)} has more than {self.max_bytes:,} bytes.")
        return content

    def write(self, path: str, content: bytes) -> None:
        """Make a file, or replace all of its content; missing directories are made. Raises `FileToolError`."""
        with (
            refusals(path, "write", listed=False),
            self._root.writing,
            self._root.place(path, make_parents=True) as (folder, name),
        ):
            old = folder.status(name)
            if old is not None:
                folder.rules.check_file(old)
            with replacement(folder, name, old, base=self._root.base, sync=False) as new:
                write_all(new, [content])

    def __repr__(self) -> str:
        return f"ConfinedFolder({self.base_dir!r})"
