"""What is sent: paths, queries, headers, cookies and bodies, as a server sees them."""

import base64
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, ClassVar
from urllib.parse import unquote

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import Locked, Status, Toolkit, ToolResult
from pegboard_openapi import OpenApi
from pegboard_openapi._request import ArgumentsError, request_for
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


def path_tool(server: Server, path: str = "/users/{id}", **more: Any) -> Any:
    """What calls one operation with a parameter `id` in its path."""
    document = one(path=path, parameters=[{**parameter("id", "path"), **more}])
    return lambda value, **options: call(server, document, {"id": value}, **options)


class TestPaths:
    @pytest.mark.parametrize("value", ["", ".", "..", "../admin", "a/../b", "..\\admin", "a/.", "a//b", "/", "%2e%2E"])
    def test_nothing_leads_to_another_path(self, server: Server, value: str) -> None:
        result = path_tool(server)(value)
        assert (result.status, server.asked) == (Status.INVALID, [])
        assert "id: it is a part of a path" in result.text

    @pytest.mark.parametrize("value", ["a/b", "feature/x", "a\\b", "a%2Fb", "a%5cb", "me\n", "a\0"])
    def test_a_value_is_one_part(self, server: Server, value: str) -> None:
        result = path_tool(server)(value)
        assert (result.status, server.asked) == (Status.INVALID, [])
        assert "id: it is one part of a path, and holds no slash" in result.text

    @pytest.mark.parametrize("value", [[".."], ["a", "b/.."], [""], ["a/b"]])
    def test_nor_do_arrays(self, server: Server, value: list[str]) -> None:
        result = path_tool(server, schema={"type": "array"})(value)
        assert (result.status, server.asked) == (Status.INVALID, [])

    def test_what_means_something_in_a_url_is_escaped(self, server: Server) -> None:
        assert path_tool(server)("x?y=1#z;a=b&c%20é").status is Status.SUCCESS
        assert server.last.target == "/users/x%3Fy%3D1%23z%3Ba%3Db%26c%2520%C3%A9"

    @given(st.text(st.characters(exclude_categories=["Cs"])) | st.text("./\\%2efF5cC?#;\n"))
    def test_whatever_a_model_writes_is_one_segment(self, value: str) -> None:
        (tool,) = OpenApi(one(path="/a/{id}/b", parameters=[parameter("id", "path")]), "http://host/base").tools()
        try:
            request = request_for(tool.operation, tool.base, {"id": value}, [])
        except ArgumentsError:
            return
        url = httpx2.URL(request.url)
        assert (url.host, url.query, url.fragment) == ("host", b"", "")
        # As it is sent, as ASGI servers give it to applications, and decoded once more.
        for path in (url.raw_path.decode(), url.path, unquote(url.path)):
            first, base, before, segment, after = path.split("/")
            assert (first, base, before, after) == ("", "base", "a", "b")
            assert segment not in ("", ".", "..")

    @pytest.mark.parametrize("value", ["1/secrets.json", "1/Secrets.json", "1/secrets.json/"])
    def test_a_slash_leads_to_no_other_operation(self, server: Server, value: str) -> None:
        get = {"parameters": [parameter("id", "path")], "responses": OK}
        paths = {
            "/users/{id}": {"get": {**get, "operationId": "do"}},
            "/users/{id}/secrets.{kind}": {
                "get": {**get, "parameters": [*get["parameters"], parameter("kind", "path")]},
            },
        }
        result = call(server, documented(paths), {"id": value}, operations=["do"], slashes=["id"])
        assert (result.status, server.asked) == (Status.INVALID, [])

    @pytest.mark.parametrize("value", ["me", "ME", "%6de"])
    def test_nor_does_a_word(self, server: Server, value: str) -> None:
        get = {"parameters": [parameter("id", "path")], "responses": OK}
        paths = {
            "/users/{id}": {"get": {**get, "operationId": "do"}},
            "/users/{name}": {"get": {"parameters": [parameter("name", "path")], "responses": OK}},
            "/users/me": {"get": {"responses": OK}},
        }
        result = call(server, documented(paths), {"id": value}, operations=["do"])
        assert (result.status, server.asked) == (Status.INVALID, [])
        assert "id: with this in its path GET /users/{id} would be another operation" in result.text
        assert call(server, documented(paths), {"id": "you"}, operations=["do"]).status is Status.SUCCESS

    def test_a_slash_is_one_where_the_document_says_so(self, server: Server) -> None:
        document = one(path="/files/{path}", parameters=[{**parameter("path", "path"), "x-multi-segment": True}])
        assert sent(server, document, {"path": "src/a b.py"}).target == "/files/src/a%20b.py"
        for value in ("src/../../etc", "/etc", "src//a", "src/"):
            assert call(server, document, {"path": value}).status is Status.INVALID

    def test_and_is_escaped_where_the_program_says_so(self, server: Server) -> None:
        assert path_tool(server)("group/project", slashes=["id"]).status is Status.SUCCESS
        assert server.last.target == "/users/group%2Fproject"
        assert path_tool(server)("group/../project", slashes=["id"]).status is Status.INVALID

    def test_what_utf_8_cannot_carry_is_not_sent(self, server: Server) -> None:
        for where in ("path", "query", "cookie"):
            document = one(path="/users/{id}" if where == "path" else "/users", parameters=[parameter("id", where)])
            (tool,) = OpenApi(document, server.url).tools()
            with pytest.raises(ArgumentsError, match=r"^the arguments hold characters that no request can carry$"):
                request_for(tool.operation, tool.base, {"id": "\ud800"}, [])


