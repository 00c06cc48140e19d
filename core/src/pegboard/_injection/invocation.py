"""An invocation: what one run of a tool can reach while it runs."""

from __future__ import annotations

from functools import cached_property, partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

from pegboard._base.jsonable import owned
from pegboard._base.redaction import Redaction
from pegboard._injection.context import Scope
from pegboard._model.call import Called, CallerSession, CancelToken, Emitter, Listener, Runner, ToolCall, Unseen
from pegboard._model.policy import ExecutionPolicy
from pegboard._model.result import Status

if TYPE_CHECKING:
    from concurrent.futures import Future

_RUNNING: Final = Status.RUNNING  # a member of an enum is looked up slowly


# By hand: attrs makes one in twice the time.
class Invocation(CancelToken):
    """One call of a tool: its values, its surroundings, and where it stands. To cancel it stops all its attempts.

    What few tools ask for (call, emitter, token) is made on first use. `arguments` is what `values` were read from,
    `ready` the tool with all that its session decides about it. `started` is when it began, by `perf_counter`,
    `on_loop` says that it is awaited.
    """

    # What few calls have; the others would pay for it, if it were written below.
    agent: Any = None
    listener: Listener | None = None
    channel: Any = None  # to a listener on an event loop
    driver: Any = None  # the thread that drives the call, once it has begun
    computed_for: Any = None  # the `ready` whose presets were computed
    _emitter: Emitter | None = None
    _token: CancelToken | None = None

    def __init__(
        self,
        session: CallerSession,
        ready: Any,
        call_id: str,
        arguments: Any,
        values: tuple[Any, ...],
        runner: Runner,
        started: float,
        on_loop: bool,
    ) -> None:
        self.session = session
        self.ready = ready
        self.call_id = call_id
        self.arguments = arguments
        self.values = values
        self.runner = runner
        self.scope: Scope = session.scope
        self.name: str = ready.name
        self.policy: ExecutionPolicy = ready.policy  # if the call brings none of its own
        self.presets: dict[str, Any] = ready.fresh_presets() if ready.fresh else ready.presets
        self.seen: ToolCall | None = None  # the call, if it was asked for
        self.waiter: Future[Any] | None = None  # of the result, made by the first who waits for a call that runs
        self.started = started
        self.on_loop = on_loop

    @cached_property
    def resolved(self) -> dict[Any, Any]:
        """What managed providers have found, by their function."""
        return {}

    @property
    def call(self) -> ToolCall:
        """The call as a tool or an injector sees it."""
        return call_of(self)

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
    def called(self) -> Called:
        """What a result takes from the call."""
        return self.seen or Unseen(self.call_id, self.name)

    @property
    def emitter(self) -> Emitter:
        """Reports progress to the listener."""
        if self._emitter is None:
            send, drain, channel = self.listener, None, self.channel
            if channel is not None:
                send, drain = partial(channel.send, token=self.token), partial(channel.drain, self.token)
                self.token.on_cancel(channel.wake)  # who waits there looks again: the attempt is over
            self._emitter = Emitter(self.call_id, self.name, send, drain)
        return self._emitter

    @property
    def heard(self) -> Emitter | None:
        """The emitter, if there is a listener."""
        return None if self.channel is None and self.listener is None else self.emitter

    @property
    def token(self) -> CancelToken:
        """Tells the tool to stop: with the call, or with one attempt, by `end_attempt`."""
        if self._token is None:
            self._token = token = CancelToken()
            self.runner.live[self] = None
            self.on_cancel(lambda: token.cancel(self.reason))
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

    def ended(self) -> None:
        """The call is over: nothing is left to be stopped."""
        self.runner.live.pop(self, None)
        if not self._cancelled:  # else what is to hear of that may not have been told yet
            self._callbacks = None
            if self._token is not None:
                self._token._callbacks = None


def call_of(invocation: Invocation) -> ToolCall:
    """The call as a tool or an injector sees it: what tools ask for by type, without a property's frame."""
    call = invocation.seen
    if call is None:
        invocation.seen = call = ToolCall(invocation.call_id, invocation.name, owned(invocation.arguments))
        call.status = _RUNNING
        call._runner = invocation.runner
        call._state = invocation
        invocation.driver = get_ident()
    return call
