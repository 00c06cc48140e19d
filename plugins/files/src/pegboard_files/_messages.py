"""What the model reads when a path cannot be used: its own words and the next act, never a path of the host."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from pegboard import ToolError

__all__ = ["refusals", "shown"]

_LOOK = "list_directory shows what is there."
_REASONS = {
    errno.EACCES: "permission denied.",
    errno.EILSEQ: "the path holds characters that no file name can have.",
    errno.EINVAL: "a path must not be empty or hold NUL characters.",
    errno.EISDIR: "it is a directory. Use list_directory.",
    errno.ELOOP: "it leads through too many symbolic links.",
    errno.ENAMETOOLONG: "the path is too long or too deep.",
    errno.ENOENT: f"there is no such file or directory. {_LOOK}",
    errno.ENOTDIR: f"a part of it is not a directory. {_LOOK}",
    errno.ENXIO: "it is not a regular file.",
    errno.EXDEV: 'it leads outside the base directory. Use a path relative to it; "." is the base directory itself.',
}


@contextmanager
def refusals(path: str) -> Iterator[None]:
    """Turn errors of the system about a path into `ToolError`s."""
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        raise ToolError(f"Cannot open {shown(path)}: {_REASONS.get(number, os.strerror(number))}") from error


def shown(name: str, limit: int = 200) -> str:
    """A name as one line of printable text, shortened in the middle.

    A line feed in a file's name could forge an entry of a listing; bytes that are no UTF-8 have no text at all.
    """
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)
    if len(printable) > limit:
        printable = f"{printable[: limit // 2]}...{printable[-limit // 2 :]}"
    return printable
