"""Documents that are made to exhaust parsers or to reach other files: the host goes on, and a sentence says why."""

import multiprocessing
import re
import resource
import struct
import sys
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from pegboard import ToolError, Toolkit
from pegboard_documents import _reading
from tests.plugins.documents.desk import (
    SENTENCE,
    archive,
    changed,
    docx,
    epub,
    lines,
    pdf,
    pptx,
    read,
    refused,
    ruled,
    xlsx,
)

GIGABYTE = 1 << 30
MOST = 128 << 20
"""Bytes that a parser may have in the test of memory."""
SECRET = "the key of another program"
LAUGHS = "".join(f'<!ENTITY {chr(98 + at)} "{f"&{chr(97 + at)};" * 10}">' for at in range(9))
LAUGHS = f'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">{LAUGHS}]>'
BOOK, DECK = xlsx({"One": [["a"]]}), pptx([("Plan", "a")])
SHEET, SLIDE = "xl/worksheets/sheet1.xml", "ppt/slides/slide1.xml"
EXHAUSTS = "its XML is damaged, or made to exhaust parsers"


def packed(size: int) -> bytes:
    """So many zeros, packed."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


def flate(size: int) -> bytes:
    """A PDF of some kilobytes whose one page unpacks to so many bytes."""
    content = zlib.compress(packed(size), 9)
    whole = pdf([content], packed=False)
    return whole.replace(
        b"<</Length %d>>" % len(content), b"<</Length %d/Filter[%s]>>" % (len(content), b"/FlateDecode" * 2)
    )


def sheet(rows: str, head: str = "") -> bytes:
    name = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return changed(BOOK, SHEET, f'{head}<worksheet xmlns="{name}"><sheetData>{rows}</sheetData></worksheet>')


def slide(head: str, text: str) -> bytes:
    names = (
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
        'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    )
    shape = (
        '<p:sp><p:nvSpPr><p:cNvPr id="1" name="a"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/>'
        f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )
    tree = f"<p:cSld><p:spTree><p:nvGrpSpPr/><p:grpSpPr/>{shape}</p:spTree></p:cSld>"
    return changed(DECK, SLIDE, f"{head}<p:sld {names}>{tree}</p:sld>")


def lying(size: int) -> bytes:
    """A Word document that says it has so many bytes when it is unpacked."""
    content = bytearray(archive({"word/document.xml": SENTENCE * 1_000}))
    for start, place in ((content.index(b"PK\3\4"), 22), (content.index(b"PK\1\2"), 24)):
        content[start + place : start + place + 4] = struct.pack("<I", size)
    return bytes(content)


def cell(text: str) -> str:
    return f'<row r="1"><c r="A1" t="inlineStr"><is><t>{text}</t></is></c></row>'


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "gigabyte.docx": (lambda: lying(1_000_000_000), "it is 1,000,000,000 bytes when it is unpacked, and at most"),
    "entries.xlsx": (lambda: archive({str(n): "" for n in range(5_001)}), "its archive has 5,001 entries"),
    "lying.docx": (lambda: lying(10), "its archive is damaged: an entry is not what it declares"),
    "deep.docx": (lambda: docx("<w:tbl><w:tr><w:tc>" * 5_000), EXHAUSTS),
    "laughs.xlsx": (lambda: sheet(cell("&j;"), LAUGHS), EXHAUSTS),
    "laughs.pptx": (lambda: slide(LAUGHS, "&j;"), EXHAUSTS),
    "laughs.epub": (lambda: changed(epub({"a": ""}), "OEBPS/content.opf", f"{LAUGHS}<x>&j;</x>"), EXHAUSTS),
    "attributes.html": (lambda: b"<p " + b" a=1" * 3_000 + b">", "a tag with more than 2,000 attributes"),
    "empty-attributes.html": (lambda: b"<p " + b" a" * 30_000 + b">", "a tag with more than 2,000 attributes"),
    "marks.html": (lambda: b"<p>" * 300_000, "it has 300,000 times '<', and at most 200,000 are read"),
    "deep.html": (lambda: b"<div>" * 5_000 + b"deep", "it is nested too deep"),
    "spine.epub": (
        lambda: changed(
            epub({"a": "<p>" + "word " * 200_000}),
            "OEBPS/content.opf",
            '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="c" href="text/a"/></manifest><spine>'
            + '<itemref idref="c"/>' * 30
            + "</spine></package>",
        ),
        "its text has more than 20,000,000 characters",
    ),
    "tree.pdf": (lambda: pdf([b""]).replace(b"/Kids[4 0 R]", b"/Kids[2 0 R]"), "it is damaged"),
    "cut.pdf": (lambda: pdf([lines([SENTENCE])])[:200], "it is damaged"),
    "flate.pdf": (lambda: flate(80 << 20), "its page 1 is too large: it unpacks to more than is read"),
}


LONG = {"spine.epub"}


@pytest.mark.parametrize("name", [pytest.param(each, marks=pytest.mark.slow if each in LONG else ()) for each in BOMBS])
def test_bombs(toolkit: Toolkit, folder: Path, name: str) -> None:
    make, message = BOMBS[name]
    (folder / name).write_bytes(make())
    found = refused(read(toolkit, name))
    assert found.startswith(f"Cannot read {name}: ")
    assert message in found


def test_cells_that_are_far_from_each_other(toolkit: Toolkit, folder: Path) -> None:
    far = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    (folder / "far.xlsx").write_bytes(sheet(far))
    assert read(toolkit, "far.xlsx").text == "## One\n\n| 1 |  |\n| --- | --- |\n|  | 2 |"


def test_a_sheet_that_declares_fewer_rows_than_it_has(toolkit: Toolkit, folder: Path) -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, 4))
    name = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    lies = f'<worksheet xmlns="{name}"><dimension ref="A1"/><sheetData>{rows}</sheetData></worksheet>'
    (folder / "fewer.xlsx").write_bytes(changed(BOOK, SHEET, lies))
    assert toolkit.call_sync("document_tables", {"path": "fewer.xlsx"}).data[0]["total_rows"] == 3


ENTITY = "<!DOCTYPE x [<!ENTITY e SYSTEM 'file://{}'>]>"


class TestOtherFiles:
    @pytest.fixture
    def secret(self, tmp_path: Path) -> Path:
        path = tmp_path / "secret.txt"
        path.write_text(SECRET)
        return path

    @pytest.mark.parametrize("kind", ["docx", "epub", "pptx", "xlsx"])
    def test_entities(self, toolkit: Toolkit, folder: Path, secret: Path, kind: str) -> None:
        head = ENTITY.format(secret)
        content = {
            "docx": lambda: docx("&e;", head=head),
            "epub": lambda: changed(epub({"a": ""}), "OEBPS/text/a", f"{head}<p>&e;</p>"),
            "pptx": lambda: slide(head, "&e;"),
            "xlsx": lambda: sheet(cell("&e;"), head),
        }[kind]()
        (folder / f"entity.{kind}").write_bytes(content)
        for tool in ("document_read", "document_tables"):
            assert SECRET not in toolkit.call_sync(tool, {"path": f"entity.{kind}"}).text

    def test_pages_that_name_them(self, toolkit: Toolkit, folder: Path, secret: Path) -> None:
        page = f"<p>Hi</p><iframe src='{secret.as_uri()}'></iframe><img src='{secret.as_uri()}'>"
        (folder / "frame.html").write_text(page)
        assert SECRET not in read(toolkit, "frame.html").text
        chapters = (
            '<manifest><item id="c" href="../../../../../../..{}"/></manifest><spine><itemref idref="c"/></spine>'
        )
        package = f'<package xmlns="http://www.idpf.org/2007/opf">{chapters.format(secret)}</package>'
        (folder / "out.epub").write_bytes(changed(epub({"a": ""}), "OEBPS/content.opf", package))
        assert read(toolkit, "out.epub").text == "(the document is empty)"

    def test_paths_that_lead_out(self, toolkit: Toolkit, folder: Path, secret: Path) -> None:
        (folder / "link.txt").symlink_to(secret)
        (folder / ".env").write_text(SECRET)
        for path in (str(secret), f"../{secret.parent.name}/secret.txt", "link.txt", ".env", "x\0.pdf", ""):
            for tool in ("document_read", "document_info", "document_tables"):
                found = refused(toolkit.call_sync(tool, {"path": path}))
                assert SECRET not in found
                assert str(folder) not in found
            assert SECRET not in toolkit.call_sync("document_images", {"path": path, "pages": "1"}).text

    def test_too_large_a_file(self, toolkit: Toolkit, folder: Path) -> None:
        with (folder / "large.txt").open("wb") as file:
            file.truncate(50_000_001)
        assert refused(read(toolkit, "large.txt")) == "large.txt has more than 50,000,000 bytes."


@pytest.mark.slow
def test_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reading, "SECONDS", 0.5)
    endless = '<row r="1"><c r="A1"><v>1</v></c></row><row r="99999999999"><c r="A99999999999"><v>2</v></c></row>'
    with pytest.raises(ToolError, match=r"it takes more than 0\.5 s to read$"):
        _reading.read_document(sheet(endless), "xlsx", seconds=0.5)
    with pytest.raises(ToolError, match=r'it takes more than 0\.5 s to read\. Send fewer pages, such as pages="1-5"$'):
        _reading.read_document(pdf([b"BT /F 9 Tf " + b"(a) Tj " * 300_000 + b"ET"]), "pdf", seconds=0.5)


HUNGRY: dict[str, Callable[[], bytes]] = {
    "flate pdf": lambda: flate(GIGABYTE // 2),
    "operators pdf": lambda: pdf([b"BT /F 9 Tf " + b"(a) Tj 1 0 Td " * 1_000_000 + b"ET"]),
    "paragraphs docx": lambda: docx(*["a"] * 400_000),
    "laughs docx": lambda: docx("&j;", head=LAUGHS),
}


ENDS = "^$|more than (2 s|128 MiB of memory) to read|its parser crashed|is too large|its XML is damaged"


def ended(kind: str, content: bytes, job: str) -> str:
    """The sentence that a parser ends with; empty where it has an answer."""
    try:
        _reading.ask(kind, content, job, 2.0, pages="1", page=None, sheet=None, max_rows=9)
    except ToolError as error:
        return str(error)
    return ""


def most_memory() -> int:
    """The most kibibytes that this process has had since that was last set back."""
    return int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0])


def exhaust(name: str) -> tuple[list[str], list[float], int, int]:
    """What each job ends with, its seconds, and the KiB that the host had more and that its largest child had."""
    vars(_reading)["MEMORY"] = MOST  # of this program alone
    kind = name.rsplit(maxsplit=1)[-1]
    content = HUNGRY[name]()
    Path("/proc/self/clear_refs").write_text("5")  # sets it back (Linux 4.0)
    before = most_memory()
    ends: list[str] = []
    seconds: list[float] = []
    for job in ("text", "tables", *(["images"] if kind == "pdf" else [])):
        begun = time.monotonic()
        ends.append(ended(kind, content, job))
        seconds.append(time.monotonic() - begun)
    return ends, seconds, most_memory() - before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the memory that a process had is read from /proc")
@pytest.mark.parametrize("name", HUNGRY)
def test_memory_and_time_stay_bounded(name: str) -> None:
    """Whatever a parser does, its process ends within the limits; the host has no more than the file.

    In a program of its own: a child begins with the figure of its parent, and that of the tests has run others.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as programs:
        ends, seconds, more, largest = programs.submit(exhaust, name).result(timeout=120)
    assert all(re.search(ENDS, end) for end in ends), ends
    assert max(seconds) < 20  # the start of the process included, which other tests may delay
    assert more < 100_000
    assert largest <= (MOST >> 10) + 300_000


@pytest.mark.slow
def test_damaged_documents(toolkit: Toolkit, folder: Path) -> None:
    """A document with any part missing or changed ends as a text or as a sentence."""
    rows = [["a", "b"], ["1", "2"]]
    whole = {
        "damaged.pdf": pdf([lines([SENTENCE]), ruled(rows)]),
        "damaged.docx": docx("# Head", SENTENCE, rows),
        "damaged.xlsx": xlsx({"One": rows}),
        "damaged.pptx": pptx([("Plan", SENTENCE)], rows),
        "damaged.epub": epub({"a": SENTENCE}),
    }
    for name, content in whole.items():
        for part in range(12):
            at = len(content) * part // 12
            for changes in (content[:at], content[:at] + bytes(20) + content[at + 20 :]):
                (folder / name).write_bytes(changes)
                found = read(toolkit, name)
                assert found.status == "success" or found.text.startswith(f"Cannot read {name}: "), found.text
