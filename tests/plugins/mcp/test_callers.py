"""Callers over HTTP: sessions of their own, tokens, scopes, pages of others, several workers."""

import asyncio
import gc
import re
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from pegboard import Injected, Session, Suspend, Toolkit, tool
from pegboard_mcp import Answers, Caller, mcp_server
from tests.plugins.mcp.over_http import serving
from tests.support.waiting import PATIENCE

both_eras = pytest.mark.parametrize("mode", ["auto", "legacy"])
KEY = "k" * 32
ACCEPT = {"Accept": "application/json, text/event-stream"}


@tool
def whoami(caller: Injected[Caller]) -> list[str]:
    """Who calls."""
    return [str(caller.subject), *caller.scopes, *caller.headers.values()]


@tool
def secret() -> str:
    """For few."""
    return "seen"


@tool
def asks(answers: Answers) -> str:
    """Ask twice."""
    for key in ("first", "second"):
        if key not in answers:
            raise Suspend(f"the {key}?", key=key, again=True)
    return " ".join(answers.values())


def board() -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.create_group("spare", active=False)
    toolkit.register(whoami, secret, asks)
    toolkit.register(lambda: 1, name="spared", description="Spare.", group="spare")
    toolkit.register_meta_tool()
    return toolkit


def run(scenario: Callable[[str, Toolkit], Any], **options: Any) -> None:
    async def main() -> None:
        async with serving(toolkit, all_tools=True, **options) as url:
            await asyncio.wait_for(scenario(url, toolkit), PATIENCE)

    with board() as toolkit:
        asyncio.run(main())


@asynccontextmanager
async def client(url: str, mode: str, token: str | None = None, **more: Any) -> AsyncIterator[Client]:
    headers = more.pop("headers", {}) | ({} if token is None else {"Authorization": f"Bearer {token}"})
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, **more) as opened,
    ):
        yield opened


async def names(client: Client) -> set[str]:
    return {each.name for each in (await client.list_tools(cache_mode="bypass")).tools}


def call(name: str) -> dict[str, Any]:
    """The message that calls a tool."""
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": name, "arguments": {}}}


def challenge(response: httpx2.Response) -> dict[str, str]:
    """What a refusal says of tokens."""
    return dict(re.findall(r'\b(error|scope)="([^"]*)"', response.headers["www-authenticate"]))


async def text(client: Client, name: str, **arguments: Any) -> str:
    return "".join(getattr(block, "text", "") for block in (await client.call_tool(name, arguments)).content)


@both_eras
class TestSessions:
    def test_one_client_equips_no_other(self, mode: str) -> None:
        async def scenario(url: str, toolkit: Toolkit) -> None:
            async with client(url, mode) as one, client(url, mode) as other:
                await one.call_tool("reset_equipped_tools", {"to_activate": ["spare"]})
                # Without a connection, and without saying who he is, a client has no session that outlives a request.
                assert ("spared" in await names(one)) is (mode == "legacy")
                assert "spared" not in await names(other)
                assert "spared" not in {each.name for each in toolkit.tools}

        run(scenario)

    def test_a_caller_has_one_for_himself(self, mode: str) -> None:
        async def scenario(url: str, toolkit: Toolkit) -> None:
            async with client(url, mode, "ada") as one, client(url, mode, "bob") as other:
                await one.call_tool("reset_equipped_tools", {"to_activate": ["spare"]})
                assert "spared" in await names(one)
                assert "spared" not in await names(other)

        run(scenario, verify_token=lambda token: token)

    @pytest.mark.parametrize("token", [None, "ada"])
    def test_what_comes_later_is_listed_last(self, mode: str, token: str | None) -> None:
        async def listed(client: Client) -> list[str]:
            return [each.name for each in (await client.list_tools(cache_mode="bypass")).tools]

        async def scenario(url: str, toolkit: Toolkit) -> None:
            async with client(url, mode, token) as one:
                before = ["whoami", "secret", "asks", "reset_equipped_tools"]
                assert await listed(one) == before
                toolkit.update_groups("spare", True)  # before the last one in board order
                assert await listed(one) == [*before, "spared"]
                toolkit.register(lambda: 1, name="new", description="New.")
                assert await listed(one) == [*before, "spared", "new"]

        run(scenario, verify_token=(lambda given: given) if token else None)

    def test_the_program_says_which(self, mode: str) -> None:
        toolkit_of: list[Toolkit] = []

        def session_for(caller: Caller) -> Session:
            (toolkit,) = toolkit_of
            session = toolkit.session(groups=["spare"] if caller.subject == "ada" else [])
            session.set_permission("secret", "always" if caller.subject == "ada" else "never")
            return session

        async def scenario(url: str, toolkit: Toolkit) -> None:
            toolkit_of.append(toolkit)
            async with client(url, mode, "ada") as one, client(url, mode, "bob") as other:
                assert "spared" in await names(one)
                assert "spared" not in await names(other)
                assert await text(one, "secret") == "seen"
                assert (await other.call_tool("secret", {})).is_error

        run(scenario, verify_token=lambda token: token, session_for=session_for)


