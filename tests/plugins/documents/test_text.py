"""`document_read` and `document_info`: the words of a document in their order, part by part."""

import re
import shutil
import subprocess
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import ToolError, Toolkit
from pegboard_documents import DocumentText, read_document
from pegboard_documents._page_numbers import page_numbers
from tests.plugins.documents.desk import SENTENCE, WORDS, docx, epub, lines, pdf, pptx, read, refused, xlsx

PARAGRAPHS = [f"{SENTENCE} {number}." for number in range(20)]
ROWS = [["City", "Days"], *([f"Town{number}", f"{number}"] for number in range(12))]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def html(*, columns: bool = False) -> str:
    table = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in ROWS)
    style = " style='columns: 2'" if columns else ""
    text = "".join(f"<p>{each}</p>" for each in PARAGRAPHS)
    return f"<title>Report</title><h1>Title</h1><div{style}>{text}</div><table>{table}</table><script>no()</script>"


def words(text: str) -> list[str]:
    return re.findall(r"\w+", re.sub(r"\[(page|slide) \d+\]", "", text))


MEANT = words(" ".join(["Title", *PARAGRAPHS, *(cell for row in ROWS for cell in row)]))


def likeness(text: str, meant: list[str] = MEANT) -> float:
    """How much of the words is there, and in their order: 1.0 for all."""
    return SequenceMatcher(None, words(text), meant, autojunk=False).ratio()


def pages(text: str, per_page: int = 300) -> list[bytes]:
    split = text.split()
    return [lines(split[at : at + per_page]) for at in range(0, len(split), per_page)]


MADE: dict[str, Any] = {
    "a.docx": lambda: docx("# Title", *PARAGRAPHS, ROWS),
    "a.epub": lambda: epub({"one.xhtml": "<h1>Title</h1>", "two.xhtml": html().partition("</h1>")[2]}),
    "a.html": lambda: html().encode(),
    "a.md": lambda: "\n\n".join(["# Title", *PARAGRAPHS, *(" ".join(row) for row in ROWS)]).encode(),
    "a.pdf": lambda: pdf(pages(" ".join(["Title", *PARAGRAPHS, *(cell for row in ROWS for cell in row)]))),
    "a.pptx": lambda: pptx([("Title", "\n".join(PARAGRAPHS))], ROWS),
    "a.txt": lambda: "\n".join(["Title", *PARAGRAPHS, *(" ".join(row) for row in ROWS)]).encode("utf-16"),
    "a.xlsx": lambda: xlsx({"Title": [*([each] for each in PARAGRAPHS), *ROWS]}),
}
KNOWN: dict[str, dict[str, Any]] = {
    "docx": {"title": "Report", "author": "Ada"},
    "epub": {"title": "A Book", "author": "Ada"},
    "html": {"title": "Report"},
    "pdf": {"pages": 3, "title": "Report", "author": "Ada"},
    "pptx": {"slides": 2},
    "xlsx": {"sheets": ["Title"], "title": "Sales", "author": "Ada"},
}


@pytest.mark.parametrize("name", MADE)
def test_words_and_their_order(toolkit: Toolkit, folder: Path, name: str) -> None:
    (folder / name).write_bytes(MADE[name]())
    assert likeness(read(toolkit, name).data["text"]) >= 0.99
    info = toolkit.call_sync("document_info", {"path": name}).data
    nothing = dict.fromkeys(["pages", "sheets", "slides", "title", "author"])
    kind = name.partition(".")[2]
    assert info == {"kind": kind, "encrypted": False, **nothing, **KNOWN.get(kind, {})}


