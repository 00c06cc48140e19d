"""Every page's examples run from top to bottom and print what the page says; what a page quotes is there."""

import re
import sys
from pathlib import Path

import pytest

from tests.docs import acme
from tests.docs.page import Page
from tests.workspace.project import ROOT

DOCS = ROOT / "docs"
PACK = DOCS / "examples" / "acme-weather"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("packs/*.md"))]

each_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())


def page(tmp_path: Path, text: str) -> Page:
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return Page(path)


@each_page
def test_examples_of_page(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "acme", acme)
    for source in sorted(DOCS.glob("examples/*/src")):
        monkeypatch.syspath_prepend(source)
    Page(path).run()


@each_page
def test_files_that_a_page_links_to_are_there(path: Path) -> None:
    links = re.findall(r"\]\((?!\w+:|#)([^)#]+)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize(
    ("language", "quoted"),
    [("toml", PACK / "pyproject.toml"), ("python", PACK / "src" / "acme_weather" / "__init__.py")],
)
def test_page_about_packs_quotes_the_example(language: str, quoted: Path) -> None:
    text = (DOCS / "writing-a-pack.md").read_text(encoding="utf-8")
    block = re.search(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block
    assert block[1] in quoted.read_text(encoding="utf-8")


class TestPage:
    def test_counts_its_examples(self, tmp_path: Path) -> None:
        assert page(tmp_path, "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```sh\nfalse\n```\n").run() == 2

    def test_examples_share_a_namespace(self, tmp_path: Path) -> None:
        assert page(tmp_path, "```python\nx = 1\n```\n\n```python\nassert x == 1\n```\n").run() == 2

    def test_failing_example_is_found_by_page_and_line(self, tmp_path: Path) -> None:
        broken = page(tmp_path, "# Title\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
        with pytest.raises(AssertionError) as raised:
            broken.run()
        assert raised.value.__notes__ == [f"in the example at {tmp_path / 'page.md'}:7"]
        assert raised.traceback[-1].lineno == 7  # counted from 0: the line of the assertion itself

    @pytest.mark.parametrize("language", ["text", "json"])
    def test_other_output_than_shown_fails(self, tmp_path: Path, language: str) -> None:
        with pytest.raises(AssertionError):
            page(tmp_path, f"```python\nprint(1)\n```\n\n```{language}\n2\n```\n").run()
