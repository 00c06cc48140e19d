"""The tool in a toolkit, and outside of one."""

import asyncio
import contextvars
import re
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pegboard import Approval, ApprovalRequest, Chunk, ExecutionPolicy, Status, ToolCall, Toolkit, ToolResult
from pegboard_shell import ShellTools
from tests.plugins.shell.helpers import gone, output, processes, run, unique_seconds
from tests.support.waiting import PATIENCE, eventually, given_time, until

TOOL = "execute_shell_command"

MakeToolkit = Callable[..., Toolkit]


@pytest.fixture
def toolkit(tmp_path: Path) -> MakeToolkit:
    """A toolkit with the shell tool: `options` are those of `ShellTools`."""

    def make(approver: Any = None, **options: Any) -> Toolkit:
        toolkit = Toolkit(plugins=(), approver=approver)
        toolkit.register(ShellTools(tmp_path, **{"allow": ["echo", "sleep", "cat"], "sandbox": "none", **options}))
        return toolkit

    return make


class TestInAToolkit:
    def test_schema_is_that_of_the_seed(self, toolkit: MakeToolkit) -> None:
        (schema,) = toolkit().schemas()
        assert schema.name == TOOL
        assert schema.parameters["required"] == ["command"]
        assert sorted(schema.parameters["properties"]) == ["command", "timeout"]
        assert schema.parameters["properties"]["timeout"]["exclusiveMinimum"] == 0
        assert "quotes" in schema.description

    def test_sync_async_and_batch(self, toolkit: MakeToolkit) -> None:
        board = toolkit()
        assert output(board.call_sync(TOOL, {"command": "echo 1"})) == "1\n"
        assert output(asyncio.run(board.call(TOOL, {"command": "echo 2"}))) == "2\n"
        calls = [board.prepare(TOOL, {"command": f"echo {n}"}) for n in range(8)]
        assert [output(result) for result in board.call_many_sync(calls)] == [f"{n}\n" for n in range(8)]

    def test_two_loops_at_once(self, toolkit: MakeToolkit) -> None:
        board, found = toolkit(), []

        def work(n: int) -> None:
            found.append(output(asyncio.run(board.call(TOOL, {"command": f"echo {n}"}))))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [f"{n}\n" for n in range(4)]

    def test_from_within_a_running_loop(self, toolkit: MakeToolkit) -> None:
        board = toolkit()

        async def nested() -> str:
            return output(board.call_sync(TOOL, {"command": "echo nested"}))

        assert asyncio.run(nested()) == "nested\n"

    def test_data_and_text(self, toolkit: MakeToolkit) -> None:
        result = toolkit().call_sync(TOOL, '{"command": "echo hi"}')
        assert result.text == "<returncode>0</returncode>\n<stdout>hi</stdout>\n<stderr></stderr>"
        assert result.data["exit_code"] == 0
        assert result.name == TOOL

    def test_timeout_is_the_tools_own(self, tmp_path: Path) -> None:
        """And the partial output is there, whatever the policy of the toolkit says."""

        def board_with(timeout: float) -> Toolkit:
            board = Toolkit(plugins=(), policy=ExecutionPolicy(timeout=0.05, max_attempts=3))
            board.register(ShellTools(tmp_path, shell=True, approve=lambda request: True, timeout=timeout))
            return board

        def ended(after: float) -> ToolResult:
            return board_with(after).call_sync(TOOL, {"command": "echo start; sleep 597"})

        result = given_time(ended, lambda result: result.data["stdout"])
        assert result.status is Status.TIMEOUT
        assert result.data["stdout"] == "start\n"
        assert result.attempts == 1
        longer = {"command": "sleep 0.7; echo late", "timeout": PATIENCE}
        assert output(board_with(0.5).call_sync(TOOL, longer)) == "late\n"

    def test_timeout_of_a_calls_policy_keeps_what_was_written(self, tmp_path: Path) -> None:
        board = Toolkit(plugins=())
        board.register(ShellTools(tmp_path, shell=True, approve=lambda request: True, sandbox="none"))
        command = {"command": "echo start; echo '<oops>' >&2; exec sleep 597"}

        def ended(after: float) -> list[ToolResult]:
            policy = ExecutionPolicy(timeout=after, max_attempts=3)

            async def beside_each_other() -> list[ToolResult]:
                return await board.call_many([(TOOL, command)] * 2, policy=policy)

            alone = board.call_sync(TOOL, command, policy=policy)
            return [alone, asyncio.run(board.call(TOOL, command, policy=policy)), *asyncio.run(beside_each_other())]

        for result in given_time(ended, lambda results: all("oops" in each.text for each in results)):
            assert (result.status, result.attempts) == (Status.TIMEOUT, 1)
            assert re.match(r"Error: timed out after \d+(\.\d+)? s\. What the command wrote until then:\n", result.text)
            assert "<stdout>start</stdout>\n<stderr>&lt;oops>" in result.text
            assert result.data["stdout"] == "start\n"
            assert result.data["timed_out"] is True
            assert result.error is not None
            assert result.error.kind == "timeout"

    @pytest.mark.parametrize("timeout", [0, -1, 1e9, "soon", True])
    def test_timeout_that_cannot_be_meant(self, toolkit: MakeToolkit, timeout: Any) -> None:
        assert toolkit().call_sync(TOOL, {"command": "echo", "timeout": timeout}).status is Status.INVALID

    def test_null_is_the_default(self, toolkit: MakeToolkit) -> None:
        assert output(toolkit().call_sync(TOOL, {"command": "echo a", "timeout": None})) == "a\n"

    def test_streams_what_comes(self, tmp_path: Path) -> None:
        board = Toolkit(plugins=())
        board.register(ShellTools(tmp_path, shell=True, approve=lambda request: True))
        came: list[str] = []

        def listen(chunk: Chunk) -> None:
            came.append(chunk.text)
            (tmp_path / "go").touch()

        command = {"command": "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two >&2", "timeout": PATIENCE}
        result = asyncio.run(board.call(TOOL, command, on_chunk=listen))
        assert output(result) == "one\n"
        assert came == ["one\n", "two\n"]

    def test_stream_is_bounded(self, tmp_path: Path) -> None:
        board = Toolkit(plugins=())
        board.register(ShellTools(tmp_path, allow=["yes"], max_output=5000))

        def heard(seconds: float) -> list[str]:
            came: list[str] = []
            command = {"command": "yes", "timeout": seconds}
            board.call_sync(TOOL, command, on_chunk=lambda chunk: came.append(chunk.text))
            return came

        came = given_time(heard, lambda came: sum(map(len, came)) >= 5000)
        assert 5000 <= sum(map(len, came)) < 5100
        assert "in the result only" in came[-1]

    ENDS: ClassVar[dict[str, Callable[[Toolkit, ToolCall, asyncio.Task[ToolResult]], object]]] = {
        "call stopped": lambda board, call, task: call.stop(),
        "toolkit closed": lambda board, call, task: board.close(),
        "caller cancelled": lambda board, call, task: task.cancel(),
    }

    @pytest.mark.parametrize("end", ENDS)
    def test_ended_call_leaves_nothing_but_what_was_written(self, tmp_path: Path, end: str) -> None:
        seconds = unique_seconds()
        board = Toolkit(plugins=())
        board.register(ShellTools(tmp_path, shell=True, approve=lambda request: True, sandbox="none"))
        call = board.prepare(TOOL, {"command": f"echo start; sleep {seconds}"})

        async def watch() -> None:
            task = asyncio.ensure_future(call.execute())
            assert await asyncio.to_thread(
                eventually, lambda: any(line.startswith("sleep") for line in processes(seconds))
            )
            self.ENDS[end](board, call, task)
            await asyncio.wait([task])
            assert task.cancelled() is (end == "caller cancelled")

        asyncio.run(watch())
        assert gone(seconds)
        assert call.result is not None
        assert call.result.status is Status.CANCELLED
        assert call.result.data["stdout"] == "start\n"
        assert "<stdout>start</stdout>" in call.result.text

    @pytest.mark.parametrize("end", ["call stopped", "toolkit closed"])
    def test_ended_call_of_plain_code(self, toolkit: MakeToolkit, end: str) -> None:
        seconds = unique_seconds()
        board = toolkit()
        call = board.prepare(TOOL, {"command": f"sleep {seconds}"})
        thread = threading.Thread(target=call.execute_sync)
        thread.start()
        assert eventually(lambda: processes(seconds))
        (call.stop if end == "call stopped" else board.close)()
        thread.join(PATIENCE)
        assert call.result is not None
        assert call.result.data["signal"] == "SIGTERM"
        assert call.status is Status.CANCELLED
        assert gone(seconds)

    def test_toolkit_closed_in_the_loop_of_the_call_leaves_nothing(self, toolkit: MakeToolkit) -> None:
        seconds = unique_seconds()

        async def close() -> Status:
            async with toolkit() as board:
                call = asyncio.create_task(board.call(TOOL, {"command": f"sleep {seconds}"}))
                await until(lambda: processes(seconds))
            return (await call).status

        assert asyncio.run(close()) is Status.CANCELLED
        assert gone(seconds)

    def test_listener_keeps_its_context(self, tmp_path: Path) -> None:
        variable = contextvars.ContextVar("variable", default="lost")
        variable.set("kept")
        found: list[str] = []
        board = Toolkit(plugins=())
        board.register(ShellTools(tmp_path, allow=["echo"]))
        board.call_sync(TOOL, {"command": "echo a"}, on_chunk=lambda chunk: found.append(variable.get()))
        assert found == ["kept"]


