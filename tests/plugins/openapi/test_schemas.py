"""What OpenAPI 3.0 and 3.1 say of data, in JSON Schema 2020-12."""

from typing import Any

import pytest

from pegboard import Status
from tests.plugins.openapi.api import answering, board, body, one, problem_of, schema_of

NULL = {"type": "null"}
Q = "#/components/schemas/"


def converted(schema: Any, version: str = "3.0.3", **schemas: Any) -> Any:
    """A request's schema."""
    sent = body({"type": "array", "items": schema})  # objects would be several arguments
    found = schema_of(one("post", version=version, more={"components": {"schemas": schemas}}, requestBody=sent))
    return {**found["properties"]["body"]["items"], **({"$defs": found["$defs"]} if "$defs" in found else {})}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"allOf": [{"type": "string"}], "nullable": True}, {"anyOf": [{"allOf": [{"type": "string"}]}, NULL]}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "maximum": 1, "exclusiveMaximum": False}, {"type": "integer", "maximum": 1}),
        ({"type": "string", "example": "x", "xml": {}, "title": "T", "x-y": 1}, {"type": "string", "examples": ["x"]}),
        ({"oneOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}]}),
        ({"items": {"type": "string", "nullable": True}}, {"items": {"type": ["string", "null"]}}),
        ({"type": "object", "required": True}, {"type": "object"}),
    ],
)  # fmt: skip
def test_3_0(given: Any, meant: Any) -> None:
    assert converted(given) == meant


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"]},
        {"type": "integer", "exclusiveMinimum": 1},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        {"const": "x"},
    ],
)
def test_3_1_is_json_schema(schema: Any) -> None:
    assert converted(schema, "3.1.0") == schema


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
        ({"maximum": 9, "exclusiveMaximum": True}, {"exclusiveMaximum": 9}),
        ({"minimum": 0, "exclusiveMinimum": False, "maximum": 9}, {"minimum": 0, "maximum": 9}),
        ({"exclusiveMinimum": True}, {}),
        ({"minimum": 1, "exclusiveMinimum": 0}, {"minimum": 1, "exclusiveMinimum": 0}),
    ],
)
def test_exclusive_bounds_of_3_0_are_read_in_3_1(schema: Any, expected: Any) -> None:
    assert converted({"type": "number", **schema}, "3.1.0") == {"type": "number", **expected}


def test_an_operation_with_bounds_of_3_0_is_whole_in_3_1() -> None:
    number = {"type": "number", "minimum": 0, "exclusiveMinimum": True}
    answer = answering({"type": "object", "properties": {"top_p": number}})
    document = one("post", requestBody=body({"type": "object", "properties": {"top_p": number}}), responses=answer)
    with board(document) as toolkit:
        assert toolkit.problems == []
        assert toolkit["do"].returns is not None
        assert toolkit.call_sync("do", {"top_p": 0}).status is Status.INVALID


def test_nullable_is_nothing_in_3_1() -> None:
    assert converted({"type": "string", "nullable": True}, "3.1.0") == {"type": "string"}


def test_beside_a_reference_3_0_has_nothing_but_a_description() -> None:
    given = {"$ref": f"{Q}A", "description": "one", "maxLength": 1}
    assert converted(given, A={"type": "string"}) == {
        "$ref": "#/$defs/A", "description": "one", "$defs": {"A": {"type": "string"}},
    }  # fmt: skip
    assert converted(given, "3.1.0", A={"type": "string"})["maxLength"] == 1


