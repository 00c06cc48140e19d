"""Spilling: output that is too long for the model is kept, and the model pages through it by a handle."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from typing import Final, final

from pegboard._base.errors import ToolError

__all__ = ["Spill"]

KEPT_CHARACTERS: Final = 64_000_000
"""How much text is kept in all; the oldest goes first."""


@final
class Spill:
    """Keeps long texts of one toolkit in memory, and reads them page by page."""

    def __init__(self, page: int, kept: int = KEPT_CHARACTERS) -> None:
        self._page = page
        self._kept = kept
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, text: str, limit: int) -> str:
        """The first `limit` characters, and where the rest is to be had."""
        with self._lock:
            # Not to be guessed: a toolkit serves many sessions, and only who was given a handle may read on.
            handle = f"output_{secrets.token_hex(8)}"
            self._texts[handle] = text
            while len(self._texts) > 1 and sum(map(len, self._texts.values())) > self._kept:
                self._texts.popitem(last=False)
        return (
            f"{text[:limit]}\n[{limit} of {len(text)} characters; the rest: "
            f'read_output(handle="{handle}", offset={limit})]'
        )

    def read(self, handle: str, offset: int) -> str:
        """A page of a kept text, and where the rest is to be had. Raises `ToolError` for a text that is not kept."""
        text = self._texts.get(handle)
        if text is None:
            raise ToolError(f"no output {handle!r} is kept (any more); call the tool again")
        end = offset + self._page
        page = text[offset:end]
        if end >= len(text):
            return page
        return (
            f'{page}\n[up to {end} of {len(text)} characters; the rest: read_output(handle="{handle}", offset={end})]'
        )
