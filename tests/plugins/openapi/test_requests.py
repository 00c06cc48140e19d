"""What is sent: paths, queries, headers, cookies and bodies, as a server sees them."""

import base64
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import pytest

from pegboard import Locked, Status, Toolkit, ToolResult
from pegboard_openapi import OpenApi
from tests.plugins.openapi.api import OK, body, documented, one, parameter
from tests.plugins.openapi.servers import Asked, Server


def call(server: Server, document: Any, arguments: dict[str, Any], name: str = "do", **options: Any) -> ToolResult:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(OpenApi(document, server.url, **options))
        assert toolkit.problems == []
        return toolkit.call_sync(name, arguments)


def sent(server: Server, document: Any, arguments: dict[str, Any]) -> Asked:
    result = call(server, document, arguments)
    assert result.status is Status.SUCCESS, result.text
    return server.last


class TestPlaces:
    def test_each_argument_goes_where_it_belongs(self, server: Server) -> None:
        document = one(
            "post",
            "/things/{id}/part{n}",
            parameters=[
                parameter("id", "path"),
                parameter("n", "path", {"type": "array", "items": {"type": "integer"}}, style="label", explode=True),
                parameter("q"),
                parameter("ids", schema={"type": "array"}, explode=False),
                parameter("where", schema={"type": "object"}, style="deepObject", explode=True),
                parameter("X-Trace", "header", {"type": "array"}),
                parameter("session", "cookie"),
                {"name": "filter", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
            ],
            requestBody=body({"type": "object", "properties": {"id": {"type": "integer"}, "note": {}}}),
        )
        arguments = {
            "id": "a b", "n": [1, 2], "q": "x&y", "ids": ["a", "b,c"], "where": {"size": 3}, "X-Trace": ["1", "2"],
            "session": "s;1", "filter": {"a": [1]}, "body_id": 7,
        }  # fmt: skip
        asked = sent(server, document, arguments)
        assert asked.method == "POST"
        assert asked.target == (
            "/things/a%20b/part.1.2?q=x%26y&ids=a,b%2Cc&where%5Bsize%5D=3&filter=%7B%22a%22%3A%20%5B1%5D%7D"
        )
        assert (asked.headers["X-Trace"], asked.headers["Cookie"]) == ("1,2", "session=s%3B1")
        assert asked.headers["Content-Type"] == "application/json"
        assert asked.json == {"id": 7}

    def test_a_base_url_may_have_a_path(self, server: Server) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(OpenApi(one(), f"{server.url}/api/v1/"))
            assert toolkit.call_sync("do").status is Status.SUCCESS
        assert server.last.target == "/api/v1/things"

    def test_what_is_not_said_is_not_sent(self, server: Server) -> None:
        document = one(parameters=[parameter("q", schema={"type": "string", "default": "x"}), parameter("r")])
        assert sent(server, document, {}).target == "/things"

    def test_arguments_are_checked_before_anything_is_sent(self, server: Server) -> None:
        document = one(parameters=[parameter("n", schema={"type": "integer"})])
        assert call(server, document, {"n": "many"}).status is Status.INVALID
        assert call(server, document, {"n": 1, "m": 2}).status is Status.INVALID
        assert server.asked == []

    def test_presets_are_sent_and_not_shown(self, server: Server) -> None:
        with Toolkit(plugins=()) as toolkit:
            api = OpenApi(one(parameters=[parameter("tenant"), parameter("q")]), server.url)
            toolkit.register(api, presets={"do": {"tenant": Locked("acme")}})
            assert list(toolkit["do"].parameters["properties"]) == ["q"]
            toolkit.call_sync("do", {"q": "x", "tenant": "other"})
        assert server.last.query == [("tenant", "acme"), ("q", "x")]


class TestPaths:
    @pytest.mark.parametrize("value", ["", ".", "..", "../admin", "a/../b", "..\\admin", "a/."])
    def test_nothing_leads_to_another_path(self, server: Server, value: str) -> None:
        result = call(server, one(path="/users/{id}", parameters=[parameter("id", "path")]), {"id": value})
        assert (result.status, server.asked) == (Status.ERROR, [])
        assert "id: it is a part of a path" in result.text

    @pytest.mark.parametrize("value", [[".."], ["a", "b/.."]])
    def test_nor_do_arrays(self, server: Server, value: list[str]) -> None:
        document = one(path="/users/{id}", parameters=[parameter("id", "path", {"type": "array"})])
        assert (call(server, document, {"id": value}).status, server.asked) == (Status.ERROR, [])

    def test_a_slash_is_escaped(self, server: Server) -> None:
        document = one(path="/branches/{name}", parameters=[parameter("name", "path")])
        assert sent(server, document, {"name": "feature/x?y#z"}).target == "/branches/feature%2Fx%3Fy%23z"

    def test_a_slash_leads_to_no_other_operation(self, server: Server) -> None:
        get = {"parameters": [parameter("id", "path")], "responses": OK}
        paths = {
            "/users/{id}": {"get": {**get, "operationId": "do"}},
            "/users/{id}/secrets.{kind}": {
                "get": {**get, "parameters": [*get["parameters"], parameter("kind", "path")]},
            },
        }
        result = call(server, documented(paths), {"id": "1/secrets.json"}, operations=["do"])
        assert (result.status, server.asked) == (Status.ERROR, [])
        assert "would be another operation" in result.text
        assert call(server, documented(paths), {"id": "1/secrets"}, operations=["do"]).status is Status.SUCCESS

    def test_a_slash_is_one_where_the_document_says_so(self, server: Server) -> None:
        document = one(path="/files/{path}", parameters=[{**parameter("path", "path"), "x-multi-segment": True}])
        assert sent(server, document, {"path": "src/a b.py"}).target == "/files/src/a%20b.py"
        assert call(server, document, {"path": "src/../../etc"}).status is Status.ERROR


class TestHeaders:
    @pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "é", "a\0b"])
    def test_nothing_ends_a_header(self, server: Server, value: str) -> None:
        result = call(server, one(parameters=[parameter("X-Note", "header")]), {"X-Note": value})
        assert (result.status, server.asked) == (Status.ERROR, [])
        assert "X-Note: it is sent as a header" in result.text


