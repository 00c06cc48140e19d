"""The file tools."""

from __future__ import annotations

import functools
import os
from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Any, Literal, NoReturn, cast

import pegboard
from pegboard import ToolResult
from pegboard_files._directory.bytes import read_at, version_of
from pegboard_files._directory.folder import Rules
from pegboard_files._directory.named_root import open_root
from pegboard_files._directory.names import Denied
from pegboard_files._errors import DeniedError, RangeError, UnsuitableError, counted, refusals, shown
from pegboard_files._settings import DEFAULT_DENY, DEFAULT_MAX_BYTES, DEFAULT_MAX_DEPTH, Settings
from pegboard_files._text.changes import Writer, encoded
from pegboard_files._text.edits import insert_line, replace_lines, replace_text
from pegboard_files._text.lines import parse_range, read_excerpt
from pegboard_files._text.search import MAX_FILES, MAX_MATCHES, Budget, Wanted, find, glob_of, search
from pegboard_files._text.views import listing, render_excerpt, render_listing

__all__ = ["FileTools"]


@pegboard.toolset(name="files", description="Text files in one directory, which the tools cannot leave")
class FileTools:
    """File tools confined to a directory.

    The directory is opened once and held open: a relative `base_dir` is relative to the current directory of that
    moment, and later renames do not change the confinement. Raises OSError if the directory cannot be opened.

    Args:
        base_dir: The directory. None: the current one.
        read_only: Whether the tools that write are left out. None: if there is no `base_dir`.
        deny: Globs of paths that no tool reads or writes, whatever the case of the letters. A list replaces the
            default.
        max_bytes: Most bytes of text that one call shows or writes; 10 MiB by default.
        max_depth: Most names that a path may have; 64 by default.
        hardlinks: Whether files with several names are allowed (`"allow"`) or refused (`"deny"`).
        durability: `"fsync"` waits until the content is on the disk; with `"rename"` a write survives the end of the
            process, but perhaps not a power failure.
    """

    def __new__(
        cls, base_dir: str | os.PathLike[str] | None = None, *, read_only: bool | None = None, **_: Any
    ) -> FileTools:
        """Make an instance; with `read_only`, of a class without the tools that write."""
        made: FileTools = _bare_tools(cls, base_dir is None if read_only is None else read_only)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies of the same class, with or without the tools that write."""
        return _bare_tools, (_plain_kind(self), self.read_only), self.__dict__

    def __init__(
        self,
        base_dir: str | os.PathLike[str] | None = None,
        *,
        read_only: bool | None = None,
        deny: Iterable[str] = DEFAULT_DENY,
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_depth: int = DEFAULT_MAX_DEPTH,
        hardlinks: Literal["allow", "deny"] = "allow",
        durability: Literal["fsync", "rename"] = "fsync",
    ) -> None:
        settings = Settings(
            base_dir=None if base_dir is None else os.fspath(base_dir),
            read_only=read_only,
            deny=tuple(deny),
            max_bytes=max_bytes,
            max_depth=max_depth,
            hardlinks=hardlinks,
            durability=durability,
        )
        self.settings = settings
        rules = Rules(Denied(settings.deny), hardlinks == "allow", max_depth, writable=not settings.only_reads)
        self._root = open_root(settings.base_dir or ".", rules)
        self._writer = Writer(self._root, max_bytes, durability == "fsync")

    @property
    def base_dir(self) -> str:
        """The absolute path of the directory when it was opened."""
        return self._root.path

    @property
    def read_only(self) -> bool:
        """Whether the tools that write are left out."""
        return self.settings.only_reads

    def __repr__(self) -> str:
        return f"FileTools({self.base_dir!r}, read_only={self.read_only})"

    @pegboard.tool(read_only=True, idempotent=True, open_world=False)
    def view_text_file(self, file_path: str, ranges: str | list[int] | None = None) -> str:
        """View a text file (UTF-8) with line numbers: all of it, or a range of lines.

        Args:
            file_path: Path of the file, relative to the base directory
            ranges: First and last line, such as "1,100"; negative numbers count from the end, so "-50,-1" are the last
                50 lines. Leave it out for the whole file.
        """
        wanted, limit = parse_range(ranges), self.settings.max_bytes
        with refusals(file_path), self._root.file(file_path) as file:
            version = None if self.read_only else version_of(file.descriptor, limit)
            excerpt = read_excerpt(file.descriptor, wanted, limit)
            head = read_at(file.descriptor, 3, 0)
            return render_excerpt(shown(self._root.relative(file_path)), excerpt, head, version)

    @pegboard.tool(read_only=True, idempotent=True, open_world=False)
    def list_directory(self, dir_path: str = ".") -> ToolResult:
        """List a directory: names in order, directories with a slash behind them, files with their size in bytes.

        Args:
            dir_path: Path of the directory, relative to the base directory
        """
        dir_path = dir_path or "."
        with refusals(dir_path), self._root.folder(dir_path) as folder:
            entries, total = listing(folder)
        name = shown(self._root.relative(dir_path))
        data = {"path": name, "entries": entries, "total": total}
        return ToolResult(content=render_listing(name, entries, total), data=data)

    @pegboard.tool(read_only=True, idempotent=True, open_world=False)
    def find_files(self, pattern: str, dir_path: str = ".") -> ToolResult:
        """Find files by a glob: "*.py" in any directory, "docs/*.md" there, "src/**/test_*" at any depth.

        Args:
            pattern: Glob with *, ?, [...] and ** for any number of directories
            dir_path: Where to look, relative to the base directory
        """
        budget, glob = Budget(), glob_of(pattern)
        with refusals(dir_path), self._root.folder(dir_path or ".") as folder:
            found = list(islice(find(folder, glob, budget), MAX_FILES + 1))
        files = [shown(path, 1000) for path in found[:MAX_FILES]]
        cut = _cut_short(len(found) > MAX_FILES, f"there are more than {MAX_FILES:,}", budget)
        text = "\n".join([f"{counted(len(files), 'file')} found{cut}", *files])
        return ToolResult(content=text, data={"files": files, "complete": not cut})

    @pegboard.tool(read_only=True, idempotent=True, open_world=False)
    def search_text(
        self, pattern: str, path: str = ".", glob: str | None = None, regex: bool = False, ignore_case: bool = False
    ) -> ToolResult:
        """Search files for lines that hold a text, or match a regular expression. Binary files are skipped.

        Args:
            pattern: The text, exactly as it stands in a line, or a regular expression
            path: A directory to search with all beneath it, or one file, relative to the base directory
            glob: Only files whose path fits, such as "*.py"
            regex: Whether the pattern is a regular expression (RE2: no look-around, no back references)
            ignore_case: Whether upper and lower case are the same
        """
        encoded(pattern, "The pattern")
        wanted = Wanted(pattern, regex=regex, ignore_case=ignore_case)
        budget, path = Budget(), path or "."
        with refusals(path):
            found = list(islice(search(self._root, path, glob_of(glob), wanted, budget), MAX_MATCHES + 1))
        matches = found[:MAX_MATCHES]
        cut = _cut_short(len(found) > MAX_MATCHES, f"there are more than {MAX_MATCHES}", budget)
        lines = [f"{match['path']}:{match['line']}: {match['text']}" for match in matches]
        text = "\n".join([f"{counted(len(matches), 'line')} found{cut}", *lines])
        return ToolResult(content=text, data={"matches": matches, "complete": not cut})

    @pegboard.tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    def write_text_file(
        self, file_path: str, content: str, ranges: str | list[int] | None = None, version: str | None = None
    ) -> ToolResult:
        """Create a text file, replace all of it, or replace a range of its lines. Missing directories are made.

        Args:
            file_path: Path of the file, relative to the base directory
            content: The new text: of the whole file, or of the lines in ranges (an empty text removes them)
            ranges: First and last line to replace, such as "3,5"; negative numbers count from the end. Leave it out
                for the whole file.
            version: Version that view_text_file showed: nothing is written if the file has changed since
        """
        wanted, new = parse_range(ranges), encoded(content)
        if wanted is None:
            return self._writer.write(file_path, new, version)
        done = f"Replaced lines {wanted} of"
        return self._writer.edit(file_path, version, lambda source: replace_lines(source, wanted, new), done)

    @pegboard.tool(read_only=False, destructive=False, idempotent=False, open_world=False)
    def insert_text_file(
        self, file_path: str, content: str, line_number: int, version: str | None = None
    ) -> ToolResult:
        """Insert lines into a text file: the content becomes that line, and what stood there comes after it.

        Args:
            file_path: Path of the file, relative to the base directory
            content: The lines to insert
            line_number: From 1 to the number of lines plus 1, which appends
            version: Version that view_text_file showed: nothing is written if the file has changed since
        """
        new = encoded(content)
        done = f"Inserted at line {line_number} of"
        return self._writer.edit(file_path, version, lambda source: insert_line(source, line_number, new), done)

    @pegboard.tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    def edit_text_file(
        self, file_path: str, old_text: str, new_text: str, expected_count: int = 1, version: str | None = None
    ) -> ToolResult:
        """Replace an exact text in a file by another. Nothing is changed unless it occurs as often as expected.

        Args:
            file_path: Path of the file, relative to the base directory
            old_text: The text to replace, without line numbers, with enough around it to be unique
            new_text: The text to put in its place; empty to remove it
            expected_count: How often old_text occurs; all occurrences are replaced
            version: Version that view_text_file showed: nothing is written if the file has changed since
        """
        old, new = encoded(old_text, "old_text"), encoded(new_text, "new_text")
        if not old or old == new:
            raise UnsuitableError("old_text must not be empty, and new_text must differ from it.")
        if expected_count < 1:
            raise RangeError(f"expected_count must be at least 1, not {expected_count}.")
        done = f"Replaced {counted(expected_count, 'occurrence')} in"
        return self._writer.edit(
            file_path, version, lambda source: replace_text(source, old, new, expected_count), done
        )


def _cut_short(more: bool, reason: str, budget: Budget) -> str:
    reason = reason if more else budget.spent
    return f"; the search ended early because {reason}: narrow it" if reason else ""


# Read-only tools: the same class, in which the methods that write are not marked as tools --------------------------


class _ReadOnly:
    """A base in front of a class of file tools: these methods are not marked as tools, so they are not registered."""

    def write_text_file(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse the call."""
        raise DeniedError("These file tools are read-only.")

    insert_text_file = edit_text_file = write_text_file


def _bare_tools(cls: type, only_reads: bool) -> Any:
    """An instance of `cls` that is not initialised yet, with or without the tools that write."""
    return object.__new__(_read_only_kind(cast("Hashable", cls)) if only_reads else cls)


def _plain_kind(tools: object) -> type:
    """The class that `_bare_tools` was called with."""
    cls = type(tools)
    return cls.__mro__[2] if issubclass(cls, _ReadOnly) else cls


@functools.cache
def _read_only_kind(cls: Any) -> type:
    return type(cls.__name__, (_ReadOnly, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__})
