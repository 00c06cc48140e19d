"""Large arguments: what is read is read in a time that grows with it, and what is not is refused before it costs."""

import json
import sys
from typing import Any

import pytest

from pegboard import Toolkit
from tests.support.thinning import first

MOST_KEYS = 100_000
MOST_REPAIRS = 10_000


def anything(x: Any) -> str:
    return "reached"


def numbers(x: dict[str, int]) -> str:
    return "reached"


def by_number(x: dict[int, int]) -> str:
    return "reached"


def one(x: int) -> str:
    return "reached"


def several(x: list[int]) -> str:
    return "reached"


def named(**x: int) -> str:
    return "reached"


def nested(x: dict[str, dict[str, str]] | dict[str, list[int]]) -> str:
    return "reached"


class ByHand:
    name = "by_hand"
    description = ""
    parameters = {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False}  # noqa: RUF012

    def call(self, call: Any) -> str:
        return "reached"


@pytest.fixture
def board() -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(anything, numbers, by_number, one, several, named, nested, ByHand())
    return toolkit


def keys(count: int) -> dict[str, int]:
    return {f"k{number}": number for number in range(count)}


def work(board: Toolkit, name: str, sent: Any) -> tuple[str, int]:
    """How a call ends, and how many functions of Python's it enters: unlike seconds, that is always the same."""
    entered = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal entered
        entered += event == "call"

    board.call_sync(name, {"x": 1})
    sys.setprofile(count)
    try:
        result = board.call_sync(name, sent)
    finally:
        sys.setprofile(None)
    return result.status.value, entered


@pytest.mark.parametrize(
    "name", first(4, ["anything", "by_number", "several", "by_hand", "one", "nested", "numbers", "named"])
)
@pytest.mark.parametrize("as_text", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_too_many_keys_are_refused_at_once(board: Toolkit, name: str, as_text: bool) -> None:
    many: dict[str, Any] = {"x": keys(MOST_KEYS)}
    sent: Any = json.dumps(many) if as_text else many
    status, entered = work(board, name, sent)
    assert status == "invalid"
    assert entered < 500
    assert f"more than {MOST_KEYS} keys" in board.call_sync(name, sent).text


def test_keys_count_in_all_objects_together(board: Toolkit) -> None:
    spread = {"x": [{"a": number} for number in range(MOST_KEYS)]}
    for sent in (spread, json.dumps(spread)):
        assert f"more than {MOST_KEYS} keys" in board.call_sync("anything", sent).text


def test_keys_of_the_arguments_themselves_count(board: Toolkit) -> None:
    assert board.call_sync("named", keys(MOST_KEYS)).text == "reached"
    assert f"more than {MOST_KEYS} keys" in board.call_sync("named", keys(MOST_KEYS + 1)).text


def test_colons_in_text_are_no_keys(board: Toolkit) -> None:
    sent = json.dumps({"x": ":" * (MOST_KEYS + 1)})
    assert board.call_sync("anything", sent).text == "reached"
    assert board.call_sync("anything", {"x": keys(MOST_KEYS - 1)}).text == "reached"
    assert board.call_sync("anything", json.dumps({"x": keys(MOST_KEYS - 1)})).text == "reached"


@pytest.mark.parametrize(
    ("name", "status"), [("numbers", "success"), ("by_number", "invalid"), ("one", "invalid"), ("several", "invalid")]
)
@pytest.mark.parametrize("as_text", first(1, [True, False]))
def test_work_grows_with_the_keys_at_most(board: Toolkit, name: str, status: str, as_text: bool) -> None:
    taken = []
    for size in (10_000, 20_000):
        sent: Any = {"x": keys(size)}
        ended, entered = work(board, name, json.dumps(sent) if as_text else sent)
        assert ended == status
        assert entered < 20 * size
        taken.append(entered)
    assert taken[1] < 2.2 * taken[0] + 1000


@pytest.mark.parametrize("name", ["one", "by_hand"])
def test_surplus_keys_are_explained_up_to_a_number(board: Toolkit, name: str) -> None:
    _, entered = work(board, name, json.dumps({"x": 1, **keys(20_000)}))
    assert entered < 60 * 20_000


def test_repairs_are_bounded(board: Toolkit) -> None:
    few = board.call_sync("several", {"x": ["1"] * (MOST_REPAIRS - 1)})
    assert few.status == "success"
    for sent in ({"x": ["1"] * 50_000}, json.dumps({"x": ["1"] * 50_000})):
        status, entered = work(board, "several", sent)
        assert status == "invalid"
        assert entered < 200 * MOST_REPAIRS
        text = board.call_sync("several", sent).text
        assert f"x: more than {MOST_REPAIRS} values do not fit as they are" in text


def test_a_circle_with_many_ways_round_is_refused(board: Toolkit) -> None:
    circle: list[Any] = []
    circle += [circle] * 5
    result = board.call_sync("anything", {"x": circle})
    assert result.status == "invalid"
    assert "nested more than" in result.text
