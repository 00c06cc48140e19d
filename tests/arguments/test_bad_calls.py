"""Bad calls: whatever a model sends, a call ends in a result that says what to send instead."""

import asyncio
import json
import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import Param, Status, Tool, Toolkit, ToolResult

pytestmark = pytest.mark.usefixtures("path")

SCREENFUL = 24 * 200
"""Characters of a message that a reader can take in at once."""


@pytest.fixture(scope="module")
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        made.register(forecast, anything, nothing, tags, keyed)
        made.register(Tool.external("ask_human", "", {"type": "object", "properties": {"q": {"type": "string"}}}))
        yield made


def forecast(city: str, days: Annotated[int, Param(ge=1, le=14)] = 1, unit: Literal["C", "F"] = "C") -> str:
    return f"{city} {days} {unit}"


def anything(value: Any) -> Any:
    return value


def nothing() -> str:
    return "nothing"


def tags(tags: list[dict[str, int]]) -> int:
    return len(tags)


def keyed(**options: int) -> dict[str, int]:
    return options


def both(toolkit: Toolkit, name: Any, sent: Any) -> ToolResult:
    """The result of every way to make the same call: they must not disagree."""
    results = [
        toolkit.call_sync(name, sent),
        asyncio.run(toolkit.call(name, sent)),
        toolkit.prepare(name, sent).execute_sync(),
        toolkit.call_many_sync([(name, sent)])[0],
    ]
    assert len({(each.status, each.text) for each in results}) == 1, results
    return results[0]


def refused(toolkit: Toolkit, name: str, sent: Any) -> str:
    """What the model is told about a call that must be invalid."""
    result = both(toolkit, name, sent)
    assert result.status is Status.INVALID
    assert result.is_error
    assert result.error is not None
    assert result.error.kind == "invalid_arguments"
    assert result.text == f"Error: {result.error.message}"
    assert len(result.text) < SCREENFUL
    assert result.value is None
    return result.text


class TestUnknownTool:
    @pytest.mark.parametrize(("name", "meant"), [("forcast", "forecast"), ("Forecast", "forecast"), ("tag", "tags")])
    def test_the_nearest_name_is_offered(self, toolkit: Toolkit, name: str, meant: str) -> None:
        result = both(toolkit, name, {"city": "Paris"})
        assert result.status is Status.NOT_FOUND
        assert result.name == name
        assert f"Did you mean '{meant}'" in result.text

    def test_where_nothing_is_near_all_are_listed(self, toolkit: Toolkit) -> None:
        text = both(toolkit, "zzzzzz", {}).text
        assert all(tool.name in text for tool in toolkit.tools)

    def test_an_empty_board_says_so(self) -> None:
        assert "no tools" in Toolkit(plugins=()).call_sync("x").text

    def test_a_large_board_is_not_listed(self) -> None:
        toolkit = Toolkit(plugins=())
        for index in range(200):
            toolkit.register(lambda: 1, name=f"tool_{index:03}")
        assert len(toolkit.call_sync("zzzzzz").text) < 400

    @pytest.mark.parametrize("name", ["", " ", "x" * 1_000_000, "\ud800", "a\x00b", "../etc", "forecast\n"])
    def test_hostile_names(self, toolkit: Toolkit, name: str) -> None:
        result = both(toolkit, name, {})
        assert result.status is Status.NOT_FOUND
        assert len(result.text) < SCREENFUL

    @pytest.mark.parametrize("name", [None, 7, [], {}, b"forecast"])
    def test_names_that_are_no_text(self, toolkit: Toolkit, name: Any) -> None:
        result = both(toolkit, name, {})
        assert result.status is Status.NOT_FOUND
        assert type(name).__name__ in result.text

    def test_made_up_names_do_not_pile_up(self, toolkit: Toolkit) -> None:
        for index in range(10):
            toolkit.call_sync(f"made_up_{index}")
        assert not [name for name in toolkit.stats["tools"] if name.startswith("made_up")]


