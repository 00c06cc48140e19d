"""Standard input that can be ended from this side: a thread that waits for a line cannot be told to stop waiting."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["endable_stdin"]


@contextmanager
def endable_stdin() -> Iterator[Callable[[], None]]:
    """Put a pipe in the place of descriptor 0, fed from what was there; what this gives ends it, as a client would."""
    real = os.dup(0)
    read, write = os.pipe()
    os.dup2(read, 0)
    os.close(read)
    ended = threading.Lock()  # acquired once, by the thread that closes the pipe

    def end() -> None:
        if ended.acquire(blocking=False):
            os.close(write)

    def feed() -> None:
        with suppress(OSError):  # the reader has ended, or the pipe was ended
            while chunk := os.read(real, 65_536):
                while chunk:
                    chunk = chunk[os.write(write, chunk) :]
        end()

    threading.Thread(target=feed, name="pegboard-mcp-stdin", daemon=True).start()
    try:
        yield end
    finally:
        end()
        os.dup2(real, 0)
