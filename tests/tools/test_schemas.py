"""Schemas of tools: what the model sees, in every rendering, the same in every process."""

import json
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Annotated, Any, Generic, Literal, TypedDict, TypeVar

import jsonschema
import pytest

from pegboard import (
    Injected,
    Param,
    PegboardError,
    RegistrationError,
    Tool,
    ToolCall,
    Toolkit,
    ToolSchema,
    TypeHandler,
    TypePlan,
    tool,
)
from tests.support.interpreters import printed_under_two_hash_seeds

T = TypeVar("T")

# Half of these tools take records, which the core alone does not map.
pegboard_dataclasses = pytest.importorskip("pegboard_dataclasses")


def get_weather(city: str, date: str | None = None) -> str:
    """Get weather information.

    Args:
        city: City name
        date: Date
    """
    return f"{city} {date}"


@dataclass
class MyObject:
    """Mine."""

    id: int
    tags: list[str] = field(default_factory=list)


@dataclass
class Node:
    value: int
    children: list["Node"] = field(default_factory=list)


@dataclass
class Page(Generic[T]):
    items: list[T]
    next: int | None = None


class Unit(Enum):
    C = "celsius"
    F = "fahrenheit"


def board(*sources: Any, **options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=[pegboard_dataclasses])
    toolkit.register(*sources, **options)
    return toolkit


def schema_of(function: Any, **options: Any) -> dict[str, Any]:
    (made,) = Toolkit(plugins=[pegboard_dataclasses]).register(function, **options)
    jsonschema.Draft202012Validator.check_schema(made.parameters)
    return made.parameters


class TestSeeds:
    def test_get_weather_exactly(self) -> None:
        expected = {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "City name"},
                "date": {"type": "string", "description": "Date"},
            },
            "required": ["city"],
            "additionalProperties": False,
        }
        assert schema_of(get_weather) == expected
        assert json.dumps(schema_of(get_weather)) == json.dumps(expected)

    def test_explicit_null_means_omitted(self) -> None:
        toolkit = board(get_weather)
        result = toolkit.call_sync("get_weather", {"city": "Oslo", "date": None})
        assert result.text == "Oslo None"
        assert len(result.notes) == 1

    def test_search_params_are_inlined(self) -> None:
        @dataclass
        class SearchParams:
            query: str
            limit: int
            filters: list[str]

        def search(params: SearchParams) -> str:
            return params.query

        assert schema_of(search)["properties"]["params"] == {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "integer"},
                "filters": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["query", "limit", "filters"],
            "additionalProperties": False,
        }

    def test_scalars_of_the_table(self) -> None:
        def f(a: str, b: int, c: float, d: bool, e: list[int], g: dict[str, float]) -> None: ...

        assert schema_of(f)["properties"] == {
            "a": {"type": "string"},
            "b": {"type": "integer"},
            "c": {"type": "number"},
            "d": {"type": "boolean"},
            "e": {"type": "array", "items": {"type": "integer"}},
            "g": {"type": "object", "additionalProperties": {"type": "number"}},
        }


class TestMembers:
    def test_root_is_always_complete(self) -> None:
        def f() -> None: ...

        assert schema_of(f) == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}

    def test_defaults_are_shown(self) -> None:
        def f(a: int = 3, b: str = "x", c: Unit = Unit.C, d: tuple[int, ...] = (1,), e: bool = False) -> None: ...

        properties = schema_of(f)["properties"]
        assert {name: member["default"] for name, member in properties.items()} == {
            "a": 3,
            "b": "x",
            "c": "celsius",
            "d": [1],
            "e": False,
        }

    def test_optional_without_a_default(self) -> None:
        def f(a: int | None) -> None: ...

        schema = schema_of(f)
        assert schema["required"] == ["a"]
        for value, valid in ((None, True), (3, True), ("x", False)):
            assert jsonschema.Draft202012Validator(schema).is_valid({"a": value}) is valid

    def test_bounds_and_examples(self) -> None:
        def f(days: Annotated[int, Param("Days", ge=1, le=14, examples=[3])]) -> None: ...

        expected = {"type": "integer", "minimum": 1, "maximum": 14, "description": "Days", "examples": [3]}
        assert schema_of(f)["properties"]["days"] == expected

    def test_order_is_that_of_the_signature(self) -> None:
        def f(z: int, a: int, *, m: int, b: int = 1) -> None: ...

        schema = schema_of(f)
        assert list(schema["properties"]) == ["z", "a", "m", "b"]
        assert schema["required"] == ["z", "a", "m"]

    def test_presets_and_injected_parameters_are_absent(self) -> None:
        class Db: ...

        def f(a: int, key: str, db: Injected[Db], call: ToolCall) -> None: ...

        assert list(schema_of(f, presets={"key": "k"})["properties"]) == ["a"]
        assert "key" not in json.dumps(schema_of(f, presets={"key": "k"}))

    def test_a_schema_is_a_copy(self) -> None:
        toolkit = board(get_weather)
        toolkit["get_weather"].parameters["properties"]["city"]["type"] = "number"
        toolkit.schemas()[0].parameters["properties"].clear()
        assert toolkit["get_weather"].parameters["properties"]["city"]["type"] == "string"


