"""Credentials: where each goes, and that it shows nowhere."""

import base64
import logging
from typing import Any

import pytest

from pegboard import Secret, Status, Toolkit
from pegboard_openapi import OpenApi
from tests.plugins.openapi.api import BASE, OK, documented, one, problem_of
from tests.plugins.openapi.servers import Asked, Sent, Server

KEY = "s3cret/made-up+0123"
SCHEMES = {
    "bearer": {"type": "http", "scheme": "Bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "basic": {"type": "http", "scheme": "basic"},
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "api key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "digest": {"type": "http", "scheme": "digest"},
}


def secured(*names: str, security: Any = None, **said: Any) -> Any:
    wanted = [{name: []} for name in names] if security is None else security
    return one(security=wanted, more={"components": {"securitySchemes": SCHEMES}}, **said)


def sent(server: Server, document: Any, **options: Any) -> Asked:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(OpenApi(document, server.url, **options))
        assert toolkit.problems == []
        assert toolkit.call_sync("do").status is Status.SUCCESS
    return server.last


class TestWhereTheyGo:
    @pytest.mark.parametrize("scheme", ["bearer", "oauth"])
    def test_tokens(self, server: Server, scheme: str) -> None:
        asked = sent(server, secured(scheme), token=Secret(KEY))
        assert asked.headers["Authorization"] == f"Bearer {KEY}"

    def test_user_and_password(self, server: Server) -> None:
        asked = sent(server, secured("basic"), basic=("ada", Secret(KEY)))
        assert asked.headers["Authorization"] == "Basic " + base64.b64encode(f"ada:{KEY}".encode()).decode()

    def test_keys(self, server: Server) -> None:
        assert sent(server, secured("header"), api_key=KEY).headers["X-Key"] == KEY
        assert sent(server, secured("query"), api_key=KEY).query == [("api key", KEY)]
        assert sent(server, secured("cookie"), api_key=KEY).headers["Cookie"] == "sid=s3cret%2Fmade-up%2B0123"

    def test_by_the_name_of_the_scheme(self, server: Server) -> None:
        document = secured(security=[{"header": [], "query": []}])
        asked = sent(server, document, credentials={"header": "key-one", "query": "key-two"})
        assert (asked.headers["X-Key"], asked.query) == ("key-one", [("api key", "key-two")])

    def test_a_pair_may_be_one_text(self, server: Server) -> None:
        asked = sent(server, secured("basic"), credentials={"basic": f"ada:{KEY}"})
        assert asked.headers["Authorization"] == "Basic " + base64.b64encode(f"ada:{KEY}".encode()).decode()

    def test_headers_go_with_everything(self, server: Server) -> None:
        assert sent(server, one(), headers={"X-Tenant": "acme"}).headers["X-Tenant"] == "acme"

    def test_the_first_alternative_that_is_there_counts(self, server: Server) -> None:
        document = secured(security=[{"basic": []}, {"header": []}, {"bearer": []}, {}])
        asked = sent(server, document, token=KEY, api_key=KEY)
        assert (asked.headers["X-Key"], asked.headers["Authorization"]) == (KEY, None)

    def test_what_needs_none_gets_none(self, server: Server) -> None:
        asked = sent(server, secured(security=[]), token=KEY, api_key=KEY)
        assert (asked.headers["Authorization"], asked.headers["X-Key"]) == (None, None)
        assert sent(server, secured(security=[{"bearer": []}, {}])).headers["Authorization"] is None

    def test_the_documents_own_counts_where_the_operation_says_nothing(self, server: Server) -> None:
        document = one(more={"components": {"securitySchemes": SCHEMES}, "security": [{"header": []}]})
        assert sent(server, document, api_key=KEY).headers["X-Key"] == KEY

    def test_a_document_that_says_nothing_gets_what_there_is(self, server: Server) -> None:
        assert sent(server, one(), token=KEY).headers["Authorization"] == f"Bearer {KEY}"
        document = one(more={"components": {"securitySchemes": {"header": SCHEMES["header"]}}})
        assert sent(server, document, api_key=KEY).headers["X-Key"] == KEY


class TestWhatIsMissing:
    def test_is_said_once(self) -> None:
        operations = {f"/a{n}": {"get": {"operationId": f"do{n}", "responses": OK}} for n in range(9)}
        document = documented(
            operations, components={"securitySchemes": SCHEMES}, security=[{"header": []}, {"bearer": []}]
        )
        assert problem_of(document) == (
            "the API 'shop': do0, do1, do2, do3, do4 and others left out: it needs a credential for 'header' "
            "(api_key=) or a credential for 'bearer' (token=)"
        )

    def test_an_unknown_kind_is_named(self) -> None:
        assert "a credential for 'digest' (of a kind that is not known; headers= may carry it)" in problem_of(
            secured("digest"), token=KEY
        )

    @pytest.mark.parametrize(
        "option", [{"token": ""}, {"api_key": " "}, {"basic": ("ada", "")}, {"headers": {"X": ""}}]
    )
    def test_a_blank_one_is_refused(self, option: Any) -> None:
        with pytest.raises(ValueError, match="cannot be empty"):
            OpenApi(one(), BASE, **option)

    @pytest.mark.parametrize(
        ("option", "said"),
        [
            ({"token": 5}, "token must be a text, not int"),
            ({"basic": ("ada",)}, "basic must be a user and a password, not 1 values"),
            ({"credentials": "made-up"}, "credentials must be a mapping by name, not str"),
            ({"headers": {"X\nY": "made-up"}}, r"'X\\nY' is no name of a header"),
        ],
    )
    def test_what_is_none_is_refused(self, option: Any, said: str) -> None:
        with pytest.raises(ValueError, match=f"^{said}$"):
            OpenApi(one(), BASE, **option)

    def test_one_with_odd_characters_is_refused_and_not_shown(self) -> None:
        with pytest.raises(ValueError, match=r"^token holds characters that no credential has$"):
            OpenApi(one(), BASE, token="made\nup")


class TestWhereTheyShow:
    @pytest.mark.parametrize("scheme", ["bearer", "basic", "header", "query", "cookie"])
    def test_nowhere(self, server: Server, scheme: str, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        server.answer = lambda asked: Sent({"asked": asked.target, "headers": dict(asked.headers)}, status=500)
        api = OpenApi(secured(scheme), server.url, token=KEY, api_key=KEY, basic=("ada", KEY))
        with Toolkit(plugins=(), expose_errors="traceback") as toolkit:
            toolkit.register(api)
            failed = toolkit.call_sync("do")
            server.answer = lambda asked: Sent({"asked": asked.target, "headers": dict(asked.headers)})
            echoed = toolkit.call_sync("do")
        assert (failed.status, echoed.status) == (Status.ERROR, Status.SUCCESS)
        assert "***" in failed.text
        assert "***" in echoed.text
        error = failed.error.exception if failed.error else None
        shown = [failed, failed.text, failed.to_dict(), error, vars(error), echoed.text, echoed.to_dict(), caplog.text]
        shown += [api, vars(api), api.tools(), api.credentials, toolkit["do"]]
        basic = base64.b64encode(f"ada:{KEY}".encode()).decode()
        for secret in (KEY, "s3cret%2Fmade-up%2B0123", basic):
            assert [each for each in shown if secret in f"{each!r}{each}"] == []

    def test_nor_when_the_connection_fails(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        with Toolkit(plugins=(), expose_errors="traceback") as toolkit:
            toolkit.register(OpenApi(secured("query"), BASE, api_key=KEY))
            result = toolkit.call_sync("do")
        error: Any = result.error and result.error.exception
        assert "the server cannot be reached" in result.text
        for each in (result.text, repr(error.__cause__), str(error.__cause__.request.url), caplog.text):
            assert "made-up" not in each