@both_eras
class TestTokens:
    def test_who_calls(self, mode: str) -> None:
        async def verify(token: str) -> Caller | None:
            return Caller("ada", "inspector", ["read"]) if token == "good" else None

        async def scenario(url: str, toolkit: Toolkit) -> None:
            more = {"headers": {"X-Tenant": "acme", "X-Other": "?"}}
            async with client(url, mode, "good", **more) as known:
                assert await text(known, "whoami") == '["ada", "read", "acme"]'
            async with httpx2.AsyncClient() as http:
                refused = await http.post(url, json={}, headers={**ACCEPT, "Authorization": "Bearer bad"})
                assert refused.status_code == 401

        run(scenario, verify_token=verify, headers=["x-tenant"])

    def test_an_unidentified_caller(self, mode: str) -> None:
        async def scenario(url: str, toolkit: Toolkit) -> None:
            async with client(url, mode) as unverified:
                assert await text(unverified, "whoami") == '["None"]'

        run(scenario)

    def test_scopes_of_a_tool(self, mode: str) -> None:
        """It is listed for every caller, with its scopes; the call of one without them is refused."""

        def verify(token: str) -> Caller:
            return Caller(token, scopes=["secrets", "more"] if token == "ada" else ["more"])

        async def scenario(url: str, toolkit: Toolkit) -> None:
            async with client(url, mode, "ada") as one, client(url, mode, "bob") as other:
                for each in (one, other):
                    tools = {tool.name: tool.meta for tool in (await each.list_tools()).tools}
                    assert tools["secret"] == {"pegboard/scopes": ["secrets", "more"]}
                    assert tools["whoami"] is None
                assert await text(one, "secret") == "seen"
                with pytest.raises(MCPError, match="secret needs the scope 'secrets'") as refused:
                    await other.call_tool("secret", {})
                assert refused.value.error.data == {"error": "insufficient_scope", "scope": ["secrets", "more"]}
                assert await text(other, "whoami") == '["bob", "more"]'

        run(scenario, verify_token=verify, scopes={"secr*": "secrets", "secret": ["more"]})

    def test_over_a_transport_without_http(self, mode: str) -> None:
        async def main() -> None:
            async with Client(mcp_server(toolkit, all_tools=True, scopes={"secret": "secrets"}), mode=mode) as each:
                assert "secret" in await names(each)
                assert "secret needs the scope 'secrets'" in await text(each, "secret")

        with board() as toolkit:
            asyncio.run(asyncio.wait_for(main(), PATIENCE))


