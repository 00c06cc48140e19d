"""PowerPoint slides, by python-pptx. It runs in a process with limits, and is imported there alone."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from pptx import Presentation

from pegboard_documents._archives import presentation
from pegboard_documents._page_numbers import page_numbers, page_of
from pegboard_documents._rows import Tables, markdown, within

__all__ = ["read"]


def read(given: dict[str, Any]) -> dict[str, Any]:
    """The text or the tables of a presentation. Raises `ToolError`."""
    archive = presentation(given["content"])
    slides = list(Presentation(io.BytesIO(given["content"])).slides)
    if given["job"] == "tables":
        tables = Tables(given["max_rows"])
        numbers = [page_of(given["page"], len(slides), "slide")] if given["page"] else range(1, len(slides) + 1)
        return tables.all(
            tables.table(_cells(shape), page=n) for n in numbers for shape in _shapes(slides[n - 1]) if shape.has_table
        )
    numbers = page_numbers(given["pages"], len(slides), "slide") if given["pages"] else range(1, len(slides) + 1)
    text = within(line for n in numbers for line in [f"[slide {n}]", *_lines(slides[n - 1]), ""])
    return {"text": text.strip(), "title": archive.about()["title"]}


def _shapes(holder: Any) -> Iterator[Any]:
    """The shapes of a slide or of a group, those in groups too, in their order."""
    for shape in holder.shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape)
        else:
            yield shape


def _lines(slide: Any) -> Iterator[str]:
    for shape in _shapes(slide):
        if shape.has_text_frame and shape.text_frame.text.strip():
            yield shape.text_frame.text.replace("\v", "\n").strip()
        elif shape.has_table:
            yield from markdown(_cells(shape))
    if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None and notes.text.strip():
        yield f"Notes: {notes.text.strip()}"


def _cells(shape: Any) -> Iterator[list[str]]:
    for row in shape.table.rows:
        yield [cell.text for cell in row.cells]
