"""The pages of users stay short and easy to read."""

from pathlib import Path

import pytest

from tests.docs import words
from tests.workspace.project import ROOT

MOST_WORDS = 40_000
"""Words of all pages of users together."""
HIGHEST_GRADE = 9
"""Years of school that a reader of the first pages needs."""


def test_all_pages_together_are_short() -> None:
    assert sum(map(words.words, words.USERS)) <= MOST_WORDS


@pytest.mark.parametrize("path", words.FIRST, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_first_pages_are_easy_to_read(path: Path) -> None:
    assert words.grade(path) <= HIGHEST_GRADE


def test_command_prints_a_line_for_each_page(capsys: pytest.CaptureFixture[str]) -> None:
    words.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[:-1]] == [path.relative_to(ROOT).as_posix() for path in words.USERS]
    assert [line.split()[1] for line in lines[:-1]] == ["words"] * len(words.USERS)
    assert lines[-1] == f"{sum(map(words.words, words.USERS)):7,d} words on {len(words.USERS)} pages"


def test_code_is_not_counted_and_tables_are(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "Three plain words.\n\n```sh\nnot these\n```\n\n| a | [two words](b.md) |\n|---|---|\n"
    page.write_text(text, encoding="utf-8")
    assert words.words(page) == 6
    assert [len(each) for each in words.sentences(page)] == [3]
