"""An invocation: what one run of a tool can reach while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from pegboard._injection.context import Scope
from pegboard._model.call import CancelToken, Emitter, Listener, ToolCall

__all__ = ["Invocation"]


@final
class Invocation:
    """The surroundings of one call. What few tools ask for (call, emitter, token) is made on first use."""

    __slots__ = (
        "_call",
        "_emitter",
        "_token",
        "agent",
        "arguments",
        "call_id",
        "listener",
        "name",
        "outlet",
        "presets",
        "resolved",
        "scope",
        "session",
        "stopper",
    )

    def __init__(
        self,
        session: Any,
        name: str,
        call_id: str,
        arguments: Any,
        scope: Scope,
        presets: dict[str, Any],
        agent: Any = None,
        listener: Listener | None = None,
    ) -> None:
        self.session = session
        self.name = name
        self.call_id = call_id
        self.arguments = arguments
        self.scope = scope
        self.presets = presets
        self.agent = agent
        self.listener = listener
        self.outlet: Callable[[CancelToken], Any] | None = None
        self.stopper: CancelToken | None = None
        self.resolved: dict[Any, Any] = {}
        self._call: ToolCall | None = None
        self._emitter: Emitter | None = None
        self._token: CancelToken | None = None

    @property
    def call(self) -> ToolCall:
        """The call as a tool or an injector sees it."""
        if self._call is None:
            self._call = ToolCall(self.call_id, self.name, self.arguments)
        return self._call

    @call.setter
    def call(self, call: ToolCall) -> None:
        self._call = call

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
    def token(self) -> CancelToken:
        """Tells the tool to stop: with the call, by its `stopper`, or with one attempt, by `end_attempt`."""
        if self._token is None:
            self._token = token = CancelToken()
            stopper = self.stopper
            if stopper is not None:
                stopper.on_cancel(lambda: token.cancel(stopper.reason))
        return self._token

    def end_attempt(self, reason: str) -> None:
        """Tell an attempt to stop that may still run; the next one gets a token of its own."""
        token, self._token, self._emitter = self._token, None, None
        if token is not None:
            token.cancel(reason)

    def opened_call(self) -> ToolCall | None:
        """The call, if anybody asked for it."""
        return self._call
