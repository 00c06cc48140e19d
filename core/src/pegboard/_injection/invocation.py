"""An invocation: what one run of a tool can reach while it runs."""

from __future__ import annotations

from functools import cached_property, partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, final

from pegboard._base.jsonable import owned
from pegboard._base.redaction import Redaction
from pegboard._injection.context import Scope
from pegboard._model.call import Called, CallerSession, CancelToken, Emitter, Listener, Runner, ToolCall, Unseen
from pegboard._model.result import Status

if TYPE_CHECKING:
    from concurrent.futures import Future

_RUNNING: Final = Status.RUNNING  # a member of an enum is looked up slowly


# By hand: attrs makes one in twice the time.
@final
class Invocation:
    """One call of a tool: its values, its surroundings, and where it stands.

    What few tools ask for (call, emitter, token) is made on first use. `arguments` is what `values` were read from,
    `ready` the tool with all that its session decides about it.
    """

    # What few calls have; the others would pay for it, if it were written below.
    agent: Any = None
    listener: Listener | None = None
    channel: Any = None  # to a listener on an event loop
    # The future of its result, made by the first who waits for a call that runs.
    waiter: Future[Any] | None = None
    _token: CancelToken | None = None
    computed_for: Any = None  # the `ready` whose presets were computed

    def __init__(
        self,
        session: CallerSession,
        ready: Any,
        call_id: str,
        arguments: Any,
        values: tuple[Any, ...],
        scope: Scope,
        runner: Runner,
    ) -> None:
        self.session = session
        self.ready = ready
        self.call_id = call_id
        self.arguments = arguments
        self.values = values
        self.scope = scope
        self.runner = runner
        self.name: str = ready.name
        self.presets: dict[str, Any] = ready.fresh_presets() if ready.fresh else ready.presets
        # The thread that drives it, once it has begun.
        self.driver: Any = None
        # The call, if anybody asked for it.
        self.seen: ToolCall | None = None
        # The `stopper`, if anybody asked for it.
        self.stops: CancelToken | None = None
        self._emitter: Emitter | None = None

    @cached_property
    def resolved(self) -> dict[Any, Any]:
        """What managed providers have found, by their function."""
        return {}

    @property
    def call(self) -> ToolCall:
        """The call as a tool or an injector sees it."""
        call = self.seen
        if call is None:
            self.seen = call = ToolCall(self.call_id, self.name, owned(self.arguments))
            call.status = _RUNNING
            call._runner = self.runner
            call._state = self
            if self.driver is None:
                self.driver = get_ident()
        return call

    def compute(self) -> None:
        """Ask for the presets that are computed for each call. Raises whatever they do."""
        call, ready = self.call, self.ready
        self.presets = {**self.presets, **{name: compute(call) for name, compute in ready.computed.items()}}
        self.computed_for = ready

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
            send, drain, channel = self.listener, None, self.channel
            if channel is not None:
                send, drain = partial(channel.send, token=self.token), partial(channel.drain, self.token)
                self.token.on_cancel(channel.wake)  # who waits there looks again: the attempt is over
            self._emitter = Emitter(self.call_id, self.name, send, drain)
        return self._emitter

    @property
    def heard(self) -> Emitter | None:
        """The emitter, if anybody listens."""
        return None if self.channel is None and self.listener is None else self.emitter

    @property
    def stopper(self) -> CancelToken:
        """Stops the run with all its attempts; until it has `ended`, closing the toolkit does so too."""
        if self.stops is None:
            # One for all who ask, from any thread and in a signal handler: it is stored in one step, without a lock.
            self.stops = self.runner.live.setdefault(self, CancelToken())
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
    def redact(self) -> Redaction | None:
        """Takes out of texts what nothing about this call may show."""
        known: Redaction | None = self.ready.redact
        if known is None:
            return None
        computed = [self.presets[name] for name in self.ready.computed_secrets if name in self.presets]
        return Redaction((*known.values, *computed)) if computed else known

    def end_attempt(self, reason: str) -> None:
        """Tell an attempt to stop that may still run; the next one gets a token of its own."""
        token, self._token, self._emitter = self._token, None, None
        if token is not None:
            token.cancel(reason)

    def ended(self, status: Status) -> None:
        """The run is over: nothing is left to be stopped."""
        self.seen = None  # it holds this in turn
        if self.stops is not None:
            self.runner.live.pop(self, None)
            # So does who would be told to stop. Whoever stops it just now may not have told all of them yet.
            for token in filter(None, () if status is Status.CANCELLED else (self.stops, self._token)):
                token._callbacks = None
