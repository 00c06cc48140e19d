"""Callers: who sends a request to a served toolkit, and the Pegboard session for it."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from time import monotonic
from types import MappingProxyType
from typing import Any, Final, TypeAlias, final

from attrs import evolve, field, frozen

from pegboard import Session
from pegboard_mcp._arguments import scopes
from pegboard_mcp._wire.protocol import connection_of

__all__ = ["LIFETIME", "Caller", "Callers", "Scopes", "SessionFor", "caller_of", "checked_scopes"]

LIFETIME: Final = 1_800.0
"""Seconds for which the session of a caller who sends nothing more is kept."""
MOST: Final = 1_000


def _scopes(given: str | Iterable[str]) -> tuple[str, ...]:
    return scopes("scopes", given)


@final
@frozen
class Caller:
    """Who called: a tool asks for it by type, `def pay(amount: int, caller: Injected[Caller])`.

    Args:
        subject: For whom the client acts: the subject of the token. None without a token, and over stdio.
        client: The program that the token was given to. None without a token, and over stdio.
        scopes: Scopes of the token.
        headers: Headers of the request that the program named, in lower case.
        claims: Further claims, from the verifier of the token.
    """

    subject: str | None = None
    client: str | None = None
    scopes: tuple[str, ...] = field(default=(), converter=_scopes)
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    claims: Mapping[str, Any] = field(factory=dict, repr=False)

    @property
    def key(self) -> tuple[Any, ...] | None:
        """Identifies this caller among all callers; None for a caller that is not verified."""
        if self.subject is None and self.client is None:
            return None
        issuer = str(self.claims.get("iss", ""))
        return issuer, self.client, self.subject, frozenset(self.scopes), frozenset(self.headers.items())


SessionFor: TypeAlias = Callable[[Caller], Session]


UNNAMED: Final = Caller(headers=MappingProxyType({}), claims=MappingProxyType({}))
"""A caller of whom nothing is known, as most are; made once."""


@final
class Callers:
    """Finds the session of a request: that of its connection, or of its caller, or one that lasts no longer than it.

    The older protocol has connections. The newer one has none: each request is independent over HTTP, and a
    client that wants a state of its own there has to identify itself.
    """

    def __init__(self, base: Session, session_for: SessionFor | None, headers: Iterable[str]) -> None:
        self.base = base
        """The session of callers that have changed nothing yet. No caller may change it."""
        self._session_for = session_for
        self._headers = tuple(name.casefold() for name in headers)
        self._known: OrderedDict[Any, tuple[float, Session]] = OrderedDict()

    def caller(self, context: Any) -> Caller:
        """The sender of a request."""
        request = context.request
        if request is None:
            return UNNAMED
        caller = caller_of(request.scope) or UNNAMED
        headers = {name: request.headers[name] for name in self._headers if name in request.headers}
        return evolve(caller, headers=headers) if headers else caller

    def lasting(self, context: Any) -> Session | None:
        """The session that outlives the request and that its sender may change; None if there is none."""
        state = context.lifespan_context if context.request is None else _connection_state(context)
        caller = self.caller(context)
        if state is not None:
            if "session" not in state:
                state["session"] = self.fresh(caller)
            kept: Session = state["session"]
            return kept
        if caller.key is None:
            return None
        now = monotonic()
        _, session = self._known.pop(caller.key, (now, None))
        session = session or self.fresh(caller)
        self._known[caller.key] = now, session
        while len(self._known) > MOST or next(iter(self._known.values()))[0] < now - LIFETIME:
            self._known.popitem(last=False)
        return session

    def fresh(self, caller: Caller) -> Session:
        """A session of a caller's own."""
        return self.base.session() if self._session_for is None else self._session_for(caller)

    def shown(self, caller: Caller) -> Session:
        """The session that a caller sees before changing anything; it must not be changed."""
        return self.base if self._session_for is None else self._session_for(caller)


def caller_of(scope: Mapping[str, Any]) -> Caller | None:
    """Whom the token of a request over HTTP stands for; None for a request without one."""
    token = getattr(scope.get("user"), "access_token", None)
    if token is None:
        return None
    verified: Caller | None = getattr(token, "caller", None)  # there is none where the program verifies by the SDK
    return verified or Caller(token.subject, token.client_id, token.scopes, claims=token.claims or {})


@final
class Scopes:
    """What a caller's token must have for a tool, by names and patterns. Raises ValueError for what is no scope."""

    def __init__(self, needed: Mapping[str, str | Iterable[str]]) -> None:
        self._needed = {pattern: checked_scopes(f"scopes[{pattern!r}]", given) for pattern, given in needed.items()}
        self.all = tuple(dict.fromkeys(scope for each in self._needed.values() for scope in each))
        """The scopes of all tools."""

    def needed(self, name: str) -> tuple[str, ...]:
        """The scopes that a tool needs."""
        named = (given for pattern, given in self._needed.items() if fnmatchcase(name, pattern))
        return tuple(dict.fromkeys(scope for each in named for scope in each))

    def missing(self, name: str, caller: Caller) -> tuple[str, ...]:
        """Those of them that the caller does not have."""
        return tuple(scope for scope in self.needed(name) if scope not in caller.scopes)


def checked_scopes(what: str, given: str | Iterable[str]) -> tuple[str, ...]:
    """Scopes that a header can name (RFC 6749, 3.3). Raises ValueError for any other."""
    found = scopes(what, given)
    for scope in found:
        if not re.fullmatch(r"[!#-\[\]-~]+", scope):
            raise ValueError(f"{what} holds {scope!r}, which is no scope: those are made of ASCII without blanks")
    return found


def _connection_state(context: Any) -> dict[str, Any] | None:
    """The state of a request's connection over HTTP; None if there are no connections."""
    connection = connection_of(context)
    state: dict[str, Any] = connection.state
    return state if connection.has_standalone_channel else None
