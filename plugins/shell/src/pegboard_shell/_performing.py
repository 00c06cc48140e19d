"""Performing: a command on an event loop, from its start to its report. Loaded when the first command runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import MutableSet
from typing import Final

from pegboard import Emitter, Status, ToolResult
from pegboard_shell._confined import Confined
from pegboard_shell._direct import DirectProcess
from pegboard_shell._launch import Launch, can_supervise
from pegboard_shell._process import Process
from pegboard_shell._report import report
from pegboard_shell._results import refused
from pegboard_shell._running import Run
from pegboard_shell._sandbox import SandboxUnavailableError, confine
from pegboard_shell._streaming import Streaming
from pegboard_shell._supervised import SupervisedProcess
from pegboard_shell._surroundings import Surroundings

__all__ = ["perform"]

_CLOSING: Final = 2.0
"""Seconds beyond the grace that a cancelled call waits for the end of its command."""
_TIMED_OUT: Final = "timed out"
"""What a toolkit cancels a call with whose policy gives it no more time; any other message means a stop."""


async def perform(
    argv: tuple[str, ...],
    around: Surroundings,
    seconds: float,
    emitter: Emitter | None,
    runs: MutableSet[Run],
    *,
    in_toolkit: bool,
) -> ToolResult:
    """Run a command for so many seconds at most; `runs` knows it meanwhile. Cancelled, it ends the command first.

    A toolkit gets the result of a cancelled call then, with what the command wrote: it sees by itself to it that its
    caller's cancellation goes on. Any other caller gets the cancellation.
    """
    confined = Confined("none", argv)

    def start() -> Process:  # in the thread of the run: looking for a sandbox may take a while
        nonlocal confined
        confined = confine(argv, around.places, mode=around.sandbox, network=around.network)
        return _begun(confined, around)

    listener = Streaming(emitter.emit, around.max_output) if emitter is not None and emitter.heard else None
    run = Run(start, seconds, around.grace, around.max_output, listener)
    runs.add(run)
    began = time.monotonic()
    ended = asyncio.wrap_future(run.begin())
    try:
        outcome = await asyncio.shield(ended)
    except SandboxUnavailableError as error:
        return refused(Status.ERROR, "sandbox", f"The command was not run: {error}.")
    except asyncio.CancelledError as cancelled:
        seconds = float(f"{time.monotonic() - began:.2g}")
        run.stop()
        await asyncio.wait([ended], timeout=around.grace + _CLOSING)
        if not in_toolkit or not ended.done() or ended.exception() is not None:
            raise
        outcome = ended.result()
        outcome.timed_out = cancelled.args[:1] == (_TIMED_OUT,)
        outcome.stopped = not outcome.timed_out
    return report(outcome, confined, timeout=seconds, argv=argv)


def _begun(confined: Confined, around: Surroundings) -> Process:
    launch = Launch(confined, around.directory, around.environment, around.limits, around.grace)
    return (SupervisedProcess if can_supervise() else DirectProcess)(launch)