class TestUnreadable:
    @pytest.mark.parametrize(
        ("sent", "said"),
        [
            ("{", "not valid JSON"),
            ('{"city": "Par', "(the text ends there)|line 1 column"),
            ('{"city": "Paris"} trailing', "Extra data at line 1 column 19"),
            ("{'city': 'Paris'}", "not valid JSON"),
            ("[1, 2]", "must be a JSON object, got array [1, 2]"),
            ('"Paris"', "must be a JSON object|not valid JSON"),
            ("null", "must be a JSON object, got null"),
            ("true", "must be a JSON object, got boolean true"),
            (b"\xff\xfe", "not valid UTF-8"),
            (7, "got a Python int"),
            (["city"], "got a Python list"),
            (object(), "got a Python object"),
            ('{"city": NaN}', "NaN"),
            ('{"city": Infinity}', "Infinity"),
            ('{"city": "a", "city": "b"}', 'the key "city" twice'),
            ('{"city": "a", "days": ' + "1" * 5000 + "}", "more than 4300 digits"),
            ("[" * 10_000 + "]" * 10_000, "nested more than 100 levels"),
            ('{"city":' * 10_000 + "1" + "}" * 10_000, "nested more than 100 levels"),
            ("x" * (17 * 1024 * 1024), "too large"),
        ],
        ids=lambda value: str(value)[:16] if isinstance(value, str | int) else type(value).__name__,
    )
    def test_is_said(self, toolkit: Toolkit, sent: Any, said: str) -> None:
        text = refused(toolkit, "forecast", sent)
        assert any(each in text for each in said.split("|"))

    @pytest.mark.parametrize(
        "sent",
        [
            '{"value": {"a": 1, "a": 2}}',
            '{"value": [[{"b": 1, "c": {"a": 1, "a": 1}}]]}',
            '{"value": 1, "value": 1}',
            '{"value": {"\\u0061": 1, "a": 1}}',
            '{"value": {"x:": 1, "x:": 1}}',
            '{"value": {"\\"": 1, "\\"": 1}, "t": ":"}',
        ],
    )
    def test_duplicate_keys_at_any_level(self, toolkit: Toolkit, sent: str) -> None:
        assert "twice" in refused(toolkit, "anything", sent)

    @pytest.mark.parametrize("sent", ['{"tags": [{"a": 1, "a": 2}]}', '{"tags": [{"a": 1}, {"a": 1, "b": 1, "b": 1}]}'])
    def test_duplicate_keys_in_typed_arguments(self, toolkit: Toolkit, sent: str) -> None:
        assert "twice" in refused(toolkit, "tags", sent)

    def test_duplicate_keys_for_open_and_hand_written_tools(self, toolkit: Toolkit) -> None:
        assert "twice" in refused(toolkit, "keyed", '{"a": 1, "a": 2}')
        assert "twice" in refused(toolkit, "ask_human", '{"q": "a", "q": "b"}')

    def test_the_same_key_in_different_objects_is_fine(self, toolkit: Toolkit) -> None:
        assert toolkit.call_sync("anything", '{"value": [{"a": 1}, {"a": {"a": ":"}}]}').status is Status.SUCCESS