class TestRequests:
    """What an HTTP client sees that is no MCP client yet."""

    def test_where_a_token_comes_from(self) -> None:
        async def scenario(url: str, toolkit: Toolkit) -> None:
            async with httpx2.AsyncClient() as http:
                refused = await http.post(url, json={}, headers=ACCEPT)
                assert refused.status_code == 401
                (where,) = [part for part in refused.headers["www-authenticate"].split('"') if "well-known" in part]
                told = (await http.get(where)).json()
                assert told["resource"] == url
                assert told["authorization_servers"] == ["https://login.example.com"]
                assert told["scopes_supported"] == ["tools"]

        more: dict[str, Any] = {"authorization_server": "https://login.example.com", "required_scopes": ["tools"]}
        run(scenario, verify_token=lambda token: None, **more)

    def test_a_scope_that_every_caller_needs(self) -> None:
        async def scenario(url: str, toolkit: Toolkit) -> None:
            async with httpx2.AsyncClient() as http:
                refused = await http.post(url, json={}, headers={**ACCEPT, "Authorization": "Bearer x"})
                assert refused.status_code == 403
                assert challenge(refused) == {"error": "insufficient_scope", "scope": "tools"}
                refused = await http.post(url, json={}, headers=ACCEPT)
                assert refused.status_code == 401
                assert challenge(refused) == {"error": "invalid_token", "scope": "tools"}

        run(scenario, verify_token=lambda token: token, required_scopes=["tools"], scopes={"secret": "secrets"})

    @pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
    def test_a_call_is_refused_with_all_scopes_that_it_needs(self, version: str) -> None:
        async def scenario(url: str, toolkit: Toolkit) -> None:
            headers = {**ACCEPT, "Authorization": "Bearer x", "MCP-Protocol-Version": version}
            async with httpx2.AsyncClient(headers=headers) as http:
                refused = await http.post(url, json=call("secret"))
                assert refused.status_code == 403
                assert refused.headers["www-authenticate"].startswith('Bearer error="insufficient_scope", ')
                assert challenge(refused) == {"error": "insufficient_scope", "scope": "tools read secrets"}
                assert refused.json()["id"] == 7
                (where,) = [part for part in refused.headers["www-authenticate"].split('"') if "well-known" in part]
                metadata = (await http.get(where)).json()
                assert metadata["resource"] == url
                assert metadata["scopes_supported"] == ["tools", "read", "secrets"]

        options: dict[str, Any] = {"authorization_server": "https://login.example.com", "required_scopes": ["tools"]}
        verify = lambda token: Caller(token, scopes=["tools", "read"])  # noqa: E731 - it is short
        run(scenario, verify_token=verify, scopes={"secret": "read secrets"}, **options)

    def test_no_other_message_is_a_call(self) -> None:
        """A pattern that fits every tool fits no request but calls; whatever else is sent reaches the SDK."""

        async def scenario(url: str, toolkit: Toolkit) -> None:
            headers = {**ACCEPT, "Authorization": "Bearer x", "Content-Type": "application/json"}
            async with httpx2.AsyncClient(headers=headers) as http:
                bodies = [
                    b"",
                    b"{",
                    b"[]",
                    b"7",
                    b'{"method": "tools/call"}',
                    b'{"method": 1, "params": {"name": "a"}}',
                ]
                for body in [*bodies, b'{"method": "tools/call", "params": {"name": 7}}', b"\xff", b"[" * 100_000]:
                    assert (await http.post(url, content=body)).status_code == 400
                assert (await http.post(url, content=b" " * 5_000_000)).status_code == 413
                assert (await http.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code != 403

        run(scenario, verify_token=lambda token: token, scopes={"*": "secrets"})

    def test_a_call_without_any_token(self) -> None:
        async def scenario(url: str, toolkit: Toolkit) -> None:
            async with httpx2.AsyncClient(headers=ACCEPT) as http:
                refused = await http.post(url, json=call("secret"))
                assert (refused.status_code, challenge(refused)["scope"]) == (403, "secrets")

        run(scenario, scopes={"secret": "secrets"})

    @pytest.mark.parametrize("scope", ['a"b', "ä", "a\\b"])
    def test_what_is_no_scope(self, scope: str) -> None:
        with board() as toolkit, pytest.raises(ValueError, match="which is no scope"):
            mcp_server(toolkit, scopes={"secret": [scope]})

    @pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
    def test_the_scheme_in_any_case(self, scheme: str) -> None:
        async def scenario(url: str, toolkit: Toolkit) -> None:
            async with httpx2.AsyncClient() as http:
                message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
                let_in = await http.post(url, json=message, headers={**ACCEPT, "Authorization": f"{scheme} s3cret"})
                assert let_in.status_code not in (401, 403)

        run(scenario, token="s3cret")

    @pytest.mark.parametrize(
        ("origin", "allowed"),
        [("http://localhost:6274", True), ("https://app.example.com", True), ("https://evil.example", False)],
    )
    def test_a_page_asks_before_it_sends(self, origin: str, allowed: bool) -> None:
        async def scenario(url: str, toolkit: Toolkit) -> None:
            asked = {
                "Origin": origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization,mcp-session-id",
            }
            async with httpx2.AsyncClient() as http:
                answer = await http.options(url, headers=asked)
                assert (answer.status_code == 200) is allowed
                assert answer.headers.get("access-control-allow-origin") == (origin if allowed else None)

        run(scenario, token="s3cret", origins=["https://app.example.com"])


class TestBounds:
    def test_connections_that_end_leave_nothing(self) -> None:
        sessions: list[weakref.ref[Session]] = []

        async def scenario(url: str, toolkit: Toolkit) -> None:
            for _ in range(3):
                async with client(url, "legacy") as each:
                    await each.list_tools()
                    await each.call_tool("secret", {})
            async with client(url, "auto") as each:
                for _ in range(3):
                    await each.list_tools(cache_mode="bypass")
                    await each.call_tool("secret", {})
            deadline = asyncio.get_running_loop().time() + PATIENCE / 2
            while any(each() is not None for each in sessions) and asyncio.get_running_loop().time() < deadline:
                gc.collect()
                await asyncio.sleep(0.02)

        def session_for(caller: Caller) -> Session:
            (toolkit,) = toolkits
            session = toolkit.session()
            sessions.append(weakref.ref(session))
            return session

        toolkits: list[Toolkit] = []

        async def begin(url: str, toolkit: Toolkit) -> None:
            toolkits.append(toolkit)
            await scenario(url, toolkit)
            assert len(sessions) > 3
            assert [each for each in sessions if each() is not None] == []

        run(begin, session_for=session_for)

    def test_changes_are_declared_where_they_are_told(self) -> None:
        async def scenario(url: str, toolkit: Toolkit) -> None:
            changed = asyncio.Event()

            async def hear(message: Any) -> None:
                if isinstance(message, types.ToolListChangedNotification):
                    changed.set()

            async with client(url, "legacy", message_handler=hear) as each:
                assert each.server_capabilities is not None
                assert each.server_capabilities.tools is not None
                assert each.server_capabilities.tools.list_changed
                await each.list_tools()
                await each.call_tool("reset_equipped_tools", {"to_activate": ["spare"]})
                await asyncio.wait_for(changed.wait(), PATIENCE)

        run(scenario)

    def test_nothing_is_declared_that_is_not_reported(self) -> None:
        async def scenario(url: str, toolkit: Toolkit) -> None:
            async with client(url, "legacy") as each:
                assert each.server_capabilities is not None
                assert each.server_capabilities.tools is not None
                assert not each.server_capabilities.tools.list_changed
                assert await text(each, "secret") == "seen"

        run(scenario, stateless=True)


class _InTurn(httpx2.AsyncBaseTransport):
    """A balancer: each request goes to the next of the servers."""

    def __init__(self, *urls: str) -> None:
        self._urls = [httpx2.URL(url) for url in urls]
        self._inner = httpx2.AsyncHTTPTransport()
        self.asked = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = self._urls[self.asked % len(self._urls)]
        self.asked += 1
        request.url = request.url.copy_with(port=url.port)
        request.headers["Host"] = f"{url.host}:{url.port}"
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@both_eras
def test_any_of_several_workers_may_answer(mode: str) -> None:
    async def main() -> None:
        options: dict[str, Any] = {"all_tools": True, "stateless": True, "state_keys": [KEY]}
        human: Any

        async def answer(context: Any, parameters: Any) -> Any:
            return types.ElicitResult(action="accept", content={"answer": parameters.message})

        human = answer
        async with serving(toolkit, **options) as one, serving(other, **options) as two:
            balancer = _InTurn(one, two)
            async with (
                httpx2.AsyncClient(transport=balancer) as http,
                Client(streamable_http_client(one, http_client=http), mode=mode, elicitation_callback=human) as each,
            ):
                for _ in range(4):
                    assert await text(each, "secret") == "seen"
                if mode == "auto":  # the older protocol asks over a connection, of which there are none here
                    assert await text(each, "asks") == "the first? the second?"
            assert balancer.asked > 5

    with board() as toolkit, board() as other:
        asyncio.run(asyncio.wait_for(main(), PATIENCE))
