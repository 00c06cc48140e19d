"""Rented workers: a plugin's backend, dealt with as a pool of our own is."""

from __future__ import annotations

from asyncio import CancelledError
from concurrent.futures import Future
from typing import Any, final

from pegboard._base.effects import Outcome
from pegboard._execution.threads import Done, Ticket

__all__ = ["Rented"]


@final
class Rented:
    """One job at a plugin's backend. When it begins there is not known, so its time runs at once."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._future: Future[Any] = Future()

    def submit(self, job: Any, done: Done) -> Ticket:
        """Hand the job over. Raises what the backend raises."""
        ticket = Ticket(job, done)
        ticket.start()
        self._future = self._backend.submit(job)
        self._future.add_done_callback(lambda future: ticket.deliver(_outcome(future)) if ticket.finish() else None)
        return ticket

    def abandon(self, ticket: Ticket) -> bool:
        """Cancel the future; whether the job runs on all the same."""
        return ticket.abandon() and not self._future.cancel()


def _outcome(future: Future[Any]) -> Outcome:
    if future.cancelled():
        return None, CancelledError()
    error = future.exception()
    return (None, error) if error is not None else (future.result(), None)
