"""Approval: permissions and their file, approvers of every kind, external and suspended calls."""

import asyncio
import gc
import json
import os
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pegboard import (
    Approval,
    ApprovalRequest,
    ExecutionPolicy,
    Locked,
    PegboardError,
    Secret,
    SettingsError,
    Status,
    Suspend,
    Tool,
    ToolCall,
    ToolError,
    Toolkit,
    ToolResult,
    tool,
)
from tests.support.waiting import PATIENCE, eventually

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


class Desk:
    """A toolkit with one tool that deletes, and what it deleted."""

    def __init__(self, approver: Any = None, **options: Any) -> None:
        self.ran: list[Any] = []
        requires = options.pop("requires_approval", True)

        @tool(requires_approval=requires)
        def delete(paths: list[str], filters: dict[str, Any] | None = None, extra: Any = None) -> str:
            self.ran.append((paths, filters, extra))
            return "deleted"

        @tool
        async def look() -> str:
            await asyncio.sleep(0)
            return "seen"

        self.toolkit = Toolkit(plugins=(), approver=approver, **options)
        self.toolkit.register(delete, look)

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, *exc: object) -> None:
        self.toolkit.close()


SENT: dict[str, Any] = {"paths": ["/tmp/a"], "filters": {"names": {"like": "x"}}, "extra": [1]}
EXPECTED = (["/tmp/a"], {"names": {"like": "x"}}, [1])


def sent() -> dict[str, Any]:
    return json.loads(json.dumps(SENT))  # type: ignore[no-any-return]


def spoil(arguments: Any) -> None:
    """Change everything that can be reached."""
    arguments["paths"].append("/etc")
    arguments["filters"]["names"]["like"] = "*"
    arguments["extra"].append(2)
    arguments["more"] = 1


def noting(seen: list[Any], answer: Any, of: Callable[[ApprovalRequest], Any]) -> Callable[[ApprovalRequest], Any]:
    """An approver that remembers something of each request."""

    def note(request: ApprovalRequest) -> Any:
        seen.append(of(request))
        return answer

    return note


def run(call: ToolCall, *, on_a_loop: bool) -> ToolResult:
    return asyncio.run(call.execute()) if on_a_loop else call.execute_sync()


@pytest.mark.parametrize("on_a_loop", [False, True])
class TestBindsToTheArguments:
    """What was shown is what runs, whoever changes what in between."""

    def test_the_callers_own_mapping(self, on_a_loop: bool) -> None:
        with Desk(lambda request: True) as desk:
            arguments = sent()
            call = desk.toolkit.prepare("delete", arguments)
            spoil(arguments)
            assert run(call, on_a_loop=on_a_loop).value == "deleted"
            assert desk.ran == [EXPECTED]

    def test_what_the_prepared_call_shows(self, on_a_loop: bool) -> None:
        shown: list[Any] = []
        with Desk(noting(shown, True, lambda request: request.arguments)) as desk:
            call = desk.toolkit.prepare("delete", sent())
            spoil(call.arguments)
            spoil(call.typed)
            assert run(call, on_a_loop=on_a_loop).value == "deleted"
            assert desk.ran == [EXPECTED]
            assert shown == [SENT]
            assert call.arguments == SENT

    def test_the_request(self, on_a_loop: bool) -> None:
        with Desk(noting([], True, lambda request: spoil(request.arguments))) as desk:
            call = desk.toolkit.prepare("delete", sent())
            assert run(call, on_a_loop=on_a_loop).value == "deleted"
            assert desk.ran == [EXPECTED]

    def test_the_request_once_it_was_approved(self, on_a_loop: bool) -> None:
        requests: list[Any] = []
        edited: list[Any] = []

        def approver(request: ApprovalRequest) -> Approval:
            requests.append(request.arguments)
            edited.append(sent())
            return Approval.edit(edited[-1])

        with Desk(approver) as desk:

            @tool(requires_approval=True)
            def slow(paths: list[str], filters: dict[str, Any], extra: Any) -> Any:
                spoil(requests[-1])
                spoil(edited[-1])
                return [paths, filters, extra]

            desk.toolkit.register(slow)
            call = desk.toolkit.prepare("slow", sent())
            assert run(call, on_a_loop=on_a_loop).value == list(EXPECTED)

    def test_of_a_tool_by_hand(self, on_a_loop: bool) -> None:
        class Delete:
            name = "by_hand"
            description = "Delete."
            parameters = {"type": "object", "properties": {"paths": {"type": "array"}, "n": {"type": "integer"}}}  # noqa: RUF012 - as users write it

            def call(self, call: ToolCall) -> Any:
                return call.arguments

        for approver in (None, lambda request: True):
            with Toolkit(plugins=(), approver=approver) as toolkit:
                toolkit.register(Delete())
                toolkit.set_permission("by_hand", "always" if approver is None else "prompt")
                arguments: dict[str, Any] = {"paths": ["/tmp/a"], "n": 1}
                call = toolkit.prepare("by_hand", arguments)
                spoiled: tuple[Any, ...] = (arguments, call.arguments, call.typed)
                for each in spoiled:
                    each["n"] = "many"
                arguments["paths"].append("/etc")
                call.arguments["paths"].append("/etc")
                assert run(call, on_a_loop=on_a_loop).value == {"paths": ["/tmp/a"], "n": 1}

    def test_a_predicate_judges_what_runs(self, on_a_loop: bool) -> None:
        with Desk(None, requires_approval=lambda arguments: "/etc" in arguments["paths"]) as desk:
            call = desk.toolkit.prepare("delete", {"paths": ["/etc"]})
            call.typed.update(paths=["/tmp"])  # type: ignore[attr-defined]
            assert run(call, on_a_loop=on_a_loop).status is Status.DENIED
            assert desk.ran == []


