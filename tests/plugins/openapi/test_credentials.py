"""Credentials: where each goes, and that it shows nowhere."""

import base64
import logging
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from pegboard import Secret, Status, Toolkit
from pegboard_openapi import OpenApi
from tests.plugins.openapi.api import BASE, OK, board, documented, one, problem_of
from tests.plugins.openapi.servers import Asked, Sent, Server, running

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


def secured(*names: str, security: Any = None, **content: Any) -> Any:
    wanted = [{name: []} for name in names] if security is None else security
    return one(security=wanted, more={"components": {"securitySchemes": SCHEMES}}, **content)


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
        assert sent(server, secured(security=[{"bearer": []}, {}])).headers["Authorization"] is None

    def test_the_documents_own_counts_where_the_operation_says_nothing(self, server: Server) -> None:
        document = one(more={"components": {"securitySchemes": SCHEMES}, "security": [{"header": []}]})
        assert sent(server, document, api_key=KEY).headers["X-Key"] == KEY

    @pytest.mark.parametrize("content", [{}, {"security": []}, {"security": [{}]}, {"security": None}, {"security": 3}])
    def test_an_operation_that_does_not_ask_gets_none(self, server: Server, content: Any) -> None:
        asking = {"get": {"operationId": "ask", "responses": OK, "security": [{"header": []}]}}
        document = one(more={"components": {"securitySchemes": SCHEMES}}, **content)
        document["paths"]["/asking"] = asking
        asked = sent(server, document, token=KEY, api_key=KEY, basic=("ada", KEY), credentials={"digest": KEY})
        assert (asked.headers["Authorization"], asked.headers["X-Key"], asked.headers["Cookie"]) == (None, None, None)
        assert asked.query == []

    def test_send_always_sends_what_has_a_place(self, server: Server) -> None:
        content: Any
        for content in ({}, {"security": []}, {"security": [{}]}):
            assert sent(server, one(**content), token=KEY, send_always=True).headers["Authorization"] == f"Bearer {KEY}"
            document = one(more={"components": {"securitySchemes": {"header": SCHEMES["header"]}}}, **content)
            assert sent(server, document, api_key=KEY, send_always=True).headers["X-Key"] == KEY
        # What asks gets what it asks for, and nothing else.
        asked = sent(server, secured("header"), token=KEY, api_key=KEY, send_always=True)
        assert (asked.headers["X-Key"], asked.headers["Authorization"]) == (KEY, None)

    def test_credentials_that_no_operation_asks_for_are_a_problem(self) -> None:
        assert problem_of(one(), token=KEY) == (
            "the API 'shop': no operation asks for its credentials, so none gets them; send_always=True sends them"
        )
        for options in ({"token": KEY, "send_always": True}, {"headers": {"X-Tenant": KEY}}):
            with board(one(), **options) as toolkit:
                assert toolkit.problems == []


class TestRedirectedDocuments:
    """What a document's URL redirects to gets no credentials that the program did not give to it."""

    ALL: ClassVar[Any] = {
        "token": {"token": KEY},
        "api_key": {"api_key": KEY},
        "basic": {"basic": ("ada", KEY)},
        "credentials": {"credentials": {"header": KEY}},
        "headers": {"headers": {"X-Key": KEY}},
    }

    @pytest.fixture
    def other(self, server: Server) -> Iterator[Server]:
        """Where the document of `server` is in the end; it does not say where its own server is."""
        with running(Server()) as other:
            server.answer = lambda asked: Sent(b"", 302, headers=(("Location", f"{other.url}/openapi.json"),))
            document = one(security=[{name: []} for name in SCHEMES], more={"components": {"securitySchemes": SCHEMES}})
            document["paths"]["/open"] = {"get": {"operationId": "open", "responses": OK}}
            other.answer = lambda asked: Sent(document)
            yield other

    @pytest.mark.parametrize("option", ALL)
    def test_get_none(self, server: Server, other: Server, option: str) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(OpenApi(f"{server.url}/openapi.json", send_always=True, **self.ALL[option]))
            assert len(toolkit) == 0
            assert "to send secrets to 127.0.0.1, name it by base_url=" in " ".join(toolkit.problems)
        assert [asked.path for asked in other.asked] == ["/openapi.json"]
        assert all(KEY not in str(asked) and "s3cret" not in f"{asked.headers}" for asked in other.asked)

    def test_are_used_without_credentials(self, server: Server, other: Server) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(OpenApi(f"{server.url}/openapi.json"))
            assert toolkit.call_sync("open").status is Status.SUCCESS
        assert other.last.path == "/open"

    @pytest.mark.parametrize("named", ["server", "other"])
    def test_the_server_that_the_program_names_gets_them(self, server: Server, other: Server, named: str) -> None:
        base = {"server": server, "other": other}[named]
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(OpenApi(f"{server.url}/openapi.json", base.url, token=KEY))
            server.answer = lambda asked: Sent({})
            assert toolkit.call_sync("do").status is Status.SUCCESS
        assert (base.last.path, base.last.headers["Authorization"]) == ("/things", f"Bearer {KEY}")

    def test_the_same_server_keeps_them(self, server: Server) -> None:
        server.answers = [Sent(b"", 302, headers=(("Location", "/v2/openapi.json"),)), Sent(secured("bearer"))]
        url = f"{server.url}/openapi.json".replace("http://", "HTTP://")
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(OpenApi(url, token=KEY))
            assert toolkit.call_sync("do").status is Status.SUCCESS
        assert server.last.headers["Authorization"] == f"Bearer {KEY}"


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
        ("option", "message"),
        [
            ({"token": 5}, "token must be a text, not int"),
            ({"basic": ("ada",)}, "basic must be a user and a password, not 1 values"),
            ({"credentials": "made-up"}, "credentials must be a mapping by name, not str"),
            ({"headers": {"X\nY": "made-up"}}, r"'X\\nY' is no name of a header"),
        ],
    )
    def test_what_is_none_is_refused(self, option: Any, message: str) -> None:
        with pytest.raises(ValueError, match=f"^{message}$"):
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
