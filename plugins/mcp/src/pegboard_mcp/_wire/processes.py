"""Process groups: a server that ends may leave children of its own behind, and they are ended too."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from pegboard_mcp._wire.keeper import KEEPER

__all__ = ["end_groups", "new_loop"]

PATIENCE = 0.5


def new_loop() -> tuple[asyncio.AbstractEventLoop, list[int]]:
    """A loop, and the list where the processes are noted that are started on it; the SDK does not tell which."""
    started: list[int] = []
    if sys.platform == "win32":
        return asyncio.new_event_loop(), started  # where the SDK puts a server's children into a job of their own

    class Noting(asyncio.SelectorEventLoop):
        async def subprocess_exec(self, *arguments: Any, **options: Any) -> Any:
            transport, protocol = await super().subprocess_exec(*arguments, **options)
            started.append(transport.get_pid())
            KEEPER.add(transport.get_pid())
            return transport, protocol

    return Noting(), started


def end_groups(leaders: list[int]) -> None:
    """End whatever is left of the groups of processes that lead one each: at first by SIGTERM."""
    if sys.platform == "win32":
        return
    for each in (signal.SIGTERM, signal.SIGKILL):
        for leader in leaders:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, each)
        deadline = time.monotonic() + PATIENCE
        while any(map(_is_there, leaders)) and time.monotonic() < deadline:
            time.sleep(0.02)
    for leader in leaders:
        KEEPER.remove(leader)


def _is_there(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
