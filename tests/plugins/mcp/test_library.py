"""The board's own resources and prompts, as the SDK's client reads them over stdio and HTTP, in both eras."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitResult, PromptReference, ResourceTemplateReference

from pegboard import Injected, RegistrationError, Toolkit, UnknownNameError
from pegboard_mcp import Caller, McpServer, Resources, mcp_server
from tests.plugins.mcp import library_board
from tests.plugins.mcp.library_board import CLOCK, CSP, PAGE, PNG, PROMPTS
from tests.plugins.mcp.over_http import serving
from tests.support.warm import warm_python

pytestmark = pytest.mark.usefixtures("nothing_left")
both_eras = pytest.mark.parametrize("mode", ["auto", "legacy"])
MIME = "text/html;profile=mcp-app"


@asynccontextmanager
async def at(how: str, mode: Any, folder: Path, **options: Any) -> AsyncIterator[Any]:
    """A client of the board: in this process, over stdio, or over HTTP."""
    if how == "stdio":
        command = StdioServerParameters(command=warm_python(), args=["-m", "tests.plugins.mcp.library_board"])
        async with Client(stdio_client(command), mode=mode, **options) as client:
            yield client
        return
    with library_board.board() as toolkit:
        served: dict[str, Any] = {"resources": library_board.sources(folder), "prompts": PROMPTS}
        if how == "http":
            async with serving(toolkit, **served) as url, Client(url, mode=mode, **options) as client:
                yield client
        else:
            async with Client(mcp_server(toolkit, **served), mode=mode, **options) as client:
                yield client


@asynccontextmanager
async def closed_at_the_end(server: McpServer) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await asyncio.to_thread(server.close)


def run(work: Callable[[Any], Coroutine[Any, Any, Any]], how: str, mode: str, folder: Path, **options: Any) -> Any:
    async def main() -> Any:
        async with at(how, mode, folder, **options) as client:
            return await work(client)

    return asyncio.run(main())


async def refused(request: Coroutine[Any, Any, Any]) -> str:
    with pytest.raises(MCPError) as caught:
        await request
    return f"{caught.value.code} {caught.value.message}"


@both_eras
@pytest.mark.parametrize("how", ["stdio", "http"])
def test_resources_and_prompts_are_listed_and_read(how: str, mode: str, tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        listed = {each.uri: each for each in (await client.list_resources()).resources}
        assert "notes://{name}" not in listed
        assert (listed[CLOCK].mime_type, listed[CLOCK].meta) == (MIME, CSP)
        assert (listed["file://picture"].name, listed["file://picture"].mime_type) == ("picture.png", "image/png")
        [page] = (await client.read_resource(CLOCK)).contents
        assert (page.text, page.mime_type, page.meta) == (PAGE, MIME, CSP)  # type: ignore[union-attr]
        templates = {each.uri_template: each for each in (await client.list_resource_templates()).resource_templates}
        assert templates["notes://{name}"].description == "A note by its name."
        prompts = {each.name: each for each in (await client.list_prompts()).prompts}
        assert list(prompts) == ["review", "talk", "named"]
        assert [(each.name, each.required) for each in prompts["review"].arguments or []] == [
            ("code", True),
            ("style", False),
            ("strict", False),
            ("lines", False),
        ]
        answer = await client.get_prompt("review", {"code": "x", "style": "long", "strict": "true", "lines": "7"})
        assert answer.messages[0].content.text == "Review 'x' (long, True, 7)"  # type: ignore[union-attr]

    run(work, how, mode, tmp_path)


@both_eras
def test_each_kind_of_source(mode: str, tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        async def read(uri: str) -> tuple[Any, str | None]:
            [content] = (await client.read_resource(uri)).contents
            assert content.uri == uri
            return getattr(content, "text", None) or getattr(content, "blob", None), content.mime_type

        assert await read("notes://today") == ("buy milk", "text/plain")
        assert await read("notes://with%20space") == ("found", "text/plain")
        assert await read("numbers://7/byte") == ("Bw==", "application/x-number")
        assert await read("file://plain") == ("a file: ä", "text/plain")
        assert await read("file://picture") == (PNG, "image/png")
        assert await read("x://bytes") == ("AAE=", "application/x-bytes")
        assert await read("x://whose") == ("of None", "text/plain")
        unknown = "-32002" if mode == "legacy" else "-32602"
        for uri in ("notes://nothing", "notes://..", "notes://a%2Fb", "notes://a/b", "numbers://7", "x://none"):
            assert (await refused(client.read_resource(uri))).startswith(f"{unknown} no resource")
        assert "expected integer" in await refused(client.read_resource("numbers://x/byte"))
        assert "x://broken cannot be read: the shelf is empty" in await refused(client.read_resource("x://broken"))
        missing = await refused(client.read_resource("file://missing"))
        assert "No such file" in missing
        assert str(tmp_path) not in missing

    run(work, "here", mode, tmp_path)


@both_eras
def test_messages_of_prompts(mode: str, tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        answer = await client.get_prompt("talk", {"mood": "glad"})
        assert answer.description == "A conversation."
        assert [each.role for each in answer.messages] == ["user", "assistant", "user", "user"]
        said: list[Any] = [each.content for each in answer.messages]
        assert [each.type for each in said] == ["text", "text", "image", "resource"]
        assert (said[1].text, said[2].data) == ("I am glad", PNG)
        assert (said[3].resource.uri, said[3].resource.text) == ("notes://today", "a note")
        assert "-32602 the prompt 'talk': invalid arguments" in await refused(client.get_prompt("talk", {}))
        assert "mood: missing" in await refused(client.get_prompt("talk"))
        assert "mood" in await refused(client.get_prompt("talk", {"mood": "sour"}))
        assert "there is no prompt 'tlak'" in await refused(client.get_prompt("tlak"))

    run(work, "here", mode, tmp_path)


@both_eras
def test_values_of_arguments_are_completed(mode: str, tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        async def values(name: str, argument: str, begun: str) -> list[str]:
            answer = await client.complete(PromptReference(name=name), {"name": argument, "value": begun})
            assert answer.completion.total == len(answer.completion.values)
            return answer.completion.values

        assert await values("talk", "mood", "g") == ["glad", "grave"]
        assert await values("talk", "mood", "gl") == ["glad"]
        assert await values("talk", "picture", "") == ["true", "false"]
        assert await values("review", "style", "") == ["short", "long"]
        assert await values("review", "code", "") == []
        assert await values("review", "nothing", "") == []
        of_note = ResourceTemplateReference(uri="notes://{name}")
        assert (await client.complete(of_note, {"name": "name", "value": ""})).completion.values == []
        assert "no prompt" in await refused(client.complete(PromptReference(name="x"), {"name": "a", "value": ""}))
        unknown = ResourceTemplateReference(uri="x://{y}")
        assert "no resource" in await refused(client.complete(unknown, {"name": "y", "value": ""}))

    run(work, "here", mode, tmp_path)


@both_eras
def test_a_prompt_may_ask_the_user(mode: str, tmp_path: Path) -> None:
    async def agree(context: Any, parameters: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "Ada"})

    async def decline(context: Any, parameters: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    async def asked(client: Client) -> str:
        answer = await client.get_prompt("named")
        return answer.messages[0].content.text  # type: ignore[union-attr]

    assert "Ada" in run(asked, "here", mode, tmp_path, elicitation_callback=agree)
    with pytest.raises((MCPError, ExceptionGroup)):
        run(asked, "here", mode, tmp_path, elicitation_callback=decline)


@both_eras
def test_prompts_of_servers_behind_are_passed_on(mode: Any) -> None:
    async def main() -> None:
        with library_board.board() as far, Toolkit(plugins=()) as toolkit:
            behind = McpServer.in_process(mcp_server(far, prompts=[library_board.talk]), name="far")
            unavailable = McpServer.stdio("no-such-server", name="off")
            server = mcp_server(toolkit, prompts=[library_board.review, behind, unavailable])
            async with closed_at_the_end(behind), Client(server, mode=mode) as client:
                prompts = {each.name: each for each in (await client.list_prompts()).prompts}
                assert list(prompts) == ["review", "far__talk"]
                assert prompts["far__talk"].description == "A conversation."
                assert [each.name for each in prompts["far__talk"].arguments or []] == ["mood", "picture"]
                answer = await client.get_prompt("far__talk", {"mood": "glad"})
                assert answer.messages[1].content.text == "I am glad"  # type: ignore[union-attr]
                assert len((await client.get_prompt("review", {"code": "x"})).messages) == 1
                refusal = await refused(client.get_prompt("far__talk", {"mood": "sour"}))
                assert refusal.startswith("-32602 the prompt 'far__talk': the prompt 'talk': invalid arguments")
                assert "there is no prompt 'tlak'" in await refused(client.get_prompt("far__tlak"))
                assert "the prompt 'off__x': there is no command 'no-such-server'" in await refused(
                    client.get_prompt("off__x")
                )
                of_far = PromptReference(name="far__talk")
                assert (await client.complete(of_far, {"name": "mood", "value": ""})).completion.values == []

    asyncio.run(main())


def test_subscribers_of_the_newer_protocol_hear_of_changes() -> None:
    async def main() -> None:
        pages = Resources({"notes://{name}": library_board.note, "x://a": "a"})
        with library_board.board() as toolkit:
            async with (
                serving(toolkit, resources=pages) as url,
                Client(url) as client,
                client.listen(resource_subscriptions=["notes://today"]) as events,
            ):
                pages.changed("x://a")
                await asyncio.to_thread(pages.changed, "notes://today")
                event: Any = await asyncio.wait_for(anext(aiter(events)), 10)
                assert event.uri == "notes://today"

    asyncio.run(main())


@pytest.mark.parametrize("how", ["stdio", "http"])
def test_subscribers_of_the_older_protocol_hear_of_changes(how: str, tmp_path: Path) -> None:
    heard: list[str] = []

    async def hear(message: Any) -> None:
        if type(message).__name__ == "ResourceUpdatedNotification":
            heard.append(str(message.params.uri))

    async def until(length: int) -> None:
        for _ in range(200):
            if len(heard) >= length:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(heard)

    async def subscribed(client: Client, change: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        with warnings.catch_warnings(action="ignore"):  # the SDK deprecates the older protocol's way
            await change()
            await client.subscribe_resource("notes://today")
            await change()
            await until(1)
            assert "no resource" in await refused(client.subscribe_resource("notes://a/b"))
            await client.unsubscribe_resource("notes://today")
            await change()
            await client.subscribe_resource("notes://today")
            await change()
        await until(2)
        assert heard == ["notes://today"] * 2

    async def main() -> None:
        if how == "stdio":
            async with at("stdio", "legacy", tmp_path, message_handler=hear) as client:
                assert client.server_capabilities.resources.subscribe is True
                await subscribed(client, lambda: client.call_tool("change", {}))
            return
        pages = Resources({"notes://{name}": library_board.note})
        with library_board.board() as toolkit:
            async with (
                serving(toolkit, resources=pages) as url,
                Client(url, mode="legacy", message_handler=hear) as client,
            ):
                await asyncio.sleep(0.2)  # the client opens its stream for notifications on the side
                await subscribed(client, lambda: asyncio.to_thread(pages.changed, "notes://today"))

    asyncio.run(main())


@both_eras
def test_what_is_not_there_is_not_declared(mode: Any, tmp_path: Path) -> None:
    async def main() -> None:
        with library_board.board() as toolkit:
            async with Client(mcp_server(toolkit), mode=mode) as client:
                found: Any = client.server_capabilities
                assert (found.prompts, found.completions) == (None, None)
                assert not found.resources.subscribe
                assert (await client.list_resources()).resources == []

    asyncio.run(main())


@pytest.mark.parametrize("required", ["policy", "pegboard-policy, mcp"])
def test_functions_run_where_the_environment_demands_packs(
    required: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pegboard_policy")
    (tmp_path / "permissions.json").write_text("{}", encoding="utf-8")
    (tmp_path / "pegboard.toml").write_text('[mcp.servers.missing]\ncommand = "no-such-server"\n', encoding="utf-8")
    monkeypatch.setenv("PEGBOARD_REQUIRE", required)
    monkeypatch.setenv("PEGBOARD_PERMISSIONS", str(tmp_path / "permissions.json"))
    monkeypatch.setenv("PEGBOARD_CONFIG", str(tmp_path / "pegboard.toml"))

    async def main() -> None:
        with Toolkit(plugins=["policy", "mcp"], settings={"mcp": {"servers": {}}}) as toolkit:
            server = mcp_server(toolkit, resources={"notes://{name}": library_board.note}, prompts=PROMPTS)
            async with Client(server) as client:
                assert (await client.get_prompt("review", {"code": "x"})).messages
                assert (await client.read_resource("notes://today")).contents

    asyncio.run(main())


def test_a_server_runs_again_after_it_has_ended(tmp_path: Path) -> None:
    async def main() -> None:
        with library_board.board() as toolkit:
            server = mcp_server(toolkit, resources=library_board.sources(tmp_path), prompts=PROMPTS)
            for _ in range(2):
                async with Client(server) as client:
                    assert (await client.get_prompt("review", {"code": "x"})).messages
                    assert (await client.read_resource("notes://today")).contents

    asyncio.run(main())


def test_functions_find_the_context_of_the_board() -> None:
    class Shelf:
        def __init__(self, name: str) -> None:
            self.name = name

    def which(shelf: Injected[Shelf], caller: Injected[Caller]) -> str:
        return f"{shelf.name} for {caller.subject}"

    async def main() -> None:
        with Toolkit(plugins=(), context=Shelf("the toolkit's")) as toolkit:

            def session_for(caller: Caller) -> Any:
                return toolkit.session(context=Shelf("the session's"))

            async with Client(mcp_server(toolkit, resources={"x://which": which})) as client:
                [found] = (await client.read_resource("x://which")).contents
                assert found.text == "the toolkit's for None"  # type: ignore[union-attr]
            server = mcp_server(toolkit, prompts=[which], session_for=session_for)
            async with Client(server) as client:
                answer = await client.get_prompt("which")
                assert answer.messages[0].content.text == "the session's for None"  # type: ignore[union-attr]

    # The class is local to this function.
    which.__annotations__ = {"shelf": Injected[Shelf], "caller": Injected[Caller], "return": str}
    asyncio.run(main())


def takes_two(one: str, two: str) -> str:
    return one + two


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (["x://a"], "resources are a mapping"),
        ({"no uri": "x"}, "'no uri' is no URI for a resource"),
        ({"x://a": 3}, "the resource 'x://a' is a int; give text, bytes, a Path or a function"),
        ({"x://a": ("a", 3)}, r"is \(value, media type\)"),
        ({"x://a": ("a", "text/plain", {}, 1)}, r"is \(value, media type\)"),
        ({"x://{name}": "a"}, "has placeholders: give a function that takes name"),
        ({"x://{one}": takes_two}, "takes one, two; name its parameters as the placeholders"),
        ({"x://{one}/{three}": takes_two}, "takes one, two; name its parameters as the placeholders"),
        ({"x://a": takes_two}, "takes one, two; name its parameters as the placeholders"),
    ],
)
def test_a_wrong_resource_is_named(sources: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Resources(sources)


def test_a_wrong_prompt_is_named() -> None:
    def opaque(value: memoryview) -> str:
        return f"{value}"

    with Toolkit(plugins=()) as toolkit:
        with pytest.raises(RegistrationError, match="already"):
            mcp_server(toolkit, prompts=[takes_two, takes_two])
        with pytest.raises(ValueError, match="prompts are a list of functions"):
            mcp_server(toolkit, prompts=takes_two)  # type: ignore[arg-type]
        with pytest.raises(RegistrationError, match="opaque"):
            mcp_server(toolkit, prompts=[opaque])


def test_a_change_of_an_unknown_resource_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match=r"there is no resource 'x://b' .* there are: x://a"):
        Resources({"x://a": "a"}).changed("x://b")


SETTINGS = """
[mcp]
prompts = ["shelf:review"]

