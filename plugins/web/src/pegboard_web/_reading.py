"""Reading answers: which text they are, in which charset, and pages of HTML as Markdown."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from pegboard import ToolError
from pegboard_net import CHARSETS, Fetched, charset_of, redacted
from pegboard_web._html import read
from pegboard_web._records import Content

__all__ = ["Text", "text_of"]

HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
MEMORY: Final = 512 * 1024 * 1024
"""Bytes that a parser may take; the largest public pages take a tenth."""
_TEXTS: Final = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml|yaml|javascript|ecmascript|toml|x-ndjson)$")
_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
_META: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_HEAD: Final = 1024
"""Bytes in which a page names its charset (HTML, 13.2.3.2)."""


class Text(NamedTuple):
    """A whole page as text, its title, and what is to be known of how it was read."""

    title: str
    text: str
    note: str = ""


async def text_of(found: Fetched, content: Content, seconds: float) -> Text:
    """An answer as text. Raises `ToolError` for what is no text, and for a page that cannot be parsed within limits."""
    kind = found.media_type or ("text/plain" if _is_text(found.content) else "application/octet-stream")
    if kind == "application/pdf" or found.content.startswith(b"%PDF-"):
        return await _document(found, seconds)
    if not _TEXTS.match(kind) and kind not in HTML:
        size = f"{len(found.content):,} bytes"
        raise ToolError(f"{redacted(found.url)} is no text: {kind}, {size}. Fetch a page of text or HTML instead.")
    text, note = _decoded(found, is_html=kind in HTML)
    if kind not in HTML or content == "raw":
        return Text("", text, note)
    title, text = await _parsed(found.url, text, content, seconds)
    return Text(title, text, note)


async def _document(found: Fetched, seconds: float) -> Text:
    """The text of a PDF, by `pegboard-documents`."""
    import asyncio

    url, instead = redacted(found.url), "Fetch a page of text or HTML instead."
    try:
        from pegboard_documents import read_document
    except ModuleNotFoundError:
        raise ToolError(f"{url} is a PDF: this program lacks pegboard-documents, which reads them. {instead}") from None
    try:
        read = await asyncio.to_thread(read_document, found.content, "pdf", seconds=seconds)
    except ToolError as error:
        raise ToolError(f"{url} is a PDF that cannot be read: {error}. {instead}") from error
    return Text(read.title or "", read.text)


async def _parsed(url: str, html: str, content: Content, seconds: float) -> tuple[str, str]:
    import asyncio

    from pegboard_process import LimitError, ProcessDiedError, limited

    given = {"html": html, "url": url, "article": content == "article"}
    instead = "Send content='raw' for its HTML."
    try:
        page = await asyncio.to_thread(limited, read, given, memory=MEMORY, seconds=seconds)
    except ToolError as error:  # `TooMuchError`, by its base: its class is that of another process
        raise ToolError(f"{redacted(url)} cannot be made text: {error}. {instead}") from error
    except LimitError as error:
        what = "memory" if error.limit == "memory" else "time"
        raise ToolError(f"{redacted(url)} cannot be made text: it takes too much {what}. {instead}") from error
    except ModuleNotFoundError as error:
        raise ToolError("content='article' is not there in this program. Send content='page'.") from error
    except (ProcessDiedError, ValueError) as error:
        raise ToolError(f"{redacted(url)} cannot be made text: its HTML cannot be parsed. {instead}") from error
    return page["title"], page["text"]


def _is_text(content: bytes) -> bool:
    return b"\0" not in content[:_HEAD]


def _decoded(found: Fetched, *, is_html: bool) -> tuple[str, str]:
    """The text in the charset of the answer, of its first bytes, or of the page itself; else as UTF-8, with a note."""
    mark = next((name for start, name in _MARKS if found.content.startswith(start)), None)
    meta = _META.search(found.content[:_HEAD]) if is_html else None
    own = charset_of(f"text/html; charset={meta.group(1).decode('ascii')}") if meta else None
    named = mark or found.charset or own or "utf-8"
    known = named in CHARSETS
    note = "" if known else f"the page names the charset {named[:40]!r}, which is not read; it was read as UTF-8"
    return found.content.decode(named if known else "utf-8", "replace").removeprefix("\ufeff"), note
