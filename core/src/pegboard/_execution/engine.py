"""The engine: what the calls of one toolkit run on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

from pegboard._arguments.validate import RepairMode
from pegboard._base.effects import after_fork, tried
from pegboard._execution.concurrency import ConcurrencyLimits
from pegboard._execution.telemetry import Stats
from pegboard._results.factory import ResultFactory
from pegboard.extension import Middleware

if TYPE_CHECKING:
    from pegboard._execution.threads import WorkerPool


@final
class Engine:
    """What calls run on. One for each toolkit; threads and loop begin on first use."""

    def __init__(
        self,
        results: ResultFactory,
        threads: Callable[[], WorkerPool],
        *,
        repair: RepairMode = "safe",
    ) -> None:
        if repair not in ("off", "safe", "max"):
            raise ValueError(f'repair takes "off", "safe" or "max", got {repair!r}')
        self.results = results
        self.repair: RepairMode = repair
        self.stats = Stats()
        self.around: Sequence[Middleware] = ()  # whole calls
        self.checks: Sequence[Callable[[Any], Any]] = ()  # of guards, about each call
        self.limits = ConcurrencyLimits()
        # Where tools run, by the name that they say: the name alone if that is the core's own, else a plugin's.
        self.backends: dict[str, Any] = {}
        self._threads = threads
        self._drivers: Any = None
        self.closed_at = 0.0  # by `perf_counter`, once it is closed
        self._lock = threading.Lock()
        # What `close` stops, by `cancel(reason)`: each call that can be stopped.
        self.live: dict[Any, None] = {}
        after_fork(self, Engine._forget_parent)

    def _forget_parent(self) -> None:
        # In a child of a fork no call runs but the one that the fork was made in.
        self._lock = threading.Lock()
        self.live.clear()
        for stats in self.stats.values():
            stats.open = stats.waiting = 0

    @property
    def drivers(self) -> Any:
        """The two drivers, made when the first call needs one: asyncio is not loaded before."""
        return self._drivers or self._made_drivers()

    def _made_drivers(self) -> Any:
        from pegboard._execution.drivers import Drivers

        with self._lock:
            if self._drivers is None:
                drivers = Drivers(self._threads())
                if self.closed_at:
                    drivers.close(lambda: None)
                self._drivers = drivers
            return self._drivers

    def tell(self, what: str, details: Mapping[str, Any]) -> None:
        """Tell middleware around whole calls what happens to the one that runs here."""
        for each in self.around:
            tried(each.told, what, details)

    def statistics(self) -> dict[str, Any]:
        """The counts of all tools, the abandoned threads, and the jobs that wait for a thread."""
        known = self._drivers
        abandoned = () if known is None else (known.pool.abandoned, known.abandoned.count, known.pool.queued)
        return self.stats.to_dict(*abandoned)

    def close(self) -> None:
        """Stop all calls, then threads and loop; calls that need one end as errors from now on."""
        with self._lock:
            if self.closed_at:
                return
            self.closed_at = perf_counter()
            drivers = self._drivers
        if drivers is None:
            self._stop_all()
        else:
            drivers.close(self._stop_all)

    def _stop_all(self) -> None:
        for stoppable in list(self.live):
            stoppable.cancel("the toolkit was closed")
        with ExitStack() as closing:  # each of them, whatever one of them raises
            for name, backend in sorted(self.backends.items(), reverse=True):
                if name != backend:
                    closing.callback(backend.close)