class TestDefs:
    def test_repeated_records_are_hoisted_to_the_root(self) -> None:
        def f(a: MyObject, b: list[MyObject]) -> None: ...

        schema = schema_of(f)
        assert list(schema) == ["type", "properties", "required", "additionalProperties", "$defs"]
        (name,) = schema["$defs"]
        assert schema["properties"]["a"] == {"$ref": f"#/$defs/{name}"}
        assert schema["properties"]["b"]["items"] == {"$ref": f"#/$defs/{name}"}
        assert json.dumps(schema).count('"$defs"') == 1

    def test_recursive_records(self) -> None:
        def f(tree: Node) -> None: ...

        schema = schema_of(f)
        validator = jsonschema.Draft202012Validator(schema)
        assert validator.is_valid({"tree": {"value": 1, "children": [{"value": 2}]}})
        assert not validator.is_valid({"tree": {"value": 1, "children": [{"value": "x"}]}})

    def test_names_do_not_collide(self) -> None:
        def one() -> type:
            @dataclass
            class Item:
                a: int

            return Item

        def two() -> type:
            @dataclass
            class Item:
                b: str

            return Item

        first, second = one(), two()

        def f(a, b, c, d):  # type: ignore[no-untyped-def]
            ...

        f.__annotations__ = {"a": first, "b": first, "c": second, "d": second}
        schema = schema_of(f)
        assert len(schema["$defs"]) == 2
        assert schema["properties"]["a"] == schema["properties"]["b"] != schema["properties"]["c"]
        assert schema == schema_of(f)


class TestRenderings:
    @staticmethod
    def f(objects: list[dict[str, MyObject]], page: Page[MyObject], when: date | None = None) -> dict[str, MyObject]:
        """Do."""
        return {}

    def test_qualified_titles(self) -> None:
        (made,) = Toolkit(plugins=[pegboard_dataclasses]).register(self.f)
        schema = made.json_schema(titles="qualified", refs="inline")
        here = "tests.tools.test_schemas"
        assert schema["properties"]["objects"]["title"] == f"list[dict[str, {here}.MyObject]]"
        assert schema["properties"]["page"]["title"] == f"{here}.Page[{here}.MyObject]"
        items = schema["properties"]["objects"]["items"]
        assert items["title"] == f"dict[str, {here}.MyObject]"
        assert items["additionalProperties"]["title"] == f"{here}.MyObject"
        assert "title" not in json.dumps(made.parameters)

    def test_refs_inline(self) -> None:
        (made,) = Toolkit(plugins=[pegboard_dataclasses]).register(self.f)
        assert "$defs" in made.json_schema()
        inlined = made.json_schema(refs="inline")
        assert "$ref" not in json.dumps(inlined)
        for schema in (made.parameters, inlined):
            validator = jsonschema.Draft202012Validator(schema)
            assert validator.is_valid({"objects": [{"a": {"id": 1}}], "page": {"items": [{"id": 2}]}})
            assert not validator.is_valid({"objects": [{"a": {"id": "x"}}], "page": {"items": []}})

    def test_recursion_cannot_be_inlined(self) -> None:
        def f(tree: Node) -> None: ...

        (made,) = Toolkit(plugins=[pegboard_dataclasses]).register(f)
        with pytest.raises(PegboardError, match="Node"):
            made.json_schema(refs="inline")

    def test_openapi(self) -> None:
        pytest.importorskip("pegboard_dialects")

        def f(a: int | None, b: Literal["x"], c: Annotated[int, Param(gt=0)]) -> None: ...

        (made,) = Toolkit(plugins=[pegboard_dataclasses]).register(f)
        schema = made.json_schema(dialect="openapi-3.0")
        assert schema["properties"]["a"] == {"type": "integer", "nullable": True}
        assert schema["properties"]["b"]["enum"] == ["x"]
        assert schema["properties"]["c"]["exclusiveMinimum"] is True
        assert "const" not in json.dumps(schema)
        (recursive,) = Toolkit(plugins=[pegboard_dataclasses]).register(self.f)
        text = json.dumps(recursive.json_schema(dialect="openapi-3.0"))
        assert "$defs" not in text or "#/components" in text

    def test_positional_of(self) -> None:
        (made,) = Toolkit(plugins=[pegboard_dataclasses]).register(self.f)
        assert made.json_schema("returns") == made.returns
        assert made.json_schema("parameters") == made.parameters == made.json_schema()


