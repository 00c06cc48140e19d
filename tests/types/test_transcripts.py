"""Calls that models really made, accepted as meant or refused, and never accepted otherwise."""

import re
from collections import Counter

import pytest

pytest.importorskip("pegboard_dataclasses")
pytest.importorskip("pydantic")

from tests.types.transcripts import READERS, SETS, outcomes, recorded, reported
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


def test_page_about_types_says_how_they_end() -> None:
    ours, lax = (Counter(ended for _, ended in outcomes(reader, iter(ALL))) for reader in READERS)
    page = " ".join((ROOT / "docs" / "types.md").read_text(encoding="utf-8").split())
    assert f"`tests/types/transcripts` has {len(ALL)} calls from public records." in page
    assert f"Pegboard reads {ours['as meant']} as meant, or refuses them if their meaning is unclear" in page
    assert f"and refuses {ours['refused']} others." in page
    assert f"with {lax['as meant']}, refuses {lax['refused']} and accepts {lax['wrongly']} wrongly." in page
