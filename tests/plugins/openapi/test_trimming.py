"""Large schemas: what a model is shown of them, and that everything is accepted all the same."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pegboard import Status
from tests.plugins.openapi.api import answering, board, body, documented, one, parameter
from tests.plugins.openapi.servers import Sent, Server

OPENAI = Path(__file__).with_name("openai.json.gz")
LONG = "A text that says much of what could be said in fewer words. " * 10


def size(schema: Any) -> int:
    return len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")))


def filled(count: int, **more: Any) -> dict[str, Any]:
    """An object of so many optional members, and further ones."""
    members = {f"member{number}": {"type": "string", "description": "One of many."} for number in range(count)}
    return {"type": "object", "properties": {**members, **more}}


def posted(schema: Any, **more: Any) -> dict[str, Any]:
    return one("post", requestBody=body(schema), more={"components": {"schemas": more}})


class TestCreateResponse:
    """OpenAI's createResponse, whose schema has 110,000 characters."""

    @staticmethod
    def document() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(gzip.decompress(OPENAI.read_bytes()))
        return found

    def test_is_shown_in_part(self) -> None:
        with board(self.document(), max_schema=None, token="made-up") as toolkit:
            whole = toolkit["createResponse"].parameters
        with board(self.document(), token="made-up") as toolkit:
            assert toolkit.problems == []
            tool = toolkit["createResponse"]
            assert size(whole) > 100_000
            assert 25_000 < size(tool.parameters) <= 32_768
            assert tool.parameters["properties"].keys() == whole["properties"].keys()
            assert "Accepted, though the schema does not show it in full: input; " in tool.description
            assert "`tools[].ranking_options`: hybrid_search, " in tool.description
            assert len(tool.description) <= 1_024

    def test_takes_what_is_left_out_and_nothing_wrong(self, server: Server) -> None:
        message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]}
        weights = {"embedding_weight": 1, "text_weight": 2}
        search = {"type": "file_search", "vector_store_ids": ["vs"], "ranking_options": {"hybrid_search": weights}}
        given: dict[str, Any] = {"model": "gpt-5", "input": [message], "tools": [search]}
        with board(self.document(), server.url, token="made-up") as toolkit:
            assert "embedding_weight" not in json.dumps(toolkit["createResponse"].parameters)
            assert toolkit.call_sync("createResponse", given).status is Status.SUCCESS
            assert server.last.json == given
            del weights["text_weight"]
            result = toolkit.call_sync("createResponse", given)
            assert result.status is Status.INVALID
            assert "tools[0]" in result.text
        assert len(server.asked) == 1


class TestOrder:
    def test_long_descriptions_go_first(self) -> None:
        schema = filled(3, long={"type": "string", "description": LONG})
        with board(posted(schema), max_schema=600) as toolkit:
            tool = toolkit["do"]
            assert list(tool.parameters["properties"]) == ["member0", "member1", "member2", "long"]
            text = tool.parameters["properties"]["long"]["description"]
            assert LONG.startswith(text.removesuffix("..."))
            assert 50 < len(text) <= 203
            assert tool.description == "Do it."

    def test_long_examples_too_and_no_data(self) -> None:
        data = {"description": LONG}
        schema = filled(0, a={"type": "object", "default": data, "examples": [data]}, b={"enum": [data]})
        with board(posted(schema), max_schema=1_500) as toolkit:
            assert toolkit["do"].parameters["properties"] == {
                "a": {"type": "object", "default": data},
                "b": {"enum": [data]},
            }

    def test_then_optional_members_the_deepest_before_others(self) -> None:
        deep = filled(5, inner=filled(20), name={"type": "integer"})
        deep["required"] = ["name"]
        with board(posted(filled(2, deep={"type": "array", "items": deep})), max_schema=900) as toolkit:
            tool = toolkit["do"]
            items = tool.parameters["properties"]["deep"]["items"]["properties"]
            assert list(items) == ["member0", "member1", "member2", "member3", "member4", "inner", "name"]
            assert len(items["inner"]["properties"]) < 20
            assert "`deep[].inner`: member" in tool.description
        with board(posted(filled(2, deep={"type": "array", "items": deep})), max_schema=340) as toolkit:
            tool = toolkit["do"]
            assert list(tool.parameters["properties"]["deep"]["items"]["properties"]) == ["name"]
            assert tool.description.endswith(
                "does not show it in full: `deep[]`: inner, member0, member1, member2, member3, member4."
            )

    def test_of_one_depth_the_largest_go_before_others(self) -> None:
        schema = filled(0, a=filled(0, small={"type": "string"}, large=filled(40)))
        schema["properties"]["a"]["properties"]["large"]["required"] = [f"member{number}" for number in range(40)]
        with board(posted(schema), max_schema=400) as toolkit:
            assert toolkit["do"].parameters["properties"]["a"]["properties"] == {"small": {"type": "string"}}

    def test_members_that_have_to_be_there_keep_their_type(self) -> None:
        needed = filled(40)
        needed["required"] = list(needed["properties"])
        schema = filled(
            0, a={"type": "object", "required": ["b"], "properties": {"b": {**needed, "description": "It."}}}
        )
        with board(posted(schema), max_schema=400) as toolkit:
            tool = toolkit["do"]
            assert tool.parameters["properties"]["a"]["properties"] == {"b": {"type": "object", "description": "It."}}
            assert tool.description.endswith("`a`: b.")

    def test_arguments_keep_their_types_at_last(self) -> None:
        choice = {
            "anyOf": [{"type": "string"}, {"type": "array", "items": filled(30)}, {"$ref": "#/components/schemas/N"}]
        }
        document = posted(filled(0, a=choice, b={"type": "boolean"}), N={"type": "number"})
        for each in choice["anyOf"][1]["items"]["properties"].values():  # type: ignore[index]
            each["enum"] = ["x" * 50]
        choice["anyOf"][1]["items"]["required"] = list(choice["anyOf"][1]["items"]["properties"])  # type: ignore[index]
        with board(document, max_schema=200) as toolkit:
            properties = toolkit["do"].parameters["properties"]
            assert properties == {"a": {"type": ["string", "array", "number"]}, "b": {"type": "boolean"}}

    def test_a_member_that_another_branch_needs_stays(self) -> None:
        parts = [filled(30, kind={"type": "string"}), {"required": ["kind"]}]
        with board(posted(filled(0, a={"allOf": parts})), max_schema=200) as toolkit:
            branch = toolkit["do"].parameters["properties"]["a"]["allOf"][0]
            assert list(branch["properties"]) == ["kind"]

    def test_what_cannot_be_smaller_is_reported(self) -> None:
        many = [parameter(f"p{number}", schema={"type": "integer"}) for number in range(50)]
        with board(one(parameters=many), max_schema=500) as toolkit:
            assert "its schema has " in toolkit.problems[0]
            assert "more than max_schema" in toolkit.problems[0]
            assert len(toolkit["do"].parameters["properties"]) == 50