def test_values_of_csv(toolkit: Toolkit, folder: Path) -> None:
    (folder / "latin.csv").write_bytes("Städte;Größe\nKöln;1\n".encode("cp1252"))
    assert read(toolkit, "latin.csv").data["text"] == "Städte;Größe\nKöln;1\n"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<meta charset=windows-1251><p>Привет".encode("windows-1251"), "Привет"),
        ("<meta charset=punycode><p>Köln".encode("cp1252"), "Köln"),
        ("\ufeff<p>Köln".encode("utf-16-le"), "Köln"),
    ],
)
def test_charsets_of_html(content: bytes, text: str) -> None:
    assert read_document(content, "html").text == text


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to print with")
@pytest.mark.parametrize("columns", [False, True])
def test_pdf_of_a_browser(toolkit: Toolkit, folder: Path, columns: bool) -> None:
    page = folder / "printed.html"
    page.write_text(html(columns=columns), encoding="utf-8")
    assert CHROMIUM is not None
    printed = [CHROMIUM, "--headless", "--no-sandbox", "--no-pdf-header-footer", f"--print-to-pdf={folder}/printed.pdf"]
    subprocess.run([*printed, page.as_uri()], check=True, capture_output=True, timeout=60)
    assert likeness(read(toolkit, "printed.pdf").data["text"]) >= 0.99


class TestParts:
    def test_of_a_long_text(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "long.docx").write_bytes(docx(*PARAGRAPHS))
        whole = read(toolkit, "long.docx")
        parts: list[str] = []
        start: int | None = 0
        while start is not None:
            part = read(toolkit, "long.docx", start=start, max_chars=500)
            parts.append(part.data["text"])
            start = part.data["next_start"]
            if start is not None:
                assert part.text.endswith(f" of {len(whole.text):,}; go on with start={start}]")
        assert len(parts) > 5
        assert "".join(parts) == whole.data["text"] == whole.text

    def test_beyond_the_end(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "short.txt").write_text("Hi")
        assert refused(read(toolkit, "short.txt", start=2)) == (
            "Cannot read short.txt: start=2 is beyond the end: its text has 2 characters."
        )

    def test_a_changed_document_is_read_anew(self, toolkit: Toolkit, folder: Path) -> None:
        for text in ("one", "two"):
            (folder / "changing.docx").write_bytes(docx(text))
            assert read(toolkit, "changing.docx").text == text

    @given(st.text(max_size=60), st.integers(1, 70))
    def test_put_together_are_the_text(self, text: str, most: int) -> None:
        part = DocumentText.part(text, 0, most)
        found = part.text
        while part.next_start is not None:
            part = DocumentText.part(text, part.next_start, most)
            assert 0 < len(part.text) <= most
            found += part.text
        assert found == text


class TestPages:
    def test_of_a_pdf(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "three.pdf").write_bytes(pdf([lines([f"Page{number}"]) for number in (1, 2, 3)]))
        assert read(toolkit, "three.pdf", pages="2").text == "Page2"
        assert read(toolkit, "three.pdf", pages="3,1-2").text == read(toolkit, "three.pdf").text
        assert read(toolkit, "three.pdf", pages="1,3-").text == "[page 1]\nPage1\n\n[page 3]\nPage3"
        assert refused(read(toolkit, "three.pdf", pages="4")) == (
            "Cannot read three.pdf: there is no page 4: it has 3 pages."
        )

    def test_of_slides(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "two.pptx").write_bytes(pptx([("First", "a"), ("Second", "b")]))
        assert read(toolkit, "two.pptx", pages="2").text == "[slide 2]\nSecond\nb"
        assert "there is no slide 3: it has 2 slides" in refused(read(toolkit, "two.pptx", pages="2-3"))

    def test_where_there_are_none(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "sheets.xlsx").write_bytes(xlsx({"One": [["a"]], "Two": [["b"]]}))
        assert "it has 2 sheets and no pages" in refused(read(toolkit, "sheets.xlsx", pages="1"))
        (folder / "plain.txt").write_text("Hi")
        assert "leave pages out, and go on with start" in refused(read(toolkit, "plain.txt", pages="1"))

    @pytest.mark.parametrize("text", ["", "x", "-3", "1-2-3", "2-1", "0", "1;2", "1,", "٣"])
    def test_that_are_none(self, text: str) -> None:
        with pytest.raises(ToolError, match=r"names no pages|goes backwards|there is no page 0"):
            page_numbers(text, 9)

    @given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30) | st.none()), min_size=1), st.integers(30, 60))
    def test_are_those_that_were_named(self, ranges: list[tuple[int, int | None]], count: int) -> None:
        ends = [(first, count if more is None else min(first + more, count)) for first, more in ranges]
        named = ",".join(f"{first}-{'' if last == count else last}" for first, last in ends)
        assert page_numbers(named, count) == sorted({n for first, last in ends for n in range(first, last + 1)})


