"""What the last change of the tools cost a provider's cache: how much of the request before is a prefix of the next."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from copy import copy
from itertools import takewhile
from operator import eq
from typing import Any, final

import attrs

from pegboard import BoundDialect, Change, Dialect, Group, PegboardError, Session, Tool
from pegboard_inspector._data import tokens_of
from pegboard_inspector._json import dumps

__all__ = ["Costs"]


@attrs.define(eq=False)
class _Offered:
    """What a session offered at one moment: a dialect is bound to it as to the session."""

    session: Session
    tools: list[Tool] = attrs.field(factory=list, init=False)
    groups: tuple[Group, ...] = attrs.field(default=(), init=False)
    revealed: tuple[list[Tool], frozenset[str]] = attrs.field(default=([], frozenset()), init=False)

    def read(self) -> None:
        """Take what the session offers now."""
        self.tools, self.groups, self.revealed = self.session.tools, self.session.groups, self.session.reveal()

    @property
    def app_tools(self) -> list[Tool]:
        return self.session.app_tools

    def reveal(self) -> tuple[list[Tool], frozenset[str]]:
        return self.revealed

    def why_listed(self, tool: Tool) -> str:
        return self.session.why_listed(tool)

    def why_unlisted(self, tool: Tool) -> str:
        return self.session.why_unlisted(tool)


def _settled(tools: Iterable[Tool]) -> Iterable[Any]:
    """No definitions, but a tool that is described by its session is read while that has not changed."""
    for tool in tools:
        if tool.face is not None:
            with suppress(PegboardError):
                yield tool.schema_hash


@final
class Costs:
    """Keeps what a session offers and what it offered before the last change; requests are made of them when asked for.

    It may be used from any thread.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._now: _Offered | None = None
        self._before: _Offered | None = None
        self._changes: list[Change] = []
        self._lock = threading.Lock()
        self._live = _Offered(session)
        self._compared = BoundDialect(Dialect("compared", _settled), self._live)

    def look(self) -> None:
        """See whether the tools have changed since the last look."""
        with self._lock:
            self._live.read()
            changes = [*self._compared.changes(), *self._forgotten()]
            if changes or self._now is None:
                self._before, self._now, self._changes = self._now, copy(self._live), changes
                self._compared.tools()

    def _forgotten(self) -> Iterable[Change]:
        """The tools that kept their definitions without being offered, and that no request can keep any more."""
        if self._now is not None:
            known = {tool.name for each in (self._now.tools, self._live.revealed[0]) for tool in each}
            for tool in self._now.revealed[0]:
                if tool.name not in known:
                    yield Change("removed", tool.name, self._session.why_unlisted(tool))

    def of(self, name: str) -> dict[str, Any] | None:
        """What the last change cost in one dialect; None where nothing has changed since the first look.

        Each number is a pair: of the request before, how much is a prefix still, and how much there was. Raises
        `UnknownNameError` for a dialect that there is not.
        """
        dialect = self._session.dialect(name).dialect
        with self._lock:
            before, now, changes = self._before, self._now, self._changes
        if before is None or now is None:
            return None
        first, second = (_definitions(BoundDialect(dialect, each)) for each in (before, now))
        same = sum(takewhile(bool, map(eq, first, second)))
        return {
            "changes": [attrs.asdict(each) for each in changes],
            "definitions": [same, len(first)],
            "bytes": [sum(len(each.encode(errors="replace")) for each in some) for some in (first[:same], first)],
            "tokens": [sum(map(tokens_of, some)) for some in (first[:same], first)],
        }


def _definitions(chat: BoundDialect) -> list[str]:
    """The definitions in a request, as JSON, without the marks that a provider's cache reads and does not compare."""
    request = {} if chat.dialect.request is None else chat.request(cache=False)
    listed = request.get("config", request).get("tools") or chat.tools()
    # Gemini's are in one list there.
    inner = (each.get("function_declarations", [each]) if isinstance(each, dict) else [each] for each in listed)
    return [dumps(each) for some in inner for each in some]
