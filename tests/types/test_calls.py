"""The battery sent through tools: what arrives in the function, what is refused and how, and what repair may do."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

from pegboard import Toolkit
from tests.support.thinning import first, one_in
from tests.types.battery import BATTERY, Entry, Json
from tests.types.table import same

each = pytest.mark.parametrize("entry", one_in(3, BATTERY), ids=str)


class Tools:
    """Makes a tool of one parameter, which keeps what it was called with."""

    def __init__(self) -> None:
        self.arrived: list[Any] = []
        self.toolkits: list[Toolkit] = []

    def of(self, annotation: Any, repair: Literal["off", "safe"]) -> Toolkit:
        def keep(value: Any) -> str:
            self.arrived.append(value)
            return "kept"

        keep.__annotations__["value"] = annotation
        self.toolkits.append(Toolkit(plugins=(), repair=repair))
        self.toolkits[-1].register(keep)
        return self.toolkits[-1]


@pytest.fixture
def tools() -> Iterator[Tools]:
    made = Tools()
    yield made
    for toolkit in made.toolkits:
        toolkit.close()


@each
@pytest.mark.parametrize("form", first(1, [json.dumps, dict]))
def test_good_values_arrive_without_a_repair(entry: Entry, form: Callable[[Any], Any], tools: Tools) -> None:
    toolkit = tools.of(entry.annotation, "safe")
    for sent, wanted in entry.good:
        result = toolkit.call_sync("keep", form({"value": sent}))
        assert (result.status, list(result.notes)) == ("success", [])
        assert same(tools.arrived.pop(), wanted)


@each
def test_bad_values_are_refused_in_a_line_or_two(entry: Entry, tools: Tools) -> None:
    toolkit = tools.of(entry.annotation, "off")
    for sent in entry.bad:
        result = toolkit.call_sync("keep", {"value": sent})
        assert result.status == "invalid"
        assert tools.arrived == []
        assert "value" in result.text
        lines = result.text.splitlines()
        assert len(lines) <= 21
        assert max(map(len, lines)) <= 200


@each
def test_repair_keeps_the_promise(entry: Entry, tools: Tools) -> None:
    """What is repaired arrives as the type, with a note; what is not is refused. Nothing arrives raw."""
    toolkit = tools.of(entry.annotation, "safe")
    for sent in entry.bad:
        result = toolkit.call_sync("keep", {"value": sent})
        if result.status == "success":
            assert entry.fits(tools.arrived.pop())
            assert result.notes
        else:
            assert (result.status, tools.arrived) == ("invalid", [])


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        (int, 5.7),
        (int, "5.7"),
        (int, True),
        (list[int], "abc"),
        (list[str], None),
        (bool, 2),
        (bool, 1.0),
        (bool, "1"),
        (bool, "yes"),
        (str, True),
        (str, 5.7),
        (str, ["a"]),
        (dict[str, int], [["a", 1]]),
    ],
)
def test_what_must_not_be_repaired(annotation: Any, sent: Any, tools: Tools) -> None:
    assert tools.of(annotation, "safe").call_sync("keep", {"value": sent}).status == "invalid"
    assert tools.arrived == []


@pytest.mark.parametrize("sent", ["1", "true", "null", "", "[1]", '{"a": 1}'])
@pytest.mark.parametrize("annotation", [str, str | None, int | str, Any])
def test_text_for_text_is_never_parsed(annotation: Any, sent: str, tools: Tools) -> None:
    result = tools.of(annotation, "safe").call_sync("keep", {"value": sent})
    assert list(result.notes) == []
    assert tools.arrived == [sent]


def test_false_as_text_is_not_true(tools: Tools) -> None:
    assert tools.of(bool, "safe").call_sync("keep", {"value": "False"}).status == "success"
    assert tools.of(bool, "off").call_sync("keep", {"value": "False"}).status == "invalid"
    assert tools.arrived == [False]


@pytest.mark.parametrize(
    ("annotation", "sent", "repaired"),
    [
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (int, "3", 3),
        (float, "2.5", 2.5),
        (bool, "true", True),
        (None, "null", None),
        (int | None, "", None),
        (int | None, "null", None),
        (Literal["red"], "RED", "red"),
        (list[int], 3, [3]),
        (str, 3, "3"),
    ],
)
def test_each_rung_in_both_directions(annotation: Any, sent: Any, repaired: Any, tools: Tools) -> None:
    """Repaired with a note where repair is on, refused where it is off, and untouched where it was right."""
    result = tools.of(annotation, "safe").call_sync("keep", {"value": sent})
    assert (result.status, len(result.notes)) == ("success", 1)
    assert same(tools.arrived.pop(), repaired)
    assert tools.of(annotation, "off").call_sync("keep", {"value": sent}).status == "invalid"
    assert not tools.of(annotation, "safe").call_sync("keep", {"value": repaired}).notes
    assert same(tools.arrived, [repaired])


def test_a_list_that_may_hold_itself_is_not_wrapped_without_end(tools: Tools) -> None:
    toolkit = tools.of(Json, "safe")
    assert [toolkit.call_sync("keep", {"value": sent}).status for sent in (True, 1.5, [[True]])] == ["invalid"] * 3
    assert tools.of(list[list[int]], "safe").call_sync("keep", {"value": 3}).status == "invalid"
    assert tools.arrived == []
