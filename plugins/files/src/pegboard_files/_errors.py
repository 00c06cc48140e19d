"""Errors of the file tools: their types, and messages for the model with the next act and without paths of the host."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from pegboard import ToolError

__all__ = [
    "DENIED",
    "HARD_LINKED",
    "ODD_NAME",
    "PROTECTED",
    "ChangedError",
    "DeniedError",
    "FileToolError",
    "MissingError",
    "OutsideError",
    "RangeError",
    "StorageError",
    "UnsuitableError",
    "counted",
    "os_error",
    "refusals",
    "shown",
]


class FileToolError(ToolError):
    """The base class of all errors of the file tools. No message holds an absolute path of the host."""


class OutsideError(FileToolError):
    """The path leads outside the base directory."""


class DeniedError(FileToolError):
    """The settings do not allow the call: a denied path, a hard link, a write with `read_only`."""


class MissingError(FileToolError):
    """There is no such file or directory."""


class UnsuitableError(FileToolError):
    """The file or the path is of a kind that the tools do not handle: a FIFO, binary data, a loop of links."""


class RangeError(FileToolError):
    """The lines do not exist, or the text to be replaced does not occur as often as expected."""


class ChangedError(FileToolError):
    """Another program has changed the file."""


class StorageError(FileToolError):
    """The system refuses the call: no permission, no space, a read-only file system."""


# Error numbers of this pack, beside those of the system.
DENIED, HARD_LINKED, PROTECTED, ODD_NAME = -1, -2, -3, -4

_LOOK = " list_directory shows what is there."
_USE = " Use list_directory."
_REASONS: dict[int, tuple[type[FileToolError], str]] = {
    errno.EXDEV: (
        OutsideError,
        'it leads outside the base directory. Use a path relative to it; "." is the base directory itself.',
    ),
    DENIED: (DeniedError, "the settings of this tool do not allow it."),
    HARD_LINKED: (DeniedError, "it has several names (hard links), which the settings of this tool do not allow."),
    PROTECTED: (DeniedError, "the file is write-protected."),
    ODD_NAME: (UnsuitableError, "a new name must not hold backslashes or control characters. Separate names by /."),
    errno.ENOENT: (MissingError, f"there is no such file or directory.{_LOOK}"),
    errno.ENOTDIR: (MissingError, f"a part of it is not a directory.{_LOOK}"),
    errno.EILSEQ: (UnsuitableError, "the path holds characters that no file name can have."),
    errno.EINVAL: (UnsuitableError, "a path must not be empty or hold NUL characters."),
    errno.EISDIR: (UnsuitableError, f"it is a directory.{_USE}"),
    errno.ELOOP: (UnsuitableError, "it leads through more symbolic links than are followed here."),
    errno.ENAMETOOLONG: (UnsuitableError, "the path is too long or too deep."),
    errno.ENXIO: (UnsuitableError, "it is not a regular file."),
    errno.EACCES: (StorageError, "permission denied."),
    errno.EROFS: (StorageError, "the file system is read-only."),
    errno.ENOSPC: (StorageError, "there is no space left. Nothing was changed."),
    getattr(errno, "EDQUOT", errno.ENOSPC): (StorageError, "the disk quota is used up. Nothing was changed."),
    errno.EFBIG: (StorageError, "the file would become larger than the system allows. Nothing was changed."),
}


@contextmanager
def refusals(path: str, act: str = "open", *, listed: bool = True) -> Iterator[None]:
    """Turn errors of the system about a path into `FileToolError`s: "Cannot open <path>: <reason and next act>".

    With `listed=False` no tool is named: the model may not have it.
    """
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        kind, reason = _REASONS.get(number, (StorageError, f"{os.strerror(number)}."))
        reason = reason if listed else reason.removesuffix(_LOOK).removesuffix(_USE)
        raise kind(f"Cannot {act} {shown(path)}: {reason}") from error


def shown(name: str, limit: int = 200) -> str:
    """A name as one line of printable text, shortened in the middle.

    A line feed in a file's name could forge an entry of a listing, and bytes that are not UTF-8 cannot be printed.
    """
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)
    if len(printable) > limit:
        printable = f"{printable[: limit // 2]}...{printable[-limit // 2 :]}"
    return printable


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number and what it counts: `1 line`, `1,000 lines`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def os_error(number: int) -> OSError:
    """An error by its number, of the system or of this pack, without a path."""
    return OSError(number, os.strerror(number) if number > 0 else "refused")
