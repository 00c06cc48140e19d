"""robots.txt (RFC 9309): what servers ask programs to leave alone."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final, final

from attrs import define

from pegboard_net import Guard, Judge, RefusedUrlError, UrlError, WebUrl, decoded, redacted

__all__ = ["Robots", "allows"]

LARGEST: Final = 512 * 1024
"""Bytes that are read; the standard asks for 500 KiB at least."""
KEPT: Final = 3600.0
"""Seconds that the answer of a server is kept."""
MOST_ORIGINS: Final = 500
_MEMORY: Final = 128 * 1024 * 1024
_SECONDS: Final = 3.0


def allows(given: dict[str, str]) -> bool:
    """Whether a `text` allows the `agent` to fetch the `url`. It runs in a process with limits."""
    from protego import Protego

    return bool(Protego.parse(given["text"]).can_fetch(given["url"], given["agent"]))


@define
class _Rules:
    text: str | None  # None: nothing may be fetched
    at: float


@final
class Robots:
    """What the servers say, each asked once an hour, by the product name of a user agent."""

    def __init__(self, guard: Guard, user_agent: str) -> None:
        self._guard = guard
        self._headers = {"User-Agent": user_agent}
        self._product = user_agent.partition("/")[0].split()[0]
        self._rules: OrderedDict[str, _Rules] = OrderedDict()

    async def check(self, at: WebUrl, judge: Judge) -> None:
        """Raises `RefusedUrlError` for a URL that its server asks not to fetch; `judge` is shown that of robots.txt."""
        import asyncio

        from pegboard_process import LimitError, ProcessDiedError, RemoteError, limited

        text = await self._text(at.origin, judge)
        if text == "":
            return
        given = {"text": text or "", "url": str(at.url), "agent": self._product}
        try:
            allowed = text is not None and await asyncio.to_thread(
                limited, allows, given, memory=_MEMORY, seconds=_SECONDS
            )
        except (LimitError, ProcessDiedError, RemoteError):
            allowed = False
        if not allowed:
            raise RefusedUrlError(f"{redacted(str(at.url))} is refused: its server's robots.txt asks not to fetch it.")

    async def _text(self, origin: str, judge: Judge) -> str | None:
        kept = self._rules.pop(origin, None)
        if kept is None or time.monotonic() - kept.at > KEPT:
            kept = _Rules(await self._ask(origin, judge), time.monotonic())
        self._rules[origin] = kept
        while len(self._rules) > MOST_ORIGINS:
            self._rules.popitem(last=False)
        return kept.text

    async def _ask(self, origin: str, judge: Judge) -> str | None:
        """The rules of a server: those that it has none of allow everything, those it cannot give nothing (2.3.1)."""
        try:
            found = await self._guard.fetch(f"{origin}/robots.txt", headers=self._headers, any_status=True, judge=judge)
        except UrlError:
            return None
        if found.status == 200:
            return decoded(found.content[:LARGEST], "text/plain")
        return "" if 400 <= found.status < 500 else None