class TestNames:
    """An object may bring names of its own into a query, cookies or a form: never those of others."""

    KEYS: ClassVar[Any] = {
        "in the query": {"type": "apiKey", "in": "query", "name": "key"},
        "in a cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    }

    def called(self, server: Server, where: str, value: Any, **more: Any) -> ToolResult:
        free = parameter("more", where, {"type": "object"}, style="form", explode=True)
        document = one(
            parameters=[free, parameter("tenant", where)],
            more={"components": {"securitySchemes": self.KEYS}},
            **more,
        )
        return call(server, document, {"more": value, "tenant": "acme"}, api_key="s3cret-made-up", send_always=True)

    @pytest.mark.parametrize("name", ["key", "KEY", " key", "key[]", "key[a]", "tenant", "Tenant"])
    def test_in_a_query(self, server: Server, name: str) -> None:
        result = self.called(server, "query", {"size": 3, name: "x"})
        assert (result.status, server.asked) == (Status.INVALID, [])
        assert f"more: {name!r} is the name of another parameter" in result.text

    @pytest.mark.parametrize("name", ["sid", "SID", "tenant"])
    def test_in_cookies(self, server: Server, name: str) -> None:
        result = self.called(server, "cookie", {"size": 3, name: "x"})
        assert (result.status, server.asked) == (Status.INVALID, [])

    def test_also_where_an_operation_asks_for_no_credential(self, server: Server) -> None:
        free = parameter("more", schema={"type": "object"})
        document = one(parameters=[free], more={"components": {"securitySchemes": self.KEYS}})
        assert call(server, document, {"more": {"key": "x"}}).status is Status.INVALID

    def test_others_are_free(self, server: Server) -> None:
        assert self.called(server, "query", {"size": 3, "more": 1, "keys": "x"}).status is Status.SUCCESS
        assert server.last.query == [
            ("size", "3"), ("more", "1"), ("keys", "x"), ("tenant", "acme"), ("key", "s3cret-made-up"),
        ]  # fmt: skip
        assert self.called(server, "cookie", {"size": 3, "key": "x"}).status is Status.SUCCESS
        assert server.last.headers["Cookie"] == "size=3; key=x; tenant=acme; sid=s3cret-made-up"

    def test_parts_of_a_name_in_brackets_are_its_own(self, server: Server) -> None:
        named = parameter("page[of]", schema={"type": "object"}, style="deepObject", explode=True)
        document = one(parameters=[named, parameter("page")])
        asked = sent(server, document, {"page_of": {"size": 3}, "page": "1"})
        assert asked.query == [("page[of][size]", "3"), ("page", "1")]

    def test_in_a_form(self, server: Server) -> None:
        fields = {"tenant": {"type": "string"}, "more": {"type": "object"}}
        form = {"type": "object", "properties": fields}
        encoding = {"more": {"style": "form", "explode": True}}
        document = one("post", requestBody=body(form, "application/x-www-form-urlencoded", encoding=encoding))
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(OpenApi(document, server.url), presets={"do": {"tenant": Locked("acme")}})
            assert toolkit.call_sync("do", {"more": {"tenant": "other"}}).status is Status.INVALID
            assert toolkit.call_sync("do", {"more": {"size": 3}}).status is Status.SUCCESS
        assert server.last.body == b"tenant=acme&size=3"


class TestHeaders:
    @pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "é", "a\0b"])
    def test_nothing_ends_a_header(self, server: Server, value: str) -> None:
        result = call(server, one(parameters=[parameter("X-Note", "header")]), {"X-Note": value})
        assert (result.status, server.asked) == (Status.INVALID, [])
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

    @pytest.mark.parametrize("value", ["%%", "AAE", "é", "AA EC"])
    def test_what_is_no_base64_is_not_sent(self, server: Server, value: str) -> None:
        file = {"type": "string", "format": "binary"}
        form = {"type": "object", "properties": {"file": file}}
        for content in (body(file, "application/octet-stream"), body(form, "multipart/form-data")):
            document = one("post", requestBody=content)
            (name,) = OpenApi(document, server.url).tools()[0].parameters["properties"]
            result = call(server, document, {name: value})
            assert (result.status, server.asked) == (Status.INVALID, [])
            assert result.text.endswith(f"{name}: expected the content of a file as base64 text")
            assert result.error is not None
            assert result.error.kind == "invalid_arguments"
