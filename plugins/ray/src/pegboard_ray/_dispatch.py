"""Calls to Ray: a bounded number at once; further ones wait here."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from asyncio import CancelledError
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, final

from pegboard import Job, PegboardError, describe_exception
from pegboard_ray._cluster import Cluster, needs_of
from pegboard_ray._errors import NoResourcesError, WorkerLostError
from pegboard_ray._flight import Flight
from pegboard_ray._keeper import acquired, released
from pegboard_ray._orders import Orders
from pegboard_ray._run import Run

if TYPE_CHECKING:
    from pegboard_ray._settings import Settings

__all__ = ["Dispatcher"]

_CLOSED: Final = "the toolkit was closed"
_CLOSING: Final = 10.0
"""Seconds that closing waits for workers to end."""
_SOON: Final = 0.02
"""Seconds that short calls wait for room for a whole task; then as many go as there is room for."""
_LOOKS: Final = 1.0
"""Seconds between two looks at whether the cluster has what calls are waiting for."""


@final
class Dispatcher:
    """Gives jobs to Ray: at once if it is there and has room, else a thread does as soon as that is so."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._orders = Orders(settings)
        self._state = threading.Condition()
        self._waiting: deque[Run] = deque()
        self._flying: set[Run] = set()
        self._cluster: Cluster | None = None
        """None until it is there, and again after it has ended."""
        self._closed = False
        self._follows = False
        """Whether an event loop launches what waits."""
        self._rests = False
        """Whether the thread waits for the next call, however long."""
        self._feeder = threading.Thread(target=self._feed, name="pegboard-ray", daemon=True)
        self._feeder.start()

    def submit(self, job: Job) -> Future[Any]:
        """Queue a job. Raises RuntimeError when this is closed."""
        return self._begun(job, here=False).future

    def run_here(self, job: Job) -> Any:
        """Run a job: what it comes to. Raises as `submit` does."""
        return self._begun(job, here=True).wait()

    def _begun(self, job: Job, *, here: bool) -> Run:
        run = Run(job, self._settings.grace, self._over)
        with self._state:
            if self._closed:
                raise RuntimeError("the Ray backend of this toolkit is closed")
            cluster = self._cluster
            full = self._waiting or len(self._flying) >= self._settings.in_flight
            # A first call goes at once; those that come while it is on its way go together.
            if cluster is None or full or (self._flying and not here and self._shares(run)):
                self._waiting.append(run)
                self._state.notify_all()
                return run
            self._flying.add(run)
            if self._rests:
                self._state.notify_all()
        self._launch([run], cluster, here=here)
        return run

    def _shares(self, run: Run) -> bool:
        """Whether a call may share a task with further calls."""
        return not run.is_alone and self._orders.together(run.job) > 1

    def _launch(self, runs: Sequence[Run], cluster: Cluster, *, here: bool = False) -> None:
        """Give calls to Ray, those of a tool that takes little time together."""
        shared: dict[str, list[Run]] = {}
        for run in runs:
            try:
                known = self._orders.known(run.job)
            except BaseException as error:  # noqa: BLE001 - modules of the program, and of packs
                run.refuse(error)
                continue
            if run.is_alone or here or known.pace.together == 1:
                Flight(cluster, known, self._anew).launch([run], here=here)
            else:
                shared.setdefault(known.wanted, []).append(run)
        for together in shared.values():
            known = self._orders.known(together[0].job)
            share = math.ceil(len(together) / cluster.at_once(known.shape, known.options))
            size = min(known.pace.together, share)
            for start in range(0, len(together), size):
                Flight(cluster, known, self._anew).launch(together[start : start + size])

    def _anew(self, run: Run) -> None:
        """Begin a call again."""
        with self._state:
            self._flying.discard(run)
            closed = self._closed
            if not closed:
                self._waiting.appendleft(run)
                self._state.notify_all()
        if closed:
            run.refuse(CancelledError(_CLOSED))

    def _over(self, run: Run) -> None:
        with self._state:
            self._flying.discard(run)
            # No thread has to wake where a loop goes on anyway.
            if not (self._waiting and asyncio._get_running_loop()) or self._follows:
                if self._waiting or self._closed:
                    self._state.notify_all()
                return
            self._follows = True  # what ends while it is launched is followed from here, not from inside of itself
        try:
            while (following := self._following()) is not None:
                self._launch([following[0]], following[1])
        except BaseException:  # a real Ctrl-C
            self._follows = False
            raise

    def _following(self) -> tuple[Run, Cluster] | None:
        """What a loop launches next; None if the thread does it."""
        with self._state:
            room = len(self._flying) < self._settings.in_flight
            cluster = None if self._closed else self._cluster
            if cluster is None or not (room and self._waiting) or self._shares(self._waiting[0]):
                self._follows = False
                self._state.notify_all()
                return None
            run = self._waiting.popleft()
            self._flying.add(run)
            return run, cluster

    def _feed(self) -> None:
        """Start Ray, launch what waits, and look after what Ray cannot place."""
        looked = time.monotonic()
        while (runs := self._next(looked + _LOOKS)) is not None:
            cluster = self._cluster or self._entered()
            if cluster is not None:
                try:
                    self._launch(runs, cluster)
                except BaseException as error:  # noqa: BLE001 - whatever it is, no call waits for ever
                    for run in runs:
                        run.refuse(error)
            if time.monotonic() - looked >= _LOOKS:
                looked = time.monotonic()
                self._look()
        if self._cluster is not None:
            released(self._cluster)

    def _entered(self) -> Cluster | None:
        """Find or start Ray; if that fails, every waiting call gets the error."""
        try:
            cluster = acquired(self._settings, self._lost)
        except BaseException as error:  # noqa: BLE001 - the calls raise it
            with self._state:
                refused = list(self._waiting)
                self._waiting.clear()
            for run in refused:
                run.refuse(error)
            return None
        with self._state:
            self._cluster = None if cluster.is_lost else cluster
        return self._cluster

    def _lost(self, reason: str) -> None:
        """The cluster has ended, with all that it runs; the next call finds or starts one."""
        with self._state:
            self._cluster = None
            runs = list(self._flying)
            self._state.notify_all()
        for run in runs:
            run.refuse(WorkerLostError(f"the Ray that {run.name} was running on is lost: {reason}"))

    def _next(self, until: float) -> list[Run] | None:
        """What can be launched now; None when this is closed and no call waits."""
        patience = math.inf
        with self._state:
            while not (self._closed and not self._flying):
                now, room = time.monotonic(), self._settings.in_flight - len(self._flying)
                fitting = 0 if room < self._whole() and now < patience else min(room, len(self._waiting))
                if self._waiting and self._cluster is None:
                    return []
                runs = [self._waiting.popleft() for _ in range(fitting)]
                self._flying.update(runs)
                if runs:
                    return runs
                self._rests = not self._flying
                if self._rests:
                    self._state.wait()
                elif until <= now:
                    return []
                else:
                    if self._waiting and room > 0:  # for a whole task there may be room soon, or not
                        patience = min(patience, now + _SOON)
                    self._state.wait(min(until, patience if room > 0 else until) - now)
            return None

    def _whole(self) -> int:
        """How many calls a task of those that wait has."""
        waiting = len(self._waiting)
        whole = self._orders.together(self._waiting[0].job) if waiting else 1
        return min(whole, waiting, self._settings.in_flight)

    def _look(self) -> None:
        """End the calls that wait for what no node has."""
        with self._state:
            old = [each for each in self._flying if each.seconds() >= _LOOKS / 2]
        cluster = self._cluster
        if not old or cluster is None:
            return
        patience = 0.0 if cluster.is_local else self._settings.patience
        placed: dict[Any, bool] = {}
        for run in old:
            try:
                if run.shape not in placed:
                    placed[run.shape] = cluster.places(run.options)
                if run.is_unplaced(placed=placed[run.shape], patience=patience):
                    run.fail(_no_resources(run, cluster.offered()))
            except Exception as error:  # noqa: BLE001 - whatever Ray has instead of its nodes
                if run.is_unplaced(placed=False, patience=self._settings.patience):
                    run.fail(_no_answer(run, error))

    def close(self) -> None:
        """End every call; returns when their workers have ended, and with the last toolkit's Ray too."""
        with self._state:
            self._closed = True
            waiting, flying = list(self._waiting), list(self._flying)
            self._waiting.clear()
            self._state.notify_all()
        for run in waiting:
            run.drop(_CLOSED)
        for run in flying:
            run.stop(_CLOSED)
        with self._state:
            self._state.wait_for(lambda: not self._flying, _CLOSING)
            self._flying.clear()  # what Ray does not end now ends with Ray
            self._state.notify_all()
        self._feeder.join(_CLOSING * 3)


def _no_resources(run: Run, offered: dict[str, dict[str, float]]) -> NoResourcesError:
    has = "; ".join(f"{name}: {', '.join(_amounts(each)) or 'nothing'}" for name, each in sorted(offered.items()))
    needs = ", ".join(_amounts(needs_of(run.options)))
    return NoResourcesError(f"no node of the Ray cluster has what {run.name} asks for ({needs}); there is {has}")


def _no_answer(run: Run, error: Exception) -> PegboardError:
    why = f"{type(error).__name__}: {describe_exception(error)}"
    return PegboardError(f"{run.name} got no answer, and the Ray cluster does not say what nodes it has: {why}")


def _amounts(resources: dict[str, float]) -> list[str]:
    return [f"{name} {amount:g}" for name, amount in sorted(resources.items()) if ":" not in name]
