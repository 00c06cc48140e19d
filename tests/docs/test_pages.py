"""Every page's examples run from top to bottom, and print what the page says."""

import sys
from pathlib import Path

import pytest

from tests.docs import acme
from tests.docs.page import Page
from tests.workspace.project import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_of_page(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "acme", acme)
    Page(path).run()


def broken(tmp_path: Path, text: str) -> Page:
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return Page(path)


class TestPage:
    def test_counts_its_examples(self, tmp_path: Path) -> None:
        assert broken(tmp_path, "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```sh\nfalse\n```\n").run() == 2

    def test_failing_example_is_found_by_page_and_line(self, tmp_path: Path) -> None:
        page = broken(tmp_path, "# Title\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
        with pytest.raises(AssertionError) as raised:
            page.run()
        assert raised.value.__notes__ == [f"in the example at {tmp_path / 'page.md'}:7"]
        assert raised.traceback[-1].lineno == 7  # counted from 0: the line of the assertion

    @pytest.mark.parametrize("shown", ["```text\n2\n```\n", "```json\n2\n```\n"])
    def test_other_output_than_shown_fails(self, tmp_path: Path, shown: str) -> None:
        with pytest.raises(AssertionError):
            broken(tmp_path, f"```python\nprint(1)\n```\n\n{shown}").run()
