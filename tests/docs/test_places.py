"""Each block of shell commands and of Python has a place where it runs, or a reason why it cannot."""

from pathlib import Path

import pytest

from tests.docs.blocks import Block
from tests.docs.places import AUTHOR, NOWHERE, PYTHON_ROWS, SHELL, Piece, Row, pieces, place_of, run_by
from tests.workspace.project import ROOT

ROWS = (*SHELL, *PYTHON_ROWS)


def test_each_block_has_a_place() -> None:
    assert [piece.label for piece in run_by(None)] == []


def test_each_place_is_there() -> None:
    assert {row.place for row in ROWS if not (ROOT / row.place).is_file()} == set()


@pytest.mark.parametrize("row", [*NOWHERE, *ROWS], ids=lambda row: f"{row.page} {row.pattern}")
def test_each_row_holds_something(row: Row) -> None:
    assert any(row.holds(piece) and place_of(piece) == row.place for piece in pieces("sh", "console", "py"))


def test_commands_of_a_new_pack_are_those_of_the_page_that_is_run() -> None:
    by_page: dict[str, set[str]] = {}
    for piece in run_by(AUTHOR):
        by_page.setdefault(piece.page, set()).add(piece.text)
    assert by_page["docs/command-line.md"] <= by_page["docs/writing-a-pack.md"]


@pytest.mark.parametrize(
    ("language", "text"),
    [("sh", "pegboard ufo"), ("sh", "curl x"), ("py", "toolkit.register(tool)\n")],
)
def test_a_new_block_has_no_place(language: str, text: str) -> None:
    block = Block(Path(ROOT, "docs", "new.md"), 1, language, text)
    assert place_of(Piece(block, text, tuple(text.split()) if language == "sh" else ())) is None
