"""Reasons: why a server failed, as text for messages."""

from __future__ import annotations

from typing import Any, Final

__all__ = [
    "NO_ACCESS",
    "ConsentError",
    "TaskEndedError",
    "TaskStartedError",
    "UnreachableError",
    "innermost",
    "is_forgotten",
    "not_started",
    "reason",
]


NO_ACCESS: Final = -32_791
"""The code of an error of this client: the user gives no access to what a request needs."""


class UnreachableError(Exception):
    """A server that cannot be reached; nothing was sent to it."""


class ConsentError(UnreachableError):
    """The user did not give access to the server. Its earlier answers explain nothing more."""


class TaskStartedError(Exception):
    """A call is not answered yet: the server goes on with it as a task."""

    def __init__(self, task: Any) -> None:
        super().__init__("the call goes on as a task")
        self.task = task


class TaskEndedError(Exception):
    """A task ended without a result; `kind` says how."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def not_started(error: OSError, command: str) -> UnreachableError:
    """Why a command could not be started."""
    # The file is the command's, or the folder's that it was to start in; a command of blanks has none.
    name = error.filename or command
    if isinstance(error, FileNotFoundError):
        return UnreachableError(f"there is no {'command' if name == command else 'folder'} {name!r}")
    if isinstance(error, PermissionError):
        return UnreachableError(f"{name!r} may not be run")
    return UnreachableError(f"{name!r} cannot be run: {error.strerror or error}")


def innermost(error: BaseException) -> BaseException:
    """The one exception inside groups of one: task groups wrap whatever leaves them."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def is_forgotten(error: BaseException) -> bool:
    """Whether a server says over HTTP that it knows nothing of a session, in the words of the SDKs."""
    message = str(getattr(error, "message", "")).casefold().removeprefix("bad request: ").rstrip(".")
    return message in ("session terminated", "session not found", "no valid session id provided")


def reason(error: BaseException) -> str:
    """The reason, as text that follows a colon."""
    error = innermost(error)
    if isinstance(error, UnreachableError):
        return str(error)
    name = type(error).__name__
    if name == "ValidationError":
        return f"it sent something that is no MCP: {_first_lines(error)}"
    text = str(error)
    return f"{name}: {text}" if text else name


def _first_lines(error: BaseException) -> str:
    return " ".join(" ".join(str(error).splitlines()[:3]).split())[:300]
