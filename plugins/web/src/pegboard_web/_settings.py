"""The section `web` of the settings."""

from __future__ import annotations

from typing import Any, Final

import attrs

__all__ = ["MAX_BYTES", "SERVICES", "Settings"]

SERVICES: Final = ("searxng", "brave", "tavily")
MAX_BYTES: Final = 10 * 1024 * 1024


def _above_zero(settings: Any, attribute: Any, given: float) -> None:
    if given <= 0:
        raise ValueError(f"{attribute.name} is a number above 0, not {given!r}")


@attrs.frozen(kw_only=True)
class Settings:
    """What can be set. Raises ValueError for a value that is none."""

    allow: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    """Hosts, with or without a port, that are fetched from though their addresses are not public."""
    block: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    """Hosts that nothing is fetched from, nor from those below them, such as `www.` of one; stronger than `allow`."""
    user_agent: str = attrs.field(default="pegboard-web", validator=attrs.validators.min_len(1))
    """What servers are told; robots.txt is read for its product name, the part before `/`."""
    robots: bool = True
    """Whether robots.txt is honoured."""
    max_bytes: int = attrs.field(default=MAX_BYTES, validator=_above_zero)
    """Bytes of an answer after decompression."""
    timeout: float = attrs.field(default=30.0, validator=_above_zero)
    """Seconds for a whole fetch, redirects included, and as many for making text of it."""
    search: str | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.in_(SERVICES)))
    """The service that searches: `searxng`, `brave` or `tavily`. Without one there is no `web_search`."""
    search_url: str | None = None
    """The address of the service; that of a SearXNG server has to be said, and may be private."""
    search_key: str = attrs.field(default="", repr=False, metadata={"secret": True})
    """The key for the service."""
