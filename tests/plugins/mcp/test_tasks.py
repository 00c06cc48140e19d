"""Tasks: a server may go on with a call after its answer, and the call here ends when the task does."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.server.extension import Extension
from mcp_types import ElicitResult
from mcp_types.methods import SPEC_CLIENT_METHODS

from pegboard import Approval, ApprovalRequest, Chunk, ExecutionPolicy, Status, Toolkit
from pegboard_mcp import McpServer, mcp_server
from tests.plugins.mcp.over_http import started
from tests.support.waiting import begin, eventually, within
from tests.support.warm import warm_python

pytestmark = pytest.mark.usefixtures("nothing_left")

SCRIPT = str(Path(__file__).with_name("task_server.py"))
both_eras = pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
both_ways = pytest.mark.parametrize("way", ["stdio", pytest.param("http", marks=pytest.mark.slow)])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def reached(way: str, store: Path, **options: Any) -> Iterator[McpServer]:
    """The server, as a client of it."""
    options = {"connect_timeout": 60.0, "call_timeout": 60.0, **options}
    if way == "stdio":
        yield McpServer.stdio(warm_python(), [SCRIPT, str(store)], **options)
        return
    with started([warm_python(), SCRIPT, str(store), str(free_port())]) as (_, url):
        yield McpServer.http(url, **options)


@contextmanager
def board(way: str, store: Path, approver: Any = None, **options: Any) -> Iterator[Toolkit]:
    with reached(way, store, **options) as server, Toolkit(plugins=(), approver=approver) as toolkit:
        toolkit.register(server)
        yield toolkit


def cancelled(store: Path) -> list[str]:
    file = store / "cancelled"
    return file.read_text().split() if file.exists() else []


@both_ways
@both_eras
def test_tools_that_must_that_may_and_that_never_run_as_tasks(way: str, mode: str, tmp_path: Path) -> None:
    with board(way, tmp_path, mode=mode) as toolkit:
        results = {
            name: toolkit.call_sync(name, {"text": "hello"}) for name in ("needs_task", "may_take_task", "never_task")
        }
        texts = {name: result.text for name, result in results.items()}
        problems = list(toolkit.problems)
    if mode == "auto":
        assert texts == {
            "needs_task": "hello, as a task",
            "may_take_task": "hello, as a task",
            "never_task": "hello, at once",
        }
        assert problems == []
    else:
        assert results["needs_task"].status is Status.NOT_FOUND
        assert texts["may_take_task"] == texts["never_task"] == "hello, at once"
        assert "'needs_task' is left out: it runs as a task alone" in str(problems)


@both_ways
def test_messages_of_a_task_are_progress(way: str, tmp_path: Path) -> None:
    heard: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        heard.append(chunk)

    async def main(toolkit: Toolkit) -> str:
        return (await toolkit.call("steps", {"text": "hello"}, on_chunk=listen)).text

    with board(way, tmp_path) as toolkit:
        assert asyncio.run(main(toolkit)) == "hello, as a task"
    assert [chunk.text for chunk in heard] == ["it begins", "one", "two"]


@pytest.mark.slow
def test_an_interval_that_is_none_is_bounded(tmp_path: Path) -> None:
    with board("stdio", tmp_path) as toolkit:
        assert toolkit.call_sync("hasty", {"text": "hello"}).text == "hello, as a task"


class TestQuestions:
    @both_ways
    @pytest.mark.parametrize("heard", [True, pytest.param(False, marks=pytest.mark.slow)])
    def test_of_a_task_go_to_the_approver_once(self, way: str, heard: bool, tmp_path: Path) -> None:
        asked: list[str] = []

        def approver(request: ApprovalRequest) -> Approval:
            asked.append(request.reason)
            return Approval.edit({"name": "Ada"})

        async def main(toolkit: Toolkit) -> str:
            listener = ignored if heard else None
            return (await toolkit.call("asks_twice", {"text": "hello"}, on_chunk=listener)).text

        with board(way, tmp_path, approver) as toolkit:
            assert asyncio.run(main(toolkit)) == "[{'name': 'Ada'}, {'name': 'Ada'}]"
        assert asked == ["Who are you?", "And who else?"]

    @pytest.mark.slow
    def test_that_are_declined_are_declined_there(self, tmp_path: Path) -> None:
        with board("stdio", tmp_path, lambda request: False) as toolkit:
            assert toolkit.call_sync("asks", {"text": "hello"}).text == "['decline']"

    def test_without_an_approver_suspend_the_call_and_cancel_the_task(self, tmp_path: Path) -> None:
        with board("stdio", tmp_path) as toolkit:
            result = toolkit.call_sync("asks", {"text": "hello"})
            assert (result.status, result.text) == (Status.SUSPENDED, "asks asks: Who are you?")
            assert eventually(lambda: cancelled(tmp_path))
            assert toolkit.resume(result.call_id, "it was Ada").text == "it was Ada"

    @pytest.mark.slow
    def test_do_not_use_up_the_time_of_the_task(self, tmp_path: Path) -> None:
        async def approver(request: ApprovalRequest) -> Approval:
            await asyncio.sleep(1.5)
            return Approval.edit({"name": "Ada"})

        with board("stdio", tmp_path, approver, call_timeout=1.0) as toolkit:
            assert toolkit.call_sync("asks", {"text": "hello"}).text == "[{'name': 'Ada'}]"

    @pytest.mark.slow
    def test_of_a_kind_that_cannot_be_answered_end_the_task(self, tmp_path: Path) -> None:
        with board("stdio", tmp_path) as toolkit:
            result = toolkit.call_sync("samples", {"text": "hello"})
            assert result.status is Status.ERROR
            assert "sampling/createMessage" in result.text
            assert eventually(lambda: cancelled(tmp_path))


async def ignored(chunk: Chunk) -> None:
    """Listens, so that the call takes the way of calls with progress."""


class TestEnds:
    @both_ways
    @pytest.mark.parametrize(
        ("name", "kind", "why"),
        [
            ("fails", "task_failed", "its task failed: no disk is left"),
            ("ends", "task_cancelled", "it cancelled its task: an operator ended it"),
        ],
    )
    def test_without_a_result_are_errors(self, way: str, name: str, kind: str, why: str, tmp_path: Path) -> None:
        with board(way, tmp_path) as toolkit:
            result = toolkit.call_sync(name, {"text": "hello"})
        assert result.error is not None
        assert (result.status, result.error.kind) == (Status.ERROR, kind)
        assert result.text.endswith(why)
        assert cancelled(tmp_path) == []

    def test_with_an_error_of_the_tool_are_that_error(self, tmp_path: Path) -> None:
        with board("stdio", tmp_path) as toolkit:
            result = toolkit.call_sync("errs", {"text": "hello"})
        assert (result.status, result.text) == (Status.ERROR, "it came to nothing")

    @pytest.mark.slow
    def test_in_a_status_that_is_none_are_errors(self, tmp_path: Path) -> None:
        with board("stdio", tmp_path) as toolkit:
            result = toolkit.call_sync("odd", {"text": "hello"})
            assert result.status is Status.ERROR
            assert "it sent something that is no MCP" in result.text
            assert eventually(lambda: cancelled(tmp_path))


class TestCancelling:
    @both_ways
    @pytest.mark.parametrize("heard", [True, pytest.param(False, marks=pytest.mark.slow)])
    def test_a_call_cancels_its_task(self, way: str, heard: bool, tmp_path: Path) -> None:
        async def main(toolkit: Toolkit) -> None:
            listener = ignored if heard else None
            call = asyncio.ensure_future(toolkit.call("forever", {"text": "hello"}, on_chunk=listener))
            await asyncio.sleep(0.5)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

        with board(way, tmp_path) as toolkit:
            toolkit.call_sync("never_task", {"text": "the connection is open"})
            asyncio.run(main(toolkit))
            # Nothing waits: the end of the connection has it sent.
        assert eventually(lambda: cancelled(tmp_path) == ["forever-1"])

    @both_ways
    def test_a_call_that_takes_too_long_cancels_its_task(self, way: str, tmp_path: Path) -> None:
        with board(way, tmp_path, call_timeout=1.0) as toolkit:
            result = toolkit.call_sync("forever", {"text": "hello"})
            assert result.status is Status.TIMEOUT
            assert "did not answer in time" in result.text
            assert eventually(lambda: cancelled(tmp_path) == ["forever-1"])

    @pytest.mark.slow
    def test_the_policy_of_the_tool_bounds_its_task_too(self, tmp_path: Path) -> None:
        with reached("stdio", tmp_path) as server, Toolkit(plugins=()) as toolkit:
            toolkit.register(server)
            result = toolkit.call_sync("lazy", {"text": "hello"}, policy=ExecutionPolicy(timeout=1.0))
            assert result.status is Status.TIMEOUT
            assert eventually(lambda: cancelled(tmp_path) == ["lazy-1"])


class TestLostConnections:
    def test_to_a_process_that_has_ended_are_errors(self, tmp_path: Path) -> None:
        with board("stdio", tmp_path) as toolkit:
            result = toolkit.call_sync("crashes", {"text": "hello"})
            assert result.error is not None
            assert (result.status, result.error.kind) == (Status.ERROR, "task_lost")
            assert toolkit.call_sync("never_task", {"text": "hello"}).text == "hello, at once"

    @pytest.mark.slow
    @pytest.mark.parametrize("heard", [True, pytest.param(False, marks=pytest.mark.slow)])
    def test_are_opened_again_and_the_task_goes_on(self, heard: bool, tmp_path: Path) -> None:
        port = free_port()
        command = [warm_python(), SCRIPT, str(tmp_path), str(port)]

        async def main() -> Any:
            listener = ignored if heard else None
            return await toolkit.call("durable", {"text": "4"}, on_chunk=listener)

        with Toolkit(plugins=()) as toolkit:
            with started(command) as (_, url):
                toolkit.register(McpServer.http(url, connect_timeout=60.0, call_timeout=60.0))
                call = begin(lambda: asyncio.run(main()))
                assert eventually((tmp_path / "looked").exists)
            with started(command):
                result = within(lambda: call.result(60.0))
        assert (result.status, result.text) == (Status.SUCCESS, "it has lasted")

    @pytest.mark.slow
    def test_to_a_server_that_does_not_know_the_task_any_more_are_errors(self, tmp_path: Path) -> None:
        port = free_port()
        command = [warm_python(), SCRIPT, str(tmp_path), str(port)]
        with Toolkit(plugins=()) as toolkit:
            with started(command) as (_, url):
                toolkit.register(McpServer.http(url, connect_timeout=60.0, call_timeout=60.0))
                call = begin(lambda: toolkit.call_sync("durable", {"text": "60"}))
                assert eventually((tmp_path / "looked").exists)
            (tmp_path / "durable-1").unlink()
            with started(command):
                result = within(lambda: call.result(60.0))
        assert result.error is not None
        assert (result.status, result.error.kind) == (Status.ERROR, "task_lost")


class TestServed:
    @both_eras
    def test_a_task_of_a_far_server_is_a_call_here(self, mode: str, tmp_path: Path) -> None:
        """Its messages are progress of the call, and its questions go to the user at the client."""
        heard: list[str | None] = []

        async def answer(context: Any, params: Any) -> ElicitResult:
            return ElicitResult(action="accept", content={"name": params.message})

        async def listen(progress: float, total: float | None, message: str | None) -> None:
            heard.append(message)

        async def main(toolkit: Toolkit) -> list[Any]:
            server = mcp_server(toolkit, all_tools=True)
            async with Client(server, mode=mode, elicitation_callback=answer) as client:
                called = [
                    await client.call_tool(name, {"text": "hello"}, progress_callback=listen)
                    for name in ("steps", "asks")
                ]
            return [each.content[0] for each in called]

        with board("stdio", tmp_path) as toolkit:
            texts = [each.text for each in asyncio.run(main(toolkit))]
        assert texts == ["hello, as a task", "[{'name': 'Who are you?'}]"]
        assert heard[:3] == ["it begins", "one", "two"]

    def test_the_sdk_has_no_tasks_for_servers(self) -> None:
        """Where this fails, a release of the SDK has them: look at it, and at `docs/packs/mcp-serving.md`."""
        from mcp import server

        assert [method for method in SPEC_CLIENT_METHODS if method.startswith("tasks/")] == []
        assert [name for name in (*dir(server), *dir(Extension)) if "task" in name.lower()] == []

    @both_eras
    def test_a_board_declares_none_and_answers_with_none(self, mode: str) -> None:
        async def main() -> None:
            with Toolkit(plugins=()) as toolkit:
                toolkit.register(lambda: 1, name="one", description="One.")
                async with Client(mcp_server(toolkit, all_tools=True), mode=mode) as client:
                    declared = client.server_capabilities
                    assert not any([declared.tasks, declared.extensions, declared.experimental])
                    (tool,) = (await client.list_tools()).tools
                    assert tool.execution is None

        asyncio.run(main())
