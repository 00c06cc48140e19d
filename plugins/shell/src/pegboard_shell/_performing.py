"""Performing: a command on an event loop, from its start to what a model and a program read about it.

What runs a command is loaded with the first one: the modules of processes and sockets take longer than all the rest.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import MutableSet
from typing import TYPE_CHECKING, Any, Final

from pegboard import Emitter, Fault, Status, ToolResult
from pegboard_shell._sandbox.sandboxes import Confined, SandboxUnavailableError, confine
from pegboard_shell._surroundings import Surroundings

if TYPE_CHECKING:
    from asyncio import Future

    from pegboard_shell._running.process import Process
    from pegboard_shell._running.run import Outcome, Run

__all__ = ["NAME", "perform", "refused"]

NAME: Final = "execute_shell_command"
_CLOSING: Final = 2.0
"""Seconds beyond the grace that a cancelled call waits for the end of its command."""
_TIMED_OUT: Final = "timed out"
"""What a toolkit cancels a call with whose policy gives it no more time; any other message means a stop."""
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def refused(status: Status, kind: str, message: str) -> ToolResult:
    """The result of a command that was not started: `message` is written for the model."""
    return ToolResult("", NAME, status, f"Error: {message}", None, Fault(kind, message))


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
    import asyncio

    from pegboard_shell._running.run import Run, Streaming

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
        stopped = await _stopped(run, ended, around.grace, timed_out=cancelled.args[:1] == (_TIMED_OUT,))
        if stopped is None or not in_toolkit:
            raise
        outcome = stopped
    return report(outcome, confined, timeout=seconds, argv=argv)


async def _stopped(run: Run, ended: Future[Outcome], grace: float, *, timed_out: bool) -> Outcome | None:
    """Stop a command: how it ended then, None if it did not end in time."""
    import asyncio

    run.stop()
    await asyncio.wait([ended], timeout=grace + _CLOSING)
    if not ended.done() or ended.exception() is not None:
        return None
    outcome = ended.result()
    outcome.timed_out, outcome.stopped = timed_out, not timed_out
    return outcome


def _begun(confined: Confined, around: Surroundings) -> Process:
    from pegboard_shell._running.direct import DirectProcess
    from pegboard_shell._running.process import Launch, SupervisedProcess, can_supervise

    launch = Launch(
        confined.argv,
        around.directory,
        around.environment,
        around.limits,
        around.grace,
        confined.confinement,
        confined.monitor,
    )
    return (SupervisedProcess if can_supervise() else DirectProcess)(launch)


def report(outcome: Outcome, confined: Confined, *, timeout: float, argv: tuple[str, ...]) -> ToolResult:
    """The result of a command that was started, or could not be."""
    if outcome.error is not None:
        message = f"{argv[0]} could not be started: {os.strerror(outcome.error)}"
        return refused(Status.ERROR, "start", message)
    exit_code = _exit_code(outcome.status or 0, monitored=confined.monitor)
    data = {
        "exit_code": exit_code,
        "signal": _signal_name(-exit_code) if exit_code < 0 else None,
        "stdout": outcome.stdout.text(),
        "stderr": outcome.stderr.text(),
        "truncated": bool(outcome.stdout.cut or outcome.stderr.cut),
        "bytes": {"stdout": outcome.stdout.total, "stderr": outcome.stderr.total},
        "timed_out": outcome.timed_out,
        "duration": outcome.duration,
        "sandbox": confined.sandbox,
        "argv": list(argv),
        "left_running": outcome.unended,
    }
    if outcome.timed_out:
        return _ended(data, Status.TIMEOUT, "timeout", f"timed out after {timeout:g} s")
    if outcome.stopped:
        return _ended(data, Status.CANCELLED, "cancelled", "the command was stopped")
    return ToolResult("", NAME, Status.SUCCESS, _tagged(data), data, value=data)


def _ended(data: dict[str, Any], status: Status, kind: str, message: str) -> ToolResult:
    text = f"Error: {message}. What the command wrote until then:\n{_tagged(data)}"
    return ToolResult("", NAME, status, text, data, Fault(kind, message), value=data)


def _tagged(data: dict[str, Any]) -> str:
    return (
        f"<returncode>{data['exit_code']}</returncode>\n"
        f"<stdout>{_escaped(data['stdout'])}</stdout>\n"
        f"<stderr>{_escaped(data['stderr'])}</stderr>"
    )


def _escaped(text: str) -> str:
    """Text that no tag can be forged with, and that no terminal acts on; the last line break is left out."""
    text = text.removesuffix("\n").replace("&", "&amp;").replace("<", "&lt;")
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _exit_code(status: int, *, monitored: bool) -> int:
    """The exit code, negative where a signal ended the command."""
    code = os.waitstatus_to_exitcode(status) if os.name == "posix" else status >> 8
    # A monitor tells a signal as shells do, by a code from 128 on.
    return 128 - code if monitored and code > 128 and _signal_name(code - 128) else code


def _signal_name(number: int) -> str | None:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}" if number in getattr(signal, "valid_signals", set)() else None
