"""What is hard in third-party schemas, as each provider takes it; and what is read back."""

from typing import Any

import pytest

from pegboard import Tool, tool
from pegboard_dialects import Loss
from tests.plugins.dialects.desk import NAMES, bound, definitions, nodes, schema_of, toolkit_of


def rendered(schema: dict[str, Any], name: str = "openai", strict: bool = True) -> dict[str, Any]:
    """The schema of a third-party tool as a dialect writes it."""
    (definition,) = definitions(toolkit_of(Tool.external("t", "", schema)), name, strict)
    return schema_of(definition)


def losses(schema: dict[str, Any], name: str = "openai", strict: bool = True) -> list[Loss]:
    return bound(name, Tool.external("t", "", schema)).lint(strict)


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TREE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/Node", "description": "The tree"}},
    "required": ["tree"],
    "additionalProperties": False,
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                "parent": {"$ref": "#/$defs/Node"},
                "label": {"$ref": "#/$defs/Label", "description": "What it says"},
            },
            "required": ["name", "children"],
            "additionalProperties": False,
        },
        "Label": {"type": "string", "maxLength": 5, "description": "A label"},
    },
}


class TestReferences:
    def test_of_what_contains_itself_stay(self) -> None:
        schema = rendered(TREE)
        # OpenAI takes nothing beside a reference, so that words stand around it.
        assert schema["properties"]["tree"] == {"anyOf": [{"$ref": "#/$defs/Node"}], "description": "The tree"}
        node = schema["$defs"]["Node"]
        assert node["properties"]["children"] == {"type": "array", "items": {"$ref": "#/$defs/Node"}}
        assert node["properties"]["parent"] == {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}
        assert list(schema["$defs"]) == ["Node"]

    def test_all_others_are_written_out(self) -> None:
        label = rendered(TREE)["$defs"]["Node"]["properties"]["label"]
        assert label == {"type": ["string", "null"], "description": "What it says (A label) {maxLength: 5}"}

    def test_gemini_takes_circles_only_where_a_member_may_be_left_out(self) -> None:
        schema = rendered(TREE, "gemini")
        assert schema["required"] == ["tree"]
        assert schema["$defs"]["Node"]["required"] == ["name"]
        (loss,) = [loss for loss in losses(TREE, "gemini") if loss.keyword == "required"]
        assert (loss.path, loss.severity) == ("tree.children", "warning")

    def test_to_the_root(self) -> None:
        schema = {**of(next={"$ref": "#"}), "required": []}
        found = rendered(schema)
        assert found["properties"]["next"] == {"anyOf": [{"$ref": "#/$defs/Root"}, {"type": "null"}]}
        assert found["$defs"]["Root"]["properties"]["next"] == found["properties"]["next"]

    def test_at_the_root(self) -> None:
        schema = {"$ref": "#/$defs/P", "$defs": {"P": of(n={"type": "integer"})}}
        for name in ("openai", "anthropic", "gemini"):
            assert rendered(schema, name) == of(n={"type": "integer"})
        circle = {"$ref": "#/$defs/P", "$defs": {"P": {**of(p={"$ref": "#/$defs/P"}), "required": []}}}
        assert rendered(circle, "gemini")["properties"]["p"] == {"$ref": "#/$defs/P"}

    def test_what_stands_beside_one_is_said(self) -> None:
        schema = {**TREE, "properties": {"tree": {"$ref": "#/$defs/Node", "default": None, "minProperties": 1}}}
        tree = rendered(schema, "gemini")["properties"]["tree"]
        assert tree == {"anyOf": [{"$ref": "#/$defs/Node"}], "description": "{default: null, minProperties: 1}"}

    def test_a_bomb_of_references_stays_small(self) -> None:
        definitions: dict[str, Any] = {"a0": {"type": "string"}}
        for number in range(1, 30):
            inner = {"$ref": f"#/$defs/a{number - 1}"}
            definitions[f"a{number}"] = of(x=inner, y=inner)
        schema = {**of(x={"$ref": "#/$defs/a29"}), "$defs": definitions}
        assert len(list(nodes(rendered(schema, "gemini")))) < 20_000


