"""Remote tools on the board: what servers send, kept; what callers do, carried out."""

import asyncio
import threading
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server

from pegboard import AudioBlock, FileBlock, ImageBlock, LinkBlock, Status, TextBlock, Toolkit
from pegboard_mcp import McpServer, mcp_server

pytestmark = pytest.mark.usefixtures("nothing_left")

ANY = {"type": "object", "properties": {"x": {"type": "string"}}}
PIXEL = "iVBORw0KGgo="


def server_of(tools: list[types.Tool], call: Any) -> Server[Any]:
    async def listed(context: Any, parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def called(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        result = await call(context, parameters)
        assert isinstance(result, types.CallToolResult)
        return result

    return Server("test", version="1", on_list_tools=listed, on_call_tool=called)


def described(name: str = "do", **more: Any) -> types.Tool:
    return types.Tool(name=name, description="Do it.", **{"input_schema": ANY, **more})


def answering(result: types.CallToolResult) -> Any:
    async def call(context: Any, parameters: Any) -> types.CallToolResult:
        return result

    return call


async def echo(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=f"{parameters.name} {parameters.arguments}")])


both_eras = pytest.mark.parametrize("mode", ["auto", "legacy"])


@both_eras
def test_keeps_every_kind_of_content(mode: str) -> None:
    note = types.TextResourceContents(uri="file:///note.txt", text="note", mime_type="text/plain")
    blob = types.BlobResourceContents(uri="file:///b.bin", blob="AAE=", mime_type="application/x-b")
    content: list[Any] = [
        types.TextContent(text="words", annotations=types.Annotations(priority=0.5), _meta={"a": 1}),
        types.ImageContent(data=PIXEL, mime_type="image/png"),
        types.AudioContent(data="UklGRg==", mime_type="audio/wav"),
        types.ResourceLink(uri="file:///far.txt", name="far", description="Far.", mime_type="text/plain"),
        types.EmbeddedResource(resource=note),
        types.EmbeddedResource(resource=blob),
    ]
    result = types.CallToolResult(content=content, structured_content={"n": 1}, _meta={"trace": "t1"})
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.in_process(server_of([described()], answering(result)), mode=mode))
        got = toolkit.call_sync("do", {})
    assert got.content == (
        TextBlock("words"),
        ImageBlock(data=PIXEL, media_type="image/png"),
        AudioBlock(data="UklGRg==", media_type="audio/wav"),
        LinkBlock("file:///far.txt", "far", "Far.", "text/plain"),
        TextBlock("note"),
        FileBlock(data="AAE=", media_type="application/x-b", name="file:///b.bin"),
    )
    assert got.data == {"n": 1}
    kept = got.metadata["mcp"]
    assert (kept["server"], kept["tool"], kept["_meta"]["trace"]) == ("test", "do", "t1")
    assert kept["content"][0] == {"annotations": {"priority": 0.5}, "_meta": {"a": 1}}
    assert kept["content"][4] == {"resource": {"uri": "file:///note.txt", "mimeType": "text/plain"}}


@both_eras
def test_images_of_resources_are_images_and_empty_ones_are_none(mode: str) -> None:
    def resource(kind: str, data: str) -> Any:
        inside = types.BlobResourceContents(uri="file:///a", blob=data, mime_type=kind)
        return types.EmbeddedResource(resource=inside)

    content: list[Any] = [
        resource("image/png", PIXEL),
        resource("image/svg+xml", "PHN2Zy8+"),
        resource("image/png", ""),
        types.ImageContent(data="", mime_type="image/png"),
    ]
    far = server_of([described()], answering(types.CallToolResult(content=content)))
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.in_process(far, mode=mode))
        got = toolkit.call_sync("do", {})
        beyond = McpServer.in_process(mcp_server(toolkit, all_tools=True), mode=mode)
        with Toolkit(plugins=()) as behind:
            behind.register(beyond)
            again = behind.call_sync("do", {})
    nothing = TextBlock("(the server sent an image without data)")
    assert got.content == (
        ImageBlock(data=PIXEL, media_type="image/png"),
        FileBlock(data="PHN2Zy8+", media_type="image/svg+xml", name="file:///a"),
        nothing,
        nothing,
    )
    assert again.content[:2] == got.content[:2]
    assert again.metadata["mcp"]["content"][0] == {"resource": {"uri": "file:///a", "mimeType": "image/png"}}


def test_an_error_is_an_error_and_its_data_does_not_count() -> None:
    result = types.CallToolResult(
        content=[types.TextContent(text="no such city")], structured_content={"n": "?"}, is_error=True
    )
    strict = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.in_process(server_of([described(output_schema=strict)], answering(result))))
        got = toolkit.call_sync("do", {})
    assert (got.status, got.text, got.data, got.error and got.error.kind) == (
        Status.ERROR,
        "no such city",
        None,
        "remote",
    )