class TestPermissionsAreThoseOfTheMoment:
    @pytest.mark.parametrize("on_a_loop", [False, True])
    def test_never_wins(self, on_a_loop: bool) -> None:
        with Desk(requires_approval=False) as desk:
            call = desk.toolkit.prepare("delete", sent())
            desk.toolkit.set_permission("delete", "never")
            result = run(call, on_a_loop=on_a_loop)
            assert (result.status, result.text) == (Status.DENIED, "Error: delete is not permitted")
            assert desk.ran == []

    def test_never_wins_over_an_approver(self) -> None:
        asked: list[Any] = []
        with Desk(asked.append) as desk:
            call = desk.toolkit.prepare("delete", sent())
            desk.toolkit.set_permission("delete", "never")
            assert call.execute_sync().status is Status.DENIED
            assert asked == []

    def test_prompt_asks(self) -> None:
        asked: list[str] = []
        with Desk(lambda request: asked.append(request.reason), requires_approval=False) as desk:
            call = desk.toolkit.prepare("delete", sent())
            desk.toolkit.set_permission("delete", "prompt")
            assert call.execute_sync().status is Status.DENIED
            assert asked == ["the permission of delete is prompt"]

    def test_always_asks_no_more(self) -> None:
        """Whoever says "always" to the first of several calls is not asked about the others."""
        asked: list[str] = []

        def approver(request: ApprovalRequest) -> bool:
            asked.append(request.call_id)
            desk.toolkit.set_permission("delete", "always")
            return True

        with Desk(approver) as desk:
            calls = [desk.toolkit.prepare("delete", sent(), call_id=f"c{n}") for n in range(3)]
            assert [call.status for call in calls] == [Status.AWAITING_APPROVAL] * 3
            assert [call.execute_sync().status for call in calls] == [Status.SUCCESS] * 3
            assert asked == ["c0"]

    def test_of_the_calls_own_session(self) -> None:
        with Desk(requires_approval=False) as desk:
            ann, bob = desk.toolkit.session(), desk.toolkit.session()
            calls = [session.prepare("delete", sent()) for session in (ann, bob)]
            ann.set_permission("delete", "never")
            assert [call.execute_sync().status for call in calls] == [Status.DENIED, Status.SUCCESS]
            call = bob.prepare("delete", sent())
            desk.toolkit.set_permission("delete", "never")  # a session is as its toolkit unless it says otherwise
            assert call.execute_sync().status is Status.DENIED

    def test_of_a_tool_that_is_gone(self) -> None:
        with Desk(lambda request: True) as desk:
            call = desk.toolkit.prepare("delete", sent())
            desk.toolkit.unregister("delete")
            assert call.execute_sync().value == "deleted"

    def test_a_result_that_is_there_stays(self) -> None:
        with Desk(lambda request: True) as desk:
            call = desk.toolkit.prepare("delete", sent())
            result = call.execute_sync()
            desk.toolkit.set_permission("delete", "never")
            assert call.execute_sync() is result


