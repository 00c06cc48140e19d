"""A board with the tools for documents, and documents of each kind, made by their libraries or by hand."""

import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openpyxl import Workbook
from pptx import Presentation
from pptx.util import Inches

from pegboard import Toolkit, ToolResult

SENTENCE = (
    "It was a bright cold day in April and the clocks were striking thirteen while the wind blew through the doors of "
    "the old library where seven readers sat over their books and none of them looked up"
)
WORDS = SENTENCE.split()


def board(folder: Path) -> Toolkit:
    toolkit = Toolkit(plugins=["documents", "dataclasses"], settings={"documents": {"base_dir": str(folder)}})
    assert toolkit.problems == []
    return toolkit


def read(toolkit: Toolkit, path: str, **arguments: Any) -> ToolResult:
    return toolkit.call_sync("document_read", {"path": path, **arguments})


def refused(result: ToolResult) -> str:
    """What is wrong, as the model reads it."""
    assert result.status == "error", result.text
    return result.text


# Archives -------------------------------------------------------------------------------------------------------------


def archive(entries: Mapping[str, str | bytes]) -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return kept.getvalue()


def changed(content: bytes, name: str, new: str) -> bytes:
    """An archive with another text in one of its entries."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return archive({each: file.read(each) for each in file.namelist()} | {name: new})


_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)
_CORE = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{}</dc:title><dc:creator>{}</dc:creator></cp:coreProperties>'
)


def docx(*blocks: str | Sequence[Sequence[str]], title: str = "Report", author: str = "Ada", head: str = "") -> bytes:
    """A Word document: texts are paragraphs (with `# ` a heading), lists of rows are tables."""
    body = "".join(_paragraph(each) if isinstance(each, str) else _table(each) for each in blocks)
    document = f'<?xml version="1.0"?>{head}<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
    return archive(
        {
            "[Content_Types].xml": _TYPES,
            "_rels/.rels": _RELATIONS,
            "word/document.xml": document,
            "docProps/core.xml": _CORE.format(title, author),
        }
    )


def _paragraph(text: str) -> str:
    style = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>' if text.startswith("# ") else ""
    return f'<w:p>{style}<w:r><w:t xml:space="preserve">{text.removeprefix("# ")}</w:t></w:r></w:p>'


def _table(rows: Sequence[Sequence[str]]) -> str:
    cells = ("".join(f"<w:tc>{_paragraph(text)}</w:tc>" for text in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{each}</w:tr>' for each in cells)}</w:tbl>"


def xlsx(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    book = Workbook()
    book.remove(book.worksheets[0])
    book.properties.title, book.properties.creator = "Sales", "Ada"
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    kept = io.BytesIO()
    book.save(kept)
    return kept.getvalue()


def pptx(slides: Sequence[tuple[str, str]], table: Sequence[Sequence[str]] = ()) -> bytes:
    """Slides with a title and a text; a table on one more."""
    deck = Presentation()
    for title, text in slides:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    if table:
        shapes = deck.slides.add_slide(deck.slide_layouts[6]).shapes
        added = shapes.add_table(len(table), len(table[0]), Inches(1), Inches(1), Inches(6), Inches(1)).table
        for down, row in enumerate(table):
            for right, text in enumerate(row):
                added.cell(down, right).text = text
    kept = io.BytesIO()
    deck.save(kept)
    return kept.getvalue()


def epub(chapters: Mapping[str, str], more: Mapping[str, str] | None = None) -> bytes:
    items = "".join(f'<item id="c{n}" href="text/{name}"/>' for n, name in enumerate(chapters))
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        "<dc:title>A Book</dc:title><dc:creator>Ada</dc:creator></metadata>"
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/content.opf"/></rootfiles></container>'
    )
    pages = {f"OEBPS/text/{name}": f"<html><body>{body}</body></html>" for name, body in chapters.items()}
    return archive({"META-INF/container.xml": container, "OEBPS/content.opf": package, **pages, **(more or {})})


# PDF ------------------------------------------------------------------------------------------------------------------


def pdf(pages: Iterable[bytes], *, title: str = "Report", packed: bool = True) -> bytes:
    """A PDF whose pages have these content streams; the font is `/F`."""
    streams = list(pages)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(streams)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {len(streams)}/Kids[{kids}]>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    for number, stream in enumerate(streams):
        content = zlib.compress(stream, 9) if packed else stream
        shown = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {5 + 2 * number} 0 R"
        objects.append(f"{shown}/Resources<</Font<</F 3 0 R>>>>>>".encode())
        head = f"<</Length {len(content)}{'/Filter/FlateDecode' if packed else ''}>>\nstream\n"
        objects.append(head.encode() + content + b"\nendstream")
    objects.append(f"<</Title({title})/Author(Ada)>>".encode())
    return _numbered(objects)


def _numbered(objects: Sequence[bytes]) -> bytes:
    content, places = bytearray(b"%PDF-1.7\n"), []
    for number, each in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    start = len(content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    content += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    trailer = b"trailer\n<</Size %d/Root 1 0 R/Info %d 0 R>>\nstartxref\n%d\n%%%%EOF\n"
    return bytes(content + trailer % (len(objects) + 1, len(objects), start))


def lines(words: Sequence[str], per_line: int = 9) -> bytes:
    """A page of text, line by line."""
    rows = [" ".join(words[at : at + per_line]) for at in range(0, len(words), per_line)]
    return b"BT /F 11 Tf 72 720 Td 14 TL " + b" ".join(b"(%s) Tj T*" % row.encode("cp1252") for row in rows) + b" ET"


def ruled(rows: Sequence[Sequence[str]], top: int = 700, width: int = 90, height: int = 20) -> bytes:
    """A table with lines around its cells."""
    parts = []
    for down, row in enumerate(rows):
        for right, text in enumerate(row):
            x, y = 72 + right * width, top - (down + 1) * height
            parts.append(f"{x} {y} {width} {height} re S BT /F 9 Tf {x + 4} {y + 6} Td ({text}) Tj ET")
    return " ".join(parts).encode("cp1252")