def test_structured_content_alone_becomes_text_too() -> None:
    result = types.CallToolResult(content=[], structured_content={"ü": 1})
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.in_process(server_of([described()], answering(result))))
        assert toolkit.call_sync("do", {}).text == '{"ü": 1}'


def test_hints_are_kept_and_marked_untrusted() -> None:
    said = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    tools = [described("reads", annotations=said), described("silent")]
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.in_process(server_of(tools, echo)))
        assert (toolkit["reads"].hints.read_only, toolkit["reads"].hints.open_world) == (True, False)
        assert toolkit["silent"].hints.idempotent is False, "what the protocol assumes where nothing is said"
        assert "untrusted-hints" in toolkit["reads"].tags


def test_registers_as_asked() -> None:
    tools = [described("get.one"), described("get.two"), described("drop")]
    with Toolkit(plugins=()) as toolkit:
        toolkit.create_group("far")
        server = McpServer.in_process(server_of(tools, echo))
        toolkit.register(
            server,
            enable=["get.one", "get.two"],
            disable=["get.two"],
            group="far",
            presets={"get.one": {"x": "preset"}},
            prefix="t__",
        )
        assert [tool.name for tool in toolkit.tools] == ["t__get_one"]
        assert toolkit["t__get_one"].parameters["properties"] == {}
        assert toolkit["t__get_one"].groups == ("far",)
        assert toolkit.call_sync("t__get_one").text == "get.one {'x': 'preset'}"


def test_invalid_arguments_do_not_travel() -> None:
    async def never(context: Any, parameters: Any) -> types.CallToolResult:
        raise AssertionError

    dialect = {"$schema": "http://json-schema.org/draft-07/schema#", **ANY, "additionalProperties": False}
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.in_process(server_of([described(input_schema=dialect)], never)))
        assert toolkit.call_sync("do", {"x": [1]}).status is Status.INVALID
        assert toolkit.call_sync("do", {"y": "1"}).status is Status.INVALID


@both_eras
def test_progress_becomes_chunks(mode: str) -> None:
    async def call(context: Any, parameters: Any) -> types.CallToolResult:
        await context.session.report_progress(1, 2, "half")
        await context.session.report_progress(2, 2)
        return types.CallToolResult(content=[])

    chunks: list[str] = []
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.in_process(server_of([described()], call), mode=mode))
        toolkit.call_sync("do", {}, on_chunk=lambda chunk: chunks.append(chunk.text))
    assert chunks == ["half", "2/2"]


async def _cancelled(mode: str) -> bool:
    began, ended = threading.Event(), threading.Event()

    async def call(context: Any, parameters: Any) -> types.CallToolResult:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return types.CallToolResult(content=[])

    async with Toolkit(plugins=()) as toolkit:
        server = McpServer.in_process(server_of([described()], call), mode=mode)
        await server.connect()
        toolkit.register(server)
        task = asyncio.create_task(toolkit.call("do", {}))
        await asyncio.to_thread(began.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await asyncio.to_thread(ended.wait, 5)


@both_eras
def test_cancellation_reaches_the_server(mode: str) -> None:
    assert asyncio.run(_cancelled(mode))


def test_one_server_serves_any_loop_and_plain_code() -> None:
    server = McpServer.in_process(server_of([described()], echo))
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server)
        texts = [toolkit.call_sync("do", {"x": "0"}).text]
        texts += [asyncio.run(_text(toolkit, number)) for number in "12"]
    assert texts == [f"do {{'x': '{number}'}}" for number in "012"]


async def _text(toolkit: Toolkit, number: str) -> str:
    return (await toolkit.call("do", {"x": number})).text


def test_two_toolkits_share_a_connection_until_the_last_closes() -> None:
    server = McpServer.in_process(server_of([described()], echo))
    one, two = Toolkit(plugins=()), Toolkit(plugins=())
    one.register(server)
    two.register(server)
    one.close()
    assert "open" in repr(server)
    assert two.call_sync("do", {}).status is Status.SUCCESS
    two.close()
    assert "closed" in repr(server)


def test_a_server_is_used_again_after_it_was_closed() -> None:
    server = McpServer.in_process(server_of([described()], echo))
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server)
        server.close()
        assert toolkit.call_sync("do", {}).status is Status.SUCCESS


def test_a_server_that_has_just_failed_is_registered_all_the_same() -> None:
    async def main() -> None:
        lost = McpServer.stdio("no-such-command-anywhere", name="lost")
        await lost.connect()
        async with Toolkit(plugins=()) as toolkit:
            assert toolkit.register(lost) == []
            assert "there is no command" in "".join(toolkit.problems)

    asyncio.run(main())
