"""Pictures of the pages of PDF, by pypdfium2. It runs in a process with limits, and is imported there alone."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import pypdfium2

from pegboard import ToolError
from pegboard_documents._page_numbers import page_numbers

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["read"]

MOST_PAGES: Final = 10
LONGEST_SIDE: Final = 1_568
"""Pixels; models make larger pictures smaller."""
MOST_SCALE: Final = 4.0
LARGEST_PNG: Final = 1_000_000
"""Bytes; what is larger, such as a photo, becomes JPEG."""


def read(given: dict[str, Any]) -> dict[str, Any]:
    """Pictures of the pages: their numbers, types and bytes. Raises `ToolError`."""
    try:
        document = pypdfium2.PdfDocument(given["content"])
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower()
        raise ToolError(
            "it is encrypted with a password: ask for a copy without one" if locked else "it is damaged"
        ) from None
    numbers = page_numbers(given["pages"], len(document))
    if len(numbers) > MOST_PAGES:
        raise ToolError(f"pages names {len(numbers):,} pages, and at most {MOST_PAGES} are shown at once: send fewer")
    return {"pictures": [{"page": number, **_picture(document, number)} for number in numbers]}


def _picture(document: Any, number: int) -> dict[str, Any]:
    try:
        page = document[number - 1]
        longest = max(*page.get_size(), 1.0)
        image = page.render(scale=min(LONGEST_SIDE / longest, MOST_SCALE)).to_pil().convert("RGB")
    except (pypdfium2.PdfiumError, ValueError):
        raise ToolError(f"its page {number} is damaged") from None
    content = _saved(image, "PNG")
    if len(content) > LARGEST_PNG:
        return {"media_type": "image/jpeg", "content": _saved(image, "JPEG")}
    return {"media_type": "image/png", "content": content}


def _saved(image: Image, form: str) -> bytes:
    kept = io.BytesIO()
    image.save(kept, form)
    return kept.getvalue()
