"""An invocation: what one run of a tool can reach while it runs."""

from __future__ import annotations

from typing import Any, final

from pegboard._call import CancelToken, Emitter, Listener, ToolCall
from pegboard._scope import Scope

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
        "presets",
        "resolved",
        "scope",
        "session",
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
            self._emitter = Emitter(self.call_id, self.name, self.listener)
        return self._emitter

    @property
    def token(self) -> CancelToken:
        """Set when the call is asked to stop."""
        if self._token is None:
            self._token = CancelToken()
        return self._token

    def opened_call(self) -> ToolCall | None:
        """The call, if anybody asked for it."""
        return self._call

    def opened_token(self) -> CancelToken | None:
        """The cancel token, if anybody asked for it."""
        return self._token
