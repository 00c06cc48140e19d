"""Names and paths as text: which ones are legal, their normal form, and which ones a glob matches."""

from __future__ import annotations

import errno
import fnmatch
import functools
import os
import re
import unicodedata
from collections.abc import Callable, Iterable

from attrs import frozen

from pegboard_files._errors import os_error

__all__ = ["Denied", "Glob", "check_path", "folded", "is_odd"]

_MAX_PATH = 4096  # bytes, as Linux
_ODD = frozenset({"Cc", "Cs", "Zl", "Zp"})


def check_path(path: str, max_depth: int) -> None:
    """Check a path. Raises OSError if the text cannot be a path, or has more than `max_depth` names."""
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        raise os_error(errno.EILSEQ) from None
    # C reads a text only up to a NUL.
    if not encoded or b"\0" in encoded:
        raise os_error(errno.EINVAL)
    if encoded.count(b"/") >= max_depth or len(encoded) >= _MAX_PATH:
        raise os_error(errno.ENAMETOOLONG)


def folded(path: str) -> str:
    """A relative path without links in normal form: no `.`, `..` or empty names; "." for the root itself."""
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return "/".join(names) or "."


def is_odd(name: str) -> bool:
    """Whether a name would mislead the reader of a listing: no new file gets such a name."""
    return "\\" in name or any(unicodedata.category(character) in _ODD for character in name)


@frozen
class Glob:
    """A pattern for paths: `*`, `?` and `[...]` within a name, `**` for any number of directories.

    A pattern without a slash matches a name in any directory; one that begins with a slash starts at the base
    directory. The time of a match is proportional to the length of the path, whatever the pattern is.
    """

    names: tuple[str, ...]

    @classmethod
    def of(cls, pattern: str) -> Glob:
        """Read a pattern. Raises ValueError for one that no path can match."""
        names = [name for name in pattern.split("/") if name not in ("", ".")]
        if not names or ".." in names or len(pattern) > 1000:
            raise ValueError("this is no pattern for paths; write '*.py' or 'docs/**/*.md', without '..'")
        anywhere = not pattern.startswith("/") and "/" not in pattern.rstrip("/")
        return cls(("**", *names) if anywhere else tuple(names))

    def matches(self, path: str) -> bool:
        """Whether the pattern matches a path, which is in the form of `folded`."""
        reached = self._skipping({0})
        for name in path.split("/"):
            steps = (at if self.names[at] == "**" else at + 1 for at in reached if self._fits(at, name))
            reached = self._skipping(set(steps))
        return len(self.names) in reached

    def _fits(self, at: int, name: str) -> bool:
        return at < len(self.names) and (self.names[at] == "**" or _one_name(self.names[at])(name) is not None)

    def _skipping(self, reached: set[int]) -> set[int]:
        """The places with those after each `**`, which may match no directory at all."""
        for at, name in enumerate(self.names):
            if name == "**" and at in reached:
                reached.add(at + 1)
        return reached


@functools.lru_cache(maxsize=256)
def _one_name(pattern: str) -> Callable[[str], object]:
    return re.compile(fnmatch.translate(pattern)).match


@functools.lru_cache(maxsize=64)  # most folders have the same patterns, and a toolkit has several folders
def _read(patterns: tuple[str, ...]) -> tuple[Callable[[str], object] | None, tuple[Glob, ...]]:
    """What matches a denied name, and globs for the patterns of more than a name. Raises as `Glob.of` does."""
    spelled = [_spelled(pattern).removesuffix("/**") for pattern in patterns]
    for pattern in spelled:
        Glob.of(pattern)
    # Most patterns match one name, and a search compares them with every file.
    simple = [fnmatch.translate(pattern) for pattern in spelled if "/" not in pattern]
    globs = (Glob.of(p if p.startswith(("/", "**/")) else f"**/{p}") for p in spelled if "/" in p)
    return re.compile("|".join(simple)).match if simple else None, tuple(globs)


class Denied:
    """Denied paths: those that a pattern matches, in any directory, and everything beneath them.

    Names are compared without regard to case, width and invisible characters: some file systems open `.env` under
    another spelling. The base directory itself is never denied. Raises ValueError for a pattern that no path can match.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        self._name, self._globs = _read(self.patterns)

    def __contains__(self, path: str) -> bool:
        if path == ".":
            return False
        names = _spelled(path).split("/")
        if self._name is not None and any(map(self._name, names)):
            return True
        return any(glob.matches("/".join(names[:end])) for end in range(1, len(names) + 1) for glob in self._globs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Denied) and self.patterns == other.patterns

    def __hash__(self) -> int:
        return hash(self.patterns)

    def __reduce__(self) -> tuple[type[Denied], tuple[tuple[str, ...]]]:
        return Denied, (self.patterns,)


def _spelled(path: str) -> str:
    if path.isascii():
        return path.lower()
    plain = unicodedata.normalize("NFKC", path)
    return "".join(character for character in plain if unicodedata.category(character) != "Cf").casefold()
