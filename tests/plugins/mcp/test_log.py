"""The log of a server: its stderr and its logging, bounded and without secrets."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server

from pegboard import PegboardError, Toolkit
from pegboard_mcp import McpServer, servers_named
from pegboard_mcp._client.log import Log
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("nothing_left")


def talking(asked: list[str]) -> Server[Any]:
    """A server that logs with every call, and keeps which level it is asked for."""

    async def tools(context: Any, parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="talk", input_schema={"type": "object"})])

    async def call(context: Any, parameters: Any) -> types.CallToolResult:
        for level, data, logger in (("debug", "a word", None), ("error", {"code": 7}, "shelf")):
            await context.session.send_log_message(level, data, logger=logger, related_request_id=context.request_id)
        return types.CallToolResult(content=[types.TextContent(text="said")])

    async def level(context: Any, parameters: Any) -> types.EmptyResult:
        asked.append(parameters.level)
        return types.EmptyResult()

    return Server("talking", version="1", on_list_tools=tools, on_call_tool=call, on_set_logging_level=level)


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
@pytest.mark.parametrize(("mode", "levels"), [("auto", []), ("legacy", ["debug"])])
def test_messages_of_its_logging_are_kept(mode: str, levels: list[str]) -> None:
    asked: list[str] = []
    server = McpServer.in_process(talking(asked), mode=mode)
    server.log_level = "debug"
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server)
        assert toolkit.call_sync("talk").text == "said"
        assert eventually(lambda: server.log_count == 2)
        lines = server.log()
    assert [(line.source, line.level, line.text) for line in lines] == [
        ("log", "debug", "a word"),
        ("log", "error", 'shelf: {"code": 7}'),
    ]
    assert asked == levels


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
def test_nothing_is_asked_for_by_default() -> None:
    asked: list[str] = []
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.in_process(talking(asked), mode="legacy"))
        assert toolkit.call_sync("talk").text == "said"
    assert asked == []


def test_stderr_is_kept_line_by_line_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELF_KEY", "s3cret-made-up-0123")
    code = "import os, sys; sys.stderr.write('one\\r\\n' + os.environ['KEY'] + ' is\\x1b[2J\\nthe last'); sys.exit(3)"
    server = McpServer.stdio(sys.executable, ["-c", code], env={"KEY": "${SHELF_KEY}"}, connect_timeout=30)
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server)
        assert toolkit.problems
        assert eventually(lambda: server.log_count >= 3)
        texts = [line.text for line in server.log() if line.source == "stderr"]
    assert texts == ["one", "*** is\\x1b[2J", "the last"]


def test_the_log_is_bounded() -> None:
    log = Log()
    for number in range(2_500):
        log.add("stderr", f"{number} " + "x" * 100_000)
    lines = log.lines(lambda text: text)  # type: ignore[arg-type]
    assert (log.count, len(lines), lines[0].number) == (2_500, 1_000, 1_501)
    assert max(len(line.text) for line in lines) == 1_003
    assert sum(len(line.text) for line in log._lines) == 4_000_000


def test_a_flood_without_an_end_of_line_takes_no_memory() -> None:
    from pegboard_mcp._wire.unrequested import KEPT, Tail

    heard: list[str] = []
    tail = Tail(heard=heard.append)
    for _ in range(100):
        tail.file.write("x" * 100_000)
    tail.finish(10)
    assert [len(line) for line in heard] == [KEPT]


class TestFeatures:
    def test_are_those_of_the_server(self) -> None:
        async def listed(context: Any, parameters: Any) -> types.ListPromptsResult:
            return types.ListPromptsResult(prompts=[types.Prompt(name="greet")])

        async def tools(context: Any, parameters: Any) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[])

        async def prompt(context: Any, parameters: Any) -> types.GetPromptResult:
            content = types.ImageContent(data="AAE=", mime_type="image/png")
            return types.GetPromptResult(messages=[types.PromptMessage(role="assistant", content=content)])

        made = Server("prompts", version="1", on_list_tools=tools, on_list_prompts=listed, on_get_prompt=prompt)

        async def main() -> None:
            server = McpServer.in_process(made)
            assert server.features == frozenset()
            try:
                await server.connect()
                assert server.features == {"prompts"}
                ((role, block),) = await server.prompt_messages("greet")
                assert (role, block.to_dict()) == (
                    "assistant",
                    {"type": "image", "data": "AAE=", "media_type": "image/png"},
                )
            finally:
                server.close()

        asyncio.run(main())


class TestNamed:
    @pytest.mark.parametrize(
        ("target", "name"),
        [
            ("npx -y @scope/some-server@1.2 --flag", "some-server"),
            ("uvx some-server", "some-server"),
            ("python3 -u 'my folder/server.py'", "server"),
            ("python -c 'print(1)'", "python"),
            ("./my-server --port 1", "my-server"),
            ("https://user:s3cret@example.com/mcp?key=s3cret", "https://example.com/mcp"),
        ],
    )
    def test_by_what_is_run_or_reached(self, target: str, name: str) -> None:
        assert list(servers_named(target)) == [name]

    def test_by_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "mcp.json"
        path.write_text(
            '{"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://example.com", "disabled": true}}}'
        )
        assert list(servers_named(str(path))) == ["a"]

    @pytest.mark.parametrize("target", ["", " ", "'", "http://[", "http://user:s3cret@/"])
    def test_what_names_none_is_refused_and_not_shown(self, target: str) -> None:
        with pytest.raises(PegboardError, match=r"COMMAND \.\.\., by URL, or by a FILE.json") as caught:
            servers_named(target)
        assert "s3cret" not in str(caught.value)
