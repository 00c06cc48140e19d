"""PDF: text and metadata by pypdf. It runs in a process with limits, and is imported there alone."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final

from pypdf import PdfReader
from pypdf.errors import DependencyError, LimitReachedError, PyPdfError

from pegboard import ToolError
from pegboard_documents._page_numbers import page_numbers
from pegboard_documents._rows import shortened

__all__ = ["read"]

_LOCKED: Final = "it is encrypted with a password: ask for a copy without one"


def read(given: dict[str, Any]) -> dict[str, Any]:
    """The text of pages, or what is known of the document. Raises `ToolError`."""
    try:
        reader = PdfReader(io.BytesIO(given["content"]))
        locked = reader.is_encrypted and not _opens(reader)
        if given["job"] == "info":
            return _info(reader, locked=locked)
        if locked:
            raise ToolError(_LOCKED)
        count = len(reader.pages)
        numbers = page_numbers(given["pages"], count) if given["pages"] else list(range(1, count + 1))
    except PyPdfError as error:
        raise _failure(error, "it") from None
    return {"text": _joined(reader, numbers), "title": _about(reader)["title"]}


def _opens(reader: PdfReader) -> bool:
    """Whether it opens without a password: many are encrypted only so that programs refuse to print them."""
    try:
        return bool(reader.decrypt(""))
    except DependencyError:
        raise ToolError("it is encrypted with AES, and this program cannot decrypt that (no cryptography)") from None


def _info(reader: PdfReader, *, locked: bool) -> dict[str, Any]:
    if locked:
        return {"encrypted": True}
    return {"pages": len(reader.pages), "encrypted": reader.is_encrypted, **_about(reader)}


def _about(reader: PdfReader) -> dict[str, str | None]:
    """Title and author; a damaged one is none."""
    try:
        found = reader.metadata
        return {"title": shortened(found and found.title), "author": shortened(found and found.author)}
    except (PyPdfError, ValueError, TypeError, AttributeError):
        return {"title": None, "author": None}


def _joined(reader: PdfReader, numbers: list[int]) -> str:
    texts = list(_texts(reader, numbers))
    if len(texts) == 1 or not any(texts):
        return texts[0] if texts else ""
    return "\n\n".join(f"[page {n}]\n{text or '(no text)'}" for n, text in zip(numbers, texts, strict=True))


def _texts(reader: PdfReader, numbers: list[int]) -> Iterator[str]:
    for number in numbers:
        try:
            yield reader.pages[number - 1].extract_text().strip()
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - of a damaged page it may be any
            raise _failure(error, f"its page {number}") from None


def _failure(error: Exception, what: str) -> ToolError:
    if isinstance(error, LimitReachedError):
        return ToolError(f"{what} is too large: it unpacks to more than is read")
    return ToolError(f"{what} is damaged: {type(error).__name__}")
