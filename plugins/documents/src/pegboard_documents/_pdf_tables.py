"""Ruled tables of PDF, by pdfplumber. It runs in a process with limits, and is imported there alone."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pdfplumber
from pdfminer.pdfdocument import PDFEncryptionError, PDFPasswordIncorrect
from pdfplumber.utils.exceptions import PdfminerException

from pegboard import ToolError
from pegboard_documents._page_numbers import page_of
from pegboard_documents._rows import Tables

__all__ = ["read"]


def read(given: dict[str, Any]) -> dict[str, Any]:
    """The tables of one page, or of all. Raises `ToolError`."""
    tables = Tables(given["max_rows"])
    try:
        with pdfplumber.open(io.BytesIO(given["content"])) as document:
            pages = document.pages
            if given["page"]:
                pages = [pages[page_of(given["page"], len(pages)) - 1]]
            return tables.all(_tables(pages, tables))
    except PdfminerException as error:
        if any(isinstance(each, MemoryError) for each in error.args):
            raise MemoryError from None
        if any(isinstance(each, PDFEncryptionError | PDFPasswordIncorrect) for each in error.args):
            raise ToolError("it is encrypted with a password: ask for a copy without one") from None
        raise ToolError(
            f"it is damaged: {type(error.args[0]).__name__ if error.args else 'PdfminerException'}"
        ) from None


def _tables(pages: list[Any], tables: Tables) -> Iterator[dict[str, Any]]:
    for page in pages:
        for rows in page.extract_tables():
            yield tables.table(rows, page=page.page_number)
        page.close()  # else all pages stay in memory
