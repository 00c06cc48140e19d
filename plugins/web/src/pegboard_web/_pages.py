"""Pages that were fetched, for the calls that go on with them."""

from __future__ import annotations

import time
from collections import OrderedDict
from itertools import count
from typing import Any, Final, final
from weakref import WeakKeyDictionary

from attrs import frozen

from pegboard_web._records import Page

__all__ = ["Kept", "Pages"]

SECONDS: Final = 600.0
MOST_CHARACTERS: Final = 20_000_000


@frozen
class Kept:
    """A whole page."""

    url: str
    title: str
    text: str
    media_type: str
    status: int

    def part(self, start: int, max_chars: int) -> Page:
        """The part from `start` on. It ends at the end of a line, if there is one in its last fifth.

        Raises ValueError for a start beyond the end.
        """
        total = len(self.text)
        if start > 0 and start >= total:
            raise ValueError(f"start={start} is beyond the end: the page has {total} characters. Send start=0.")
        end = min(start + max_chars, total)
        if end < total and (line := self.text.rfind("\n", start + max_chars * 4 // 5, end)) > start:
            end = line + 1
        following = None if end == total else end
        return Page(self.url, self.title, self.text[start:end], start, total, following, self.media_type, self.status)


@final
class Pages:
    """The last fetch of each URL by each session, for ten minutes, and 20 million characters together at most."""

    def __init__(self) -> None:
        self._numbers = count()
        self._sessions: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._kept: OrderedDict[tuple[int, str, str], tuple[float, Kept]] = OrderedDict()
        self._size = 0

    def _key(self, session: Any, url: str, content: str) -> tuple[int, str, str]:
        if session not in self._sessions:
            self._sessions[session] = next(self._numbers)
        return self._sessions[session], url, content

    def find(self, session: Any, url: str, content: str) -> Kept | None:
        """What the session fetched last."""
        key = self._key(session, url, content)
        at, kept = self._kept.get(key, (0.0, None))
        if kept is not None and time.monotonic() - at > SECONDS:
            self._drop(key)
            return None
        return kept

    def keep(self, session: Any, url: str, content: str, page: Kept) -> None:
        """Keep a page; the oldest ones go."""
        key = self._key(session, url, content)
        self._drop(key)
        self._kept[key] = time.monotonic(), page
        self._size += len(page.text)
        while self._size > MOST_CHARACTERS:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[int, str, str]) -> None:
        if key in self._kept:
            self._size -= len(self._kept.pop(key)[1].text)
