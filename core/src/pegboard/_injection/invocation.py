"""An invocation: what one run of a tool can reach while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, final

from attrs import Factory, define, field

from pegboard._injection.context import Scope
from pegboard._injection.presets import secret_texts
from pegboard._model.call import Called, CancelToken, Emitter, Listener, Runner, ToolCall, Unseen

if TYPE_CHECKING:
    from concurrent.futures import Future

_stoppers: Final = threading.RLock()
"""Guards the making of stoppers: a call may be stopped from any thread, and by a signal handler."""


@final
@define(eq=False, repr=False)
class Invocation:
    """One call of a tool: its values, its surroundings, and where it stands.

    What few tools ask for (call, emitter, token) is made on first use. `arguments` is what `values` were read from,
    `ready` the tool with all that its session decides about it.
    """

    session: Any
    ready: Any
    call_id: str
    arguments: Any
    values: tuple[Any, ...]
    scope: Scope
    runner: Runner
    agent: Any = None
    name: str = field(default=Factory(attrgetter("ready.name"), takes_self=True), init=False)
    presets: dict[str, Any] = field(default=Factory(attrgetter("ready.presets"), takes_self=True), init=False)
    listener: Listener | None = field(default=None, init=False)
    outlet: Callable[[CancelToken], Any] | None = field(default=None, init=False)
    resolved: dict[Any, Any] = field(factory=dict, init=False)
    # Who runs it: an event loop or a thread, once it has begun.
    driver: Any = field(default=None, init=False)
    # The future of its result, made by the first who waits for a call that runs.
    waiter: Future[Any] | None = field(default=None, init=False)
    # The call, if anybody asked for it.
    seen: ToolCall | None = field(default=None, init=False)
    # The `stopper`, if anybody asked for it.
    stops: CancelToken | None = field(default=None, init=False)
    _emitter: Emitter | None = field(default=None, init=False)
    _token: CancelToken | None = field(default=None, init=False)

    @property
    def call(self) -> ToolCall:
        """The call as a tool or an injector sees it."""
        return self.seen or self.runner.opened(self)

    @property
    def typed(self) -> dict[str, Any]:
        """The values by name."""
        named: dict[str, Any] = self.ready.plan.typed(self.values)
        return named

    @property
    def said(self) -> Called:
        """What the result says of the call."""
        return self.seen or Unseen(self.call_id, self.name)

    @property
    def emitter(self) -> Emitter:
        """Reports progress to whoever listens."""
        if self._emitter is None:
            if self.outlet is None:
                self._emitter = Emitter(self.call_id, self.name, self.listener)
            else:
                outlet = self.outlet(self.token)
                self._emitter = Emitter(self.call_id, self.name, outlet, outlet.drain)
        return self._emitter

    @property
    def stopper(self) -> CancelToken:
        """Stops the run with all its attempts; until it has `ended`, closing the toolkit does so too."""
        if self.stops is None:
            with _stoppers:
                if self.stops is None:
                    self.stops = CancelToken()
                    self.runner.live.add(self.stops)
        return self.stops

    @property
    def token(self) -> CancelToken:
        """Tells the tool to stop: with the run, or with one attempt, by `end_attempt`."""
        if self._token is None:
            self._token = token = CancelToken()
            stopper = self.stopper
            stopper.on_cancel(lambda: token.cancel(stopper.reason))
        return self._token

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that nothing about this call may show."""
        ready = self.ready
        known: tuple[str, ...] = ready.secrets
        if ready.computed_secrets:
            known += secret_texts(self.presets[name] for name in ready.computed_secrets if name in self.presets)
        return known

    def end_attempt(self, reason: str) -> None:
        """Tell an attempt to stop that may still run; the next one gets a token of its own."""
        token, self._token, self._emitter = self._token, None, None
        if token is not None:
            token.cancel(reason)

    def ended(self) -> None:
        """The run is over: nothing is left to be stopped."""
        self.seen = None  # it holds this in turn
        if self.stops is not None:
            self.runner.live.discard(self.stops)
