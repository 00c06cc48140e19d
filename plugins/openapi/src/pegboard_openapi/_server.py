"""Servers: where requests go, and within which bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, final
from urllib.parse import urljoin, urlsplit

from attrs import Attribute, field, frozen
from attrs.converters import optional

from pegboard_openapi._document import Document, DocumentError, is_url

__all__ = ["Server"]


def _base_url(url: Any) -> str:
    """A base URL. Raises ValueError for what is none; whatever else it holds may be secret."""
    with suppress(ValueError):  # of a port that is none
        parts = urlsplit(url if isinstance(url, str) else "")
        is_bare = parts.hostname and "@" not in parts.netloc and not parts.query and parts.port != 0
        if is_bare and parts.scheme in ("http", "https"):
            return str(url.partition("#")[0].rstrip("/"))
    raise ValueError("base_url takes http(s)://host/path, without user, password and query")


def _is_application(_: Any, __: Attribute[Any], app: Any) -> None:
    if app is not None and not callable(app):
        raise ValueError(f"app must be an ASGI application, not {type(app).__name__}")


def _is_positive(_: Any, attribute: Attribute[Any], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{attribute.name} must be a number above 0; it is {value!r}")


@final
@frozen
class Server:
    """The server that the program names, by its URL or as an application; else the document names one.

    `timeout` is in seconds, for one request; `max_bytes` bounds an answer. Raises ValueError for a value that is wrong.
    """

    base_url: str | None = field(converter=optional(_base_url))
    app: Any = field(validator=_is_application)
    timeout: float = field(validator=_is_positive)
    max_bytes: int = field(validator=_is_positive)

    @property
    def is_named(self) -> bool:
        """Whether the program names the server."""
        return self.base_url is not None or self.app is not None

    def url(self, document: Document, item: Mapping[str, Any], described: Mapping[str, Any]) -> str:
        """The base URL of an operation. Raises `DocumentError` for one that is nowhere."""
        if self.is_named:
            return self.base_url or "http://localhost"
        servers = described.get("servers") or item.get("servers") or document.content.get("servers") or [{"url": "/"}]
        variables = servers[0].get("variables") or {}
        url = re.sub("{([^{}]*)}", lambda found: str(variables[found[1]]["default"]), servers[0]["url"])
        url = urljoin(document.url or "", url)
        if not is_url(url):
            raise DocumentError("the document does not say where the server is, give base_url=")
        try:
            return _base_url(url)
        except ValueError as error:
            raise DocumentError(str(error)) from None
