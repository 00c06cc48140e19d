"""Reports: what a model and a program read about a command that has ended."""

from __future__ import annotations

import os
import re
import signal
from typing import Any, Final

from pegboard import Fault, Status, ToolResult
from pegboard_shell._confined import Confined
from pegboard_shell._results import NAME, refused
from pegboard_shell._running import Outcome

__all__ = ["report"]

_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


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
        "left_running": outcome.left,
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
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}" if number in getattr(signal, "valid_signals", set)() else None