def test_references_are_definitions_recursive_ones_too() -> None:
    tree = {"type": "array", "items": {"$ref": f"{Q}Tree"}}
    assert converted({"$ref": f"{Q}Tree"}, Tree=tree) == {
        "$ref": "#/$defs/Tree",
        "$defs": {"Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    }


def test_references_may_lead_anywhere_in_the_document() -> None:
    pet = {"type": "object", "properties": {"a/b": {"type": "integer"}}}
    given = {"type": "array", "items": {"$ref": f"{Q}Pet/properties/a~1b"}}
    assert converted(given, Pet=pet)["$defs"] == {"a_1b": {"type": "integer"}}


def test_what_is_read_only_is_not_sent_and_what_is_write_only_not_awaited() -> None:
    pet = {
        "type": "object",
        "properties": {"id": {"type": "integer", "readOnly": True}, "secret": {"writeOnly": True}, "name": {}},
        "required": ["id", "secret", "name"],
    }
    components = {"components": {"schemas": {"Pet": pet}}}
    reference = {"$ref": f"{Q}Pet"}
    document = one("post", requestBody=body(reference), responses=answering(reference), more=components)
    with board(document) as toolkit:
        tool = toolkit["do"]
    assert (list(tool.parameters["properties"]), tool.parameters["required"]) == (
        ["secret", "name"],
        ["secret", "name"],
    )
    assert tool.returns is not None
    assert tool.returns["required"] == ["id", "name"]
    assert "$defs" not in tool.returns


def test_formats_are_for_requests() -> None:
    moment = {"type": "string", "format": "date-time"}
    document = one("post", requestBody=body(moment), responses=answering(moment))
    with board(document) as toolkit:
        assert toolkit["do"].parameters["properties"]["body"] == moment
        assert toolkit["do"].returns == {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$ref": "https://example.com/pet.json"}, "another document; those are never fetched"),
        ({"$ref": "pet.yaml#/Pet"}, "another document"),
        ({"$ref": f"{Q}Nobody"}, "which is not there"),
        ({"$ref": {"a": 1}}, "another document"),
        ({"type": "sting"}, "not valid JSON Schema"),
        ({"items": "string"}, "where a schema belongs"),
        ({"allOf": [{"$ref": "#/paths/~1things/post/requestBody/content/application~1json/schema"}]}, "itself"),
    ],
)
def test_what_cannot_be_used_is_left_out(schema: Any, why: str) -> None:
    problem = problem_of(one("post", requestBody=body(schema)))
    assert "POST /things: it is left out" in problem
    assert why in problem


def test_references_that_double_each_time_end() -> None:
    schemas = {f"A{n}": {"allOf": [{"$ref": f"{Q}A{n + 1}"}] * 2} for n in range(60)} | {"A60": {"type": "object"}}
    more = {"components": {"schemas": schemas}}
    document = one("post", requestBody=body({"$ref": f"{Q}A0"}), more=more)
    assert "left out" in problem_of(document)


CASES: list[tuple[Any, list[Any]]] = [
    ({"type": "string", "nullable": True}, ["a", None, 1]),
    ({"type": "string", "enum": ["a", "b", None], "nullable": True}, ["a", "c", None]),
    ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, [1, 2, 1.5]),
    ({"type": "number", "maximum": 3, "exclusiveMaximum": False}, [3, 4]),
    ({"type": "array", "items": {"type": "integer", "nullable": True}, "maxItems": 2}, [[1, None], [1, 2, 3], ["a"]]),
    ({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}, [{"a": True}, {}, {"a": 1}]),
    ({"type": "object", "additionalProperties": {"type": "string"}}, [{"a": "b"}, {"a": 1}, {}]),
    ({"not": {"type": "string"}}, ["a", 1]),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, ["a", 1, 1.5, None]),
]


@pytest.mark.parametrize(("schema", "values"), CASES)
def test_it_admits_what_the_original_admits(schema: Any, values: list[Any]) -> None:
    oracle = pytest.importorskip("openapi_schema_validator").OAS30WriteValidator(schema)
    from jsonschema import Draft202012Validator

    ours = Draft202012Validator(converted(schema))
    assert [ours.is_valid(value) for value in values] == [oracle.is_valid(value) for value in values]


class TestPatterns:
    @pytest.mark.parametrize("pattern", ["^(a+)+$", "^(é|.)+x$", "^(a|a)*$"])
    def test_none_takes_long(self, pattern: str) -> None:
        document = one("post", requestBody=body({"type": "array", "items": {"type": "string", "pattern": pattern}}))
        with board(document) as toolkit:
            result = toolkit.call_sync("do", {"body": ["a" * 50_000 + "!"]})
        assert result.status is Status.INVALID

    @pytest.mark.parametrize(
        ("pattern", "is_space"),
        [(r"^\s$", True), (r"^[\s-]$", True), (r"^[^\S\n]|\n$", True), (r"^\S$", False), (r"^[^\s]$", False)],
    )
    def test_white_space_is_that_of_javascript(self, pattern: str, is_space: bool) -> None:
        spaces = [
            chr(each) for each in (*range(9, 14), 0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x3000, 0xFEFF)
        ]
        others = ["a", "é", "\\", "\u200b", "\u180e"]
        document = one("post", requestBody=body({"type": "array", "items": {"type": "string", "pattern": pattern}}))
        with board(document) as toolkit:
            fitting, rest = (spaces, others) if is_space else (others, spaces)
            assert toolkit.call_sync("do", {"body": fitting}).status is Status.ERROR  # there is no server
            statuses = [toolkit.call_sync("do", {"body": [each]}).status for each in rest]
        assert set(statuses) == {
            Status.ERROR if "[^\\S" in pattern else Status.INVALID
        }  # which the server has to check

    def test_one_that_cannot_be_read_is_for_the_server(self) -> None:
        strong = {"type": "string", "pattern": "^(?=.*[A-Z])(?=.*[0-9]).{8,}$", "minLength": 8}
        item = {"allOf": [strong, {"not": {"pattern": "(?!x)"}}]}
        document = one("post", requestBody=body({"type": "array", "items": item}))
        with board(document) as toolkit:
            assert toolkit.problems == []
            assert toolkit["do"].parameters["properties"]["body"]["items"] == item
            assert toolkit.call_sync("do", {"body": ["short"]}).status is Status.INVALID
            assert "cannot be reached" in toolkit.call_sync("do", {"body": ["long enough"]}).text

    def test_names_that_match_patterns_are_for_the_server(self) -> None:
        given = {"type": "object", "patternProperties": {"^(a+)+$": {"type": "string"}}, "additionalProperties": False}
        assert converted(given) == {"type": "object"}


def test_an_answer_that_refers_to_itself_keeps_its_definition() -> None:
    tree = {"type": "object", "properties": {"inner": {"$ref": f"{Q}Tree"}}}
    with board(
        one(responses=answering({"$ref": f"{Q}Tree"}), more={"components": {"schemas": {"Tree": tree}}})
    ) as toolkit:
        own = {"type": "object", "properties": {"inner": {"$ref": "#/$defs/Tree"}}}
        assert toolkit["do"].returns == {**own, "$defs": {"Tree": own}}
