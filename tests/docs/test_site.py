"""What the site must have, and that it loads nothing from other servers."""

import re
from typing import Any

import pytest

from tests.docs.llms import settings
from tests.docs.repository import page_of
from tests.workspace.project import ROOT

DOCS = ROOT / "docs"
SITE: dict[str, Any] = settings(DOCS)


@pytest.mark.parametrize("feature", ["content.code.copy", "navigation.footer", "search.highlight"])
def test_has_copy_buttons_previous_and_next_and_search(feature: str) -> None:
    assert feature in SITE["theme"]["features"]


def test_is_light_or_dark_as_the_reader_likes() -> None:
    schemes = {palette["media"]: palette["scheme"] for palette in SITE["theme"]["palette"]}
    assert schemes == {"(prefers-color-scheme: light)": "default", "(prefers-color-scheme: dark)": "slate"}


def test_loads_nothing_from_elsewhere() -> None:
    assert SITE["theme"]["font"] is False
    for name in [*SITE["extra_css"], *SITE["extra_javascript"]]:
        text = (DOCS / name).read_text(encoding="utf-8")
        assert re.findall(r"url\(|import|fetch|XMLHttpRequest|https?:", text) == []


def test_version_and_repository_come_with_the_build() -> None:
    text = (DOCS / "mkdocs.yml").read_text(encoding="utf-8")
    build = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    named = re.findall(r"^(site_name|repo_url): !ENV \[(\w+), ", text, re.MULTILINE)
    assert [setting for setting, _ in named] == ["site_name", "repo_url"]
    assert all(f'"{variable}": ' in build for _, variable in named)


@pytest.mark.parametrize(
    ("remote", "page"),
    [
        ("https://forge.example/tools/pegboard.git", "https://forge.example/tools/pegboard"),
        ("https://robot:token@forge.example/tools/pegboard.git\n", "https://forge.example/tools/pegboard"),
        ("git@forge.example:tools/pegboard.git", "https://forge.example/tools/pegboard"),
        ("ssh://git@forge.example:2222/tools/pegboard", "https://forge.example/tools/pegboard"),
        ("/srv/git/pegboard.git", ""),
        ("http://robot:token@forge.example/pegboard", ""),
        ("", ""),
    ],
)
def test_the_repository_is_where_the_checkout_is_from(remote: str, page: str) -> None:
    assert page_of(remote) == page
