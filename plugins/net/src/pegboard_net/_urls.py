"""URLs: read in the one way that all readers agree on, compared by origin, and shown without what may be secret."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

from pegboard import ToolError

if TYPE_CHECKING:
    import httpx2

__all__ = ["RefusedUrlError", "UrlError", "WebUrl", "read_url", "redacted"]

MAX_URL: Final = 8192
"""Characters; more than servers take."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?", re.ASCII)
_ODD: Final = re.compile(r"[\x00-\x20\x7f-\x9f\\]")


class UrlError(ToolError):
    """Nothing could be fetched from a URL: there is no answer, or it is too large, too late or of no use."""


class RefusedUrlError(UrlError):
    """The guard does not follow this URL; nothing was connected to."""


class WebUrl(NamedTuple):
    """An http(s) URL and its parts.

    Args:
        url: The URL.
        host: Its host, in lower case, without a final dot or brackets.
        port: Its port; that of the scheme if it has none.
    """

    url: httpx2.URL
    host: str
    port: int

    @property
    def origin(self) -> str:
        """`scheme://host:port` (RFC 6454), to be compared and not to be shown."""
        return f"{self.url.scheme}://{self.host}:{self.port}"


def read_url(text: str) -> WebUrl:
    """Read an http(s) URL (RFC 3986) that every reader takes for the same one.

    Raises `RefusedUrlError` for other schemes, user names and passwords, hosts that are not ASCII, addresses in other
    forms than four decimal numbers or RFC 4291's (`127.1`, `0x7f000001`, zones), backslashes, blanks and control
    characters, and for more than 8,192 characters.

    Args:
        text: The URL.
    """
    import httpx2

    def refused(why: str) -> RefusedUrlError:
        return RefusedUrlError(f"{redacted(text)} is refused: {why}.")

    if len(text) > MAX_URL or _ODD.search(text):
        raise refused("it is too long, or holds blanks, backslashes or control characters")
    if not re.match(r"https?://[^/]", text, re.IGNORECASE):
        raise refused("only http:// and https:// URLs are fetched")
    authority = re.split(r"[/?#]", text.partition("//")[2], maxsplit=1)[0]
    if "@" in authority:
        raise refused("it holds a user name or a password")
    if not authority.isascii():
        raise refused("its host is not ASCII; write it as xn--...")
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL:
        raise refused("it is no valid URL") from None
    host = url.raw_host.decode("ascii")  # not `url.host`, which reads xn--
    if not _is_plain(host):
        raise refused("its host is neither a name nor an address in its usual form")
    return WebUrl(url, host.removesuffix("."), _DEFAULT_PORTS[url.scheme] if url.port is None else url.port)


def _is_plain(host: str) -> bool:
    """Whether a host is a name, or an address in its usual form: 127.1, 0x7f000001 and the like are neither."""
    try:
        ip_address(host)
    except ValueError:
        last = host.rstrip(".").rpartition(".")[2]
        return _HOST.fullmatch(host) is not None and not re.fullmatch(r"\d+|0x[0-9a-f]*", last) and len(host) < 254
    return "%" not in host


def redacted(text: str, limit: int = 200) -> str:
    """A URL for messages and logs: on one line, at most `limit` characters, without user, password, query and fragment.

    The query goes as a whole, for no list of names knows all that are signatures or keys. The path stays.

    Args:
        text: The URL.
        limit: Most characters of the result.
    """
    bare = re.sub(r"(?<=//)[^/?#]*@", "", text.partition("?")[0].partition("#")[0])
    plain = "".join(character if character.isprintable() else "?" for character in bare)
    return plain if len(plain) <= limit else f"{plain[:limit]}..."
