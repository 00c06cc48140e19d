"""The board as a server, in both eras of the protocol, as a bare client of the SDK sees it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from pegboard import (
    CancelToken,
    DataBlock,
    Emitter,
    ForeignSchema,
    ImageBlock,
    Suspend,
    Tool,
    ToolError,
    Toolkit,
    UnknownNameError,
    tool,
)
from pegboard_mcp import McpServer, mcp_server
from pegboard_schemas import judged
from tests.support.waiting import PATIENCE, eventually

both_eras = pytest.mark.parametrize("mode", ["auto", "legacy"])


@tool(read_only=True)
def count(to: int) -> list[int]:
    """Count."""
    return list(range(to))


@tool(read_only=True)
def hello(name: str = "you") -> str:
    """Greet."""
    return f"hello {name}"


@tool(destructive=True)
def erase() -> None:
    """Erase everything."""


@tool(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def work(emitter: Emitter) -> str:
    """Work."""
    emitter.emit("begun")
    emitter.emit(DataBlock({"progress": 50, "total": 100}))
    return "done"


@tool
def later() -> str:
    """Ask first."""
    raise Suspend("what is the code?")


@tool
def picture() -> ImageBlock:
    """Draw."""
    return ImageBlock.from_bytes(b"\x89PNG\r\n\x1a\n", "image/png")


@tool
def crash(how: str) -> str:
    """Crash."""
    raise {"exit": SystemExit(3), "tool": ToolError("mind the gap"), "stop": StopIteration()}[how]


def board() -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.create_group("risky")
    toolkit.create_group("spare", active=False)
    toolkit.register(count, hello, erase)
    toolkit.register(pay, work, later, picture, crash, group="risky")
    return toolkit


@asynccontextmanager
async def client_of(toolkit: Toolkit, mode: str, **options: Any) -> AsyncIterator[Client]:
    selection = {name: options.pop(name) for name in ("tools", "groups", "all_tools") if name in options}
    async with Client(mcp_server(toolkit, **selection), mode=mode, **options) as client:
        yield client


def run(scenario: Callable[[Client], Any], mode: str = "auto", toolkit: Toolkit | None = None, **options: Any) -> Any:
    async def main() -> Any:
        async with client_of(served, mode, **options) as client:
            return await scenario(client)

    with toolkit or board() as served:
        return asyncio.run(main())


async def names(client: Client) -> list[str]:
    return [each.name for each in (await client.list_tools()).tools]


class TestSelection:
    def test_only_what_reads_by_default(self) -> None:
        assert run(names) == ["count", "hello"]

    def test_by_name_and_pattern(self) -> None:
        assert run(names, tools=["er*", "hello"]) == ["hello", "erase"]

    def test_by_group_which_becomes_active(self) -> None:
        toolkit = board()
        toolkit.register(lambda: 1, name="spared", description="Spare.", group="spare")
        assert run(names, toolkit=toolkit, groups=["spare"]) == ["spared"]
        assert "spare" not in toolkit.active_groups

    def test_everything(self) -> None:
        assert len(run(names, all_tools=True)) == 8

    def test_an_unknown_name_is_an_error(self) -> None:
        with pytest.raises(UnknownNameError, match="helo"):
            mcp_server(board(), tools=["helo"])

    def test_a_hint_of_another_server_counts_as_none(self) -> None:
        with Toolkit(plugins=()) as middle:
            middle.register(McpServer.in_process(mcp_server(board())))
            assert middle["count"].hints.read_only
            assert run(names, toolkit=middle) == []

    def test_what_is_not_served_cannot_be_called(self) -> None:
        async def scenario(client: Client) -> None:
            with pytest.raises(MCPError, match="no tool 'erase'") as caught:
                await client.call_tool("erase", {})
            assert caught.value.code == types.INVALID_PARAMS

        run(scenario)


@both_eras
class TestPromises:
    """What a tool says of its results, and what becomes of a result that breaks it."""

    def answer(self, function: Callable[..., Any], mode: str) -> tuple[Any, types.CallToolResult]:
        toolkit = Toolkit(plugins=())
        toolkit.register(function, name="asked", description="Asked.")

        async def scenario(client: Client) -> Any:
            (described,) = (await client.list_tools()).tools
            return described.output_schema, await client.call_tool("asked", {})

        found: tuple[Any, types.CallToolResult] = run(scenario, mode, toolkit, all_tools=True)
        return found

    def test_what_admits_null_is_wrapped_for_every_client(self, mode: str) -> None:
        def nothing() -> None: ...

        def maybe() -> str | None: ...

        for function in (nothing, maybe):
            schema, result = self.answer(function, mode)
            assert schema["required"] == ["result"]
            assert (result.is_error, result.structured_content) == (False, {"result": None})

    def test_what_may_be_blocks_promises_nothing(self, mode: str) -> None:
        def blocks() -> list[Any]:
            return ["see:", ImageBlock.from_bytes(b"\x89PNG\r\n\x1a\n", "image/png")]

        def data() -> list[Any] | None:
            return [1, None]

        for function, kinds in ((blocks, ["text", "image"]), (data, ["text"])):
            schema, result = self.answer(function, mode)
            assert (schema, result.structured_content, result.is_error) == (None, None, False)
            assert [block.type for block in result.content] == kinds

    @pytest.mark.parametrize(("value", "shown"), [("seven", "seven"), (float("nan"), "NaN")])
    def test_a_broken_promise_is_an_error_that_keeps_the_content(self, mode: str, value: Any, shown: str) -> None:
        def number() -> float:
            return value  # type: ignore[no-any-return]  # the mistake that is shown

        _, result = self.answer(number, mode)
        assert (result.is_error, result.structured_content) == (True, None)
        said, content = (block.text for block in result.content if isinstance(block, types.TextContent))
        assert "the result of asked does not fit its own output schema: expected number" in said
        assert content == shown

    def test_a_third_party_schema_is_checked_in_bounds(self, mode: str) -> None:
        """A tool with a judge, such as an operation of OpenAPI, has an output schema that may be made to freeze."""
        parameters = {"type": "object"}

        class Remote:
            name, description, judge = "asked", "Asked.", judged(parameters).judge
            returns: ClassVar = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}

            def __init__(self) -> None:
                self.parameters = parameters

            def call(self, call: Any) -> Any:
                return {"text": "a" * 60 + "!"}

        toolkit = Toolkit(plugins=())
        toolkit.register(Remote())

        async def scenario(client: Client) -> Any:
            return await client.call_tool("asked", {})

        result = run(scenario, mode, toolkit, all_tools=True)
        assert "does not fit its own output schema: text: expected string matching" in result.content[0].text

    def test_a_schema_that_refers_to_itself_can_be_wrapped(self, mode: str) -> None:
        tree = {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}}]}

        class Tree:
            name, description, parameters, returns = "asked", "A tree.", {"type": "object"}, tree

            def call(self, call: Any) -> Any:
                return [None, [None]]

        toolkit = Toolkit(plugins=())
        toolkit.register(Tree())

        async def scenario(client: Client) -> Any:
            (described,) = (await client.list_tools()).tools
            assert described.output_schema is not None
            assert ForeignSchema(described.output_schema).problems({"result": [None, ["leaf"]]}) != []
            return (await client.call_tool("asked", {})).structured_content

        assert run(scenario, mode, toolkit, all_tools=True) == {"result": [None, [None]]}


@both_eras
class TestCalls:
    def test_definitions(self, mode: str) -> None:
        async def scenario(client: Client) -> None:
            tools = {each.name: each for each in (await client.list_tools()).tools}
            greet = tools["hello"]
            assert (greet.description, greet.annotations and greet.annotations.read_only_hint) == ("Greet.", True)
            assert greet.input_schema == board()["hello"].parameters
            schema = tools["count"].output_schema
            inner = {"type": "array", "items": {"type": "integer"}}
            assert schema is not None
            assert (schema if mode == "auto" else schema["properties"]["result"]) == inner

        run(scenario, mode)

    def test_results(self, mode: str) -> None:
        async def scenario(client: Client) -> None:
            result = await client.call_tool("count", {"to": 2})
            assert result.structured_content == ([0, 1] if mode == "auto" else {"result": [0, 1]})
            assert result.content == [types.TextContent(text="[0, 1]")]

        run(scenario, mode)

    def test_our_validation_message_is_an_error_of_the_tool(self, mode: str) -> None:
        async def scenario(client: Client) -> None:
            result = await client.call_tool("count", {"to": "many"})
            assert result.is_error
            assert "to: expected integer" in result.content[0].text  # type: ignore[union-attr]

        run(scenario, mode)

    @pytest.mark.parametrize(("how", "says"), [("exit", "3"), ("tool", "mind the gap"), ("stop", "StopIteration")])
    def test_a_crash_is_an_error_of_the_tool(self, mode: str, how: str, says: str) -> None:
        async def scenario(client: Client) -> None:
            result = await client.call_tool("crash", {"how": how})
            assert result.is_error
            assert says in result.content[0].text  # type: ignore[union-attr]
            assert not (await client.call_tool("hello", {})).is_error

        run(scenario, mode, all_tools=True)

    def test_progress(self, mode: str) -> None:
        async def scenario(client: Client) -> None:
            heard: list[Any] = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                heard.append((progress, total, message))

            await client.call_tool("work", {}, progress_callback=hear)
            assert heard == [(1.0, None, "begun"), (50.0, 100.0, None)]

        run(scenario, mode, all_tools=True)

    def test_pictures(self, mode: str) -> None:
        async def scenario(client: Client) -> None:
            (content,) = (await client.call_tool("picture", {})).content
            assert (content.type, content.mime_type) == ("image", "image/png")  # type: ignore[union-attr]

        run(scenario, mode, all_tools=True)

    def test_cancellation_reaches_the_tool(self, mode: str) -> None:
        began, stopped = threading.Event(), threading.Event()

        @tool
        def wait(token: CancelToken) -> str:
            """Wait."""
            began.set()
            if token.wait(10):
                stopped.set()
            return "over"

        toolkit = board()
        toolkit.register(wait)

        async def scenario(client: Client) -> None:
            task = asyncio.create_task(client.call_tool("wait", {}))
            assert await asyncio.to_thread(began.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(stopped.wait, 5)

        run(scenario, mode, toolkit, all_tools=True)

    def test_a_tool_that_blocks_its_loop_holds_up_no_message(self, mode: str) -> None:
        began, over = threading.Event(), threading.Event()

        @tool
        async def block() -> bool:
            """Block."""
            began.set()
            return over.wait(PATIENCE)  # the mistake that is shown

        toolkit = board()
        toolkit.register(block)

        async def scenario(client: Client) -> None:
            blocked = asyncio.create_task(client.call_tool("block", {}))
            assert await asyncio.to_thread(began.wait, PATIENCE)
            try:
                await asyncio.wait_for(client.list_tools(cache_mode="bypass"), PATIENCE / 2)
                assert not blocked.done()
            finally:
                over.set()
            assert not (await blocked).is_error

        run(scenario, mode, toolkit, all_tools=True)

    def test_a_human_approves(self, mode: str) -> None:
        asked: list[str] = []

        async def approve(context: Any, parameters: Any) -> types.ElicitResult:
            asked.append(parameters.message)
            return types.ElicitResult(action="accept", content={})

        async def scenario(client: Client) -> None:
            result = await client.call_tool("pay", {"amount": 5})
            assert result.content == [types.TextContent(text="paid 5")]
            assert asked == ['May pay run with these arguments? {"amount": 5}']

        run(scenario, mode, all_tools=True, elicitation_callback=approve)

    def test_a_human_declines(self, mode: str) -> None:
        async def decline(context: Any, parameters: Any) -> types.ElicitResult:
            return types.ElicitResult(action="decline")

        async def scenario(client: Client) -> None:
            assert (await client.call_tool("pay", {"amount": 5})).is_error

        run(scenario, mode, all_tools=True, elicitation_callback=decline)

    def test_without_an_approver_nothing_is_approved(self, mode: str) -> None:
        async def scenario(client: Client) -> None:
            assert (await client.call_tool("pay", {"amount": 5})).is_error
            if mode == "legacy":
                result = await client.call_tool("later", {})
                assert (result.is_error, result.content) == (True, [types.TextContent(text="what is the code?")])
            else:
                with pytest.raises(MCPError, match="later needs an answer that this client cannot ask for"):
                    await client.call_tool("later", {})

        run(scenario, mode, all_tools=True)

    def test_a_suspended_call_is_completed_by_the_answer(self, mode: str) -> None:
        toolkit = board()

        async def say(context: Any, parameters: Any) -> types.ElicitResult:
            assert parameters.message == "what is the code?"
            return types.ElicitResult(action="accept", content={"answer": "1234"})

        async def scenario(client: Client) -> None:
            result = await client.call_tool("later", {})
            assert result.content == [types.TextContent(text="1234")]
            assert toolkit.pending == []

        run(scenario, mode, toolkit, all_tools=True, elicitation_callback=say)

    def test_a_tool_goes_on_with_the_answer_alone(self, mode: str) -> None:
        went: list[Any] = []

        def order() -> str:
            async def go_on(value: Any) -> str:
                went.append(value)
                return f"ordered {value}"

            raise Suspend("which colour?", resume=go_on)

        toolkit = board()
        toolkit.register(order)

        async def decline(context: Any, parameters: Any) -> types.ElicitResult:
            return types.ElicitResult(action="decline")

        async def scenario(client: Client) -> None:
            assert (await client.call_tool("order", {})).is_error
            assert went == []  # nothing goes on without an answer
            assert toolkit.pending == []

        run(scenario, mode, toolkit, all_tools=True, elicitation_callback=decline)

    def test_changes_are_told(self, mode: str) -> None:
        toolkit = board()
        changed = asyncio.Event()

        async def hear(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                changed.set()

        async def scenario(client: Client) -> None:
            await client.list_tools()
            toolkit.register(Tool.from_function(hello, name="welcome"))
            if mode == "legacy":
                await asyncio.wait_for(changed.wait(), PATIENCE)
            assert "welcome" in [each.name for each in (await client.list_tools(cache_mode="bypass")).tools]

        run(scenario, mode, toolkit, all_tools=True, message_handler=hear)


@both_eras
def test_tools_are_listed_in_order_of_reveal(mode: str) -> None:
    toolkit = Toolkit(plugins=())
    toolkit.create_group("spare", active=False)
    toolkit.register(erase, group="spare")
    toolkit.register(count, hello)
    toolkit.register_meta_tool()

    async def scenario(client: Client) -> None:
        async def equipped(*groups: str) -> list[str]:
            await client.call_tool("reset_equipped_tools", {"to_activate": list(groups)})
            return [each.name for each in (await client.list_tools(cache_mode="bypass")).tools]

        before = await names(client)
        assert before == ["count", "hello", "reset_equipped_tools"]
        assert await equipped("spare") == [*before, "erase"]  # the first one in board order
        toolkit.register(work)
        assert await equipped() == [*before, "work"]
        assert await equipped("spare") == [*before, "erase", "work"]

    run(scenario, mode, toolkit, all_tools=True)


def test_changes_are_told_to_a_subscriber() -> None:
    toolkit = board()

    async def scenario(client: Client) -> None:
        async with client.listen(tools_list_changed=True) as events:
            toolkit.unregister("hello")
            async for _ in events:
                return

    run(lambda client: asyncio.wait_for(scenario(client), PATIENCE), "auto", toolkit)


def test_one_board_behind_another() -> None:
    with board() as far, Toolkit(plugins=()) as near:
        near.register(McpServer.in_process(mcp_server(far, all_tools=True)))
        far.register(lambda: 1, name="fresh", description="Fresh.")
        assert eventually(lambda: "fresh" in near)
        assert near.call_sync("fresh").text == "1"
        far.unregister("fresh")
        assert eventually(lambda: "fresh" not in near)


def test_the_list_is_the_same_every_time() -> None:
    async def scenario(client: Client) -> str:
        return (await client.list_tools(cache_mode="bypass")).model_dump_json()

    assert run(scenario, all_tools=True) == run(scenario, all_tools=True)
