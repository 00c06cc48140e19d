"""Changes of files: from an edit to the text that the model reads about it."""

from __future__ import annotations

import os
from collections.abc import Callable

from attrs import frozen

from pegboard import ToolResult
from pegboard_files._directory.bytes import version_of
from pegboard_files._directory.folder import Folder
from pegboard_files._directory.replacing import replacement, write_all
from pegboard_files._directory.root import Root
from pegboard_files._errors import ChangedError, UnsuitableError, counted, refusals, shown
from pegboard_files._text.edits import Splice, spliced
from pegboard_files._text.lines import LineIndex
from pegboard_files._text.views import snippet

__all__ = ["Writer", "encoded"]

CREATED = "Created"
_MAX_EDITED = 1 << 30  # bytes; an edit copies the whole file


def encoded(text: str, what: str = "content") -> bytes:
    """Text as UTF-8; this is called before a file is opened. Raises UnsuitableError for text that UTF-8 cannot hold."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UnsuitableError(f"{what} holds half a character (a lone surrogate), which UTF-8 cannot.") from None


@frozen
class Writer:
    """Writes files beneath a root: up to `max_bytes` at once. With `sync` a write waits for the disk."""

    root: Root
    max_bytes: int
    sync: bool

    def write(self, path: str, content: bytes, version: str | None) -> ToolResult:
        """Make a file, or replace all of its content. Raises FileToolError."""
        self._check_size(len(content))
        with refusals(path, "write"), self.root.writing, self.root.place(path, make_parents=True) as (folder, name):
            old = folder.status(name)
            if old is not None:
                folder.rules.check_file(old)
            if version:
                self._check_version(folder, name, path, version)
            with replacement(folder, name, old, base=self.root.base, sync=self.sync) as new:
                write_all(new, [content])
                done = CREATED if old is None else "Replaced all of"
                return self._report(folder.path_of(name), new, done, [Splice(0, 0, content)])

    def edit(self, path: str, version: str | None, edit: Callable[[int], list[Splice]], done: str) -> ToolResult:
        """Change a part of a file. Raises FileToolError; then the file is unchanged."""
        with (
            refusals(path, "write"),
            self.root.writing,
            self.root.place(path) as (folder, name),
            folder.file(name) as source,
        ):
            if source.status.st_size > _MAX_EDITED:
                size = counted(source.status.st_size, "byte")
                raise UnsuitableError(f"{shown(path)} has {size}; files of up to {_MAX_EDITED:,} bytes can be edited.")
            if version:
                _check_same(version, version_of(source.descriptor, self.max_bytes), path)
            splices = edit(source.descriptor)
            self._check_size(sum(len(splice.content) for splice in splices))
            with replacement(folder, name, source.status, base=self.root.base, sync=self.sync) as new:
                write_all(new, spliced(source.descriptor, source.status.st_size, splices))
                result = self._report(source.path, new, done, splices)
                _check_untouched(folder, name, source.status)
            return result

    def _check_size(self, size: int) -> None:
        if size > self.max_bytes:
            raise UnsuitableError(
                f"This would write {size:,} bytes; at most {self.max_bytes:,} are written at once. Write it in parts."
            )

    def _check_version(self, folder: Folder, name: str, path: str, version: str) -> None:
        with folder.file(name) as old:
            _check_same(version, version_of(old.descriptor, self.max_bytes), path)

    def _report(self, path: str, new: int, done: str, splices: list[Splice]) -> ToolResult:
        """The result for the model: the change, the size of the file, and the lines around the first change."""
        size = os.fstat(new).st_size
        index = LineIndex(new, size)
        first = index.line_of(splices[0].start)
        changed = splices[0].content.count(b"\n") + (splices[0].content[-1:] not in (b"\n", b""))
        total, version = index.count(), version_of(new, self.max_bytes)
        header = f"{done} {shown(path)}: {counted(total, 'line')}, {counted(size, 'byte')}; version {version}"
        data = {
            "path": shown(path),
            "created": done == CREATED,
            "first_line": first,
            "changed_lines": changed,
            "changes": len(splices),
            "lines": total,
            "bytes": size,
            "version": version,
        }
        return ToolResult(content=f"{header}\n{snippet(new, first, changed)}", data=data)


def _check_same(version: str, now: str, path: str) -> None:
    if version != now:
        raise ChangedError(
            f"{shown(path)} has changed since version {shown(version, 20)}. Nothing was written. View it again first."
        )


def _check_untouched(folder: Folder, name: str, read: os.stat_result) -> None:
    """Check the file that was read. Raises ChangedError if another program has changed it, which a write would undo."""
    now = folder.status(name)
    if now is None or (now.st_ino, now.st_size, now.st_mtime_ns) != (read.st_ino, read.st_size, read.st_mtime_ns):
        raise ChangedError(f"{shown(folder.path_of(name))} was changed meanwhile. Nothing was written. View it again.")