class TestMappings:
    """A program's mapping is held to what JSON text is held to."""

    @pytest.mark.parametrize("name", ["anything", "forecast"])
    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (math.nan, "nan"),
            (-math.inf, "inf"),
            ([{"x": math.nan}], "nan"),
            ({1: 2}, "key that is no string"),
            ({"x": [{None: 1}]}, "key that is no string"),
        ],
    )
    def test_no_json(self, toolkit: Toolkit, name: str, value: Any, said: str) -> None:
        key = "value" if name == "anything" else "city"
        assert said in refused(toolkit, name, {key: value})

    def test_ten_thousand_levels(self, toolkit: Toolkit) -> None:
        deep: Any = 1
        for _ in range(10_000):
            deep = [deep]
        assert "nested more than 100 levels" in refused(toolkit, "anything", {"value": deep})
        circular: dict[str, Any] = {}
        circular["value"] = circular
        assert "nested more than 100 levels" in refused(toolkit, "anything", circular)

    def test_keys_that_are_no_strings(self, toolkit: Toolkit) -> None:
        assert "key that is no string" in refused(toolkit, "forecast", {"city": "Paris", 1: 2})
        assert "key that is no string" in refused(toolkit, "keyed", {None: 1})

    def test_a_mapping_that_cannot_be_read(self, toolkit: Toolkit) -> None:
        class Broken(Mapping[str, Any]):
            def __getitem__(self, key: str) -> Any:
                raise SystemExit(key)

            def __iter__(self) -> Iterator[str]:
                raise SystemExit("iter")

            def __len__(self) -> int:
                return 1

        assert both(toolkit, "forecast", Broken()).is_error


class TestTyped:
    def test_every_problem_at_once_with_its_path(self, toolkit: Toolkit) -> None:
        sent = {"days": "three", "unit": "K", "cty": "Paris"}
        lines = refused(toolkit, "forecast", sent).splitlines()
        assert lines[0] == "Error: invalid arguments:"
        assert sorted(line.partition(":")[0] for line in lines[1:]) == ["city", "cty", "days", "unit"]
        assert 'days: expected integer >= 1 and <= 14, got string "three"' in lines
        assert any(line.startswith("cty: unknown argument, did you mean 'city'?") for line in lines)
        assert any(line.startswith("city: missing") for line in lines)
        assert any(line.startswith('unit: expected one of "C", "F", got string "K"') for line in lines)

    @pytest.mark.parametrize(
        ("sent", "line"),
        [
            ({"city": None}, "city: expected string, got null"),
            ({"city": ["Paris"]}, 'city: expected string, got array ["Paris"]'),
            ({"city": "P", "days": 1.5}, "days: expected integer >= 1 and <= 14, got number 1.5"),
            ({"city": "P", "days": True}, "days: expected integer >= 1 and <= 14, got boolean true"),
            ({"city": "P", "days": 0}, "days: expected integer >= 1 and <= 14, got integer 0"),
            ({"city": "P", "days": {}}, "days: expected integer >= 1 and <= 14, got object {}"),
        ],
    )
    def test_wrong_types(self, toolkit: Toolkit, sent: Any, line: str) -> None:
        assert line in refused(toolkit, "forecast", sent).splitlines()
        assert line in refused(toolkit, "forecast", json.dumps(sent)).splitlines()

    def test_free_keywords(self, toolkit: Toolkit) -> None:
        assert refused(toolkit, "keyed", {"a": 1, "b": "x", "c d": None}).splitlines()[1:] == [
            'b: expected integer, got string "x"',
            "c d: expected integer, got null",
        ]

    def test_paths_into_containers(self, toolkit: Toolkit) -> None:
        text = refused(toolkit, "tags", {"tags": [{"a": 1}, {"b": "x", "c d": "y"}, 7]})
        assert "tags[1].b: expected integer" in text
        assert 'tags[1]["c d"]: expected integer' in text
        assert "tags[2]: expected" in text

    def test_surplus_of_a_tool_without_parameters(self, toolkit: Toolkit) -> None:
        assert "dry_run: unknown argument" in refused(toolkit, "nothing", {"dry_run": True})

    def test_hand_written_schemas(self, toolkit: Toolkit) -> None:
        assert "q: expected string, got array [1]" in refused(toolkit, "ask_human", {"q": [1]})

    def test_a_thousand_problems_are_a_screenful(self, toolkit: Toolkit) -> None:
        text = refused(toolkit, "tags", {"tags": [{"a": "x"}] * 50_000})
        assert "more problems" in text
        assert len(text.splitlines()) <= 24
        assert len(refused(toolkit, "forecast", {f"x{n}": n for n in range(5000)}).splitlines()) <= 24

    @pytest.mark.parametrize("big", ["x" * 10_000_000, ["x" * 1000] * 10_000, {"k" * 100_000: 1}])
    def test_large_values_are_shortened(self, toolkit: Toolkit, big: Any) -> None:
        assert len(refused(toolkit, "forecast", {"city": "P", "days": big})) < 1000

    def test_long_keys_are_shortened(self, toolkit: Toolkit) -> None:
        assert len(refused(toolkit, "forecast", {"city": "P", "k" * 1_000_000: 1})) < 1000

    def test_a_ten_megabyte_string_is_a_string(self, toolkit: Toolkit) -> None:
        big = "x" * 10_000_000
        assert toolkit.call_sync("anything", json.dumps({"value": big})).value == big

    def test_large_integers(self, toolkit: Toolkit) -> None:
        sent = {"city": "P", "days": 10**5000}
        assert "days: expected integer" in refused(toolkit, "forecast", sent)
        assert toolkit.call_sync("anything", {"value": 10**4000}).value == 10**4000

    @pytest.mark.parametrize("sent", ['{"city": "\\ud800"}', {"city": "\ud800"}])
    def test_lone_surrogates_end_in_a_result_that_can_be_sent(self, toolkit: Toolkit, sent: Any) -> None:
        result = both(toolkit, "forecast", sent)
        assert result.status in (Status.SUCCESS, Status.INVALID)
        json.dumps(result.to_dict()).encode()
        both(toolkit, "forecast", {"city": 1, "\ud800": "\ud800"})


