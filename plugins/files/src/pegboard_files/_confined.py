"""The confinement for other packs: reading and writing whole files of a directory for a model."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from itertools import islice

from attrs import frozen

from pegboard_files._directory.bytes import read_span
from pegboard_files._directory.folder import Rules
from pegboard_files._directory.named_root import open_root
from pegboard_files._directory.names import Denied, folded
from pegboard_files._directory.replacing import replacement, write_all
from pegboard_files._errors import DeniedError, UnsuitableError, os_error, refusals, shown
from pegboard_files._settings import DEFAULT_DENY, DEFAULT_MAX_BYTES, DEFAULT_MAX_DEPTH

__all__ = ["ConfinedFolder", "FolderNames"]


@frozen
class FolderNames:
    """The names in one directory, sorted.

    Args:
        folders: Directories.
        files: Regular files.
        others: Links and all others.
    """

    folders: tuple[str, ...]
    files: tuple[str, ...]
    others: tuple[str, ...]


class ConfinedFolder:
    """A directory that paths of a model cannot leave, for packs whose tools take or make files.

    As with `FileTools`, the directory is opened once and held open, and no path is checked first and opened later.
    Raises OSError if the directory cannot be opened, ValueError for a pattern that no path can match.

    Args:
        base_dir: The directory.
        deny: Globs of paths that are neither read nor written.
        max_bytes: Most bytes of a file that is read or written; 10 MiB by default.
        links: Whether links that stay inside are followed. False follows none.
        read_only: Whether nothing is written, and no temporary file of a killed writer is removed.
    """

    def __init__(
        self,
        base_dir: str | os.PathLike[str],
        *,
        deny: Iterable[str] = DEFAULT_DENY,
        max_bytes: int = DEFAULT_MAX_BYTES,
        links: bool = True,
        read_only: bool = False,
    ) -> None:
        self.max_bytes = max_bytes
        self.links = links
        rules = Rules(Denied(deny), max_depth=DEFAULT_MAX_DEPTH, writable=not read_only)
        self._root = open_root(os.fspath(base_dir), rules)

    @property
    def base_dir(self) -> str:
        """The absolute path of the directory when it was opened."""
        return self._root.path

    @property
    def read_only(self) -> bool:
        """Whether nothing is written."""
        return not self._root.rules.writable

    def read(self, path: str) -> bytes:
        """The content of a file. Raises `FileToolError`, whose message is for the model."""
        with refusals(path, listed=False), self._root.file(path) as file:
            self._check_links(path, file.path)
            content = read_span(file.descriptor, 0, self.max_bytes + 1)
        if len(content) > self.max_bytes:
            raise UnsuitableError(f"{shown(path)} has more than {self.max_bytes:,} bytes.")
        return content

    def names(self, path: str = ".", *, most: int = 10_000) -> FolderNames:
        """What a directory holds, without what is denied. Raises `FileToolError`, also for more than `most` names."""
        with refusals(path, listed=False), self._root.folder(path) as folder:
            self._check_links(path, folder.path)
            entries = sorted(islice(folder.entries(), most + 1), key=lambda entry: entry.name)
            if len(entries) > most:
                raise UnsuitableError(f"{shown(path)} holds more than {most:,} names.")
            allowed = [entry for entry in entries if folder.rules.allow(folder.path_of(entry.name))]
            folders = [entry.name for entry in allowed if entry.is_dir(follow_symlinks=False)]
            files = [entry.name for entry in allowed if entry.is_file(follow_symlinks=False)]
        others = sorted({entry.name for entry in allowed}.difference(folders, files))
        return FolderNames(tuple(folders), tuple(files), tuple(others))

    def write(self, path: str, content: bytes) -> None:
        """Make a file, or replace all of its content; missing directories are made. Raises `FileToolError`."""
        if self.read_only:
            raise DeniedError(f"Cannot write {shown(path)}: this directory is only read.")
        with (
            refusals(path, "write", listed=False),
            self._root.writing,
            self._root.place(path, make_parents=True) as (folder, name),
        ):
            self._check_links(path, folder.path_of(name))
            old = folder.status(name)
            if old is not None:
                folder.rules.check_file(old)
            with replacement(folder, name, old, base=self._root.base, sync=False) as new:
                write_all(new, [content])

    def _check_links(self, path: str, real: str) -> None:
        """Raises OSError if links led to the `real` path of what was opened, and none may be followed."""
        named = folded(self._root.relative(path))
        if not self.links and os.path.normcase(named) != os.path.normcase(real):
            raise os_error(errno.ELOOP)

    def __repr__(self) -> str:
        return f"ConfinedFolder({self.base_dir!r})"
