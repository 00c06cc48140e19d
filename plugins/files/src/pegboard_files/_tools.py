"""The tools: viewing text files and listing directories."""

from __future__ import annotations

import os

import pegboard
from pegboard_files._lines import parse_range, read_excerpt
from pegboard_files._messages import refusals, shown
from pegboard_files._root import Root
from pegboard_files._views import render_excerpt, render_listing

__all__ = ["DEFAULT_MAX_BYTES", "FileTools"]

DEFAULT_MAX_BYTES = 10 * 1024 * 1024


@pegboard.toolset(name="files", description="Text files in one directory, which the tools cannot leave")
class FileTools:
    """File tools confined to `base_dir`.

    The directory is opened once and held: a relative `base_dir` means the current directory of that moment, and later
    renames do not move the confinement. `read_only` keeps tools that write off the board. `max_bytes` is the largest
    amount of text that one call shows. Raises OSError if the directory cannot be opened.
    """

    def __init__(
        self, base_dir: str | os.PathLike[str] = ".", *, read_only: bool = False, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> None:
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be positive, not {max_bytes}")
        self.read_only = read_only
        self.max_bytes = max_bytes
        self._root = Root(os.fspath(base_dir))

    @property
    def base_dir(self) -> str:
        """The absolute path of the directory as it was when it was opened."""
        return self._root.path

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
        wanted = parse_range(ranges)
        with refusals(file_path), self._root.file(file_path) as descriptor:
            excerpt = read_excerpt(descriptor, wanted, self.max_bytes)
            return render_excerpt(shown(self._root.relative(file_path)), excerpt, os.pread(descriptor, 3, 0))

    @pegboard.tool(read_only=True, idempotent=True, open_world=False)
    def list_directory(self, dir_path: str = ".") -> str:
        """List a directory: names in order, directories with a slash behind them, files with their size in bytes.

        Args:
            dir_path: Path of the directory, relative to the base directory
        """
        dir_path = dir_path or "."
        with refusals(dir_path), self._root.directory(dir_path) as descriptor:
            return render_listing(shown(self._root.relative(dir_path)), descriptor)
