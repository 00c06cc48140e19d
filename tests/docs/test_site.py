"""What the site must have, and that it loads nothing from other servers."""

import re
from typing import Any

import pytest

from tests.docs.llms import settings
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
