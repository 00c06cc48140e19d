"""Documents: what is read, and that none of them does harm."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pegboard import Status, Toolkit
from pegboard_openapi import OpenApi, _document
from tests.plugins.openapi.api import BASE, OK, board, documented, one, parameter, problem_of
from tests.plugins.openapi.servers import Sent, Server

YAML = """
# A comment.
openapi: 3.0.3
info: {title: shop, version: 1.0}
servers: [{url: "http://127.0.0.1:1/{version}", variables: {version: {default: v2}}}]
paths:
  /things/{on}:
    get:
      operationId: do
      parameters:
        - {name: on, in: path, required: true, schema: {enum: [on, off, no, 12:30, 2020-01-01, 0x1F, 017]}}
        - &page {name: page, in: query, schema: {type: integer, default: 1}}
        - {<<: *page, name: size}
      responses:
        200: {description: fine}
"""


def same_names(count: int) -> Any:
    return documented({f"/{n}": {"get": {"operationId": "do", "responses": OK}} for n in range(count)})


def same_parameters(count: int) -> Any:
    return one(parameters=[parameter(f"q{chr(0x4E00 + n)}") for n in range(count)])


def same_schemas(count: int) -> Any:
    schemas = {f"S{n}": {"properties": {"same": {"type": "string", "minLength": n}}} for n in range(count)}
    refs = [parameter(f"q{n}", schema={"$ref": f"#/components/schemas/S{n}/properties/same"}) for n in range(count)]
    return one(parameters=refs, more={"components": {"schemas": schemas}})


def own_schemes(count: int, security: str = "own") -> Any:
    """As many security schemes as operations: one for each, all of them alternatives for all, or none asked for."""
    schemes = {f"key{n}": {"type": "apiKey", "in": "query", "name": f"key-{n}"} for n in range(count)}
    asked: dict[str, list[Any]] = {
        "own": [{"security": [{name: []}]} for name in schemes],
        "all": [{}] * count,
        "none": [{"security": []}] * count,
    }
    paths = {f"/{n}": {"get": {"operationId": f"do{n}", **asked[security][n]}} for n in range(count)}
    return documented(paths, components={"securitySchemes": schemes}, security=[{name: []} for name in schemes])


def steps(document: Any) -> int:
    """How many lines run while a document is read and its problems are put together."""
    lines = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace if "pegboard_openapi" in frame.f_code.co_filename else None

    api = OpenApi(document, BASE)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert api.tools() or api.missing
        assert api.problems is not None
    finally:
        sys.settrace(before)
    return lines


class TestSources:
    def test_yaml_is_json(self, tmp_path: Path) -> None:
        path = tmp_path / "shop.yaml"
        path.write_text(YAML)
        with board(path, None) as toolkit:
            assert toolkit.problems == []
            properties = toolkit["do"].parameters["properties"]
            assert properties["on"]["enum"] == ["on", "off", "no", "12:30", "2020-01-01", "0x1F", "017"]
            assert properties["page"] == properties["size"] == {"type": "integer", "default": 1}

    def test_json_file(self, tmp_path: Path) -> None:
        path = tmp_path / "shop.json"
        path.write_text(json.dumps(one()), "utf-8-sig")
        with board(str(path)) as toolkit:
            assert [tool.name for tool in toolkit] == ["do"]
        assert OpenApi(path).name == "shop"

    def test_url(self, server: Server) -> None:
        server.answers = [Sent(b"", 301, headers=(("Location", "/v1/openapi.json"),)), Sent(one())]
        api = OpenApi(f"{server.url}/openapi.json")
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(api)
            assert toolkit.call_sync("do").status is Status.SUCCESS
        assert [asked.path for asked in server.asked] == ["/openapi.json", "/v1/openapi.json", "/things"]

    def test_servers_are_relative_to_it(self, server: Server) -> None:
        server.answers = [Sent(one(more={"servers": [{"url": "../api"}]}))]
        with board(f"{server.url}/docs/openapi.json", None) as toolkit:
            toolkit.call_sync("do")
        assert server.last.path == "/api/things"

    def test_a_document_that_changes_is_read_again(self) -> None:
        document: dict[str, Any] = one()
        api = OpenApi(document, BASE, name="shop")
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(api)
            document["paths"]["/new"] = {"get": {"operationId": "new", "responses": OK}}
            assert len(toolkit) == 1
            api.refresh()
            assert [tool.name for tool in toolkit] == ["do", "new"]
            document["openapi"] = "2.0"
            api.refresh()
            assert len(toolkit) == 2
            assert len(toolkit.problems) == 1


class TestWhatCannotBeUsed:
    @pytest.mark.parametrize(
        ("document", "why"),
        [
            ("/no/such/file.yaml", "cannot be read: No such file"),
            ("http://127.0.0.1:1/openapi.json", "http://127.0.0.1:1/openapi.json could not be fetched: ConnectError"),
            ({"swagger": "1.2"}, "it is of version 1.2; convert it first"),
            ({"info": {}}, "it has no `openapi: 3...`"),
        ],
    )
    def test_says_why(self, document: Any, why: str) -> None:
        problem = problem_of(document)
        assert problem.startswith("the API 'shop': its document cannot be used: ")
        assert why in problem

    @pytest.mark.parametrize("text", ["a: [", "{'a': }", "\0", "- just\n- a list", "text", ""])
    def test_nor_what_is_no_document(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "broken.yaml"
        path.write_text(text)
        assert "its document cannot be used" in problem_of(path)

    def test_a_missing_page(self, server: Server) -> None:
        server.answers = [Sent({}, 404)]
        assert "/openapi.json answered 404" in problem_of(f"{server.url}/openapi.json")

    def test_a_server_that_is_nowhere(self) -> None:
        assert "does not say where the server is, give base_url=" in problem_of(one(), None)

    @pytest.mark.parametrize(
        "url", ["ftp://a", "http://", "http://ada:pw@host", "http://host?key=1", "host/path", "http://h:x", 5]
    )
    def test_a_base_url_that_is_none(self, url: Any) -> None:
        with pytest.raises(ValueError, match=r"^base_url takes") as caught:
            OpenApi(one(), url)
        assert "pw" not in str(caught.value)

    @pytest.mark.parametrize("number", [-1, 0, None, float("nan"), float("inf"), "60", True])
    @pytest.mark.parametrize("option", ["timeout", "max_bytes"])
    def test_a_number_that_is_none(self, option: str, number: Any) -> None:
        with pytest.raises(ValueError, match=rf"^{option} must be a number above 0; it is "):
            OpenApi(one(), BASE, **{option: number})

    def test_a_document_or_an_application_that_is_none(self) -> None:
        with pytest.raises(ValueError, match=r"^document must be a path, a URL, a mapping or an application, not None"):
            OpenApi(None)
        with pytest.raises(ValueError, match=r"^app must be an ASGI application, not int$"):
            OpenApi(one(), BASE, app=5)

    def test_credentials_go_where_the_document_comes_from_or_the_program_says(self, server: Server) -> None:
        server.answer = lambda asked: Sent(one(more={"servers": [{"url": "https://example.com/api"}]}))
        url = f"{server.url}/openapi.json"
        assert "to send secrets to example.com, name it by base_url=" in problem_of(url, None, token="made-up")
        for options in ({"base_url": None}, {"base_url": BASE, "token": "made-up", "send_always": True}):
            with board(url, **options) as toolkit:
                assert toolkit.problems == []

    def test_a_server_with_an_odd_name_gets_no_credentials(self, server: Server) -> None:
        server.answer = lambda asked: Sent(one(more={"servers": [{"url": "https://b\xfccher.example/"}]}))
        url = f"{server.url}/openapi.json"
        assert "its host is not ASCII" in problem_of(url, None, token="made-up")
        with board(url, None) as toolkit:
            assert toolkit.problems == []


class TestFaults:
    """A fault removes the operation that has it, and nothing else."""

    @pytest.mark.parametrize(
        "content",
        [
            {"parameters": 3},
            {"parameters": [3]},
            {"parameters": [{"name": "q", "in": "query", "schema": {"$ref": "http://127.0.0.1:1/x.json"}}]},
            {"parameters": [{"$ref": "#/components/parameters/none"}]},
            {"requestBody": {"content": {"application/json": {"schema": {"properties": 3, "items": 3}}}}},
            {"requestBody": "body"},
            {"security": [{"none": []}]},
            {"servers": 3},
        ],
    )
    def test_one_operation(self, content: Any) -> None:
        paths = {
            "/bad": {"post": {"operationId": "bad", **content}},
            "/good": {"get": {"operationId": "good", "responses": OK}},
        }
        api = OpenApi(documented(paths, servers=[{"url": BASE}]), name="shop")
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(api)
            assert [tool.name for tool in toolkit] == ["good"]
            assert len(toolkit.problems) == 1

    @pytest.mark.parametrize(
        "paths", [3, [], {"/a": 3}, {"/a": {"get": 3}}, {"a": {"get": {}}}, {"/a": {"$ref": "#/a"}}, None]
    )
    def test_no_operation(self, paths: Any) -> None:
        assert "no operation" in problem_of(documented(paths))

    def test_a_path_that_nothing_describes(self) -> None:
        assert "nothing says what 'id' in its path is" in problem_of(one(path="/things/{id}"))

    @pytest.mark.parametrize(
        "scheme",
        [3, None, {}, {"type": []}, {"type": {}}, {"$ref": "#/none"}, {"type": "apiKey", "in": [], "name": {}}],
    )
    def test_a_scheme_that_is_none(self, scheme: Any) -> None:
        paths = {"/a": {"get": {"operationId": "do", "security": [{"x": []}]}}, "/b": {"get": {"operationId": "open"}}}
        document = documented(paths, components={"securitySchemes": {"x": scheme}})
        options: Any
        for options in ({}, {"token": "made-up", "api_key": "made-up"}, {"api_key": "made-up", "send_always": True}):
            with board(document, **options) as toolkit:
                assert [tool.name for tool in toolkit] == ["open"]

    @pytest.mark.parametrize("part", ["components", "security", "servers", "info", "tags"])
    def test_parts_that_are_something_else(self, part: str) -> None:
        for wrong in (3, "x", [3], None):
            with board({**one(), part: wrong}, token="made-up") as toolkit:
                assert len(toolkit) + len(toolkit.problems) >= 1

    @pytest.mark.parametrize(
        "lines",
        [
            # Of merge keys 8 levels of 9 are 43 million members; this is 607 bytes long.
            [f"x-{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}" for n in range(1, 9)],
            [f"x-{n}: &m{n} {{<<: *m{n - 1}, a{n}: [*m{n - 1}, *m{n - 1}]}}" for n in range(1, 40)],
            [f"x-{n}: &m{n} [*m{n - 1}, *m{n - 1}]" for n in range(1, 40)],
            [f"x-{n}: &m{n} {{? [*m{n - 1}, *m{n - 1}] : 1}}" for n in range(1, 40)],
            ["x-1: &m1 " + "x" * 1_000_000, f"x-2: [{', '.join(['*m1'] * 1_000)}]"],
            [f"x-1: [{', '.join(['*m0'] * 100_000)}]"],
        ],
        ids=["merges", "merges and aliases", "aliases", "keys", "a long text", "many"],
    )
    def test_laughter_ends(self, tmp_path: Path, lines: list[str]) -> None:
        path = tmp_path / "laughter.yaml"
        path.write_text("\n".join(["openapi: 3.0.0", "x-0: &m0 {a: 1, b: 2}", *lines]))
        assert "its aliases repeat more than 100,000 parts; write it without anchors" in problem_of(path)

    def test_what_a_program_repeats_ends_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_document, "_MOST_PARTS", 10_000)
        part: Any = ["lol"]
        for _ in range(40):
            part = [part, part]
        assert "it has more than 10,000 parts" in problem_of({**one(), "x-part": part})

    def test_some_aliases_are_no_laughter(self, tmp_path: Path) -> None:
        path = tmp_path / "aliases.yaml"
        paths = [f"  /things/{n}: {{get: {{<<: *get, operationId: do{n}}}}}" for n in range(1_000)]
        get = "{summary: Do it., tags: [a, b], responses: {'200': {description: fine}}}"
        path.write_text("\n".join(["openapi: 3.0.0", f"x-get: &get {get}", "paths:", *paths]))
        with board(path) as toolkit:
            assert (len(toolkit), toolkit.problems) == (1_000, [])

    @pytest.mark.parametrize("text", ["a: *b", "a: &a [*a]", "a: &a {b: *a}", "a: &a {<<: *a}"])
    def test_an_alias_of_nothing_or_of_what_it_is_in(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "alias.yaml"
        path.write_text(f"openapi: 3.0.0\n{text}")
        assert "stands for nothing, or for what it is in" in problem_of(path)

    @pytest.mark.parametrize("tagged", ["!!int 1:1", "!!int 0x1F", "!!float 1:1.5", "!!int 1_000_x"])
    def test_tagged_numbers_are_those_of_json(self, tmp_path: Path, tagged: str) -> None:
        path = tmp_path / "tagged.yaml"
        path.write_text(f"openapi: 3.0.0\nx-number: {tagged}")
        assert "it is neither JSON nor YAML" in problem_of(path)

    def test_schemas_of_one_operation_end(self) -> None:
        schemas: Any = {f"S{n}": {"properties": {str(each): {} for each in range(1_000)}} for n in range(30)}
        several = [{"$ref": f"#/components/schemas/S{n}"} for n in range(30)]
        document = one(
            parameters=[parameter("q", schema={"anyOf": several})], more={"components": {"schemas": schemas}}
        )
        assert "it is left out: its schemas have more than 20,000 parts" in problem_of(document)

    def test_one_name_for_all_operations_is_linear(self) -> None:
        assert steps(same_names(400)) < 2.2 * steps(same_names(200))

    def test_one_name_for_all_parameters_is_linear(self) -> None:
        assert steps(same_parameters(400)) < 2.2 * steps(same_parameters(200))

    def test_one_name_for_all_schemas_is_linear(self) -> None:
        assert steps(same_schemas(400)) < 2.2 * steps(same_schemas(200))

    def test_one_reason_for_each_operation_is_linear(self) -> None:
        assert steps(own_schemes(400)) < 2.2 * steps(own_schemes(200))

    @pytest.mark.parametrize("security", ["all", "none"])
    def test_what_holds_for_all_operations_is_not_looked_through_for_each(self, security: str) -> None:
        assert steps(own_schemes(200, security)) < 2.2 * steps(own_schemes(100, security))

    def test_depth_ends(self, tmp_path: Path) -> None:
        for text in (
            "[" * 100_000,
            "- " * 100_000,
            "openapi: 3.0.0\na: &a [*a]",
            '{"a":' * 100_000,
            '{"openapi": "3.0.0", "a": ' + "[" * 500 + "]" * 500 + "}",
        ):
            path = tmp_path / "deep.json"
            path.write_text(text)
            assert "its document cannot be used" in problem_of(path)

    def test_size_ends(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
        monkeypatch.setattr(_document, "MAX_BYTES", 1_000)
        path = tmp_path / "long.json"
        path.write_text(" " * 2_000)
        assert "more than 1,000 bytes" in problem_of(path)
        server.answers = [Sent(b" " * 100_000)]
        assert "more than 1,000 bytes" in problem_of(f"{server.url}/openapi.json")

    def test_nothing_of_python_is_made(self, tmp_path: Path) -> None:
        path = tmp_path / "objects.yaml"
        path.write_text("openapi: !!python/object/apply:os.system ['true']")
        assert "neither JSON nor YAML in line 1" in problem_of(path)

    def test_many_problems_are_told_in_part(self) -> None:
        paths = {f"/{n}": {"get": {"parameters": 3}} for n in range(50)}
        with board(documented(paths)) as toolkit:
            assert len(toolkit.problems) == 21
            assert toolkit.problems[-1] == "the API 'shop' has 30 problems more"

    def test_swapping_the_order_changes_no_schema(self) -> None:
        parameters = [parameter("id", "path"), parameter("id", "query")]
        both = [one(path="/a/{id}", parameters=each) for each in (parameters, parameters[::-1])]
        first, second = (OpenApi(each, BASE).tools()[0].parameters for each in both)
        assert json.dumps(first) == json.dumps(second)
