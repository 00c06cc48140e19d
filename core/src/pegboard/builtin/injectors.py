"""Built-in injectors: what every tool may ask for by type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pegboard import Session, Toolkit
from pegboard._base.markers import MISSING
from pegboard._injection.invocation import Invocation
from pegboard._model.call import Agent, CancelToken, Emitter, ToolCall
from pegboard.extension import Injector
from pegboard.hookspecs import hookimpl


def emitter(invocation: Invocation) -> Emitter:
    """Reports progress."""
    return invocation.emitter


def agent(invocation: Invocation) -> Any:
    """The object passed as `agent=` to the call, else to the session."""
    found = invocation.session.agent if invocation.agent is None else invocation.agent
    return MISSING if found is None else found


def call(invocation: Invocation) -> ToolCall:
    """The running call."""
    return invocation.call


def token(invocation: Invocation) -> CancelToken:
    """Set when the call should stop."""
    return invocation.token


def session(invocation: Invocation) -> Any:
    """The session in whose name the call is made."""
    return invocation.session


def toolkit(invocation: Invocation) -> Any:
    """The toolkit of that session."""
    return invocation.session.toolkit


@hookimpl
def provide_injectors() -> Iterable[Injector]:
    """The specials."""
    resolvers = {Emitter: emitter, Agent: agent, ToolCall: call, CancelToken: token, Session: session, Toolkit: toolkit}
    return [Injector(cls, resolve) for cls, resolve in resolvers.items()]
