"""The pack: what it offers with and without its extras, its settings, and what it costs before the first call."""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec as find
from pathlib import Path
from typing import Any

import pytest

from pegboard import Toolkit
from pegboard_documents import DocumentTools, _tools
from tests.plugins.documents.desk import board, docx, pdf, pptx, read, refused

TOOLS = ["document_read", "document_info", "document_tables", "document_images"]


def test_what_a_model_pays_for_the_definitions(toolkit: Toolkit) -> None:
    assert [tool.name for tool in toolkit] == TOOLS
    written = [{"name": s.name, "description": s.description, "parameters": s.parameters} for s in toolkit.schemas()]
    assert len(json.dumps(written)) / 4 < 500
    assert all(tool.options.read_only for tool in toolkit)


def test_results_have_schemas(toolkit: Toolkit) -> None:
    returns = {tool.name: tool.returns or {} for tool in toolkit}
    assert set(returns["document_read"]["properties"]) == {"text", "start", "total_chars", "next_start"}
    assert returns["document_tables"]["type"] == "array"
    assert "encrypted" in returns["document_info"]["properties"]


def test_a_program_registers_them(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(docx("Hi"))
    with Toolkit(plugins=["dataclasses"]) as toolkit:
        toolkit.register(DocumentTools(str(tmp_path)))
        assert read(toolkit, "a.docx").text == "Hi"


def test_the_current_directory_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("Hi")
    monkeypatch.chdir(tmp_path)
    with Toolkit(plugins=["documents", "dataclasses"]) as toolkit:
        monkeypatch.chdir("/")
        assert read(toolkit, "a.txt").text == "Hi"


def test_a_directory_that_is_missing(tmp_path: Path) -> None:
    with Toolkit(
        plugins=["documents", "dataclasses"], settings={"documents": {"base_dir": f"{tmp_path}/none"}}
    ) as toolkit:
        assert "documents.base_dir cannot be opened: No such file or directory" in "".join(toolkit.problems)


class TestWithoutExtras:
    @pytest.fixture(autouse=True)
    def none(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        missing = ("pptx", "pdfplumber", "pypdfium2")

        def found(name: str, *more: Any) -> Any:
            return None if name in missing else find(name, *more)

        for module in ("_tools", "_reading"):
            monkeypatch.setattr(f"pegboard_documents.{module}.find_spec", found)
        _tools._has.cache_clear()
        yield
        _tools._has.cache_clear()

    def test_it_says_what_to_install(self, tmp_path: Path) -> None:
        with board(tmp_path) as toolkit:
            assert [tool.name for tool in toolkit] == TOOLS[:3]
            (record,) = [record for record in toolkit.plugins if record.name == "documents"]
        assert [str(each) for each in record.not_offered] == [
            'needs pypdfium2 and PIL: pip install "pegboard-documents[pictures]"',
            'needs pptx: pip install "pegboard-documents[slides]"',
            'needs pdfplumber: pip install "pegboard-documents[tables]"',
        ]

    def test_the_rest_works(self, tmp_path: Path) -> None:
        (tmp_path / "a.docx").write_bytes(docx("Hi"))
        (tmp_path / "a.pptx").write_bytes(pptx([("Plan", "a")]))
        (tmp_path / "a.pdf").write_bytes(pdf([b""]))
        with board(tmp_path) as toolkit:
            assert read(toolkit, "a.docx").text == "Hi"
            assert toolkit.call_sync("document_info", {"path": "a.pptx"}).data["slides"] == 1
            assert (
                refused(read(toolkit, "a.pptx")) == "Cannot read a.pptx: this program lacks pptx, which reads slides."
            )
            assert refused(toolkit.call_sync("document_tables", {"path": "a.pdf"})) == (
                "Cannot read a.pdf: this program lacks pdfplumber, which reads tables in PDF."
            )
            assert refused(read(toolkit, "a.pdf")).endswith("its pages are pictures, as of a scanner.")


def test_no_parser_is_loaded_before_or_by_a_call(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(docx("Hi"))
    program = (
        "import sys; from pegboard import Toolkit; toolkit = Toolkit(plugins=['documents', 'dataclasses']); "
        "print(toolkit.call_sync('document_read', {'path': 'a.docx'}).text); "
        "print([n for n in sys.modules if n.startswith(('mammoth', 'pypdf', 'openpyxl', 'selectolax', 'pptx', 'PIL'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "Hi\n[]\n"
