"""HTML and EPUB as Markdown, and their tables. It runs in a process with limits, and is imported there alone."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from html_to_markdown import ConversionOptions, PreprocessingOptions, convert
from selectolax.lexbor import LexborHTMLParser

from pegboard import ToolError
from pegboard_documents._archives import Archive
from pegboard_documents._rows import Tables, shortened, within

__all__ = ["markdown_of", "read", "tables_of"]

MOST_MARKS: Final = 200_000
"""`<` in a document, or `&`; of a thousand public pages the largest has 20,000."""
MOST_ATTRIBUTES: Final = 2_000
MOST_WORDS: Final = 10_000
"""Words in a tag, which may be attributes without a value."""
DEEPEST: Final = 500
"""Elements in each other; what is deeper would be missing in the Markdown, without a word."""
_TOO_DEEP: Final = " > ".join(["*"] * DEEPEST)
MOST_SPAN: Final = 1_000
"""Columns or rows of a cell (HTML, 4.9.11)."""
_NO_TEXT: Final = "script, style, noscript, template, iframe, svg, object, embed"
_BLANK: Final = re.compile(r"\n{3,}")
_OPF: Final = "{http://www.idpf.org/2007/opf}"
_DC: Final = "{http://purl.org/dc/elements/1.1/}"
_CONTAINER: Final = "{urn:oasis:names:tc:opendocument:xmlns:container}"


def read(given: dict[str, Any]) -> dict[str, Any]:
    """The text, the tables or what is known of a document. Raises `ToolError`."""
    book = _Book(given["content"]) if given["kind"] == "epub" else None
    if given["job"] == "info":
        return book.about() if book else {"title": _title(given["text"])}
    pages = book.chapters() if book else iter([given["text"]])
    if given["job"] == "tables":
        tables = Tables(given["max_rows"])
        return tables.all(each for page in pages for each in tables_of(_checked(page), tables))
    text = within(f"{markdown_of(_checked(page))}\n" for page in pages).strip()
    return {"text": text, "title": book.about()["title"] if book else _title(given["text"])}


def _checked(html: str) -> str:
    for mark in "<&":
        if (count := html.count(mark)) > MOST_MARKS:
            raise ToolError(f"it has {count:,} times {mark!r}, and at most {MOST_MARKS:,} are read")
    tags = (piece.partition(">")[0] for piece in html.split("<"))
    if any(tag.count("=") > MOST_ATTRIBUTES or len(tag.split()) > MOST_WORDS for tag in tags):
        raise ToolError(f"it has a tag with more than {MOST_ATTRIBUTES:,} attributes")
    return html


def _tree(html: str) -> LexborHTMLParser:
    tree = LexborHTMLParser(html)
    if tree.css_first(_TOO_DEEP) is not None:
        raise ToolError("it is nested too deep")
    return tree


def _title(html: str) -> str | None:
    tree = _tree(_checked(html))
    found = tree.css_first("head > title") or tree.css_first("h1")
    return shortened(" ".join(found.text().split())) if found is not None else None


def markdown_of(html: str) -> str:
    """A page as Markdown, without what is no text of it."""
    tree = _tree(html)
    for node in tree.css(_NO_TEXT):
        node.decompose()
    options = ConversionOptions(
        compact_tables=True,
        extract_metadata=False,
        skip_images=True,
        preprocessing=PreprocessingOptions(remove_forms=False, remove_navigation=False),
    )
    body = tree.body
    return _BLANK.sub("\n\n", str(convert((body.html if body else "") or "", options).content)).strip()


def tables_of(html: str, tables: Tables) -> Iterator[dict[str, Any]]:
    """The tables of a page, inner ones too."""
    for table in _tree(html).css("table"):
        rows = (row for section in table.iter() for row in section.iter() if row.tag == "tr")
        yield tables.table(_laid_out(rows))


def _laid_out(rows: Iterable[Any]) -> Iterator[list[str | None]]:
    """The cells of rows in their columns: one that spans some is in the first of them, and the others are empty."""
    spanned: dict[int, int] = {}
    """Columns, and the rows in which a cell above still spans them."""
    for row in rows:
        taken, spanned = spanned, {at: left - 1 for at, left in spanned.items() if left > 1}
        cells: list[str | None] = []
        for each in (each for each in row.iter() if each.tag in ("td", "th")):
            while len(cells) in taken:
                cells.append(None)
            columns, below = _span(each, "colspan"), _span(each, "rowspan") - 1
            if below:
                spanned |= dict.fromkeys(range(len(cells), len(cells) + columns), below)
            cells += [" ".join(each.text(separator=" ").split()), *[None] * (columns - 1)]
        yield cells


def _span(cell: Any, name: str) -> int:
    match = re.fullmatch("[1-9][0-9]{0,3}", cell.attributes.get(name) or "")
    return min(int(match[0]), MOST_SPAN) if match else 1


class _Book:
    """An EPUB: a package that says in which order its chapters are read."""

    def __init__(self, content: bytes) -> None:
        self._archive = Archive(content)
        root = ET.fromstring(self._archive.read("META-INF/container.xml"))  # noqa: S314 - in a process with limits
        found = root.find(f".//{_CONTAINER}rootfile")
        self._place = found.get("full-path", "") if found is not None else ""
        self._package = ET.fromstring(self._archive.read(self._place))  # noqa: S314

    def about(self) -> dict[str, Any]:
        found = {name: self._package.findtext(f".//{_DC}{name}") for name in ("title", "creator")}
        return {"title": shortened(found["title"]), "author": shortened(found["creator"])}

    def chapters(self) -> Iterator[str]:
        folder = posixpath.dirname(self._place)
        items = {item.get("id"): item.get("href", "") for item in self._package.iter(f"{_OPF}item")}
        locked = self._archive.read("META-INF/encryption.xml") if "META-INF/encryption.xml" in self._archive else b""
        for ref in self._package.iter(f"{_OPF}itemref"):
            href = unquote(items.get(ref.get("idref"), "").partition("#")[0])
            place = posixpath.normpath(posixpath.join(folder, href))
            if place.encode() in locked:
                raise ToolError("it is encrypted (DRM): ask for a copy without")
            if place in self._archive:
                yield self._archive.read(place).decode("utf-8-sig", "replace")
