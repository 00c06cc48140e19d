"""The base directory on systems that cannot open files relative to a directory: Windows.

It is weaker than the other engines, and the documentation says so. A file is opened by its name, and its real path is
checked before anything is read. New files are made in a directory whose real path was looked up before: a process that
swaps directories at that moment may be faster.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pegboard_files._directory.folder import Folder, Rules
from pegboard_files._directory.names import folded
from pegboard_files._directory.opening import Opened
from pegboard_files._directory.root import Root
from pegboard_files._errors import os_error

__all__ = ["NamedRoot", "final_path", "open_root"]

# Names that Windows does not take for files: streams and wildcards, devices, and endings that it cuts off. Short names
# are among them, because a denied file could be opened by one.
_BAD_NAME = re.compile(
    r'.*[<>:"|?*\x00-\x1f].*|.*[. ]|(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])( *\..*)?|.*~[0-9].*',
    re.IGNORECASE | re.DOTALL,
)


class NamedRoot(Root):
    """A base directory that is identified by its real path."""

    def _hold(self) -> None:
        self.path = os.path.realpath(self.path, strict=True)
        if not os.path.isdir(self.path):  # noqa: PTH112 - not a Path
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.path)

    @property
    def base(self) -> Folder:
        """The directory itself."""
        return Folder(".", self.rules, None, self.path)

    def relative(self, path: str) -> str:
        """An absolute path inside the directory as a relative one with slashes; any other path unchanged."""
        if os.sep == "\\":
            path = path.replace("\\", "/")
        base = self.path.replace(os.sep, "/").rstrip("/")
        if os.path.normcase(path[: len(base)]) == os.path.normcase(base) and path[len(base) :][:1] in ("", "/"):
            return path[len(base) :].lstrip("/") or "."
        return path

    def _checked(self, path: str) -> str:
        path = super()._checked(path)
        depth = 0
        for name in path.split("/"):
            if name in ("", "."):
                continue
            depth += -1 if name == ".." else 1
            if depth < 0:
                raise os_error(errno.EXDEV)
            if name != ".." and _BAD_NAME.fullmatch(name):
                raise os_error(errno.EILSEQ)
        return path

    def _open(self, path: str, flags: int) -> Opened:
        descriptor = os.open(self._full(path), flags)
        try:
            return Opened(descriptor, self._beneath(final_path(descriptor)))
        except OSError:
            os.close(descriptor)
            raise

    @contextmanager
    def _folder(self, path: str) -> Iterator[Folder]:
        real = os.path.realpath(self._full(path), strict=True)
        beneath = self._beneath(real)
        if not os.path.isdir(real):  # noqa: PTH112 - not a Path
            raise os_error(errno.ENOTDIR)
        yield Folder(beneath, self.rules, None, real)

    def _followed(self, folder: Folder, target: str) -> str:
        raise os_error(errno.EXDEV)

    def _full(self, path: str) -> str:
        return os.path.join(self.path, *folded(path).split("/"))  # noqa: PTH118 - not a Path

    def _beneath(self, real: str) -> str:
        """The path relative to the base directory. Raises OSError for a path outside it."""
        base = self.path.rstrip(os.sep) + os.sep
        if os.path.normcase(real) == os.path.normcase(self.path):
            return "."
        if not os.path.normcase(real).startswith(os.path.normcase(base)):
            raise os_error(errno.EXDEV)
        return real[len(base) :].replace(os.sep, "/")


if sys.platform == "win32":

    def final_path(descriptor: int) -> str:
        """Where an open file is. Raises OSError."""
        import ctypes
        import msvcrt

        buffer = ctypes.create_unicode_buffer(32768)
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(descriptor))
        if not 0 < kernel.GetFinalPathNameByHandleW(handle, buffer, len(buffer), 0) < len(buffer):
            raise os_error(errno.EACCES)
        return buffer.value.removeprefix("\\\\?\\").replace("UNC\\", "\\\\", 1 if buffer.value[4:8] == "UNC\\" else 0)

else:

    def final_path(descriptor: int) -> str:
        """Where an open file is. Raises OSError."""
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - not a Path


def open_root(path: str, rules: Rules) -> Root:
    """The directory, confined as well as this system can. Raises OSError if it cannot be opened."""
    if os.open in os.supports_dir_fd:
        return Root(path, rules)
    return NamedRoot(path, rules)