class TestApproval:
    def test_toolkit_asks_for_what_is_not_listed(self, toolkit: MakeToolkit) -> None:
        asked: list[ApprovalRequest] = []

        def approver(request: ApprovalRequest) -> bool:
            asked.append(request)
            return "rm" not in request.arguments["command"]

        board = toolkit(approver)
        assert output(board.call_sync(TOOL, {"command": "echo a"})) == "a\n"
        assert asked == []
        assert output(board.call_sync(TOOL, {"command": "printf b"})) == "b"
        assert board.call_sync(TOOL, {"command": "rm x"}).status is Status.DENIED
        assert [request.arguments["command"] for request in asked] == ["printf b", "rm x"]
        assert "'rm' is not on the allow-list" in asked[1].reason

    def test_prepared_call_waits_for_approval(self, toolkit: MakeToolkit) -> None:
        board = toolkit()
        assert board.prepare(TOOL, {"command": "printf b"}).status is Status.AWAITING_APPROVAL
        assert board.prepare(TOOL, {"command": "echo b"}).status is Status.PENDING

    def test_without_an_approver_it_is_denied(self, toolkit: MakeToolkit) -> None:
        result = toolkit().call_sync(TOOL, {"command": "printf b"})
        assert result.status is Status.DENIED
        assert "needs approval" in result.text
        assert result.error is not None
        assert "approver" in result.error.details["remedy"]

    def test_edited_command_runs_and_deny_holds(self, toolkit: MakeToolkit) -> None:
        board = toolkit(lambda request: Approval.edit({"command": "printf edited"}))
        assert output(board.call_sync(TOOL, {"command": "rm x"})) == "edited"
        board = toolkit(lambda request: Approval.edit({"command": "rm x"}), deny=["rm"])
        assert board.call_sync(TOOL, {"command": "printf x"}).status is Status.DENIED

    def test_no_approver_allows_what_is_denied(self, toolkit: MakeToolkit) -> None:
        result = toolkit(lambda request: True, deny=["rm"]).call_sync(TOOL, {"command": "rm x"})
        assert result.status is Status.DENIED
        assert "rm is denied" in result.text

    def test_own_approver_goes_before_the_toolkits(self, toolkit: MakeToolkit) -> None:
        async def approve(request: ApprovalRequest) -> Approval:
            return Approval.deny(f"not {request.arguments['command']}, says {request.tool.name}")

        board = toolkit(lambda request: True, approve=approve)
        result = board.call_sync(TOOL, {"command": "printf b"})
        assert result.status is Status.DENIED
        assert f"not printf b, says {TOOL}" in result.text

    def test_changes_at_run_time_hold_for_the_next_call(self, tmp_path: Path) -> None:
        tools = ShellTools(tmp_path, allow=["echo"])
        board = Toolkit(plugins=())
        board.register(tools)
        assert not board.call_sync(TOOL, {"command": "echo a"}).is_error
        tools.clear_allowed_commands()
        assert board.call_sync(TOOL, {"command": "echo a"}).status is Status.DENIED
        tools.add_allowed_command("echo")
        assert not board.call_sync(TOOL, {"command": "echo a"}).is_error

    def test_function_of_the_tool_is_no_way_around(self, toolkit: MakeToolkit) -> None:
        function: Any = toolkit()[TOOL].function
        assert asyncio.run(function("printf b")).status is Status.DENIED

    def test_shell_asks_without_a_sandbox(self, tmp_path: Path) -> None:
        board = Toolkit(plugins=())
        board.register(ShellTools(tmp_path, shell=True, sandbox="none"))
        assert board.call_sync(TOOL, {"command": "echo a | cat"}).status is Status.DENIED


