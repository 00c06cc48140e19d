"""Swagger 2.0: parameters, bodies, answers, servers and credentials are those of the same document in OpenAPI 3."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pegboard import Status, Toolkit
from pegboard_openapi import OpenApi
from tests.plugins.openapi.api import BASE
from tests.plugins.openapi.servers import Sent, Server

KEY = "s3cret-made-up-0123"
PET = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string", "minLength": 1},
        "tag": {"type": "string", "x-nullable": True},
        "weight": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
    },
}


def swagger(
    *parameters: Any, method: str = "get", path: str = "/pets", more: Any = None, **content: Any
) -> dict[str, Any]:
    """A document of one operation, which is called `do`."""
    operation = {"operationId": "do", "summary": "Do it.", "parameters": [*parameters], "responses": {}, **content}
    info = {"title": "pets", "version": "1"}
    definitions = {"Pet": PET}
    return {"swagger": "2.0", "info": info, "paths": {path: {method: operation}}, "definitions": definitions} | (
        more or {}
    )


def of(name: str, where: str = "query", kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "in": where, "type": kind, **more}


def board(document: Any, base_url: str | None = BASE, **options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(OpenApi(document, base_url, name="pets", **options))
    return toolkit


def parameters_of(document: Any) -> Any:
    with board(document) as toolkit:
        assert toolkit.problems == []
        return toolkit["do"].parameters


def sent(server: Server, document: Any, arguments: Mapping[str, Any], **options: Any) -> Any:
    with board(document, server.url, **options) as toolkit:
        assert toolkit.problems == []
        result = toolkit.call_sync("do", dict(arguments))
        assert result.status is Status.SUCCESS, result.text
    return server.last


class TestParameters:
    def test_have_the_keywords_of_a_schema(self) -> None:
        size = of("size", kind="integer", minimum=1, exclusiveMinimum=True, default=2, description="How many.")
        found = parameters_of(swagger(size, of("tag", enum=["a", "b"], required=True), of("x") | {"x-nullable": True}))
        assert found["required"] == ["tag"]
        assert found["properties"] == {
            "size": {"type": "integer", "exclusiveMinimum": 1, "default": 2, "description": "How many."},
            "tag": {"type": "string", "enum": ["a", "b"]},
            "x": {"type": ["string", "null"]},
        }

    @pytest.mark.parametrize(
        ("how", "query"),
        [
            (None, "tags=a,b%20c"),
            ("csv", "tags=a,b%20c"),
            ("ssv", "tags=a%20b%20c"),
            ("tsv", "tags=a%09b%20c"),
            ("pipes", "tags=a%7Cb%20c"),
            ("multi", "tags=a&tags=b%20c"),
        ],
    )
    def test_arrays_in_a_query(self, server: Server, how: str | None, query: str) -> None:
        form = {} if how is None else {"collectionFormat": how}
        tags = of("tags", kind="array", items={"type": "string"}, **form)
        assert sent(server, swagger(tags), {"tags": ["a", "b c"]}).target == f"/pets?{query}"

    @pytest.mark.parametrize(
        ("how", "path", "header"),
        [("csv", "1,2", "3,4"), ("pipes", "1%7C2", "3|4"), ("ssv", "1%202", "3 4"), ("tsv", "1%092", "3\t4")],
    )
    def test_arrays_in_a_path_and_a_header(self, server: Server, how: str, path: str, header: str) -> None:
        items = {"items": {"type": "integer"}, "collectionFormat": how}
        ids, ages = of("ids", "path", "array", required=True, **items), of("X-Ages", "header", "array", **items)
        if how == "tsv":  # a control character is no part of a path
            with board(swagger(ids, path="/pets/{ids}")) as toolkit:
                assert toolkit.call_sync("do", {"ids": [1, 2]}).status is Status.INVALID
            path, ids = "1", of("ids", "path", required=True)
        asked = sent(
            server,
            swagger(ids, ages, path="/pets/{ids}"),
            {"ids": "1" if how == "tsv" else [1, 2], "X-Ages": [3, 4]},
        )
        assert (asked.path, asked.headers["X-Ages"]) == (f"/pets/{path}", header)

    def test_those_of_the_path_and_of_the_document_count_too(self, server: Server) -> None:
        document = swagger({"$ref": "#/parameters/limit"}, path="/pets/{id}")
        document["parameters"] = {"limit": of("limit", kind="integer")}
        document["paths"]["/pets/{id}"]["parameters"] = [of("id", "path", required=True), of("limit")]
        asked = sent(server, document, {"id": "rex", "limit": 3})
        assert asked.target == "/pets/rex?limit=3"

    def test_one_that_leads_nowhere_leaves_its_operation_out(self) -> None:
        document = swagger({"$ref": "#/parameters/none"})
        document["paths"]["/pets"]["post"] = {"operationId": "other", "responses": {}}
        with board(document) as toolkit:
            assert [tool.name for tool in toolkit] == ["other"]
            assert "'#/parameters/none', which is not there" in toolkit.problems[0]


class TestBodies:
    def test_a_body_is_its_fields(self, server: Server) -> None:
        pet = {"name": "pet", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Pet"}}
        document = swagger(pet, of("dry", kind="boolean"), method="post")
        found = parameters_of(document)
        assert found["required"] == ["name"]
        assert found["properties"] == {
            "dry": {"type": "boolean"},
            "name": {"type": "string", "minLength": 1},
            "tag": {"type": ["string", "null"]},
            "weight": {"type": "number", "exclusiveMinimum": 0},
        }
        asked = sent(server, document, {"name": "rex", "tag": None, "dry": True})
        assert (asked.target, asked.json) == ("/pets?dry=true", {"name": "rex", "tag": None})
        assert asked.headers["Content-Type"] == "application/json"

    def test_one_with_a_discriminator_may_hold_more(self, server: Server) -> None:
        pet = {
            "type": "object",
            "discriminator": "kind",
            "required": ["kind"],
            "properties": {"kind": {"type": "string"}},
        }
        document = swagger({"name": "pet", "in": "body", "schema": {"$ref": "#/definitions/Pet"}}, method="post")
        document["definitions"]["Pet"] = pet
        cat = {"kind": "Cat", "lives": 9}
        assert sent(server, document, {"body": cat}).json == cat

    def test_what_it_is_sent_as_is_said_by_the_operation_or_the_document(self, server: Server) -> None:
        text = {"name": "pet", "in": "body", "schema": {"type": "string"}}
        own = swagger(text, method="put", consumes=["text/plain"], more={"consumes": ["application/json"]})
        asked = sent(server, own, {"body": "rex"})
        assert (asked.headers["Content-Type"], asked.body) == ("text/plain", b"rex")
        asked = sent(server, swagger(text, method="put", more={"consumes": ["text/csv"]}), {"body": "a,b"})
        assert asked.headers["Content-Type"] == "text/csv"

    def test_changed_members_are_no_json_patch(self, server: Server) -> None:
        patches = ["application/json-patch+json", "application/merge-patch+json"]
        body = {"name": "body", "in": "body", "required": True, "schema": {}}
        asked = sent(server, swagger(body, method="patch", consumes=patches), {"body": {"name": "rex"}})
        assert (asked.headers["Content-Type"], asked.json) == ("application/merge-patch+json", {"name": "rex"})

    @pytest.mark.parametrize("consumes", [[], ["application/json"], ["application/x-www-form-urlencoded"]])
    def test_fields_of_a_form(self, server: Server, consumes: list[str]) -> None:
        fields = (
            of("name", "formData", required=True, description="What it is called."),
            of("tags", "formData", "array", items={"type": "string"}),
            of("ages", "formData", "array", items={"type": "integer"}, collectionFormat="multi"),
        )
        document = swagger(*fields, method="post", consumes=consumes)
        assert parameters_of(document)["properties"]["name"]["description"] == "What it is called."
        asked = sent(server, document, {"name": "a b", "tags": ["x", "y"], "ages": [1, 2]})
        assert asked.headers["Content-Type"] == "application/x-www-form-urlencoded"
        assert asked.body == b"name=a%20b&tags=x,y&ages=1&ages=2"

    def test_a_file_makes_it_multipart(self, server: Server) -> None:
        fields = (
            of("photo", "formData", "file", required=True),
            of("tags", "formData", "array", items={"type": "string"}, collectionFormat="pipes"),
        )
        document = swagger(*fields, method="post", consumes=["application/x-www-form-urlencoded"])
        assert parameters_of(document)["properties"]["photo"] == {"type": "string", "contentEncoding": "base64"}
        asked = sent(server, document, {"photo": "aGk=", "tags": ["x", "y"]})
        assert asked.headers["Content-Type"].startswith("multipart/form-data; boundary=")
        assert b'name="photo"; filename="photo"' in asked.body
        assert b"\r\n\r\nhi\r\n" in asked.body
        assert b"\r\n\r\nx|y\r\n" in asked.body


class TestAnswers:
    @pytest.mark.parametrize(
        ("produces", "is_promised"),
        [(None, True), (["application/json"], True), (["application/json", "application/xml"], False)],
    )
    def test_json_alone_is_promised(self, produces: list[str] | None, is_promised: bool) -> None:
        responses = {"200": {"description": "It.", "schema": {"$ref": "#/definitions/Pet"}}}
        document = swagger(responses=responses, produces=produces)
        with board(document) as toolkit:
            returns = toolkit["do"].returns
            assert (returns is not None) is is_promised
            assert returns is None or returns["properties"]["tag"] == {"type": ["string", "null"]}

    def test_a_file_is_a_file(self, server: Server) -> None:
        server.answers = [Sent(b"%PDF-1.7", media_type="application/pdf")]
        document = swagger(
            responses={"200": {"description": "It.", "schema": {"type": "file"}}}, produces=["application/json"]
        )
        with board(document, server.url) as toolkit:
            assert toolkit["do"].returns is None
            result = toolkit.call_sync("do")
            assert result.status is Status.SUCCESS, result.text

    def test_an_answer_may_be_shared(self) -> None:
        document = swagger(responses={"200": {"$ref": "#/responses/pet"}})
        document["responses"] = {"pet": {"description": "It.", "schema": {"$ref": "#/definitions/Pet"}}}
        with board(document) as toolkit:
            assert toolkit["do"].returns is not None


class TestServers:
    @pytest.mark.parametrize(
        ("more", "url"),
        [
            ({"host": "pets.example.com", "schemes": ["http", "https"]}, "https://pets.example.com/pets"),
            (
                {"host": "pets.example.com:81", "schemes": ["http"], "basePath": "/v2/"},
                "http://pets.example.com:81/v2/pets",
            ),
            (
                {"host": "pets.example.com", "schemes": ["wss", "https"], "basePath": "v2"},
                "https://pets.example.com/v2/pets",
            ),
        ],
    )
    def test_are_named_by_host_and_schemes(self, more: dict[str, Any], url: str) -> None:
        (tool,) = OpenApi(swagger(more=more)).tools()
        assert f"{tool.base}{tool.operation.path}" == url

    def test_an_operation_may_have_schemes_of_its_own(self) -> None:
        more = {"host": "pets.example.com", "schemes": ["https"]}
        (tool,) = OpenApi(swagger(more=more, schemes=["http"])).tools()
        assert tool.base == "http://pets.example.com"

    def test_without_a_host_it_is_where_the_document_is(self, server: Server) -> None:
        server.answers = [Sent(swagger(more={"basePath": "/v2", "schemes": ["https"]}))]
        with board(f"{server.url}/docs/swagger.json", None) as toolkit:
            assert toolkit.call_sync("do").status is Status.SUCCESS
        assert server.last.path == "/v2/pets"

    @pytest.mark.parametrize("more", [{}, {"basePath": "/v2"}, {"host": "pets.example.com"}, {"host": 7, "schemes": 8}])
    def test_one_that_is_nowhere_has_to_be_named(self, more: dict[str, Any]) -> None:
        with board(swagger(more=more), None) as toolkit:
            assert "the document does not say where the server is, give base_url=" in toolkit.problems[0]


SCHEMES = {
    "login": {"type": "basic"},
    "key": {"type": "apiKey", "in": "query", "name": "api_key"},
    "oauth": {"type": "oauth2", "flow": "implicit", "authorizationUrl": "https://example.com", "scopes": {}},
}


class TestCredentials:
    @pytest.mark.parametrize(
        ("scheme", "options", "header", "query"),
        [
            ("login", {"basic": ("ada", KEY)}, "Basic YWRhOnMzY3JldC1tYWRlLXVwLTAxMjM=", []),
            ("key", {"api_key": KEY}, None, [("api_key", KEY)]),
            ("oauth", {"token": KEY}, f"Bearer {KEY}", []),
        ],
    )
    def test_go_where_the_document_says(
        self, server: Server, scheme: str, options: dict[str, Any], header: str | None, query: list[Any]
    ) -> None:
        document = swagger(more={"securityDefinitions": SCHEMES, "security": [{scheme: []}]})
        asked = sent(server, document, {}, **options)
        assert (asked.headers["Authorization"], asked.query) == (header, query)

    @pytest.mark.parametrize("content", [{}, {"security": []}])
    def test_go_to_no_operation_that_does_not_ask(self, server: Server, content: dict[str, Any]) -> None:
        more = {"securityDefinitions": SCHEMES, **({"security": [{"oauth": []}]} if content else {})}
        document = swagger(more=more, **content)
        document["paths"]["/mine"] = {"get": {"operationId": "mine", "security": [{"oauth": []}], "responses": {}}}
        assert sent(server, document, {}, token=KEY).headers["Authorization"] is None
        assert sent(server, document, {}, token=KEY, send_always=True).headers["Authorization"] == f"Bearer {KEY}"


class TestWhatIsWrong:
    def test_yaml_may_write_the_version_as_a_number(self, tmp_path: Path) -> None:
        path = tmp_path / "pets.yaml"
        path.write_text("swagger: 2.0\npaths: {/pets: {get: {operationId: do, responses: {200: {description: It.}}}}}")
        with board(path) as toolkit:
            assert [tool.name for tool in toolkit] == ["do"]

    @pytest.mark.parametrize(
        "part",
        [
            {"definitions": 7},
            {"parameters": 7},
            {"responses": 7},
            {"securityDefinitions": 7},
            {"securityDefinitions": {"a": 7}},
            {"host": []},
            {"basePath": 7},
            {"consumes": 7},
            {"produces": {"a": 1}},
        ],
    )
    def test_elsewhere_costs_no_operation(self, part: dict[str, Any]) -> None:
        with board(swagger(of("tag"), more=part)) as toolkit:
            assert ([tool.name for tool in toolkit], toolkit.problems) == (["do"], [])

    @pytest.mark.parametrize(
        "content",
        [
            {"parameters": [7]},
            {"parameters": [{"name": "x"}]},
            {"parameters": [{"in": "query"}]},
            {"parameters": [{"in": "body"}]},
            {"parameters": [{"in": "body", "schema": 7}]},
            {"parameters": [{"in": "formData"}]},
            {"parameters": [{"$ref": "#/parameters/loop"}]},
            {"parameters": [of("x", kind="array", collectionFormat=["multi"])]},
            {"parameters": 7},
            {"responses": 7},
            {"responses": {"200": 7}},
            {"responses": {"200": {"schema": 7}}},
            {"responses": {"200": {"schema": {"$ref": "#/definitions/none"}}}},
            {"consumes": 7, "produces": [7], "schemes": 7},
        ],
    )
    def test_in_one_operation_costs_no_other(self, content: dict[str, Any]) -> None:
        document = swagger(method="post", more={"parameters": {"loop": {"$ref": "#/parameters/loop"}}}, **content)
        document["paths"]["/other"] = {"get": {"operationId": "other", "responses": {}}}
        document["paths"]["/none"] = 7
        with board(document) as toolkit:
            assert "other" in toolkit