class TestNamesakes:
    """A tool that takes the name of one that was taken down."""

    @pytest.mark.parametrize(("said", "then"), [("always", "prompt"), ("never", "never"), ("prompt", "prompt")])
    def test_what_was_allowed_ends_and_what_was_refused_stays(self, tmp_path: Path, said: str, then: str) -> None:
        path = tmp_path / "permissions.json"
        with Desk(permissions=path) as desk:
            desk.toolkit.set_permission("delete", said)
            delete = desk.toolkit["delete"]
            desk.toolkit.unregister("delete")
            desk.toolkit.register(delete)
            assert desk.toolkit.permissions["delete"] == then
        with Desk(permissions=path) as desk:
            assert desk.toolkit.permissions["delete"] == then

    def test_of_a_group(self) -> None:
        with Desk() as desk:
            desk.toolkit.create_group("files")
            desk.toolkit.register(tool(requires_approval=True)(lambda: 1), name="wipe", group="files")
            desk.toolkit.set_permission("wipe", "always")
            desk.toolkit.remove_groups("files")
            desk.toolkit.register(tool(requires_approval=True)(lambda: 2), name="wipe")
            assert desk.toolkit.permissions["wipe"] == "prompt"


class TestTheFile:
    def board(self, path: Path | str) -> Toolkit:
        toolkit = Toolkit(plugins=(), permissions=path)
        for name in ("a", "b", "c"):
            toolkit.register(lambda: "ran", name=name)
        return toolkit

    def test_survives_the_toolkit(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        first = self.board(path)
        first.set_permission("c", "never")
        first.set_permission("b", "prompt")
        first.set_permission("b", "always")
        assert path.read_text(encoding="utf-8") == '{\n  "b": "always",\n  "c": "never"\n}\n'
        second = self.board(path)
        assert second.call_sync("c").status is Status.DENIED
        assert second.permissions == {"a": "always", "b": "always", "c": "never"}

    def test_names_that_hang_nowhere_are_kept(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        path.write_text('{"not_here": "never"}', encoding="utf-8")
        self.board(path).set_permission("a", "prompt")
        assert json.loads(path.read_text(encoding="utf-8")) == {"a": "prompt", "not_here": "never"}

    def test_as_an_editor_may_leave_it(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        path.write_bytes(b'\xef\xbb\xbf{"a": "never"}\r\n')
        assert self.board(path).permissions["a"] == "never"

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "null",
            "{",
            '"never"',
            '{"a": "Never"}',
            '{"a": null}',
            '{"a": {}}',
            '{"a": "never", "a": "always"}',
            "[" * 100_000,
        ],
    )
    def test_that_is_broken_is_an_error_and_is_left_alone(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "permissions.json"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(SettingsError, match=r"permissions\.json: permissions are a JSON object"):
            self.board(path)
        assert path.read_text(encoding="utf-8") == text

    def test_that_breaks_later_is_not_written_over(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        toolkit = self.board(path)
        toolkit.set_permission("a", "never")
        path.write_text('{"a": "never", "b": ', encoding="utf-8")
        with pytest.raises(SettingsError, match=r"permissions\.json"):
            toolkit.set_permission("a", "always")
        assert path.read_text(encoding="utf-8") == '{"a": "never", "b": '
        assert toolkit.call_sync("a").status is Status.DENIED

    def test_that_is_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match="permissions are"):
            self.board(tmp_path)

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs an account that may not read everything")
    def test_that_may_not_be_read_allows_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        path.write_text('{"a": "never"}', encoding="utf-8")
        path.chmod(0)
        with pytest.raises(SettingsError, match=r"permissions\.json"):
            self.board(path)

    def test_that_cannot_be_written_changes_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "permissions.json"
        toolkit = self.board(path)
        toolkit.set_permission("a", "prompt")
        before = path.read_text(encoding="utf-8")

        def full(*args: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(SettingsError, match=r"permissions\.json: the permissions cannot be saved: No space left"):
            toolkit.set_permission("a", "always")
        assert toolkit.permissions["a"] == "prompt"
        assert path.read_text(encoding="utf-8") == before
        assert [each.name for each in tmp_path.iterdir()] == ["permissions.json"]
        monkeypatch.undo()
        toolkit.set_permission("a", "always")
        assert toolkit.permissions["a"] == "always"

    def test_replaced_in_one_step(self, tmp_path: Path) -> None:
        """Whoever reads meanwhile sees the old permissions or the new ones, and never a part of them."""
        path = tmp_path / "permissions.json"
        toolkit = self.board(path)
        toolkit.set_permission("a", "never")
        stop = threading.Event()
        seen: set[str] = set()

        def watch() -> None:
            while not stop.is_set():
                seen.add(path.read_text(encoding="utf-8"))

        with ThreadPoolExecutor(1) as pool:
            watcher = pool.submit(watch)
            for n in range(100):
                toolkit.set_permission("a", ("never", "prompt")[n % 2])
            stop.set()
            watcher.result(PATIENCE)
        assert seen <= {'{\n  "a": "never"\n}\n', '{\n  "a": "prompt"\n}\n'}
        assert len(seen) == 2

    def test_from_several_threads(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        toolkit = Toolkit(plugins=(), permissions=path)
        names = [f"tool{n}" for n in range(24)]
        for name in names:
            toolkit.register(lambda: 1, name=name)
        with ThreadPoolExecutor(8) as pool:
            for future in [pool.submit(toolkit.set_permission, name, "never") for name in names]:
                future.result(PATIENCE)
        assert json.loads(path.read_text(encoding="utf-8")) == dict.fromkeys(sorted(names), "never")
        assert [each.name for each in tmp_path.iterdir()] == ["permissions.json"]

    def test_shared_by_two_programs(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        ann, bob = self.board(path), self.board(path)
        ann.set_permission("a", "never")
        bob.set_permission("b", "never")
        assert json.loads(path.read_text(encoding="utf-8")) == {"a": "never", "b": "never"}
        assert bob.permissions["a"] == "never"

    def test_keeps_its_mode_and_its_link(self, tmp_path: Path) -> None:
        path, link = tmp_path / "real.json", tmp_path / "link.json"
        path.write_text("{}", encoding="utf-8")
        path.chmod(0o600)
        link.symlink_to(path)
        self.board(link).set_permission("a", "never")
        assert link.is_symlink()
        assert json.loads(path.read_text(encoding="utf-8")) == {"a": "never"}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_in_a_folder_that_is_not_there_yet(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        toolkit = self.board("some/where/permissions.json")
        monkeypatch.chdir("/")
        toolkit.set_permission("a", "never")
        assert json.loads((tmp_path / "some/where/permissions.json").read_text(encoding="utf-8")) == {"a": "never"}


class TestAnApprover:
    def test_that_is_an_object_with_an_async_call(self) -> None:
        class Clerk:
            async def __call__(self, request: ApprovalRequest) -> bool:
                await asyncio.sleep(0)
                return True

        with Desk(Clerk()) as desk:
            assert desk.toolkit.call_sync("delete", sent()).value == "deleted"
            assert asyncio.run(desk.toolkit.call("delete", sent())).value == "deleted"

    def test_that_plain_code_asks_in_its_own_thread(self) -> None:
        threads: list[int] = []
        with Desk(noting(threads, True, lambda request: threading.get_ident())) as desk:
            desk.toolkit.call_sync("delete", sent())
            asyncio.run(desk.toolkit.call("delete", sent()))
        assert (threads[0] == threading.get_ident(), threads[1] == threading.get_ident()) == (True, False)

    @pytest.mark.parametrize("on_a_loop", [False, True])
    @pytest.mark.parametrize("answer", [True, False])
    def test_that_thinks_long_stops_with_the_call(self, on_a_loop: bool, answer: bool) -> None:
        decide = threading.Event()

        def approver(request: ApprovalRequest) -> bool:
            decide.wait(PATIENCE)
            return answer

        with Desk(approver) as desk:
            call = desk.toolkit.prepare("delete", sent())
            box: list[ToolResult] = []
            caller = threading.Thread(target=lambda: box.append(run(call, on_a_loop=on_a_loop)))
            caller.start()
            assert eventually(lambda: desk.toolkit.stats["waiting"] == 1)
            call.stop()
            if on_a_loop:
                caller.join(PATIENCE)
            decide.set()
            caller.join(PATIENCE)
            assert [result.status for result in box] == [Status.CANCELLED]
            assert desk.ran == []
            assert eventually(lambda: desk.toolkit.stats["abandoned_threads"] == 0)

    def test_that_hangs_on_a_loop_ends_with_the_caller(self) -> None:
        ended: list[str] = []

        async def approver(request: ApprovalRequest) -> bool:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("ended")
            return True

        with Desk(approver) as desk:

            async def main() -> ToolResult | None:
                call = desk.toolkit.prepare("delete", sent())
                task = asyncio.create_task(call.execute())
                await asyncio.sleep(0.01)
                assert call.status is Status.AWAITING_APPROVAL
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                return call.result

            result = asyncio.run(main())
            assert result is not None
            assert (result.status, ended, desk.ran) == (Status.CANCELLED, ["ended"], [])

    @pytest.mark.parametrize("on_a_loop", [False, True])
    @pytest.mark.parametrize(
        "error", [ValueError("no terminal"), asyncio.CancelledError(), KeyError("x"), EOFError(), StopIteration()]
    )
    def test_that_raises_lets_nothing_through(self, on_a_loop: bool, error: BaseException) -> None:
        def approver(request: ApprovalRequest) -> bool:
            raise error

        with Desk(approver) as desk:
            result = run(desk.toolkit.prepare("delete", sent()), on_a_loop=on_a_loop)
            assert result.status in (Status.DENIED, Status.CANCELLED)
            assert desk.ran == []

    @pytest.mark.parametrize("answer", ["approve", {"decision": "approve"}, [True], object, Approval])
    def test_that_answers_something_else(self, answer: Any) -> None:
        with Desk(lambda request: answer) as desk:
            result = desk.toolkit.call_sync("delete", sent())
            assert (result.status, "no answer" in result.text) == (Status.DENIED, True)
            assert desk.ran == []

    def test_whose_answer_is_none_of_the_three(self) -> None:
        for wrong in ({"decision": "maybe"}, {"decision": "edit"}, {"decision": "approve", "arguments": {}}):
            with pytest.raises(ValueError, match="decision"):
                Approval(**wrong)
        with Desk(lambda request: Approval("edit")) as desk:
            assert desk.toolkit.call_sync("delete", sent()).status is Status.DENIED
            assert desk.ran == []

    def test_whose_edit_sets_what_only_the_program_sets(self) -> None:
        with Desk(lambda request: Approval.edit({"paths": ["/b"], "extra": "mine"})) as desk:
            desk.toolkit.set_presets("delete", {"extra": Locked("the program's")})
            result = desk.toolkit.call_sync("delete", {"paths": ["/a"]})
            assert (result.status, desk.ran) == (Status.SUCCESS, [(["/b"], None, "the program's")])

    def test_who_says_why_not(self) -> None:
        with Desk(lambda request: Approval.deny("only below tmp")) as desk:
            result = desk.toolkit.call_sync("delete", sent())
            assert result.text == "Error: delete was not run: only below tmp"
            assert result.error is not None
            assert result.error.kind == "denied"

    def test_sees_no_secret(self) -> None:
        shown: list[Any] = []
        with Desk(noting(shown, False, lambda request: request)) as desk:
            desk.toolkit.set_presets("delete", {"extra": Secret("s3cr3t-value")})
            desk.toolkit.call_sync("delete", {"paths": ["/a"]})
        assert shown[0].arguments == {"paths": ["/a"]}
        assert "s3cr3t" not in repr(shown[0])


class TestAmongOthers:
    @pytest.mark.parametrize("parallel", [True, False])
    def test_siblings_go_on(self, parallel: bool) -> None:
        decide = asyncio.Event()
        seen: list[str] = []

        async def approver(request: ApprovalRequest) -> bool:
            await asyncio.wait_for(decide.wait(), PATIENCE)
            return True

        with Desk(approver, parallel=parallel) as desk:

            async def main() -> list[ToolResult]:
                calls = [desk.toolkit.prepare(name, sent() if name == "delete" else None) for name in NAMES]
                many = asyncio.create_task(desk.toolkit.call_many(calls))
                for _ in range(50):
                    await asyncio.sleep(0.001)
                seen.extend(str(call.status) for call in calls)
                decide.set()
                return await many

            results = asyncio.run(main())
        assert [result.text for result in results] == ["seen", "deleted", "seen"]
        assert seen == ["success", "awaiting_approval", "success" if parallel else "pending"]

    def test_one_denied_one_edited_one_asked_in_vain(self) -> None:
        def approver(request: ApprovalRequest) -> Any:
            first = request.arguments["paths"][0]
            return {"/a": False, "/b": Approval.edit({"paths": ["/c"]}), "/d": None}[first]

        with Desk(approver) as desk:
            calls = [("delete", {"paths": [path]}) for path in ("/a", "/b", "/d")] + [("look", {})]
            results = desk.toolkit.call_many_sync(calls)
            assert [str(result.status) for result in results] == ["denied", "success", "denied", "success"]
            assert desk.ran == [(["/c"], None, None)]

    def test_each_is_asked_once(self) -> None:
        asked: list[str] = []
        with Desk(noting(asked, True, lambda request: request.call_id)) as desk:
            call = desk.toolkit.prepare("delete", sent(), call_id="c1")

            async def main() -> list[ToolResult]:
                return list(await asyncio.gather(*(call.execute() for _ in range(5))))

            results = asyncio.run(main())
            assert all(result is results[0] for result in results)
            assert (asked, len(desk.ran)) == (["c1"], 1)

    def test_attempts_are_not(self) -> None:
        asked: list[str] = []
        ran: list[int] = []

        @tool(requires_approval=True, policy=ExecutionPolicy(max_attempts=3, initial_backoff=0))
        def flaky() -> str:
            ran.append(1)
            if len(ran) < 3:
                raise ConnectionError("down")
            return "up"

        with Toolkit(plugins=(), approver=noting(asked, True, lambda request: request.call_id)) as toolkit:
            toolkit.register(flaky)
            assert toolkit.call_sync("flaky", call_id="c1").text == "up"
        assert asked == ["c1"]


NAMES = ["look", "delete", "look"]


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        made.register(Tool.external("ask", "Ask somebody.", NOTHING))
        yield made


class TestResume:
    def test_from_a_coroutine_and_from_another_thread(self, toolkit: Toolkit) -> None:
        async def main() -> ToolResult:
            result = await toolkit.call("ask", call_id="c1")
            assert result.status is Status.SUSPENDED
            await toolkit.call("ask", call_id="c2")
            toolkit.resume("c1", "here")
            return await asyncio.to_thread(toolkit.resume, "c2", "there")

        assert asyncio.run(main()).text == "there"
        assert toolkit.pending == []

    def test_whoever_waits_for_the_call_has_the_answer(self, toolkit: Toolkit) -> None:
        call = toolkit.prepare("ask", call_id="c1")
        assert call.execute_sync().status is Status.SUSPENDED
        answer = toolkit.resume("c1", 7)
        assert call.result is answer
        assert call.status is Status.SUCCESS
        assert call.execute_sync() is answer
        assert asyncio.run(call.execute()) is answer

    def test_only_once(self, toolkit: Toolkit) -> None:
        toolkit.call_sync("ask", call_id="c1")
        barrier = threading.Barrier(8)

        def resume(n: int) -> bool:
            barrier.wait(PATIENCE)
            try:
                toolkit.resume("c1", n)
            except PegboardError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(resume, range(8))) == 1

    def test_an_id_of_a_call_that_is_not_suspended(self, toolkit: Toolkit) -> None:
        toolkit.register(lambda: 1, name="one")
        toolkit.call_sync("one", call_id="c1")
        toolkit.prepare("ask", call_id="c2")
        for call_id in ("c1", "c2", "", None, 7):
            with pytest.raises(PegboardError, match="owed: none"):
                toolkit.resume(call_id, 1)  # type: ignore[arg-type]

    def test_ids_that_come_twice(self, toolkit: Toolkit) -> None:
        """Some models number their calls from one in every conversation."""
        ann, bob = toolkit.session(), toolkit.session()
        ann.call_sync("ask", call_id="call_1")
        bob.call_sync("ask", call_id="call_1")
        assert [len(each.pending) for each in (ann, bob, toolkit)] == [1, 1, 2]
        with pytest.raises(PegboardError, match="2 suspended calls have the id 'call_1'"):
            toolkit.resume("call_1", "whose?")
        assert len(toolkit.pending) == 2
        assert bob.resume("call_1", "for bob").text == "for bob"
        (left,) = toolkit.pending
        assert left is ann.pending[0]
        assert toolkit.resume(left, "for ann").text == "for ann"
        with pytest.raises(PegboardError, match="'call_1'; owed: none"):
            toolkit.resume(left, "again")

    def test_a_call_of_another_toolkit(self, toolkit: Toolkit) -> None:
        toolkit.call_sync("ask", call_id="c1")
        with Toolkit(plugins=()) as other, pytest.raises(PegboardError, match="'c1'; owed: none"):
            other.resume(toolkit.pending[0], 1)

    def test_with_something_to_wait_for(self, toolkit: Toolkit) -> None:
        async def answer() -> int:
            return 1

        toolkit.call_sync("ask", call_id="c1")
        coroutine = answer()
        with pytest.raises(PegboardError, match="not a coroutine to wait for"):
            toolkit.resume("c1", coroutine)
        coroutine.close()
        assert [call.id for call in toolkit.pending] == ["c1"]

    def test_with_a_refusal(self, toolkit: Toolkit) -> None:
        toolkit.call_sync("ask", call_id="c1")
        result = toolkit.resume("c1", ToolError("Nobody is there before Monday."))
        assert (result.status, result.text) == (Status.ERROR, "Nobody is there before Monday.")
        toolkit.call_sync("ask", call_id="c2")
        result = toolkit.resume("c2", ToolResult(status=Status.DENIED, content="The user said no."))
        assert (result.status, result.text, result.call_id) == (Status.DENIED, "The user said no.", "c2")

    def test_with_another_suspension(self, toolkit: Toolkit) -> None:
        toolkit.call_sync("ask", call_id="c1")
        assert toolkit.resume("c1", Suspend("ask Bob as well")).text == "ask Bob as well"
        assert [call.id for call in toolkit.pending] == ["c1"]
        assert toolkit.resume("c1", "at last").text == "at last"
        assert toolkit.pending == []

    def test_is_converted_like_a_return_value(self) -> None:
        @tool(converter=lambda value: f"<{value}>", max_output=100)
        def ask() -> str:
            raise Suspend("later")

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(ask)
            toolkit.call_sync("ask", call_id="c1")
            assert toolkit.resume("c1", "yes").text == "<yes>"
            toolkit.call_sync("ask", call_id="c2")
            assert "characters cut here" in toolkit.resume("c2", "x" * 1_000).text

    def test_keeps_what_was_logged_before(self, toolkit: Toolkit) -> None:
        def ask(call: ToolCall) -> str:
            call.log("ticket 7")
            raise Suspend("later", ticket=7)

        toolkit.register(ask, on_conflict="replace")
        suspended = toolkit.call_sync("ask", call_id="c1")
        assert (suspended.metadata, suspended.logs) == ({"ticket": 7}, ("ticket 7",))
        assert toolkit.resume("c1", "done").logs == ("ticket 7",)

    @pytest.mark.parametrize("on_a_loop", [False, True])
    def test_after_approval(self, on_a_loop: bool) -> None:
        with Toolkit(plugins=(), approver=lambda request: True) as toolkit:
            toolkit.register(Tool.external("ask", "Ask.", NOTHING))
            toolkit.set_permission("ask", "prompt")
            call = toolkit.prepare("ask", call_id="c1")
            assert call.status is Status.AWAITING_APPROVAL
            assert run(call, on_a_loop=on_a_loop).status is Status.SUSPENDED
            assert toolkit.resume("c1", 1).value == 1

    def test_after_close(self, toolkit: Toolkit) -> None:
        toolkit.call_sync("ask", call_id="c1")
        toolkit.close()
        assert toolkit.resume("c1", "late").text == "late"

    def test_leaves_nothing(self, toolkit: Toolkit) -> None:
        import weakref

        class Answer:
            pass

        toolkit.call_sync("ask", call_id="c1")
        (call,) = toolkit.pending
        gone = weakref.ref(toolkit.resume("c1", Answer()).value)
        del call
        gc.collect()
        assert gone() is None