class TestForms:
    """What third parties write, and what becomes of it where a model is held to the schema."""

    @pytest.mark.parametrize(
        ("schema", "openai", "anthropic", "gemini"),
        [
            pytest.param(
                {"type": ["string", "null"], "maxLength": 2},
                {"type": ["string", "null"], "description": "{maxLength: 2}"},
                {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "{maxLength: 2}"},
                {"type": ["string", "null"], "description": "{maxLength: 2}"},
                id="nullable",
            ),
            pytest.param(
                {"type": ["string", "integer"], "minimum": 2},
                {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 2}]},
                {"anyOf": [{"type": "string"}, {"type": "integer", "description": "{minimum: 2}"}]},
                {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 2}]},
                id="types",
            ),
            pytest.param(
                {"oneOf": [{"type": "string"}, {"type": "boolean"}], "title": "T", "discriminator": {}},
                {"anyOf": [{"type": "string"}, {"type": "boolean"}], "title": "T"},
                {"anyOf": [{"type": "string"}, {"type": "boolean"}], "title": "T"},
                {"anyOf": [{"type": "string"}, {"type": "boolean"}], "title": "T"},
                id="oneOf",
            ),
            pytest.param(
                {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "D"},
                {"type": ["string", "null"], "description": "D"},
                {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "D"},
                {"type": ["string", "null"], "description": "D"},
                id="anyOf with null",
            ),
            pytest.param(
                {"enum": ["a", 1, None]},
                {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}, {"type": "null"}]},
                {"anyOf": [{"enum": ["a"]}, {"enum": [1]}, {"type": "null"}]},
                {"anyOf": [{"enum": ["a", 1]}, {"type": "null"}]},
                id="enum of several types",
            ),
            pytest.param(
                {"const": True},
                {"type": "boolean", "const": True},
                {"const": True},
                {"type": "boolean", "description": "{const: true}"},
                id="const",
            ),
            pytest.param(
                {"allOf": [{"type": "string", "minLength": 1}], "description": "D"},
                {"type": "string", "description": "D {minLength: 1}"},
                {"type": "string", "description": "D {minLength: 1}"},
                {"type": "string", "description": "D {minLength: 1}"},
                id="allOf of one",
            ),
            pytest.param(
                {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
                {
                    "type": "array",
                    "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                    "description": '{prefixItems: [{"type": "string"}, {"type": "integer"}]}',
                },
                {
                    "type": "array",
                    "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                    "description": '{prefixItems: [{"type": "string"}, {"type": "integer"}]}',
                },
                {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
                id="items by position",
            ),
            pytest.param(
                {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 2},
                {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 2},
                {"type": "integer", "description": "{exclusiveMinimum: 0, multipleOf: 2}"},
                {"type": "integer", "minimum": 1, "description": "{multipleOf: 2}"},
                id="bounds",
            ),
            pytest.param(
                {"type": "string", "pattern": "(?!a)b", "format": "uri"},
                {"type": "string", "description": '{pattern: "(?!a)b", format: "uri"}'},
                {"type": "string", "format": "uri", "description": '{pattern: "(?!a)b"}'},
                {"type": "string", "format": "uri", "description": '{pattern: "(?!a)b"}'},
                id="pattern that looks around",
            ),
            pytest.param(
                {"type": "string", "not": {"const": "a"}, "x-note": 1, "$comment": "c", "examples": ["b"]},
                {"type": "string", "description": '{not: {"const": "a"}, examples: ["b"]}'},
                {"type": "string", "description": '{not: {"const": "a"}, examples: ["b"]}'},
                {"type": "string", "description": '{not: {"const": "a"}, examples: ["b"]}'},
                id="unknown keywords",
            ),
        ],
    )
    def test_written(self, schema: dict[str, Any], openai: Any, anthropic: Any, gemini: Any) -> None:
        for name, wanted in {"openai": openai, "anthropic": anthropic, "gemini": gemini}.items():
            assert rendered(of(x=schema), name)["properties"]["x"] == wanted

    @pytest.mark.parametrize(
        ("schema", "path"),
        [
            ({}, "x"),
            ({"type": "array"}, "x"),
            ({"type": "array", "items": {}}, "x[]"),
            ({"type": "object"}, "x"),
            ({"type": "object", "additionalProperties": {"type": "string"}}, "x"),
            ({"type": "object", "patternProperties": {"^a": {"type": "string"}}, "additionalProperties": False}, "x"),
            (of(y={"type": "object"}), "x.y"),
            ({"enum": [{"a": 1}]}, "x"),
        ],
    )
    def test_what_no_strict_schema_says(self, schema: dict[str, Any], path: str) -> None:
        for name in ("openai", "anthropic"):
            assert rendered(of(x=schema), name) == of(x=schema)
            (loss,) = losses(of(x=schema), name)
            assert (loss.path, loss.severity) == (path, "warning")

    def test_alternatives_at_the_root(self) -> None:
        one, other = of(a={"type": "string"}), of(b={"type": "string"})
        schema = {"type": "object", "anyOf": [one, other], "properties": {"c": {"type": "string"}}}
        for name in ("openai", "anthropic", "gemini", "mcp"):
            found = rendered(schema, name)
            assert "anyOf" not in found
            assert set(found["properties"]) == {"a", "b", "c"}
            assert "anyOf" in found["description"]
            assert ("anyOf", "warning") in {(loss.keyword, loss.severity) for loss in losses(schema, name)}

    def test_a_member_that_is_forbidden_is_not_offered(self) -> None:
        schema = {**of(x={"type": "string"}), "properties": {"x": {"type": "string"}, "y": False}}
        assert list(rendered(schema)["properties"]) == ["x"]

    def test_parts_that_say_otherwise(self) -> None:
        schema = of(x={"allOf": [{"type": "integer", "minimum": 1}, {"minimum": 2}]})
        assert rendered(schema)["properties"]["x"] == {"type": "integer", "minimum": 1}
        (loss,) = losses(schema)
        assert (loss.path, loss.keyword, loss.severity) == ("x", "minimum", "warning")

    @pytest.mark.parametrize(
        ("schema", "what"),
        [
            pytest.param(
                of(**{f"p{number}": {"type": "string"} for number in range(5_001)}),
                "5,001 parameters",
                marks=pytest.mark.slow,
            ),
            (of(x={"type": "string", "enum": [str(number) for number in range(1_001)]}), "1,001 choices"),
            (of(**{"p" * 120_001: {"type": "string"}}), "120,001 characters"),
        ],
    )
    def test_too_big_for_strict_mode(self, schema: dict[str, Any], what: str) -> None:
        assert rendered(schema) == schema
        (loss,) = losses(schema)
        assert what in loss.what

    def test_too_deep_for_strict_mode(self) -> None:
        schema = {"type": "string"}
        for _ in range(12):
            schema = of(x=schema)
        assert "11 levels" in losses(schema)[0].what or "12 levels" in losses(schema)[0].what


