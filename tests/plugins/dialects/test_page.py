"""The tables of the page are what the dialects do."""

import pytest

from tests.plugins.dialects import page
from tests.plugins.dialects.desk import BLOCKS, NAMES


def test_page_is_up_to_date() -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert written == page.page(), "python -m tests.plugins.dialects.page --write"


@pytest.mark.slow
def test_section_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert page.main([]) == 0
    assert capsys.readouterr().out == page.section()


@pytest.mark.slow
def test_every_dialect_has_its_column() -> None:
    for rows in (page.facets, page.results):
        head, *body = rows()
        assert head[1:] == tuple(f"`{name}`" for name in NAMES)
        assert all(len(row) == len(head) for row in body)


def test_a_difference_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "BLOCKS", {"text": BLOCKS["text"]})
    assert page.page() != page.PAGE.read_text(encoding="utf-8")
