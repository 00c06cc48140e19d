"""Answers: read within a bound on what they are decoded to, and as text by no codec but those of a list."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import httpx2

__all__ = ["CHARSETS", "BodyError", "body_of", "charset_of", "decoded", "pieces_of", "redirect_of", "retry_after"]

Look: TypeAlias = Callable[[bytes], object] | None
HEAD: Final = 4096
"""Bytes by which a kind of file is known."""
CHARSETS: Final = frozenset((
    "ascii", "us-ascii", "utf-8", "utf8", "utf-16", "utf-16be", "utf-16le", "utf-32", "utf-32be", "utf-32le",
    "latin-1", "latin1", *(f"iso{dash}8859-{part}" for part in range(1, 17) if part != 12 for dash in ("-", "")),
    *(f"windows-125{page}" for page in range(9)), *(f"cp125{page}" for page in range(9)), "cp437", "cp850", "cp866",
    "ibm437", "ibm850", "ibm866", "macintosh", "koi8-r", "koi8-u", "tis-620",
    "big5", "big5-hkscs", "euc-jp", "euc-kr", "gb18030", "gb2312", "gbk", "iso-2022-jp", "iso-2022-kr", "shift-jis",
    "ks-c-5601-1987",
))  # fmt: skip
"""The codecs that answers may name: those of text on the web, which take time in proportion to the text.

Python has others, which a server must not choose: `punycode` takes quadratic time, `unicode_escape` makes other text.
"""


class BodyError(Exception):
    """A body is not read to its end: the message says what it is, such as `a body of more than 1,000 bytes`."""


async def pieces_of(response: httpx2.Response, max_bytes: int) -> AsyncGenerator[bytes, None]:
    """The body of a streamed response in pieces of at most 1 MiB, decoded (RFC 9110, 8.4) and counted after that.

    Raises `BodyError` for more than `max_bytes` bytes and for a coding that the request did not ask for; what httpx2
    raises for a body that breaks off or cannot be decoded. It has no deadline: the caller sets one.

    Args:
        response: The response.
        max_bytes: Most bytes after decoding.
    """
    codings = _tokens(response.headers.get("content-encoding", "")) - {"identity"}
    if codings and not codings <= _tokens(response.request.headers.get("accept-encoding", "")):
        encoding = response.headers["content-encoding"].strip().casefold()
        raise BodyError(f"a body encoded as {encoding[:40]!r}, which was not asked for")
    read = 0
    async for piece in response.aiter_bytes():
        read += len(piece)
        if read > max_bytes:
            raise BodyError(f"a body of more than {max_bytes:,} bytes")
        yield piece


def _tokens(header: str) -> set[str]:
    return {each.partition(";")[0].strip().casefold() for each in header.split(",")} - {""}


async def body_of(response: httpx2.Response, max_bytes: int, look: Look = None) -> bytes:
    """Read the whole body of a streamed response, as `pieces_of` gives it.

    Args:
        response: The response.
        max_bytes: Most bytes after decoding.
        look: Function that gets the first 4,096 bytes as soon as they are there (fewer, if there are no more), and
            raises if they are of no use: then the rest is not read. None for none.
    """
    body = bytearray()
    async with aclosing(pieces_of(response, max_bytes)) as pieces:
        async for piece in pieces:
            is_head = len(body) < HEAD <= len(body) + len(piece)
            body += piece
            if look and is_head:
                look(bytes(body[:HEAD]))
    if look and len(body) < HEAD:
        look(bytes(body))
    return bytes(body)


def redirect_of(response: httpx2.Response) -> str | None:
    """Where a redirect leads (RFC 9110, 15.4): its `Location` as it was sent. None for any other answer.

    Args:
        response: The answer.
    """
    is_redirect = response.status_code in (301, 302, 303, 307, 308)
    return response.headers.get("location") or None if is_redirect else None


def retry_after(header: str) -> float | None:
    """The seconds of a `Retry-After` header (RFC 9110, 10.2.3), 0 or more; None for what is no number and no date.

    Args:
        header: Value of the header.
    """
    if re.fullmatch(r"\d{1,9}(\.\d+)?", header.strip()):
        return float(header)
    from email.utils import parsedate_to_datetime

    try:
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def charset_of(media_type: str) -> str | None:
    """The charset that a `Content-Type` names, spelled as in `CHARSETS`, whether it is one of them or not.

    Args:
        media_type: The `Content-Type`.
    """
    named = re.search(r"charset=[\"']?([\w.:-]+)", media_type, re.IGNORECASE | re.ASCII)
    return named[1].lower().replace("_", "-") if named else None


def decoded(body: bytes, media_type: str) -> str:
    """The text of an answer: as UTF-8 where it names no charset, or one that is not among `CHARSETS`.

    Args:
        body: The bytes.
        media_type: The `Content-Type`.
    """
    charset = charset_of(media_type)
    return body.decode(charset if charset in CHARSETS else "utf-8", "replace")