class TestKinds:
    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "it has a password, or is of an old format"),
            ("no.pdf", b"Hello", "it is named as a pdf document, and is none by its content"),
            ("no.docx", b"Hello", "it is named as a docx document, and is none by its content"),
            ("no.png", b"\x89PNG\0\0", "it is of none of the kinds that are read: pdf, docx, xlsx"),
        ],
    )
    def test_that_are_not_read(self, toolkit: Toolkit, folder: Path, name: str, content: bytes, message: str) -> None:
        (folder / name).write_bytes(content)
        assert refused(read(toolkit, name)).startswith(f"Cannot read {name}: {message}")

    def test_a_pdf_without_a_suffix(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "download").write_bytes(pdf([lines(WORDS)]))
        assert words(read(toolkit, "download").text) == WORDS

    def test_one_archive_named_as_another(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "really.docx").write_bytes(xlsx({"One": [["a"]]}))
        assert "it is no Word document" in refused(read(toolkit, "really.docx"))

    def test_an_empty_document(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "empty.txt").touch()
        assert read(toolkit, "empty.txt").text == "(the document is empty)"


class TestPdf:
    def test_without_text(self, toolkit: Toolkit, folder: Path) -> None:
        (folder / "scan.pdf").write_bytes(pdf([b"0 0 9 9 re f"]))
        assert refused(read(toolkit, "scan.pdf")) == (
            "Cannot read scan.pdf: it has no text: its pages are pictures, as of a scanner; document_images shows them."
        )

    def test_a_page_without_text(self) -> None:
        assert read_document(pdf([lines(["Hi"]), b""]), "pdf").text == "[page 1]\nHi\n\n[page 2]\n(no text)"

    def test_with_a_password(self, toolkit: Toolkit, folder: Path) -> None:
        import io

        from pypdf import PdfReader, PdfWriter

        for name, password in (("locked.pdf", "secret"), ("open.pdf", "")):
            writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf([lines(["Hi"])]))))
            writer.encrypt(password, "owner", algorithm="RC4-128")
            writer.write(folder / name)
        assert refused(read(toolkit, "locked.pdf")) == (
            "Cannot read locked.pdf: it is encrypted with a password: ask for a copy without one."
        )
        assert toolkit.call_sync("document_info", {"path": "locked.pdf"}).data["encrypted"] is True
        assert read(toolkit, "open.pdf").text == "Hi"
        assert toolkit.call_sync("document_info", {"path": "open.pdf"}).data["pages"] == 1


def test_formulas_notes_and_groups(toolkit: Toolkit, folder: Path) -> None:
    """What a document computes, says beside its slides, or draws in groups is read too."""
    import io

    from pptx import Presentation

    deck = Presentation(io.BytesIO(pptx([("Plan", "a")])))
    slide = deck.slides[0]
    slide.notes_slide.notes_text_frame.text = "Speak slowly"
    slide.shapes.add_group_shape().shapes.add_textbox(0, 0, 9, 9).text_frame.text = "In a group"
    deck.save(str(folder / "more.pptx"))
    assert read(toolkit, "more.pptx").text == "[slide 1]\nPlan\na\nIn a group\nNotes: Speak slowly"
