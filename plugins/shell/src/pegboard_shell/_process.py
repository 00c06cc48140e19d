"""Processes: what a run needs of a command that has been started, however that was."""

from __future__ import annotations

from typing import Protocol, TypeAlias

__all__ = ["Event", "Process"]

Event: TypeAlias = tuple[str, bytes]
"""`stdout` and `stderr` with what was written; `started` with the process's number; `failed` with that of an error;
`ended` with the wait status and the number of processes that are left."""


class Process(Protocol):
    """A command that was started."""

    def poll(self, seconds: float) -> list[Event]:
        """What happened, within so many seconds at most."""

    def end(self) -> None:
        """Have it ended, gently at first; from any thread. A later `ended` says that it has."""

    def force(self) -> None:
        """Kill it, now."""

    def close(self) -> None:
        """Give back pipes and handles, whether or not another process still holds the other ends."""
