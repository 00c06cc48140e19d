"""`document_tables` and `document_images`: rows as data and as Markdown, and pictures of pages."""

import datetime as dt
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pegboard import ImageBlock, Toolkit, ToolResult
from tests.plugins.documents.desk import docx, epub, lines, pdf, pptx, refused, ruled, xlsx

ROWS = [["City", "Days"], ["Oslo", "3"], ["Köln", "12"]]


def tables(toolkit: Toolkit, path: str, **arguments: Any) -> ToolResult:
    return toolkit.call_sync("document_tables", {"path": path, **arguments})


def table(rows: list[list[Any]], page: int | None = None, sheet: str | None = None) -> dict[str, Any]:
    return {"page": page, "sheet": sheet, "rows": rows, "total_rows": len(rows), "truncated": False}


def test_sixty_ruled_tables(toolkit: Toolkit, folder: Path) -> None:
    made = [[[f"r{row}c{column}t{number}" for column in range(4)] for row in range(5)] for number in range(60)]
    pages = [
        b" ".join([lines(["Text"]), *(ruled(each, 690 - 150 * n) for n, each in enumerate(made[at : at + 4]))])
        for at in range(0, 60, 4)
    ]
    (folder / "sixty.pdf").write_bytes(pdf(pages))
    found = tables(toolkit, "sixty.pdf").data
    assert found == [table(rows, page=1 + number // 4) for number, rows in enumerate(made)]
    assert [each["page"] for each in tables(toolkit, "sixty.pdf", page=9).data] == [9] * 4
    assert "there is no page 16: it has 15 pages" in refused(tables(toolkit, "sixty.pdf", page=16))


HTML = "<table><tr><th>City<th>Days<tr><td>Oslo<td>3<tr><td>Köln<td>12</table>"


@pytest.mark.parametrize(
    ("name", "content", "page"),
    [
        ("a.docx", docx("Before", ROWS, "after"), None),
        ("a.epub", epub({"one.xhtml": HTML}), None),
        ("a.html", f"<p>Before{HTML}".encode(), None),
        ("a.csv", "City;Days\nOslo;3\n\nKöln;12\n".encode(), None),
        ("a.tsv", "City\tDays\nOslo\t3\nKöln\t12\n".encode(), None),
        ("a.pptx", pptx([("Plan", "a")], ROWS), 2),
    ],
    ids=["docx", "epub", "html", "csv", "tsv", "pptx"],  # not the contents: an archive has its time in it
)
def test_of_other_kinds(toolkit: Toolkit, folder: Path, name: str, content: bytes, page: int | None) -> None:
    (folder / name).write_bytes(content)
    found = tables(toolkit, name)
    assert found.data == [table(ROWS, page)]
    head = "Table, 3 rows:" if page is None else "Page 2, 3 rows:"
    assert found.text == f"{head}\n| City | Days |\n| --- | --- |\n| Oslo | 3 |\n| Köln | 12 |"


BOOK = xlsx(
    {
        "Sales": [
            ["Day", None, "Price", "Paid"],
            [],
            [dt.date(2026, 11, 27), None, 2.5, True],
            ["a|b\nc", None, 3, None],
        ],
        "Many": [["x" * 50, number] for number in range(2_500)],
        "Empty": [],
    }
)


@pytest.fixture(scope="module", autouse=True)
def book(folder: Path) -> None:
    (folder / "book.xlsx").write_bytes(BOOK)


def test_cells_that_span_others(toolkit: Toolkit, folder: Path) -> None:
    inner = "<table><tr><td>inner</table>"
    rows = f"<tr><td colspan=2>a<td rowspan=2>b<tr><td>c<td>d<tr><td colspan=x>e<td>f<td>{inner}"
    (folder / "spans.html").write_text(f"<table>{rows}</table>")
    outer, last = tables(toolkit, "spans.html").data
    assert outer["rows"] == [["a", None, "b"], ["c", "d", None], ["e", "f", "inner"]]
    assert last["rows"] == [["inner"]]


class TestSheets:
    def test_values_are_data(self, toolkit: Toolkit) -> None:
        found = tables(toolkit, "book.xlsx", sheet="Sales")
        rows: list[list[Any]] = [["Day", "Price", "Paid"], ["2026-11-27", 2.5, True], ["a|b\nc", 3, None]]
        assert found.data == [table(rows, sheet="Sales")]
        assert found.text.splitlines()[-1] == "| a\\|b c | 3 |  |"

    def test_long_ones_say_how_long_they_are(self, toolkit: Toolkit) -> None:
        found = tables(toolkit, "book.xlsx")
        _, many, empty = found.data
        assert (len(many["rows"]), many["total_rows"], many["truncated"]) == (200, 2_500, True)
        assert empty == table([], sheet="Empty")
        more = "for more name one page or sheet, or send max_rows up to 1,000; document_read has the whole text"
        assert f"\n[200 of 2,500 rows; {more}]\n" in found.text

    def test_together_they_have_a_bound(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "wide.xlsx").write_bytes(xlsx({f"S{n}": [["x" * 1_500] * 40] * 5 for n in range(3)}))
        found = tables(toolkit, "wide.xlsx")
        assert [len(each["rows"]) for each in found.data] == [1, 0, 0]
        assert [each["total_rows"] for each in found.data] == [5, 5, 5]
        assert len(found.text) < 110_000

    def test_a_long_cell_says_how_long_it_is(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "cell.csv").write_text(f"a,{'x' * 2_500}\n")
        assert tables(toolkit, "cell.csv").data[0]["rows"][0][1] == f"{'x' * 2_000}... (500 more)"

    def test_one_that_is_none(self, toolkit: Toolkit) -> None:
        assert refused(tables(toolkit, "book.xlsx", sheet="Sale")) == (
            "Cannot read book.xlsx: it has no such sheet. Its sheets: 'Sales', 'Many', 'Empty'."
        )
        assert "has no pages: leave page out" in refused(tables(toolkit, "book.xlsx", page=1))


def test_places_that_a_document_does_not_have(toolkit: Toolkit, folder: Path) -> None:
    (folder / "plain.txt").write_text("a,b")
    assert "document_read has its text" in refused(tables(toolkit, "plain.txt"))
    (folder / "plain.csv").write_text("a,b")
    assert "has no sheets: leave sheet out" in refused(tables(toolkit, "plain.csv", sheet="One"))
    (folder / "none.html").write_text("<p>Hi")
    assert tables(toolkit, "none.html").text == "No tables were found. document_read has the text."


class TestImages:
    def test_pages_as_pictures(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "drawn.pdf").write_bytes(pdf([b"", b"1 0 0 rg 0 0 612 792 re f"] + [b""] * 10))
        found = toolkit.call_sync("document_images", {"path": "drawn.pdf", "pages": "1-2"})
        assert found.text == "Page 1\nPage 2"
        pictures = [
            Image.open(io.BytesIO(block.to_bytes())) for block in found.content if isinstance(block, ImageBlock)
        ]
        assert [picture.size for picture in pictures] == [(1212, 1568)] * 2
        assert [picture.getpixel((9, 9)) for picture in pictures] == [(255, 255, 255), (255, 0, 0)]
        message = "pages names 12 pages, and at most 10 are shown at once: send fewer"
        assert message in refused(toolkit.call_sync("document_images", {"path": "drawn.pdf", "pages": "1-"}))

    def test_of_pdf_alone(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "a.txt").write_text("Hi")
        found = toolkit.call_sync("document_images", {"path": "a.txt", "pages": "1"})
        assert "pictures are made of the pages of PDF alone, and it is txt" in refused(found)
