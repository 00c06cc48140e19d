"""The future of a job that runs outside of the program, where to cancel it is to kill what runs it."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError as QueuedError
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, final

from pegboard import CancelToken

__all__ = ["JobFuture"]


@final
class JobFuture(Future[Any]):
    """The outcome of a job. Cancelling it calls `stop`: the process that runs the job ends soon after."""

    def __init__(self, stop: Callable[[], object]) -> None:
        super().__init__()
        self._stop = stop
        self.add_done_callback(_forget)  # who would stop it has it in turn

    def cancel(self) -> bool:
        """Kill the process that runs the job. Returns False only if the job has ended already."""
        if not super().cancel():
            self._stop()
        return not self.done() or self.cancelled()

    @contextmanager
    def ended_by(self, token: CancelToken) -> Iterator[None]:
        """While a thread waits for it: a token that is set cancels it, and so does whatever interrupts the wait."""
        token.on_cancel(self.cancel)
        try:
            yield
        except QueuedError:
            raise CancelledError(token.reason) from None
        except BaseException:  # a real Ctrl-C, perhaps
            if not self.done():
                self.cancel()
            raise


def _forget(future: Any) -> None:
    future._stop = _nothing


def _nothing() -> None:
    """There is nothing to stop any more."""
