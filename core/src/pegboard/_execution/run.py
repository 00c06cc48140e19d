"""A run: the record of one call that has left the straight road, and how far it has come."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, final

from pegboard._injection.invocation import Invocation
from pegboard._model.policy import ExecutionPolicy

if TYPE_CHECKING:
    from pegboard._execution.bound import BoundTool
    from pegboard._execution.concurrency import Permit
    from pegboard._execution.engine import Engine
    from pegboard._model.call import CallerSession

MAX_RETRIES_KEPT: Final = 100
"""Of one call, the last ones; a policy may ask for any number."""


@final
class Run(Invocation):
    """One call: where it began, under which policy, what was agreed to, and its attempts so far.

    `started` is by `perf_counter`, `on_loop` says that it is awaited.
    """

    ready: BoundTool
    runner: Any  # a `CallRunner`, which this room's later modules make
    provided: Any = None  # what this attempt is given, if not where the function runs
    agreed: Any = None  # the definition of the tool that was approved, with these arguments
    judged: Any = None  # the arguments that guards were asked about
    permit: Permit | None = None  # what it holds while it runs
    sent = False  # whether a backend has got the arguments of this attempt
    tries = 0
    begun = 0  # how often the function has begun
    yielded: list[Any]  # by the tool, in this attempt
    retries: deque[Mapping[str, Any]] | None = None

    def __init__(
        self,
        session: CallerSession,
        ready: BoundTool,
        call_id: str,
        arguments: Any,
        values: tuple[Any, ...],
        runner: Any,
        started: float,
        on_loop: bool,
    ) -> None:
        # As `Invocation` does, without its frame.
        self.session = session
        self.ready = ready
        self.call_id = call_id
        self.arguments = arguments
        self.values = values
        self.runner = runner
        self.scope = session.scope
        self.name = ready.name
        self.presets = ready.fresh_presets() if ready.fresh else ready.presets
        self.started = started
        self.on_loop = on_loop

    @cached_property
    def policy(self) -> ExecutionPolicy:
        """How it is timed and retried, if the call does not bring a policy of its own."""
        return self.ready.policy

    @property
    def engine(self) -> Engine:
        """What the call runs on."""
        engine: Engine = self.runner.engine
        return engine

    @property
    def timeout_counts(self) -> bool:
        """Whether the timeout holds in plain code too, which needs another thread: where it was asked for."""
        return "timeout" in self.policy.given

    def note_retry(self, retry: Mapping[str, Any]) -> None:
        """Keep what is reported of an attempt that is followed by another."""
        self.retries = self.retries or deque(maxlen=MAX_RETRIES_KEPT)
        self.retries.append(retry)
