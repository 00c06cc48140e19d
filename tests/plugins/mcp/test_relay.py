"""A board between two others: nothing is lost on the way, and a far server's question reaches the near human."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.server import Server

from pegboard import (
    DataBlock,
    FileBlock,
    ImageBlock,
    LinkBlock,
    Suspend,
    TextBlock,
    Toolkit,
    VideoBlock,
    tool,
)
from pegboard_mcp import Answers, McpServer, mcp_server

pytestmark = pytest.mark.usefixtures("nothing_left")
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
all_eras = pytest.mark.parametrize("far", ["auto", "legacy"])
both_eras = pytest.mark.parametrize("near", ["auto", "legacy"])


@tool
def who() -> dict[str, Any]:
    """Ask who it is."""
    raise Suspend("Who are you?", key="who", form=NAME)


@tool
def pair(answers: Answers) -> str:
    """Ask twice."""
    for key in ("first", "second"):
        if key not in answers:
            raise Suspend(f"The {key} name?", key=key, form=NAME, again=True)
    return " and ".join(answer["name"] for answer in answers.values())


@contextmanager
def between(source: McpServer) -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as middle:
        middle.register(source)
        yield middle


def through(source: McpServer, scenario: Any, mode: str, **options: Any) -> Any:
    async def main() -> Any:
        async with Client(mcp_server(middle, all_tools=True), mode=mode, **options) as client:
            return await scenario(client)

    with between(source) as middle:
        return asyncio.run(main())


@all_eras
@both_eras
class TestQuestions:
    def ask(self, name: str, near: str, far: str, *answers: Any) -> tuple[list[str], types.CallToolResult]:
        asked: list[str] = []
        left = list(answers)

        async def human(context: Any, parameters: Any) -> types.ElicitResult:
            asked.append(parameters.message)
            answer = left.pop(0)
            if isinstance(answer, str):
                return types.ElicitResult(action=answer)  # type: ignore[arg-type]  # decline or cancel
            return types.ElicitResult(action="accept", content=answer)

        async def scenario(client: Client) -> Any:
            return await client.call_tool(name, {})

        with Toolkit(plugins=()) as board:
            board.register(who, pair)
            source = McpServer.in_process(mcp_server(board, all_tools=True), mode=far)
            return asked, through(source, scenario, near, elicitation_callback=human)

    def test_the_answer_goes_to_the_far_server(self, near: str, far: str) -> None:
        asked, result = self.ask("pair", near, far, {"name": "Ada"}, {"name": "Bob"})
        assert asked == ["The first name?", "The second name?"]
        assert result.content == [types.TextContent(text="Ada and Bob")]

    def test_and_so_does_a_refusal(self, near: str, far: str) -> None:
        asked, result = self.ask("who", near, far, "decline")
        assert (asked, result.is_error) == (["Who are you?"], True)
        assert result.content == [types.TextContent(text="the human declined")]

    def test_the_near_human_fills_the_far_form(self, near: str, far: str) -> None:
        _, result = self.ask("who", near, far, {"nom": "Ada"})
        assert result.is_error
        assert "does not fit the form" in result.content[0].text  # type: ignore[union-attr]


# What backtracks needs years for the second.
@pytest.mark.parametrize(("name", "expected"), [("aaa", "aaa"), ("a" * 60 + "!", "does not fit the form")])
def test_no_form_of_a_far_server_keeps_the_host_busy(name: str, expected: str) -> None:
    """Its question is held here, and the answer of the near human is read by its form."""
    form = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^(a+)+$"}}}

    async def listed(context: Any, parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="ask", input_schema={"type": "object"})])

    async def called(context: Any, parameters: Any) -> types.CallToolResult:
        answer = await context.session.elicit_form("Who?", form, related_request_id=context.request_id)
        return types.CallToolResult(content=[types.TextContent(text=answer.content["name"])])

    async def human(context: Any, parameters: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": name})

    async def scenario(client: Client) -> Any:
        return await client.call_tool("ask", {})

    far = Server("far", version="1", on_list_tools=listed, on_call_tool=called)
    source = McpServer.in_process(far, mode="legacy")
    result = through(source, scenario, "auto", elicitation_callback=human)
    assert expected in result.content[0].text


def far_server() -> Server[Any]:
    """A server that says all that there is to say."""
    icon = types.Icon(src="https://example.com/i.png", mime_type="image/png")
    described = types.Tool(
        name="all",
        title="All of it",
        description="Do it.",
        input_schema={"type": "object"},
        icons=[icon],
        annotations=types.ToolAnnotations(title="Everything", read_only_hint=True),
        _meta={"example.com/a": 1},
    )
    marked: Any = {"annotations": types.Annotations(priority=0.5, audience=["user"]), "_meta": {"example.com/b": 2}}
    text = types.TextResourceContents(uri="file:///a.txt", text="note", mime_type="text/plain", _meta={"c": 3})
    blob = types.BlobResourceContents(uri="x://b", blob="AAE=", mime_type="application/x-b")
    link = types.ResourceLink(
        uri="https://example.com", name="page", title="A page", size=7, icons=[icon], description="Of it."
    )
    content: list[Any] = [
        types.TextContent(text="words", **marked),
        types.ImageContent(data="iVBORw0KGgo=", mime_type="image/png", **marked),
        types.AudioContent(data="UklGRg==", mime_type="audio/wav", **marked),
        link,
        types.EmbeddedResource(resource=text, **marked),
        types.EmbeddedResource(resource=blob),
    ]

    async def listed(context: Any, parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[described])

    async def called(context: Any, parameters: Any) -> types.CallToolResult:
        await context.session.report_progress(1, 4)
        await context.session.report_progress(2, 4, "half")
        return types.CallToolResult(content=content, structured_content={"n": None}, _meta={"example.com/d": 4})

    return Server("far", version="1", on_list_tools=listed, on_call_tool=called)


@both_eras
def test_what_a_far_server_says_goes_on(near: str) -> None:
    async def scenario(client: Client) -> Any:
        heard: list[Any] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, total, message))

        (described,) = (await client.list_tools()).tools
        result = await client.call_tool("all", {}, progress_callback=hear)
        return described, result.content, result.meta, heard

    async def straight() -> Any:
        async with Client(far_server(), mode=near) as client:
            return await scenario(client)

    described, content, meta, heard = through(McpServer.in_process(far_server()), scenario, near)
    wanted = asyncio.run(straight())
    for field in ("title", "icons", "meta", "description"):
        assert getattr(described, field) == getattr(wanted[0], field)
    assert described.annotations.title == "Everything"
    assert content == wanted[1]
    assert meta["example.com/d"] == 4
    assert heard == wanted[3]


def test_blocks_of_a_far_board_are_what_they_were() -> None:
    blocks: list[Any] = [
        FileBlock.from_bytes(b"hello", "text/plain"),
        FileBlock(data="aGVsbG8=", media_type="text/plain", name="hello.txt"),
        FileBlock(data="/w==", media_type="text/plain", name="not utf-8 ä.txt"),
        FileBlock(data="AAE=", name="a b.bin"),
        FileBlock(url="https://example.com/f", name="f", media_type="text/csv"),
        VideoBlock(data="AAE=", media_type="video/mp4"),
        ImageBlock(url="https://example.com/i.png", media_type="image/png"),
        LinkBlock("https://example.com"),
        LinkBlock("https://example.com", "A page", "Of it.", "text/html"),
        DataBlock({"a": None}),
        TextBlock("words"),
    ]

    def shown() -> list[Any]:
        return blocks

    with Toolkit(plugins=()) as far:
        far.register(shown, name="shown", description="Shown.")
        with between(McpServer.in_process(mcp_server(far, all_tools=True))) as middle:
            assert list(middle.call_sync("shown").content) == blocks
            with between(McpServer.in_process(mcp_server(middle, all_tools=True))) as near:
                assert list(near.call_sync("shown").content) == blocks


def test_a_text_file_is_text_to_every_client() -> None:
    async def scenario(client: Client) -> Any:
        (content,) = (await client.call_tool("note", {})).content
        return content.resource  # type: ignore[union-attr]

    def note() -> FileBlock:
        return FileBlock(data="aGVsbG8=", media_type="text/plain", name="hello.txt")

    async def main() -> Any:
        async with Client(mcp_server(board, all_tools=True)) as client:
            return await scenario(client)

    with Toolkit(plugins=()) as board:
        board.register(note, name="note", description="Note.")
        resource = asyncio.run(main())
    assert (resource.uri, resource.text, resource.mime_type) == ("file:///hello.txt", "hello", "text/plain")
