"""Files of our own: written completely or not at all, and never through a link."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pegboard._base.errors import SettingsError


def regular(path: str, flags: int, mode: int = 0o666) -> int:
    """An `opener=` of `open()` for files of our own: it follows no link, waits for no FIFO and opens no device.

    Raises OSError for what is no regular file.
    """
    odd = OSError(0, "it is no regular file but a link, a FIFO, a device or a folder", path)
    if os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path)):  # noqa: PTH110, PTH113, PTH114
        raise odd
    # What is there may be exchanged in between.
    descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), mode)
    if not os.path.isfile(descriptor):  # noqa: PTH113 - it is no path
        os.close(descriptor)
        raise odd
    return descriptor


def write_file(path: Path, text: str, what: str) -> None:
    """Write a file of our own in one step: whoever reads it meanwhile, or after a crash, sees the old text or the new.

    The text is written beside it, under a name that nobody can guess; a link, a FIFO or a device is not written to.
    Raises `SettingsError`, naming `what` it is; then nothing has changed.
    """
    beside = path.with_name(f".pegboard-{os.urandom(8).hex()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(beside, "xb", buffering=0, opener=regular) as file:
            with suppress(FileNotFoundError), open(path, opener=regular) as before:
                beside.chmod(os.fstat(before.fileno()).st_mode & 0o777)
            file.write(text.encode("utf-8", "backslashreplace"))
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise SettingsError(f"{path}: {what} cannot be saved: {error.strerror}; nothing was changed") from error
