"""Word documents, by the HTML that mammoth makes. It runs in a process with limits, and is imported there alone."""

from __future__ import annotations

import io
from typing import Any

import mammoth

from pegboard import ToolError
from pegboard_documents._archives import Archive
from pegboard_documents._markup import markdown_of, tables_of
from pegboard_documents._rows import Tables

__all__ = ["read"]


def read(given: dict[str, Any]) -> dict[str, Any]:
    """The text, the tables or what is known of a document. Raises `ToolError`."""
    archive = Archive(given["content"])
    if "word/document.xml" not in archive:
        raise ToolError("it is no Word document: word/document.xml is missing in its archive")
    if given["job"] == "info":
        return archive.about()
    # Pictures would be copied into the text.
    html = mammoth.convert_to_html(io.BytesIO(given["content"]), convert_image=lambda image: []).value
    if given["job"] == "tables":
        tables = Tables(given["max_rows"])
        return tables.all(tables_of(html, tables))
    return {"text": markdown_of(html), "title": archive.about()["title"]}