class TestOutsideOfAToolkit:
    def test_same_policy(self, tmp_path: Path) -> None:
        tools = ShellTools(tmp_path, allow=["echo"])
        assert output(run(tools, "echo a")) == "a\n"
        result = run(tools, "rm x")
        assert result.status is Status.DENIED
        assert "allow=" in result.text
        assert "approve=" in result.text

    @pytest.mark.parametrize("answer", [False, None, "yes", 1, Approval.deny("no")])
    def test_only_a_clear_yes_is_one(self, tmp_path: Path, answer: Any) -> None:
        assert run(ShellTools(tmp_path, approve=lambda request: answer), "echo a").status is Status.DENIED

    def test_approver_that_fails_lets_nothing_through(self, tmp_path: Path) -> None:
        def approve(request: ApprovalRequest) -> bool:
            raise OSError("away")

        result = run(ShellTools(tmp_path, approve=approve), "echo a")
        assert result.status is Status.DENIED
        assert "away" in result.text

    def test_approver_sees_what_the_toolkits_would(self, tmp_path: Path) -> None:
        asked: list[ApprovalRequest] = []

        def approve(request: ApprovalRequest) -> bool:
            asked.append(request)
            return True

        tools = ShellTools(tmp_path, approve=approve)
        assert output(run(tools, "echo a", 5)) == "a\n"
        (request,) = asked
        assert (request.tool.name, dict(request.arguments)) == (TOOL, {"command": "echo a", "timeout": 5})
        assert "allow-list is empty" in request.reason

    def test_own_approver_may_edit(self, tmp_path: Path) -> None:
        tools = ShellTools(tmp_path, deny=["rm"], approve=lambda request: Approval.edit({"command": "echo b"}))
        assert output(run(tools, "printf a")) == "b\n"

    def test_what_is_edited_is_checked_as_well(self, tmp_path: Path) -> None:
        def edited(**arguments: Any) -> Any:
            tools = ShellTools(tmp_path, deny=["rm"], approve=lambda request: Approval.edit(arguments))
            return run(tools, "sleep 597")

        assert edited(command="rm x").status is Status.DENIED
        assert edited(command="echo a | b").status is Status.INVALID
        assert edited(timeout=-1).status is Status.INVALID
        assert edited(timeout=0.2).status is Status.TIMEOUT

    @pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), 1e9])
    def test_timeout_that_cannot_be_meant(self, tmp_path: Path, timeout: float) -> None:
        assert run(ShellTools(tmp_path, allow=["echo"]), "echo a", timeout).status is Status.INVALID

    def test_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(OSError, match="nowhere"):
            ShellTools(tmp_path / "nowhere")

    @pytest.mark.parametrize("option", ["timeout", "max_timeout", "grace", "max_output"])
    def test_amounts_that_cannot_be_meant(self, tmp_path: Path, option: str) -> None:
        with pytest.raises(ValueError, match=option):
            ShellTools(tmp_path, **{option: 0})  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=f"{option} must be a number"):
            ShellTools(tmp_path, **{option: timedelta(seconds=3)})  # type: ignore[arg-type]

    def test_repr_names_what_matters(self, tmp_path: Path) -> None:
        tools = ShellTools(tmp_path, allow=["ls"], variables={"KEY": "secret"})
        assert repr(tools) == f"ShellTools({str(tmp_path)!r}, allow=['ls'], sandbox='auto')"
