"""Redaction: a server that complains about its key quotes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pegboard_mcp._transports import expanded

__all__ = ["without_secrets"]

SHORTEST: Final = 4
"""Shorter values are too likely a part of an innocent word."""


def without_secrets(text: str, transport: Any) -> str:
    """`text` without the values of the environment and the headers that a server is given."""
    # The longest first: one may be a part of another.
    for secret in sorted(set(_secrets(transport)), key=lambda value: (-len(value), value)):
        text = text.replace(secret, "***")
    return text


def _secrets(transport: Any) -> Iterator[str]:
    for given in (getattr(transport, "env", None), getattr(transport, "headers", None)):
        for value in (given or {}).values():
            try:
                whole = expanded(value)
            except ValueError:  # a variable that is not set, which is said elsewhere
                continue
            # Of "Bearer s3cret" the word alone is as secret as the whole.
            yield from (each for each in (whole, whole.rpartition(" ")[2]) if len(each) >= SHORTEST)
