"""Documents as text, tables and pictures: which kind they are, and the process with limits that parses each."""

from __future__ import annotations

import codecs
import re
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from pegboard import PegboardError, ToolError

__all__ = ["PAGED", "PLAIN", "NoTextError", "ReadDocument", "ask", "kind_of", "read_document"]

MEMORY: Final = 512 * 1024 * 1024
"""Bytes that a parser may take for one document."""
SECONDS: Final = 30.0
_LESS: Final = {
    "text": '. Send fewer pages, such as pages="1-5"',
    "tables": ". Send one page, such as page=1",
    "images": '. Send one page, such as pages="1"',
}
PLAIN: Final = frozenset({"csv", "md", "txt"})
"""What is text as it is."""
PAGED: Final = frozenset({"pdf", "pptx"})
_ZIPPED: Final = frozenset({"docx", "epub", "pptx", "xlsx"})
_KINDS: Final = {
    **{f".{kind}": kind for kind in ("pdf", "docx", "xlsx", "pptx", "html", "epub", "csv", "txt", "md")},
    ".docm": "docx",
    ".htm": "html",
    ".markdown": "md",
    ".pptm": "pptx",
    ".tsv": "csv",
    ".xhtml": "html",
    ".xlsm": "xlsx",
}
_PARSERS: Final = {
    "csv": "_delimited",
    "docx": "_word",
    "epub": "_markup",
    "html": "_markup",
    "pdf": "_pdf",
    "pdf images": "_pictures",
    "pdf tables": "_pdf_tables",
    "pptx": "_slides",
    "pptx info": "_archives",
    "xlsx": "_sheets",
}
"""The module for a kind, or for one job of it."""
_NEEDS: Final = {"_pdf_tables": "pdfplumber", "_slides": "pptx"}
_BAD_XML: Final = "its XML is damaged, or made to exhaust parsers"
_REASONS: Final = {
    "BadZipFile": "its archive is damaged: an entry is not what it declares",
    "ExpatError": _BAD_XML,
    "ParseError": _BAD_XML,
    "RecursionError": "it is nested too deep",
    "XMLSyntaxError": _BAD_XML,
}
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_-]{1,40})""", re.IGNORECASE)
_CHARSETS: Final = frozenset(
    (
        *(f"windows-{number}" for number in range(1250, 1259)),
        *(f"iso-8859-{number}" for number in (*range(1, 12), *range(13, 17))),
        *("big5", "euc-jp", "euc-kr", "gb18030", "gb2312", "gbk", "koi8-r", "koi8-u", "shift_jis"),
    )
)
"""Charsets that are read where a page names one; some others of Python are slow, or none of text."""
_OLD_OFFICE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class NoTextError(ToolError):
    """The pages of a PDF have no text: they are pictures."""


class ReadDocument(NamedTuple):
    """What was read of a document.

    Args:
        text: The whole text, or that of the pages that were named.
        title: Its title. None where it has none.
    """

    text: str
    title: str | None


def read_document(content: bytes, kind: str, pages: str | None = None, *, seconds: float = SECONDS) -> ReadDocument:
    """Read the text of a document.

    A library part, for packs that get documents from elsewhere than a folder. It blocks. Raises `ToolError`; its
    message is the predicate of a sentence, such as "it is damaged".

    Args:
        content: The bytes of the document.
        kind: `pdf`, `docx`, `xlsx`, `pptx`, `html`, `epub`, `csv`, `txt` or `md`.
        pages: Pages or sheets to read, as the tool `document_read` takes them. None for all.
        seconds: Seconds that it may take.
    """
    if pages is not None and kind not in {*PAGED, "xlsx"}:
        raise ToolError(f"a document of the kind {kind} has no pages: leave pages out, and go on with start")
    if kind in PLAIN:
        return ReadDocument(decoded(content), None)
    found = ask(kind, content, "text", seconds=seconds, pages=pages)
    if kind == "pdf" and not found["text"]:
        raise NoTextError("it has no text: its pages are pictures, as of a scanner")
    return ReadDocument(found["text"], found["title"])


def ask(kind: str, content: bytes, job: str, seconds: float = SECONDS, **more: Any) -> dict[str, Any]:
    """What the parser of a kind answers. Raises `ToolError`: what is wrong with the document, and what to do."""
    from pegboard_process import (  # not before the first call
        LimitError,
        ProcessDiedError,
        RemoteError,
        UnexpectedAnswerError,
        limited,
    )

    parser = _PARSERS.get(f"{kind} {job}", _PARSERS[kind])
    if (library := _NEEDS.get(parser)) and find_spec(library) is None:
        what = "tables in PDF" if kind == "pdf" else "slides"
        raise ToolError(f"this program lacks {library}, which reads {what}")
    given: dict[str, Any] = {"kind": kind, "job": job, **more}
    given |= {"text": decoded(content, kind)} if kind in ("html", "csv") else {"content": content}
    less = _LESS.get(job, "") if kind in PAGED else ""
    try:
        answer: dict[str, Any] = limited(f"{__package__}.{parser}:read", given, memory=MEMORY, seconds=seconds)
    except ToolError as error:
        raise ToolError(str(error)) from None
    except LimitError as error:
        most = f"{seconds:g} s" if error.limit == "seconds" else f"{MEMORY >> 20} MiB of memory"
        raise ToolError(f"it takes more than {most} to read{less}") from error
    except ProcessDiedError as error:
        raise ToolError(f"its parser crashed: it is damaged, or too large{less}") from error
    except (RemoteError, UnexpectedAnswerError) as error:
        reason = _REASONS.get(type(error).__name__, f"it is damaged, or no {kind} document")
        raise ToolError(f"{reason} ({type(error).__name__})") from error
    except PegboardError as error:
        raise ToolError(f"it cannot be parsed here: {error}") from error
    return answer


def kind_of(name: str, content: bytes) -> str:
    """The kind of a document, by its name and by how it begins. Raises `ToolError` for others."""
    kind = _KINDS.get(PurePosixPath(name).suffix.lower())
    if content.startswith(_OLD_OFFICE):
        raise ToolError("it has a password, or is of an old format (doc, xls, ppt): ask for it as docx, xlsx or pptx")
    is_pdf, is_zip = b"%PDF-" in content[:1024], content.startswith((b"PK\3\4", b"PK\5\6"))
    if kind is None:
        kind = "pdf" if is_pdf else "txt"
    if (kind == "pdf" and not is_pdf) or (kind in _ZIPPED and not is_zip):
        raise ToolError(f"it is named as a {kind} document, and is none by its content")
    is_text = b"\0" not in content[:4096] or content.startswith(tuple(mark for mark, _ in _MARKS))
    if kind != "pdf" and kind not in _ZIPPED and not is_text:
        kinds = ", ".join(dict.fromkeys(_KINDS.values()))
        raise ToolError(f"it is of none of the kinds that are read: {kinds}")
    return kind


def decoded(content: bytes, kind: str = "txt") -> str:
    """Text in what its first bytes say, in UTF-8, in the charset that HTML names, or else in Windows-1252."""
    for mark, charset in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(charset, "replace")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        named = _META.search(content[:1024]) if kind == "html" else None
        charset = named[1].decode("ascii").lower() if named else ""
        return content.decode(charset if charset in _CHARSETS else "cp1252", "replace")
