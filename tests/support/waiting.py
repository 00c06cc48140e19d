"""Waiting with bounds: nothing that a test starts may block the run, and nothing is waited for by the clock alone."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from types import FrameType
from typing import TypeVar

__all__ = ["PATIENCE", "HangError", "begin", "eventually", "given_time", "stacks", "until", "within"]

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds after which something counts as blocked. Nothing here takes a tenth of it otherwise."""


class HangError(AssertionError):
    """What a test started did not come back."""


def begin(function: Callable[[], T]) -> Future[T]:
    """Run `function` in a thread of its own; if it does not return, the test goes on all the same."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised again where the test waits
            future.set_exception(error)

    threading.Thread(target=run, name="bounded", daemon=True).start()
    return future


def within(function: Callable[[], T], seconds: float = PATIENCE) -> T:
    """What `function` returns, in a thread of its own. Raises `HangError` with all stacks if it does not return."""
    future = begin(function)
    if not wait([future], seconds).done:
        raise HangError(f"nothing came back within {seconds:g} s\n{stacks()}")
    return future.result()


def eventually(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Whether a condition comes true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Let the loop go on until a condition comes true, whatever makes it so. Raises `HangError` if it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise HangError(f"did not come true within {seconds:g} s\n{stacks()}")
        await asyncio.sleep(0.001)


def given_time(run: Callable[[float], T], shows: Callable[[T], object], seconds: float = 0.4) -> T:
    """What `run` comes to when it is ended after so many seconds, or more: until it has shown what it is to show.

    A busy machine may not let a program begin before its time is over.
    """
    found = run(seconds)
    for factor in (4, 16, 64):
        if shows(found):
            break
        found = run(factor * seconds)
    return found


def stacks() -> str:
    """Where every thread stands: a line for each, the innermost frame first, without the standard library's."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(sorted(f"{names.get(ident)}: {_place(frame)}" for ident, frame in sys._current_frames().items()))


def _place(frame: FrameType) -> str:
    frames = [each for each in traceback.extract_stack(frame)[::-1] if "/lib/python" not in each.filename]
    return " < ".join(f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in frames[:14])
