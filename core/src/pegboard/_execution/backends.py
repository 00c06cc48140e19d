"""Backends: where the sync tools of a toolkit run, and how drivers deal with one of a plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

from pegboard._base.effects import Outcome, cancellation, new_future
from pegboard._base.errors import RegistrationError
from pegboard._model.tool import Tool

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pegboard._execution.threads import Done, Ticket

__all__ = ["Backends", "Rented"]


@final
class Backends:
    """The backends of one toolkit by name. To those of `own`, which are the core's, there are shortcuts."""

    def __init__(self) -> None:
        self.named: dict[str, Any] = {}
        self.own: frozenset[str] = frozenset()

    def use(self, named: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        """Use these from now on; those of `own` that another one of that name does not stand for."""
        # The same dictionary: whoever collects tools looks into it.
        self.named.clear()
        self.named.update(named)
        self.own = frozenset(name for name, backend in own.items() if named[name] is backend)

    def of(self, tool: Tool) -> Any:
        """Where a tool runs: `"thread"` or `"inline"` if that is the core's own, else the backend itself.

        Raises `RegistrationError` if it is gone since the tool was registered.
        """
        name = tool.options.backend or "thread"
        if name in self.own:
            return name
        if name not in self.named:
            raise RegistrationError(f"the backend {name!r} of tool {tool.name!r} is not there any more")
        return self.named[name]

    def close(self) -> None:
        """Close all but the core's own, whose threads may still be at work."""
        for name in sorted(self.named.keys() - self.own):
            self.named[name].close()


@final
class Rented:
    """One job at a plugin's backend, dealt with as a pool of our own is. Its time runs at once."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._future: Future[Any] = new_future()

    def submit(self, job: Any, done: Done) -> Ticket:
        """Hand the job over. Raises what the backend raises."""
        from pegboard._execution.threads import Ticket

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
        return None, cancellation()
    error = future.exception()
    return (None, error) if error is not None else (future.result(), None)
