"""Results of commands that were not started."""

from __future__ import annotations

from typing import Final

from pegboard import Fault, Status, ToolResult

__all__ = ["NAME", "refused"]

NAME: Final = "execute_shell_command"


def refused(status: Status, kind: str, message: str) -> ToolResult:
    """The result of a command that was not started: `message` is written for the model."""
    return ToolResult("", NAME, status, f"Error: {message}", None, Fault(kind, message))
