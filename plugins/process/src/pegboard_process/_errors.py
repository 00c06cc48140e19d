"""Errors of processes, and of tools that raised in one."""

from __future__ import annotations

from typing import Any

__all__ = ["ProcessDiedError", "RemoteError", "UnexpectedAnswerError"]


class ProcessDiedError(Exception):
    """The process of a tool ended before the tool did.

    Args:
        exit_code: Exit code of the process; negative where a signal killed it.
    """

    abandoned = False
    """Whether the tool had begun: then it is unknown how far it came, and only an idempotent one is tried again."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code

    def __str__(self) -> str:
        if self.exit_code >= 0:
            return f"the process of the tool ended with exit code {self.exit_code} before the tool did"
        from signal import Signals

        names = {number.value: number.name for number in Signals}
        signal = names.get(-self.exit_code, f"signal {-self.exit_code}")
        hint = ", perhaps because memory ran out" if signal == "SIGKILL" else ""
        return f"the process of the tool was killed by {signal} (exit code {self.exit_code}){hint}"


class UnexpectedAnswerError(Exception):
    """The process of a tool sent something that is no answer to its call. It was ended, and nothing of that is used."""

    abandoned = True
    """As that of `ProcessDiedError`."""

    def __init__(self) -> None:
        super().__init__("the process of the tool sent something that is no answer to this call, and was ended")


class RemoteError(Exception):
    """What a tool raised in another process: its message, its notes, and its traceback as the cause.

    Its class has the name of what was raised there, and is a subclass of the same built-in exceptions, of `ToolError`
    and `PegboardError`, and of those that the policy's `retry_on` names. Nothing else of the exception is here.
    """

    retry_after: Any = None
    """The `retry_after` of the exception, in seconds."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""