class TestValidators:
    @pytest.mark.parametrize(
        "error", [SystemExit(2), KeyboardInterrupt(), GeneratorExit(), RecursionError(), MemoryError()]
    )
    def test_a_type_whose_structuring_raises_anything(self, error: BaseException) -> None:
        from pegboard import TypeHandler, TypePlan

        class Picky:
            pass

        def structure(value: Any) -> Picky:
            raise error

        def use(picky: Picky) -> str:
            return "never"

        with Toolkit(plugins=()) as toolkit:
            toolkit.register_type(TypeHandler(Picky, lambda annotation, types: TypePlan({}, structure)))
            toolkit.register(use)
            assert both(toolkit, "use", {"picky": 1}).is_error


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = ["forecast", "anything", "nothing", "tags", "keyed", "ask_human"]
KEYS = st.sampled_from(["city", "days", "unit", "value", "tags", "q"]) | st.text(max_size=4)
OUTCOMES = (Status.SUCCESS, Status.INVALID, Status.SUSPENDED)


class TestAnything:
    @given(name=st.sampled_from(NAMES), sent=st.binary(max_size=80) | st.text(max_size=80))
    def test_bytes_and_text(self, toolkit: Toolkit, name: str, sent: Any) -> None:
        result = toolkit.call_sync(name, sent)
        assert result.status in OUTCOMES
        assert len(result.text) < SCREENFUL

    @given(name=st.sampled_from(NAMES), sent=st.dictionaries(KEYS, JSON, max_size=4))
    def test_json_as_mapping_and_as_text(self, toolkit: Toolkit, name: str, sent: dict[str, Any]) -> None:
        mapping = toolkit.call_sync(name, sent)
        text = toolkit.call_sync(name, json.dumps(sent))
        prepared = toolkit.prepare(name, sent).execute_sync()
        assert mapping.status is text.status is prepared.status
        assert mapping.status in OUTCOMES
        json.dumps(mapping.to_dict())

    @given(name=st.sampled_from(NAMES), sent=JSON | st.sets(st.integers()) | st.tuples(st.text()))
    def test_any_python_value(self, toolkit: Toolkit, name: str, sent: Any) -> None:
        assert toolkit.call_sync(name, sent).status in OUTCOMES
