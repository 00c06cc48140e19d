"""Streaming: output as it comes, for listeners of a call."""

from __future__ import annotations

from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable
from typing import final

__all__ = ["Streaming"]


@final
class Streaming:
    """Hands on the first `limit` bytes as text; who listens more slowly than a command writes must not fill memory."""

    def __init__(self, emit: Callable[[str], None], limit: int) -> None:
        self._emit = emit
        self._left = limit
        self._decoders: dict[str, IncrementalDecoder] = {}

    def __call__(self, channel: str, data: bytes) -> None:
        """Take what came next on a channel."""
        if self._left <= 0:
            return
        decoder = self._decoders.setdefault(channel, getincrementaldecoder("utf-8")("replace"))
        text = decoder.decode(data[: self._left])
        self._left -= len(data)
        if text:
            self._emit(text)
        if self._left <= 0:
            self._emit("\n[... further output is in the result only ...]\n")