class TestReturns:
    @pytest.mark.parametrize(
        ("annotation", "expected"),
        [
            (int, {"type": "integer"}),
            (list[str], {"type": "array", "items": {"type": "string"}}),
            (None, {"type": "null"}),
            (Awaitable[int], {"type": "integer"}),
        ],
    )
    def test_annotated(self, annotation: Any, expected: dict[str, Any]) -> None:
        def f():  # type: ignore[no-untyped-def]
            ...

        f.__annotations__ = {"return": annotation}
        (made,) = Toolkit(plugins=[pegboard_dataclasses]).register(f)
        assert made.returns == expected
        assert made.schema().returns == expected

    def test_record(self) -> None:
        def f() -> MyObject:
            return MyObject(1)

        returns = board(f)["f"].returns
        assert returns is not None
        assert returns["properties"]["id"] == {"type": "integer"}

    def test_nothing_promised(self) -> None:
        def f():  # type: ignore[no-untyped-def]
            ...

        def g() -> Any: ...

        def h() -> Iterator[str]:
            yield ""

        async def k() -> AsyncIterator[str]:
            yield ""

        for each in Toolkit(plugins=[pegboard_dataclasses]).register(f, g, h, k):
            assert each.returns is None
            with pytest.raises(PegboardError, match=r"promises no data|nothing"):
                each.json_schema(of="returns")


class TestRecords:
    def test_tool_schemas(self) -> None:
        toolkit = board(get_weather)
        (schema,) = [each for each in toolkit.schemas() if each.name == "get_weather"]
        assert isinstance(schema, ToolSchema)
        assert schema.description == "Get weather information."
        assert schema.parameters == toolkit["get_weather"].parameters
        assert schema.to_dict() == {
            "name": "get_weather",
            "description": "Get weather information.",
            "parameters": schema.parameters,
        }

    def test_schemas_of_offered_tools_only(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("g", active=False)
        toolkit.register(get_weather, group="g")
        assert toolkit.schemas() == []
        toolkit.update_groups("g", True)
        assert len(toolkit.schemas()) == 1

    def test_hash_is_stable_and_tells_changes(self) -> None:
        toolkit = board(get_weather)
        first = toolkit["get_weather"].schema_hash
        assert len(first) == 64
        assert first == board(get_weather)["get_weather"].schema_hash == Tool.from_function(get_weather).schema_hash
        toolkit.set_presets("get_weather", {"date": "today"})
        assert toolkit["get_weather"].schema_hash != first
        assert board(get_weather, description="Other")["get_weather"].schema_hash != first
        assert board(get_weather, name="other")["other"].schema_hash != first

    def test_unknown_dialect(self) -> None:
        with pytest.raises(PegboardError, match=r"no dialect 'opnai'.*This toolkit loads no plugins\."):
            Toolkit(plugins=()).schemas(dialect="opnai")


class Options(TypedDict, total=False):
    verbose: bool
    level: int


def probe(a: int, **more: Any) -> str:
    return f"{a} {more}"


def without_kwargs(a: int, call: ToolCall) -> str:
    return f"{a} {json.dumps(call.arguments)}"


MODEL = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "description": "Why", "minLength": 2},
        "place": {"$ref": "#/$defs/Place"},
    },
    "required": ["reason"],
    "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
}


