"""From operations to tools: what is selected, how it is called, what the model sees."""

from typing import Any

import pytest

from pegboard import Toolkit
from tests.plugins.openapi.api import BASE, OK, answering, board, body, documented, one, parameter, schema_of

PETS = documented(
    {
        "/pets": {
            "get": {"operationId": "listPets", "summary": "All pets.", "tags": ["read"], "responses": OK},
            "post": {"operationId": "pets.add", "summary": "Add one.", "tags": ["write"], "responses": OK},
        },
        "/pets/{id}": {
            "parameters": [parameter("id", "path")],
            "put": {"operationId": "put", "tags": ["write"], "responses": OK},
            "delete": {"operationId": "put", "tags": ["write"], "responses": OK},
            "patch": {"tags": ["write"], "responses": OK},
        },
        "/shop/hours": {"get": {"description": "When.", "responses": OK}},
    }
)


class TestNames:
    def test_come_from_operation_ids_or_method_and_path(self) -> None:
        with board(PETS) as toolkit:
            assert [tool.name for tool in toolkit] == [
                "listPets", "pets_add", "put", "put_2", "patch_pets_id", "get_shop_hours",
            ]  # fmt: skip

    def test_do_not_depend_on_what_is_selected(self) -> None:
        with board(PETS, methods=["delete"]) as toolkit:
            assert [tool.name for tool in toolkit] == ["put_2"]

    @pytest.mark.parametrize(
        ("selected", "names"),
        [
            ({"tags": ["read"]}, ["listPets"]),
            ({"tags": "write", "methods": ["POST"]}, ["pets_add"]),
            ({"paths": ["/shop/*"]}, ["get_shop_hours"]),
            ({"paths": ["/pets"]}, ["listPets", "pets_add"]),
            ({"operations": ["pets.*", "listPets"]}, ["listPets", "pets_add"]),
        ],
    )
    def test_are_selected(self, selected: dict[str, Any], names: list[str]) -> None:
        with board(PETS, **selected) as toolkit:
            assert [tool.name for tool in toolkit] == names

    @pytest.mark.parametrize(
        ("exclude", "names"),
        [
            ("put*", ["listPets", "pets_add", "patch_pets_id", "get_shop_hours"]),
            (["/pets*", "nothing"], ["get_shop_hours"]),
            ({"tags": ["write"], "methods": "PATCH"}, ["listPets", "get_shop_hours"]),
            ({"paths": "/shop/*", "operations": ["pets.*"]}, ["listPets", "put", "put_2", "patch_pets_id"]),
            ({}, ["listPets", "pets_add", "put", "put_2", "patch_pets_id", "get_shop_hours"]),
        ],
    )
    def test_are_excluded(self, exclude: Any, names: list[str]) -> None:
        with board(PETS, exclude=exclude) as toolkit:
            assert [tool.name for tool in toolkit] == names

    def test_what_is_selected_may_be_excluded(self) -> None:
        with board(PETS, paths="/pets", exclude={"tags": "read"}) as toolkit:
            assert [tool.name for tool in toolkit] == ["pets_add"]

    @pytest.mark.parametrize(
        ("exclude", "why"),
        [
            ({"tag": "x"}, "exclude: there is no 'tag'; there are tags, methods, paths, operations"),
            ({"methods": "fetch"}, "there is no 'fetch'"),
        ],
    )
    def test_what_excludes_nothing_is_refused(self, exclude: Any, why: str) -> None:
        with pytest.raises(ValueError, match=why):
            board(PETS, exclude=exclude)

    def test_of_nothing_are_a_problem(self) -> None:
        with board(PETS, tags=["wrong"]) as toolkit:
            assert toolkit.problems == ["the API 'shop': no operation of its document is selected"]

    def test_unknown_methods_are_refused(self) -> None:
        with pytest.raises(ValueError, match="there is no 'fetch'"):
            board(PETS, methods=["fetch"])

    def test_terms_of_the_registration_hold(self) -> None:
        from pegboard_openapi import OpenApi

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(
                OpenApi(PETS, BASE), enable=["listPets", "put"], prefix="shop__", rename={"put": "replace"}
            )
            assert [tool.name for tool in toolkit] == ["shop__listPets", "shop__replace"]