class TestWhatIsLeftOut:
    def test_is_accepted_where_an_object_allows_no_more(self, server: Server) -> None:
        closed = {**filled(30), "additionalProperties": False}
        with board(posted(filled(0, a=closed)), server.url, max_schema=300) as toolkit:
            assert "member0" not in json.dumps(toolkit["do"].parameters)
            assert toolkit.call_sync("do", {"a": {"member0": "x"}}).status is Status.SUCCESS
            assert server.last.json == {"a": {"member0": "x"}}
            for wrong in ({"a": {"member0": 1}}, {"a": {"other": "x"}}):
                assert toolkit.call_sync("do", wrong).status is Status.INVALID

    def test_of_many_the_description_names_some(self) -> None:
        with board(posted(filled(0, a=filled(300))), max_schema=200) as toolkit:
            text = toolkit["do"].description
            assert len(text) < 500
            assert "in full: `a`: member0, member1, member10, " in text
            assert text.endswith(" more.")

    def test_of_an_answer_is_checked_too(self, server: Server) -> None:
        document = one(responses=answering(filled(0, a=filled(30))))
        with board(document, server.url, max_schema=300) as toolkit:
            tool = toolkit["do"]
            assert tool.returns is not None
            assert size(tool.returns) <= 300
            assert tool.description == "Do it."
            server.answer = lambda asked: Sent({"a": {"member3": "x"}})
            assert toolkit.call_sync("do").status is Status.SUCCESS
            server.answer = lambda asked: Sent({"a": {"member3": 3}})
            assert "the answer is not as documented: a.member3" in toolkit.call_sync("do").text

    @pytest.mark.parametrize("most", [0, -1, True, "much"])
    def test_a_limit_that_is_none_is_refused(self, most: Any) -> None:
        with pytest.raises(ValueError, match="max_schema must be a number above 0 or None"):
            board(one(), max_schema=most)


# Values that fit the whole schema fit the one that is shown -----------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d"])
LEAVES = st.sampled_from(
    [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"$ref": "#/components/schemas/S"}, True]
)


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.builds(
        lambda members, needed, more, text: {
            "type": "object",
            "description": text,
            "properties": members,
            "required": sorted(needed & members.keys()),
            **({} if more is None else {"additionalProperties": more}),
        },
        st.dictionaries(NAMES, inner, max_size=3),
        st.sets(NAMES, max_size=2),
        st.one_of(st.none(), st.booleans(), inner),
        st.sampled_from(["Short.", LONG]),
    )
    arrays = st.builds(lambda each: {"type": "array", "items": each}, inner)
    several = st.builds(
        lambda kind, parts: {kind: parts}, st.sampled_from(["allOf", "anyOf"]), st.lists(inner, min_size=1, max_size=2)
    )
    return st.one_of(objects, objects, arrays, several)


SCHEMAS = st.recursive(LEAVES, larger, max_leaves=12)
VALUES = st.recursive(
    st.one_of(st.integers(0, 3), st.booleans(), st.sampled_from(["x", "y"])),
    lambda inner: st.one_of(st.dictionaries(NAMES, inner, max_size=3), st.lists(inner, max_size=2)),
    max_leaves=10,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCHEMAS, SCHEMAS, st.lists(VALUES, max_size=12), st.integers(20, 600))
def test_the_shown_schema_admits_what_the_whole_one_admits(
    schema: Any, shared: Any, values: list[Any], most: int
) -> None:
    def shown(limit: int | None) -> Mapping[str, Any]:
        asked = [parameter("q", schema=schema), parameter("r", schema=filled(3, s=schema))]
        document = documented({"/": {"get": {"operationId": "do", "parameters": asked}}})
        document["components"] = {"schemas": {"S": filled(0, s=shared, t={"$ref": "#/components/schemas/S"})}}
        with board(document, max_schema=limit) as toolkit:
            found: Mapping[str, Any] = toolkit["do"].parameters
            return found

    whole, part = shown(None), shown(most)
    checks = Draft202012Validator(whole), Draft202012Validator(part)
    for value in values:
        for arguments in ({"q": value}, {"r": {"s": value, "member1": "x"}}):
            if checks[0].is_valid(arguments):
                assert checks[1].is_valid(arguments), (arguments, whole, part)
