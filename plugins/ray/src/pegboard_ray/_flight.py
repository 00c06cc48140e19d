"""A task in the cluster: one call, or several short ones of a tool that may run twice, one after another."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, final
from uuid import uuid4

import ray
from ray.exceptions import GetTimeoutError

from pegboard_process.wire import UnexpectedAnswerError
from pegboard_ray._cluster import Cluster
from pegboard_ray._order import PUT_OFF, TOOK, Frame, frames, parcel
from pegboard_ray._orders import Known
from pegboard_ray._run import LOSSES, Run

__all__ = ["Flight"]

_BOOT: Final = uuid4().hex

_LOOKS: Final = 1.0
"""Seconds between two looks at whether a call has ended without an answer of Ray's."""
_numbers: Final = itertools.count(1)


@final
class Flight:
    """The task of some calls of one tool. `again` takes calls that begin again because their task failed."""

    def __init__(self, cluster: Cluster, known: Known, again: Callable[[Run], None]) -> None:
        self._cluster = cluster
        self._known = known
        self._again = again
        self._key = f"{_BOOT}{next(_numbers)}"
        self._runs: Sequence[Run] = ()
        self._ref: Any = None

    def launch(self, runs: Sequence[Run], *, here: bool = False) -> None:
        """Give them to Ray. What goes wrong is their outcome. A thread that has one `here` waits for it itself."""
        known = self._known
        boarded = [(run, order) for run in runs if (order := run.boarded(known, self._key)) is not None]
        self._runs = [run for run, _ in boarded]
        if not boarded:
            return
        streamed = self._runs[0].is_streamed
        try:
            data = parcel(known.wanted, [order for _, order in boarded])
            self._ref = self._cluster.start(data, known.shape, known.options, streamed=streamed)
        except BaseException as error:  # noqa: BLE001 - whatever Ray says to it
            for run in self._runs:
                run.end(error=error)
            return
        for run in self._runs:
            run.launched(self._ref, self._hear if here and not streamed else None, self._broken)
        if not (streamed or here):
            self._listen()

    def _hear(self) -> None:
        """Wait for the answer."""
        try:
            data = self._got()
        except KeyboardInterrupt:
            self._listen()
            raise
        except Exception as error:  # noqa: BLE001 - whatever Ray has instead of an answer
            self._broken(error)
        else:
            if data is not None:
                self._answered(data)

    def _got(self) -> bytes | None:
        """What Ray has; None if the call has ended otherwise meanwhile: a Ray that is lost may never answer."""
        while True:
            try:
                return ray.get(self._ref, timeout=_LOOKS)  # type: ignore[no-any-return]
            except GetTimeoutError:
                if all(run.future.done() for run in self._runs):
                    return None

    def _listen(self) -> None:
        self._ref.future().add_done_callback(self._on_done)

    def _on_done(self, future: Future[bytes]) -> None:
        """In a thread of Ray's, which must not wait: what takes longer goes on in another."""
        error = future.exception()
        if error is None:
            self._answered(future.result())
        else:
            threading.Thread(target=self._broken, args=(error,), name="pegboard-ray-lost", daemon=True).start()

    def _answered(self, data: bytes) -> None:
        try:
            answers = self._read(data)
        except (ValueError, UnexpectedAnswerError) as error:
            for run in self._runs:
                run.end(error=error)
            return
        for run, (kind, content) in zip(self._runs, answers, strict=True):
            if kind == PUT_OFF:
                self._again(run)
            else:
                run.answered(kind, content)

    def _read(self, data: bytes) -> list[Frame]:
        """An answer each. Raises ValueError and `UnexpectedAnswerError` for what is nothing of the kind."""
        *answers, last = frames(data)
        if last[0] != TOOK:  # a refusal of the task as a whole
            return [last] * len(self._runs)
        if len(answers) != len(self._runs):
            raise UnexpectedAnswerError
        self._known.pace.took(float(last[1]), sum(kind != PUT_OFF for kind, _ in answers))
        return answers

    def _broken(self, error: BaseException) -> None:
        """Ray has no answer. A lone call has failed; of several it is unknown which, so each begins anew, alone."""
        noted = self._cluster.note(self._key) if isinstance(error, LOSSES) else ""
        for run in self._runs:
            if len(self._runs) > 1 and run.begins_anew(noted):
                self._again(run)
            else:
                run.broken(error, noted)
