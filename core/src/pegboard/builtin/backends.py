"""Built-in backends: a toolkit's own threads, and wherever the caller is.

A toolkit takes shortcuts to them, so that most calls meet no backend at all; one of a pack with the same name is asked
for each call.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from pegboard._base.effects import Outcome, new_future
from pegboard.extension import Backend, Job
from pegboard.hookspecs import hookimpl

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pegboard._execution.threads import WorkerPool


class ThreadBackend:
    """Runs jobs in up to `size` threads, which begin with the first."""

    name = "thread"
    size = 64

    @cached_property
    def pool(self) -> WorkerPool:
        """The threads; those in which a toolkit runs whatever else it must not do in the caller's own."""
        from pegboard._execution.threads import WorkerPool

        return WorkerPool(self.size)

    def submit(self, job: Job) -> Future[Any]:
        """Queue a job. Raises RuntimeError when the backend is closed or no thread can be started."""
        from pegboard._execution.threads import Ticket

        future = new_future()

        def refused(outcome: Outcome) -> None:
            if outcome[1] is not None and not future.done():
                future.set_exception(outcome[1])

        self.pool.submit(Ticket(self.pool, partial(_run, job, future), refused))
        return future

    def close(self) -> None:
        """End the threads, after the jobs that they run."""
        self.pool.close()


class InlineBackend:
    """Runs jobs at once, in the thread that submits them."""

    name = "inline"

    def submit(self, job: Job) -> Future[Any]:
        """Run a job."""
        return _run(job, new_future())

    def close(self) -> None:
        """There is nothing to release."""


def _run(job: Job, future: Future[Any]) -> Future[Any]:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(job())
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is the outcome of its call
            future.set_exception(error)
    return future


@hookimpl
def provide_backends() -> Iterable[Backend]:
    """`thread`, which is that of tools that name none, and `inline`."""
    return [ThreadBackend(), InlineBackend()]