THING = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array"}, "at": {"type": "object"}},
}
SAID = {"name": "a&b", "tags": ["x", "y"], "at": {"lat": 1}}


class TestBodies:
    def test_json(self, server: Server) -> None:
        assert sent(server, one("post", requestBody=body(THING)), SAID).json == SAID

    def test_json_of_a_kind(self, server: Server) -> None:
        document = one("patch", requestBody=body({"type": "array"}, "application/json-patch+json"))
        asked = sent(server, document, {"body": [{"op": "remove"}]})
        assert (asked.headers["Content-Type"], asked.json) == ("application/json-patch+json", [{"op": "remove"}])

    def test_null_is_a_body_and_nothing_is_none(self, server: Server) -> None:
        document = one("post", requestBody=body({"type": ["array", "null"]}, required=False))
        assert sent(server, document, {"body": None}).body == b"null"
        assert sent(server, document, {}).body == b""
        assert server.last.headers["Content-Type"] is None

    def test_a_body_that_has_to_be_there_is_there(self, server: Server) -> None:
        assert sent(server, one("post", requestBody=body(THING)), {}).json == {}
        assert sent(server, one("post", requestBody=body(THING, required=False)), {}).body == b""

    def test_form(self, server: Server) -> None:
        encoding = {"tags": {"style": "form", "explode": False}}
        document = one("post", requestBody=body(THING, "application/x-www-form-urlencoded", encoding=encoding))
        asked = sent(server, document, SAID)
        assert asked.body == b"name=a%26b&tags=x,y&at=%7B%22lat%22%3A1%7D"
        assert asked.headers["Content-Type"] == "application/x-www-form-urlencoded"

    def test_form_of_deep_objects(self, server: Server) -> None:
        encoding = {"at": {"style": "deepObject", "explode": True}}
        document = one("post", requestBody=body(THING, "application/x-www-form-urlencoded", encoding=encoding))
        assert sent(server, document, SAID).body == b"name=a%26b&tags=x&tags=y&at%5Blat%5D=1"

    def test_multipart(self, server: Server) -> None:
        file = {"type": "string", "format": "binary"}
        fields = {**THING["properties"], "file": file, "files": {"type": "array", "items": file}}  # type: ignore[dict-item]
        encoding = {"file": {"contentType": "image/png"}}
        document = one(
            "post", requestBody=body({"type": "object", "properties": fields}, "multipart/form-data", encoding=encoding)
        )
        content = base64.b64encode(b"\x89PNG\0").decode()
        asked = sent(server, document, {**SAID, "file": content, "files": [content, content]})
        message: Any = BytesParser(policy=HTTP).parsebytes(
            b"Content-Type: " + asked.headers["Content-Type"].encode() + b"\r\n\r\n" + asked.body
        )
        parts = [
            (
                part.get_param("name", header="content-disposition"),
                part.get_content_type(),
                part.get_payload(decode=True),
            )
            for part in message.iter_parts()
        ]
        assert parts == [
            ("name", "text/plain", b"a&b"),
            ("tags", "text/plain", b"x"),
            ("tags", "text/plain", b"y"),
            ("at", "application/json", b'{"lat":1}'),
            ("file", "image/png", b"\x89PNG\0"),
            ("files", "application/octet-stream", b"\x89PNG\0"),
            ("files", "application/octet-stream", b"\x89PNG\0"),
        ]

    def test_text_and_bytes(self, server: Server) -> None:
        asked = sent(server, one("post", requestBody=body({"type": "string"}, "text/markdown")), {"body": "# é"})
        assert (asked.body.decode(), asked.headers["Content-Type"]) == ("# é", "text/markdown")
        binary = one("post", requestBody=body({"type": "string", "format": "binary"}, "application/octet-stream"))
        assert sent(server, binary, {"body": "AAEC"}).body == b"\0\1\2"
        assert "base64" in call(server, binary, {"body": "%%"}).text
