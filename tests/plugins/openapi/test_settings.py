"""Settings: installed and named in a file, an API is registered; what is missing is reported."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import SettingsError, Status, Toolkit
from pegboard_testing import assert_conforms
from tests.plugins.openapi.api import one, parameter
from tests.plugins.openapi.servers import Sent, Server, running

KEY = "s3cret-made-up-0123"


@pytest.fixture
def document(tmp_path: Path) -> str:
    key = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    parameters = [
        {"name": name, "in": "query", "description": "It.", "schema": {"type": "string"}} for name in ("q", "tenant")
    ]
    path = tmp_path / "shop.json"
    more = {"components": {"securitySchemes": key}, "security": [{"key": []}]}
    path.write_text(json.dumps(one(parameters=parameters, more=more)))
    return str(path)


def board(**shop: Any) -> Toolkit:
    return Toolkit(plugins=["openapi"], settings={"openapi": {"apis": {"shop": shop}}})


def test_nothing_is_set_nothing_is_offered() -> None:
    with Toolkit(plugins=["openapi"]) as toolkit:
        assert (len(toolkit), toolkit.problems) == (0, [])


def test_a_file_registers_tools(document: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "pegboard.toml"
    config.write_text(f"""
[openapi.apis.shop]
document = "{document}"
base_url = "{server.url}"
api_key = "${{SHOP_KEY}}"
methods = ["get"]
presets = {{ do = {{ tenant = "acme" }} }}
""")
    monkeypatch.setenv("SHOP_KEY", KEY)
    with Toolkit(plugins=["openapi"], config=config) as toolkit:
        assert [tool.name for tool in toolkit] == ["shop__do"]
        assert list(toolkit["shop__do"].parameters["properties"]) == ["q"]
        assert toolkit.call_sync("shop__do", {"q": "x"}).status is Status.SUCCESS
    assert (server.last.headers["X-Key"], server.last.query) == (KEY, [("q", "x"), ("tenant", "acme")])


@pytest.mark.parametrize("empty", [{}, {"api_key": ""}])
def test_what_lacks_a_credential_is_not_offered(document: str, empty: dict[str, str]) -> None:
    with board(document=document, base_url="http://127.0.0.1:1", **empty) as toolkit:
        assert "shop__do" not in toolkit
        message = toolkit.call_sync("shop__do", {}).text
        (record,) = [each for each in toolkit.plugins if each.name == "openapi"]
        assert toolkit.problems == []  # `pegboard doctor` says it once
    reason = "it needs a credential for 'key' (api_key=), set it in openapi.apis.shop"
    assert reason in message
    assert [(each.names, each.reason) for each in record.not_offered] == [(("shop__do",), reason)]


def test_a_document_that_is_missing_is_a_problem() -> None:
    with board(document="no-such.yaml") as toolkit:
        (problem,) = toolkit.problems
    assert "the API 'shop': its document cannot be used: no-such.yaml cannot be read" in problem


def test_terms(document: str) -> None:
    with board(
        document=document, base_url="http://127.0.0.1:1", api_key=KEY, prefix="", rename={"do": "find"}
    ) as toolkit:
        assert [tool.name for tool in toolkit] == ["find"]
    with board(document=document, disabled=True) as toolkit:
        assert len(toolkit) == 0


def test_secret_presets_go_where_the_settings_say(server: Server) -> None:
    with running(Server()) as other:
        server.answer = lambda asked: Sent(b"", 302, headers=(("Location", f"{other.url}/openapi.json"),))
        other.answer = lambda asked: Sent(one(parameters=[parameter("key"), parameter("q")]))
        shop = {"document": f"{server.url}/openapi.json", "secrets": {"do": {"key": KEY}}}
        with board(**shop) as toolkit:
            assert len(toolkit) == 0
            assert "to send secrets to 127.0.0.1, name it by base_url=" in " ".join(toolkit.problems)
        with board(**shop, base_url=other.url) as toolkit:
            assert toolkit.call_sync("shop__do").status is Status.SUCCESS
        assert other.last.query == [("key", KEY)]


def test_what_is_sent_always_and_where_slashes_may_be(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "open.json"
    path.write_text(json.dumps(one(path="/things/{id}", parameters=[parameter("id", "path")])))
    terms = {"token": KEY, "send_always": True, "slashes": ["id"]}
    with board(document=str(path), base_url=server.url, **terms) as toolkit:
        assert toolkit.call_sync("shop__do", {"id": "a/b"}).status is Status.SUCCESS
    assert (server.last.target, server.last.headers["Authorization"]) == ("/things/a%2Fb", f"Bearer {KEY}")


def test_what_is_excluded_and_how_large_a_schema_is(tmp_path: Path) -> None:
    path = tmp_path / "open.json"
    limit = parameter("limit", description="How many there are at most. " * 50)
    content = one(parameters=[limit])
    content["paths"]["/other"] = {"get": {"operationId": "other", "tags": ["internal"], "responses": {}}}
    path.write_text(json.dumps(content))
    base = "http://127.0.0.1:1"
    for exclude in ("oth*", ["/other"], {"tags": "internal"}):
        with board(document=str(path), base_url=base, exclude=exclude, max_schema=400) as toolkit:
            assert [tool.name for tool in toolkit] == ["shop__do"]
            assert len(json.dumps(toolkit["shop__do"].parameters)) <= 400


@pytest.mark.parametrize(
    ("shop", "why"),
    [
        ({"documnt": "x"}, "apis.shop: unknown key 'documnt'. Did you mean 'document'?"),
        ({}, 'apis.shop needs a "document", a path or a URL'),
        ({"document": "x", "timeout": -1}, "apis.shop.timeout must be a number above 0"),
        ({"document": "x", "max_schema": 0}, "apis.shop.max_schema must be a number above 0"),
        ({"document": "x", "exclude": [1]}, "apis.shop.exclude must be a text, a list of texts, or a table of those"),
        ({"document": "x", "exclude": {"tags": 1}}, "apis.shop.exclude must be a text, a list of texts, or a table"),
        ({"document": "x", "exclude": {"tag": "a"}}, "apis.shop: exclude: there is no 'tag'"),
        ({"document": "x", "tags": [1]}, "apis.shop.tags must be a text or a list of texts"),
        ({"document": "x", "headers": {"a": 1}}, "apis.shop.headers must be a table"),
        ({"document": "x", "disabled": "no"}, "apis.shop.disabled must be true or false"),
        ({"document": "x", "base_url": "here"}, "apis.shop: base_url takes http(s)://host/path"),
        ({"document": "x", "methods": ["fetch"]}, "apis.shop: methods: there is no 'fetch'"),
    ],
)
def test_what_is_wrong_is_named(shop: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError, match=r"the settings= argument: openapi\.apis is refused") as caught:
        board(**shop)
    assert why in str(caught.value)


def test_secrets_show_nowhere(document: str) -> None:
    secret = {"token": KEY, "api_key": KEY, "username": "ada", "password": KEY, "headers": {"X": KEY}}
    with board(document=document, base_url="http://127.0.0.1:1", **secret) as toolkit:
        from pegboard.inspection import plugins_of

        shown = [repr(each) for each in (toolkit.all_tools, toolkit.sources, toolkit.plugins, plugins_of(toolkit))]
    assert [each for each in shown if KEY in each] == []


@pytest.mark.slow
def test_conforms(document: str) -> None:
    shop = {"document": document, "base_url": "http://127.0.0.1:1", "api_key": KEY}
    assert_conforms("openapi", settings={"apis": {"shop": shop}})
