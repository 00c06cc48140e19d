"""The backend as a toolkit sees it; the pool behind it is made, and multiprocessing loaded, with the first job."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pegboard import Job, Tool
    from pegboard_process._pool import ProcessPool

__all__ = ["ProcessBackend"]


@final
class ProcessBackend:
    """Runs sync tools in processes of this machine that are kept for later jobs, and kills them at the deadline.

    Args:
        processes: Most processes at once. None: as many as the machine has CPUs, two at least.
        keep_warm: Seconds that an idle process is kept for the next call; 0 gives each call a process of its own. None
            keeps it as long as the toolkit is open.
        grace: Seconds in which a tool that takes its token, or yields, may end by itself.
        patience: Seconds that a process may take until it is ready, and again until it has imported what the job needs.
    """

    name = "process"
    keeps_time = True
    remote = False

    def __init__(
        self,
        processes: int | None = None,
        keep_warm: float | None = None,
        grace: float = 0.5,
        patience: float = 60.0,
    ) -> None:
        self._options: tuple[Any, ...] = (processes, keep_warm, grace, patience)
        self._closed = False
        self._begin()
        _all.add(self)

    def _begin(self) -> None:
        """Have no processes: at first, and after a fork, for those that are there are the parent's."""
        self._lock = threading.Lock()
        self._pool: ProcessPool | None = None

    def check(self, tool: Tool) -> None:
        """Raises `RegistrationError` for a tool that could never run in another process."""
        from pegboard_process._checks import check_portable

        check_portable(tool)

    def submit(self, job: Job) -> Future[Any]:
        """Queue a job. Cancelling the future kills its process. Raises RuntimeError when the backend is closed."""
        return self._made_pool().submit(job)

    def run_here(self, job: Job) -> Any:
        """Run a job, for a thread that would only wait for it. A token that is set ends it."""
        return self._made_pool().run(job)

    def _made_pool(self) -> ProcessPool:
        with self._lock:
            if self._closed:
                raise RuntimeError("the processes of this toolkit are closed")
            if self._pool is None:
                from pegboard_process._pool import ProcessPool

                self._pool = ProcessPool(*self._options)
            return self._pool

    def close(self) -> None:
        """End every process; returns when they have ended."""
        with self._lock:
            self._closed = True
            pool = self._pool
        if pool is not None:
            pool.close()

    def __repr__(self) -> str:
        processes, *_ = self._options
        state = "closed" if self._closed else "idle" if self._pool is None else "running"
        return f"ProcessBackend({processes or 'as many as CPUs'}, {state})"


def _begin_all() -> None:
    backends = list(_all)
    if any(backend._pool is not None for backend in backends):
        from pegboard_process._pool import forget_all

        forget_all()
    for backend in backends:
        backend._begin()


_all: Final[weakref.WeakSet[ProcessBackend]] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_all)