[mcp.resources]
"notes://{name}" = { function = "shelf:note" }
"x://text" = { text = "said", media_type = "text/x-said" }
"ui://clock/page.html" = { path = "clock.html", meta = { ui = { prefersBorder = true } } }
"""
SERVE = "from pegboard_mcp._command.serve import run; import sys; sys.exit(run(sys.argv[1:]))"


@pytest.mark.slow
@both_eras
def test_pegboard_serve_has_those_of_the_settings(mode: Any, tmp_path: Path) -> None:
    (tmp_path / "pegboard.toml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "clock.html").write_text(PAGE, encoding="utf-8")
    (tmp_path / "shelf.py").write_text(
        "print('stray')\n\ndef note(name: str) -> str:\n    return f'the note {name}'\n\n"
        "def review(code: str) -> str:\n    return f'Review {code}'\n",
        encoding="utf-8",
    )

    async def main() -> None:
        arguments = ["-c", SERVE, "--config", "pegboard.toml"]
        environment = {"PEGBOARD_PLUGINS": "mcp"}
        command = StdioServerParameters(command=sys.executable, args=arguments, cwd=tmp_path, env=environment)
        async with Client(stdio_client(command), mode=mode) as client:
            answer: Any = await client.get_prompt("review", {"code": "x"})
            assert answer.messages[0].content.text == "Review x"
            found: list[Any] = []
            for uri in ("notes://a", "x://text", CLOCK):
                found += (await client.read_resource(uri)).contents
            assert [each.text for each in found] == ["the note a", "said", PAGE]
            assert [each.mime_type for each in found] == ["text/plain", "text/x-said", MIME]
            assert found[2].meta == {"ui": {"prefersBorder": True}}

    asyncio.run(main())


SKILL = "---\nname: letters\ndescription: Write letters.\n---\nBegin with a greeting.\n"


@both_eras
def test_pegboard_serve_has_what_sources_of_tools_bring(mode: Any, tmp_path: Path) -> None:
    pytest.importorskip("pegboard_skills")
    from pegboard_mcp._command.settled import settled

    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "SKILL.md").write_text(SKILL, encoding="utf-8")
    uri = "skill://letters/SKILL.md"

    async def read(plugins: list[str], **settings: Any) -> list[tuple[str, str | None]]:
        with Toolkit(plugins=plugins, settings={"skills": {"folders": [str(tmp_path)]}, **settings}) as toolkit:
            async with Client(mcp_server(toolkit, **settled(toolkit)), mode=mode) as client:
                assert uri in [each.uri for each in (await client.list_resources()).resources]
                return [(each.text, each.mime_type) for each in (await client.read_resource(uri)).contents]  # type: ignore[union-attr]

    assert asyncio.run(read(["skills", "mcp"])) == [(SKILL, "text/markdown")]
    assert asyncio.run(read(["skills"])) == [(SKILL, "text/markdown")]
    shelf = {"resources": {uri: {"text": "said"}}}
    assert asyncio.run(read(["skills", "mcp"], mcp=shelf)) == [("said", "text/markdown")]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prompts": ["nowhere"]}, "write MODULE:NAME of a function"),
        ({"prompts": ["no_such_module:f"]}, "mcp.prompts: no_such_module:f cannot be loaded: ModuleNotFoundError"),
        ({"prompts": ["json:f"]}, "mcp.prompts: json:f cannot be loaded: AttributeError"),
        ({"resources": {"x://a": {"function": "json:__name__"}}}, "json:__name__ is a str; name a function"),
        ({"resources": {"x://{a}": {"text": "b"}}}, "has placeholders: give a function"),
    ],
)
def test_serve_says_what_of_the_settings_it_cannot_serve(
    settings: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pegboard_mcp._command.serve import run as serve

    program = (
        "from pegboard import Toolkit\nimport pegboard_mcp\n"
        f"toolkit = Toolkit(plugins=[pegboard_mcp], settings={{'mcp': {settings!r}}})\n"
    )
    (tmp_path / "wrong_board.py").write_text(program, encoding="utf-8")
    assert serve([str(tmp_path / "wrong_board.py"), "--http", "127.0.0.1:0"]) == 1
    assert message in capsys.readouterr().err
