"""What goes wrong, as types: all are `ToolError`s, whose message the model reads as it is."""

from __future__ import annotations

from pegboard import ToolError

__all__ = [
    "ChangedError",
    "DeniedError",
    "FileToolError",
    "MissingError",
    "OutsideError",
    "RangeError",
    "StorageError",
    "UnsuitableError",
]


class FileToolError(ToolError):
    """The base of all refusals of the file tools. No message holds an absolute path of the host."""


class OutsideError(FileToolError):
    """The path leads outside the base directory."""


class DeniedError(FileToolError):
    """The settings do not allow it: a denied path, a hard link, a tool that only reads."""


class MissingError(FileToolError):
    """There is no such file or directory."""


class UnsuitableError(FileToolError):
    """There is something, or the path names something, that these tools do not handle: a FIFO, binary data, a loop."""


class RangeError(FileToolError):
    """The lines, or the text to be replaced, are not there, or not as often as expected."""


class ChangedError(FileToolError):
    """Another program changed the file meanwhile."""


class StorageError(FileToolError):
    """The system refuses: no permission, no space, a read-only file system."""
