"""The standard streams of this process: stdout may carry the protocol, so that messages go to stderr."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pegboard.inspection import spelled_out

__all__ = ["endable_stdin", "say", "stray_output_to_stderr"]


def say(message: str) -> None:
    """Write a line to stderr, with control characters spelled out."""
    sys.stderr.write(f"{spelled_out(message)}\n")
    sys.stderr.flush()


@contextmanager
def endable_stdin() -> Iterator[Callable[[], None]]:
    """Put a pipe in the place of descriptor 0, fed from what was there; what this gives ends it, as a client would.

    A thread that waits for a line of stdin cannot be stopped.
    """
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


@contextmanager
def stray_output_to_stderr() -> Iterator[None]:
    """Send what plugins print while they are loaded to stderr: stdout carries the protocol."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