class TestDescriptions:
    def test_hints_come_from_methods(self) -> None:
        with board(PETS) as toolkit:
            hints = {tool.name: tool.hints for tool in toolkit}
        assert (hints["listPets"].read_only, hints["listPets"].idempotent) == (True, True)
        assert (hints["put_2"].destructive, hints["put_2"].read_only) == (True, False)
        assert (hints["put"].idempotent, hints["put"].destructive) == (True, None)
        assert (hints["pets_add"].idempotent, hints["pets_add"].read_only) == (False, False)
        assert all(each.open_world for each in hints.values())

    def test_tags_are_tags(self) -> None:
        with board(PETS) as toolkit:
            assert toolkit["listPets"].tags == ("openapi", "read")

    @pytest.mark.parametrize(
        ("content", "shown"),
        [
            ({"summary": "Short.", "description": "Longer."}, "Short.\n\nLonger."),
            ({"summary": "The same.", "description": "The same. And more."}, "The same. And more."),
            ({"summary": None}, "GET /things"),
            ({"summary": "Old.", "deprecated": True}, "Deprecated.\n\nOld."),
            ({"summary": "a" * 5000}, "a" * 1021 + "..."),
        ],
    )
    def test_descriptions(self, content: dict[str, Any], shown: str) -> None:
        with board(one(**content)) as toolkit:
            assert toolkit["do"].description == shown