class TestNulls:
    """A null that stands for something that was left out is left out, at any depth; every other stays."""

    SCHEMA = of(
        point=of(x={"type": "number"}) | {"properties": {"x": {"type": "number"}, "label": {"type": "string"}}},
        points={"type": "array", "items": {"$ref": "#/$defs/P"}},
        pair={"type": "array", "prefixItems": [{"$ref": "#/$defs/P"}], "items": {"type": "integer"}},
        either={
            "oneOf": [
                {**of(kind={"const": "a"}), "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}},
                {**of(kind={"const": "b"}), "properties": {"kind": {"const": "b"}, "n": {"type": ["integer", "null"]}}},
            ]
        },
        anything={},
        named={"type": "object", "additionalProperties": {"type": "integer"}},
        both={"allOf": [{"type": "object", "properties": {"n": {"type": "integer"}}}]},
    ) | {
        "$defs": {"P": {"type": "object", "properties": {"n": {"type": "integer"}, "m": {"type": "null"}}}},
        "required": [],
    }

    @pytest.mark.parametrize(
        ("sent", "kept"),
        [
            ({"point": None}, {}),
            ({"point": {"x": None, "label": None}}, {"point": {"x": None}}),
            ({"points": [{"n": None}, {"n": 1, "m": None}]}, {"points": [{}, {"n": 1, "m": None}]}),
            ({"pair": [{"n": None}, 1]}, {"pair": [{}, 1]}),
            ({"either": {"kind": "a", "n": None}}, {"either": {"kind": "a"}}),
            ({"either": {"kind": "b", "n": None}}, {"either": {"kind": "b", "n": None}}),
            ({"anything": None}, {"anything": None}),
            ({"anything": {"n": None}}, {"anything": {"n": None}}),
            ({"named": {"a": None}}, {"named": {"a": None}}),
            ({"both": {"n": None}}, {"both": {}}),
            ({"unknown": None}, {"unknown": None}),
        ],
    )
    def test_left_out(self, sent: dict[str, Any], kept: dict[str, Any]) -> None:
        chat = bound("anthropic", Tool.external("t", "", self.SCHEMA))
        (call,) = chat.calls([{"type": "tool_use", "id": "a", "name": "t", "input": sent}])
        assert call.arguments == kept

    def test_a_tool_that_is_not_offered_is_left_alone(self) -> None:
        (call,) = bound("anthropic").calls([{"type": "tool_use", "id": "a", "name": "gone", "input": {"x": None}}])
        assert call.arguments == {"x": None}


class TestLint:
    def test_nothing_is_lost_of_a_plain_tool(self) -> None:
        @tool
        def add(a: int, b: int) -> int:
            """Add."""
            return a + b

        for name in NAMES:
            assert bound(name, add).lint() == []

    def test_of_what_is_rendered(self) -> None:
        @tool(strict=True)
        def held(tags: set[str]) -> None: ...

        @tool
        def free(tags: set[str]) -> None: ...

        chat = bound("openai", held, free)
        assert [loss.tool for loss in chat.lint()] == ["held"]
        assert [(loss.tool, loss.path, loss.keyword) for loss in chat.lint(strict=True)] == [
            ("held", "tags", "uniqueItems"),
            ("free", "tags", "uniqueItems"),
        ]

    def test_remarks_are_less_than_rules(self) -> None:
        @tool
        def look(days: int = 3, name: str = "x") -> None: ...

        found = bound("gemini", look).lint()
        assert {(loss.path, loss.keyword, loss.severity) for loss in found} == {
            ("days", "default", "info"),
            ("name", "default", "info"),
        }

    def test_what_a_tool_declares_and_a_provider_has_no_place_for(self) -> None:
        @tool(defer=True, examples=[{"n": 1}])
        def rare(n: int) -> None: ...

        found = {name: {loss.keyword for loss in bound(name, rare).lint()} for name in NAMES}
        assert found == {
            "openai": {"defer", "examples"},
            "openai-responses": {"examples"},
            "anthropic": set(),
            "gemini": {"defer", "examples"},
            "dashscope": {"defer", "examples"},
            "mcp": {"defer", "examples"},
        }