class TestExtendedModel:
    def test_schema(self) -> None:
        assert schema_of(without_kwargs, extended_model=MODEL) == {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "reason": {"type": "string", "description": "Why", "minLength": 2},
                "place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
            },
            "required": ["a", "reason"],
            "additionalProperties": False,
        }

    def test_values_reach_kwargs_and_the_call(self) -> None:
        toolkit = board(probe, without_kwargs, extended_model=MODEL)
        sent = {"a": 1, "reason": "because"}
        assert toolkit.call_sync("probe", sent).text == "1 {'reason': 'because'}"
        assert toolkit.call_sync("probe", {**sent, "free": 2}).text == "1 {'free': 2, 'reason': 'because'}"
        assert toolkit.call_sync("without_kwargs", sent).text == '1 {"a": 1, "reason": "because"}'
        assert toolkit.prepare("probe", sent).typed["reason"] == "because"

    @pytest.mark.parametrize(
        ("sent", "message"),
        [
            ({"a": 1}, "reason: missing"),
            ({"a": 1, "reason": "x"}, "reason: "),
            ({"a": 1, "reason": "yes", "place": {}}, "place.x: missing"),
            ({"a": 1, "reason": [3]}, "reason: expected string"),
        ],
    )
    def test_values_are_validated(self, sent: Any, message: str) -> None:
        for function in (probe, without_kwargs):
            result = board(function, extended_model=MODEL).call_sync(function.__name__, sent)
            assert result.status == "invalid"
            assert message in result.text

    def test_record_types(self) -> None:
        toolkit = board(probe, extended_model=MyObject)
        assert toolkit["probe"].parameters["required"] == ["a", "id"]
        assert toolkit.call_sync("probe", {"a": 1, "id": 2}).text == "1 {'id': 2}"
        assert toolkit.call_sync("probe", {"a": 1, "id": "x"}).status == "invalid"
        toolkit = board(probe, extended_model=Options)
        assert toolkit.call_sync("probe", {"a": 1, "level": 2}).text == "1 {'level': 2}"

    def test_as_an_option_of_the_tool(self) -> None:
        @tool(extended_model=MODEL)
        def f(a: int, **more: Any) -> str:
            return f"{a} {more}"

        assert board(f).call_sync("f", {"a": 1, "reason": "ok"}).text == "1 {'reason': 'ok'}"

    def test_clash_with_a_parameter_of_another_name_in_the_schema(self) -> None:
        def f(reason: Annotated[str, Param(name="why")], **more: Any) -> str:
            return reason

        with pytest.raises(RegistrationError, match="both have 'reason'; rename one side"):
            board(f, extended_model=MODEL)

    def test_clash(self) -> None:
        with pytest.raises(
            RegistrationError, match="the extended model and the function both have 'a'; rename one side"
        ):
            board(probe, extended_model={"type": "object", "properties": {"a": {}, "b": {}}})

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (3, "extended_model"),
            (int, "takes an object schema or a record type"),
            ({"type": "array"}, "the extended model must be the schema of an object, got type 'array'"),
            ({"properties": {"b": {"type": "strin"}}}, "#/properties/b/type"),
            ({"properties": {"b": {"pattern": "("}}}, "pattern"),
        ],
    )
    def test_refused(self, model: Any, message: str) -> None:
        with pytest.raises(RegistrationError) as caught:
            board(probe, extended_model=model)
        assert str(caught.value).startswith("tool 'probe': ")
        assert message in str(caught.value)

    def test_beside_presets(self) -> None:
        toolkit = board(probe, extended_model=MODEL, presets={"a": 7})
        assert list(toolkit["probe"].parameters["properties"]) == ["reason", "place"]
        assert toolkit.call_sync("probe", {"reason": "ok"}).text == "7 {'reason': 'ok'}"


SCRIPT = """
import json, sys
from dataclasses import dataclass
from enum import Enum
from typing import Literal
from pegboard import Toolkit

@dataclass
class Item:
    name: str
    tags: frozenset[str] = frozenset("abcdef")

class Colour(Enum):
    RED = "red"
    BLUE = "blue"

def f(a: Item, b: list[Item], c: Colour | Literal["x", "y"] | int, d: set[str] = {"q", "w", "e", "r"}) -> Item: ...
def g(z: dict[str, Item], *y: Item, **x: Colour) -> None: ...

toolkit = Toolkit()
toolkit.register(f, g)
shown = [[each.name, each.description, each.parameters, each.returns, each.schema_hash] for each in toolkit]
print(json.dumps(shown))
"""


def test_deterministic_across_processes_and_hash_seeds() -> None:
    shown = printed_under_two_hash_seeds(SCRIPT)
    assert [each[0] for each in json.loads(shown)][-2:] == ["f", "g"]


def test_the_type_of_results_is_read_on_first_use() -> None:
    class Answer:
        """What a tool gives."""

    read: list[Any] = []

    def plan(annotation: Any, types: Any) -> TypePlan:
        read.append(annotation)
        return TypePlan({"type": "string"}, lambda value: Answer(), lambda value: "answer")

    def give() -> Answer:
        """Give an answer."""
        return Answer()

    with Toolkit(plugins=()) as toolkit:
        toolkit.register_type(TypeHandler(Answer, plan))
        toolkit.register(give)
        assert read == []
        assert toolkit["give"].json_schema(of="returns")["type"] == "string"
        assert read == [Answer]
        assert toolkit.call_sync("give").text == "answer"
        assert read == [Answer]