class TestParameters:
    def test_all_places_are_one_schema(self) -> None:
        schema = schema_of(
            one(
                "post",
                "/things/{id}",
                parameters=[
                    parameter("id", "path", {"type": "integer"}, description="Which one"),
                    parameter("verbose", "query", {"type": "boolean", "default": False}),
                    parameter("X-Trace", "header"),
                    parameter("session", "cookie"),
                ],
                requestBody=body({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}),
            )
        )
        assert schema == {
            "type": "object",
            "properties": {
                "id": {"type": "integer", "description": "Which one"},
                "verbose": {"type": "boolean", "default": False},
                "X-Trace": {"type": "string"},
                "session": {"type": "string"},
                "name": {"type": "string"},
            },
            "required": ["id", "name"],
            "additionalProperties": False,
        }

    def test_names_are_told_apart(self) -> None:
        parameters = [parameter("id", "query"), parameter("id", "path"), parameter("id", "header")]
        fields = {"type": "object", "properties": {"id": {}, "body_id": {}, "filter[name]": {}, "$top": {}}}
        schema = schema_of(one("post", "/things/{id}", parameters=parameters, requestBody=body(fields)))
        assert list(schema["properties"]) == [
            "id",
            "query_id",
            "header_id",
            "body_id_2",
            "body_id",
            "filter_name",
            "top",
        ]

    def test_those_of_the_path_item_count_unless_the_operation_says_otherwise(self) -> None:
        item = {
            "parameters": [parameter("page", schema={"type": "integer"}), parameter("size")],
            "get": {
                "operationId": "do",
                "responses": OK,
                "parameters": [parameter("size", schema={"type": "integer"})],
            },
        }
        kinds = {name: each["type"] for name, each in schema_of(documented({"/a": item}))["properties"].items()}
        assert kinds == {"page": "integer", "size": "integer"}

    def test_headers_of_the_connection_are_not_offered(self) -> None:
        names = ["Accept", "authorization", "Host", "Content-Length", "Cookie", "X-Mine", "Transfer-Encoding"]
        schema = schema_of(one(parameters=[parameter(name, "header") for name in names]))
        assert list(schema["properties"]) == ["X-Mine"]

    def test_what_the_program_sends_is_not_offered(self) -> None:
        more = {"components": {"securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "key"}}}}
        parameters = [parameter("key"), parameter("x-tenant", "header"), parameter("q")]
        document = one(parameters=parameters, security=[{"key": []}], more=more)
        schema = schema_of(document, api_key="made-up", headers={"X-Tenant": "acme"})
        assert list(schema["properties"]) == ["q"]

    def test_what_is_in_no_path_is_no_part_of_it(self) -> None:
        schema = schema_of(one(path="/things/{id}", parameters=[parameter("id", "path"), parameter("other", "path")]))
        assert list(schema["properties"]) == ["id"]

    def test_examples_help(self) -> None:
        schema = schema_of(one(parameters=[parameter("q", schema={"type": "string", "example": "cats"})]))
        assert schema["properties"]["q"]["examples"] == ["cats"]


class TestBodies:
    def test_an_optional_body_that_needs_fields_is_one_argument(self) -> None:
        fields = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        schema = schema_of(one("post", requestBody=body(fields, required=False)))
        assert schema["properties"] == {
            "body": {"type": "object", "properties": fields["properties"], "required": ["name"]}
        }
        assert schema["required"] == []

    @pytest.mark.parametrize(
        "fields",
        [
            {"type": "array", "items": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]},
            {"type": "object"},
            {"type": "object", "properties": {"a": {}}, "required": ["b"]},
            {"type": ["object", "null"], "properties": {"a": {}}},
        ],
    )
    def test_what_is_more_than_its_properties_is_one_argument(self, fields: Any) -> None:
        assert list(schema_of(one("post", requestBody=body(fields)))["properties"]) == ["body"]

    def test_all_of_objects_is_one_object(self) -> None:
        base = {"type": "object", "properties": {"id": {"readOnly": True}, "name": {}}, "required": ["id", "name"]}
        more = {"components": {"schemas": {"Base": base}}}
        both = {
            "allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"size": {}, "name": {"type": "string"}}}]
        }
        both["allOf"].append({"required": ["size"]})
        schema = schema_of(one("post", requestBody=body(both), more=more))
        assert schema["properties"] == {"name": {"allOf": [{}, {"type": "string"}]}, "size": {}}
        assert schema["required"] == ["name", "size"]

    def test_forms_are_fields(self) -> None:
        fields = {
            "type": "object",
            "properties": {"file": {"type": "string", "format": "binary"}},
            "required": ["file"],
        }
        schema = schema_of(one("post", requestBody=body(fields, "multipart/form-data", required=False)))
        assert schema["properties"] == {"file": {"type": "string", "contentEncoding": "base64"}}
        assert schema["required"] == ["file"]

    def test_json_is_preferred(self) -> None:
        content = {"text/plain": {}, "application/xml": {}, "application/vnd.acme+json": {"schema": {"type": "array"}}}
        schema = schema_of(one("post", requestBody={"content": content, "required": True}))
        assert schema["properties"]["body"] == {"type": "array"}

    def test_bytes_are_base64(self) -> None:
        schema = schema_of(one("put", requestBody=body({"type": "string", "format": "binary"}, "image/png")))
        assert schema["properties"]["body"] == {"type": "string", "contentEncoding": "base64"}


class TestAnswersThatArePromised:
    def test_one_schema(self) -> None:
        with board(one(responses=answering({"type": "object", "properties": {"id": {"type": "integer"}}}))) as toolkit:
            assert toolkit["do"].returns == {"type": "object", "properties": {"id": {"type": "integer"}}}

    def test_several_and_none(self) -> None:
        responses = {**answering({"type": "integer"}), "204": {"description": "none"}, "404": {"description": "no"}}
        with board(one(responses=responses)) as toolkit:
            assert toolkit["do"].returns == {"anyOf": [{"type": "integer"}, {"type": "null"}]}

    @pytest.mark.parametrize(
        "responses",
        [
            {"204": {"description": "none"}},
            {"200": {"description": "a text", "content": {"text/plain": {"schema": {"type": "string"}}}}},
            {**answering({"type": "integer"}), "206": {"description": "x", "content": {"image/png": {}}}},
            {"200": {"description": "anything", "content": {"application/json": {}}}},
            answering({"$ref": "https://example.com/other.json"}),
            {"404": {"description": "no"}},
        ],
    )
    def test_what_cannot_be_promised_is_not(self, responses: Any) -> None:
        with board(one(responses=responses)) as toolkit:
            assert toolkit["do"].returns is None

    def test_nor_on_request(self) -> None:
        with board(one(responses=answering({"type": "integer"})), output_schemas=False) as toolkit:
            assert toolkit["do"].returns is None
