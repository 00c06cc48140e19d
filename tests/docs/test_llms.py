"""What models read: the site's pages and their summaries, in the order of the navigation."""

import re
from pathlib import Path

import pytest

from tests.docs import llms
from tests.workspace.project import ROOT

DOCS = ROOT / "docs"
PAGES = [path for _, pages in llms.navigation(DOCS) for _, path in pages]


def test_has_a_title_a_summary_and_the_groups_of_the_navigation() -> None:
    lines = llms.llms().splitlines()
    assert lines[0] == "# Pegboard"
    assert lines[2].startswith("> ")
    assert [line[3:] for line in lines if line.startswith("## ")] == [group for group, _ in llms.navigation(DOCS)]


def test_names_every_page_once_with_a_sentence() -> None:
    links = re.findall(r"^- \[[^]]+\]\(([^)]+)\): (\S.*)$", llms.llms(), re.MULTILINE)
    pages = [target.removesuffix("/") + ".md" if target.endswith("/") else target for target, _ in links]
    assert pages == PAGES


def test_full_text_holds_every_written_page() -> None:
    full = llms.llms_full()
    for path in PAGES:
        if not path.startswith(llms.GENERATED):
            assert (DOCS / path).read_text(encoding="utf-8").strip() in full


def test_links_lead_to_files_of_the_site(tmp_path: Path) -> None:
    llms.write(tmp_path)
    targets = re.findall(r"\]\(([^)]+\.(?:md|txt))\)", (tmp_path / "llms.txt").read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (tmp_path / target).is_file()] == []


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("# Title\n\nOne. Two.\n\nThree.\n", "One. Two."),
        ("# Title\n\n```sh\nls\n```\n\n| a | b |\n|---|---|\n\nSee [this](that.md)\nnow:\n", "See this now"),
        (f"# Title\n\nFirst. {'Long ' * 50}.\n", "First."),
        ("# Title\n", ""),
    ],
)
def test_summary_is_the_beginning_of_the_first_paragraph(page: str, says: str) -> None:
    assert llms.summary(page) == says
