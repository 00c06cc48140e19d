"""Calls that models really made, accepted as meant or refused, and never accepted otherwise."""

import re
from collections import Counter

import pytest

pytest.importorskip("pegboard_dataclasses")
pytest.importorskip("pydantic")

from tests.types.transcripts import SETS, outcomes, recorded, reported, table
from tests.workspace.project import ROOT

ALL = [*recorded(), *reported()]


def test_none_is_accepted_wrongly_and_most_as_meant() -> None:
    found = list(outcomes("Pegboard", iter(ALL)))
    assert [call for call, ended in found if ended == "wrongly"] == []
    counts = Counter(ended for _, ended in found)
    assert counts.total() >= 300
    assert counts["as meant"] >= 0.97 * counts.total()


def test_there_is_something_to_lose() -> None:
    """The same calls are hard: pydantic in its lax mode refuses some and reads others wrongly."""
    found = Counter(ended for _, ended in outcomes("pydantic, lax", reported()))
    assert found["refused"] > 30
    assert found["wrongly"] > 0


def test_each_names_its_source() -> None:
    assert [call for call in ALL if not re.match(r"[\w.-]+/[\w.-]+(#[0-9]+|, [\w-]+/\w+)", call.source)] == []


def test_no_two_sets_share_calls() -> None:
    assert len(SETS) == 2
    assert not {call.source for call in recorded()} & {call.source for call in reported()}


def test_page_about_types_shows_how_they_end() -> None:
    assert table() in (ROOT / "docs" / "types.md").read_text(encoding="utf-8")
