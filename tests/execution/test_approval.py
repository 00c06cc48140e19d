"""Approval: who is asked about which call, what the answers do, and that what was shown is what runs."""

import asyncio
import threading
from collections import OrderedDict, UserDict
from copy import deepcopy
from typing import Any

import pytest

from pegboard import (
    Approval,
    ApprovalRequest,
    ExecutionPolicy,
    Locked,
    Middleware,
    Secret,
    Status,
    ToolCall,
    Toolkit,
    ToolResult,
    hookimpl,
    tool,
)
from tests.support.calls import both
from tests.support.desk import EXPECTED, SENT, Desk, noting, run, sent
from tests.support.waiting import PATIENCE, eventually, given_time


def spoil(arguments: Any) -> None:
    """Change everything that can be reached."""
    arguments["paths"].append("/etc")
    arguments["filters"]["names"]["like"] = "*"
    arguments["extra"].append(2)
    arguments["more"] = 1


@pytest.mark.parametrize("on_a_loop", [False, True])
class TestBindsToTheArguments:
    """What was shown is what runs, whatever is changed in between."""

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


class Names(list[str]):
    """As libraries have their own."""


def at_once(toolkit: Any, arguments: Any) -> ToolResult:
    result: ToolResult = toolkit.call_sync("delete", arguments)
    return result


def awaited(toolkit: Any, arguments: Any) -> ToolResult:
    result: ToolResult = asyncio.run(toolkit.call("delete", arguments))
    return result


def as_a_call(toolkit: Any, arguments: Any) -> ToolResult:
    result: ToolResult = toolkit.call_sync(ToolCall("1", "delete", arguments))
    return result


def in_a_batch(toolkit: Any, arguments: Any) -> ToolResult:
    [result] = toolkit.call_many_sync([("delete", arguments)])
    assert isinstance(result, ToolResult)
    return result


def streamed(toolkit: Any, arguments: Any) -> ToolResult:
    async def run() -> ToolResult:
        [result] = [each async for each in toolkit.stream([("delete", arguments)]) if isinstance(each, ToolResult)]
        return result

    return asyncio.run(run())


def in_a_session(toolkit: Any, arguments: Any) -> ToolResult:
    return awaited(toolkit.session(), arguments)


def through_a_view(toolkit: Any, arguments: Any) -> ToolResult:
    return at_once(toolkit.view(include=["delete"]), arguments)


WAYS = (at_once, awaited, as_a_call, in_a_batch, streamed, in_a_session, through_a_view)


@pytest.mark.parametrize("way", WAYS)
class TestAMappingThatChangesMeanwhile:
    """What is called at once reads the caller's own mapping, which the caller may change while the approver decides."""

    def test_while_an_approver_looks_at_it(self, way: Any) -> None:
        arguments = sent()
        shown: list[Any] = []

        async def approver(request: ApprovalRequest) -> bool:
            shown.append(request.arguments)
            spoil(arguments)
            await asyncio.sleep(0)
            return True

        with Desk(approver) as desk:
            assert way(desk.toolkit, arguments).value == "deleted"
            assert (shown, desk.ran) == ([SENT], [EXPECTED])

    @pytest.mark.parametrize(
        ("extra", "spoil_it"),
        [
            (OrderedDict(a=1), lambda extra: extra.update(a=2)),
            (UserDict(a=1), lambda extra: extra.update(a=2)),
            (({"a": 1},), lambda extra: extra[0].update(a=2)),
            (Names(["a"]), lambda extra: extra.append("b")),
            ([Names(["a"])], lambda extra: extra[0].append("b")),
        ],
    )
    def test_of_any_class(self, way: Any, extra: Any, spoil_it: Any) -> None:
        arguments = {"paths": ["/tmp/a"], "extra": deepcopy(extra)}
        seen: list[Any] = []

        def approver(request: ApprovalRequest) -> bool:
            seen.append(request.arguments["extra"])
            spoil_it(arguments["extra"])
            return True

        with Desk(approver) as desk:
            assert way(desk.toolkit, arguments).value == "deleted"
            assert (seen, desk.ran) == ([extra], [(["/tmp/a"], None, extra)])

    def test_while_middleware_looks_at_it(self, way: Any) -> None:
        arguments = sent()
        shown: list[Any] = []

        async def look(call: ToolCall, proceed: Any) -> Any:
            shown.append(call.arguments)
            spoil(arguments)
            await asyncio.sleep(0)
            return await proceed()

        class Plugin:
            @hookimpl
            def provide_middleware(self) -> list[Middleware]:
                return [Middleware(look)]

        with Desk(requires_approval=False, plugins=[Plugin()]) as desk:
            assert way(desk.toolkit, arguments).value == "deleted"
            assert (shown, desk.ran) == ([SENT], [EXPECTED])


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

    def test_that_blocks_on_a_loop_ends_with_the_caller(self) -> None:
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

    def test_that_raises_is_the_results_error(self) -> None:
        def fail(request: ApprovalRequest) -> bool:
            raise SystemExit("no terminal")

        with Desk(fail) as desk:
            for result in both(desk.toolkit, "delete", sent()):
                assert (result.status, "no terminal" in result.text) == (Status.DENIED, True)
                assert result.error is not None
                assert isinstance(result.error.exception, SystemExit)
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


class TestAnswers:
    @pytest.mark.parametrize("asynchronous", [False, True])
    @pytest.mark.parametrize(
        ("answer", "status"),
        [
            (True, Status.SUCCESS),
            (Approval.approve(), Status.SUCCESS),
            (False, Status.DENIED),
            (Approval.deny("too risky"), Status.DENIED),
            (None, Status.DENIED),
            ("yes", Status.DENIED),
            (1, Status.DENIED),
        ],
    )
    def test_only_a_clear_yes_lets_it_run(self, answer: Any, status: Status, asynchronous: bool) -> None:
        async def later(request: ApprovalRequest) -> Any:
            await asyncio.sleep(0)
            return answer

        with Desk(later if asynchronous else lambda request: answer) as desk:
            for result in both(desk.toolkit, "delete", sent()):
                assert result.status is status
                if isinstance(answer, Approval) and answer.reason:
                    assert "too risky" in result.text
            assert len(desk.ran) == (2 if status is Status.SUCCESS else 0)

    def test_edit_runs_with_the_edited_arguments(self) -> None:
        with Desk(lambda request: Approval.edit({"paths": ["/b"], "extra": True})) as desk:
            call = desk.toolkit.prepare("delete", {"paths": ["/a"]})
            result = call.execute_sync()
            assert (result.value, desk.ran) == ("deleted", [(["/b"], None, True)])
            assert call.arguments == {"paths": ["/b"], "extra": True}
            assert any("edited" in note for note in result.notes)

    def test_an_edit_is_checked_like_any_call(self) -> None:
        with Desk(lambda request: Approval.edit({"paths": ["/b"], "extraa": True})) as desk:
            result = desk.toolkit.call_sync("delete", {"paths": ["/a"]})
            assert (result.status, "extraa" in result.text, desk.ran) == (Status.INVALID, True, [])


class TestWhichApprover:
    def test_about_what(self) -> None:
        seen: list[ApprovalRequest] = []
        with Desk(noting(seen, True, lambda request: request)) as desk:
            desk.toolkit.call_sync("delete", '{"paths": ["/a"]}', call_id="c1")
        (request,) = seen
        assert (request.tool.name, request.call_id, request.arguments) == ("delete", "c1", {"paths": ["/a"]})
        assert request.reason == "delete always asks"

    def test_without_an_approver(self) -> None:
        with Desk() as desk:
            result = desk.toolkit.call_sync("delete", sent())
            assert (result.status, desk.ran) == (Status.DENIED, [])
            assert result.text == (
                "Error: delete was not run: it needs approval, which cannot be given here; go on without it"
            )
            assert result.error is not None
            assert "approver=" in result.error.details["remedy"]
            assert "set_permission('delete', \"always\")" in result.error.details["remedy"]

    def test_a_predicate_says_whether(self) -> None:
        def outside(arguments: Any) -> str | bool:
            return False if arguments["paths"][0].startswith("/tmp") else "outside of /tmp"

        asked: list[str] = []
        with Desk(noting(asked, False, lambda request: request.reason), requires_approval=outside) as desk:
            assert desk.toolkit.call_sync("delete", {"paths": ["/tmp/a"]}).status is Status.SUCCESS
            assert desk.toolkit.call_sync("delete", {"paths": ["/etc"]}).status is Status.DENIED
            assert asked == ["outside of /tmp"]
            assert desk.ran == [(["/tmp/a"], None, None)]

    @pytest.mark.parametrize("error", [KeyError("x"), SystemExit(1)])
    def test_a_predicate_that_fails_lets_nothing_through(self, error: BaseException) -> None:
        def predicate(arguments: Any) -> bool:
            raise error

        with Desk(requires_approval=predicate) as desk:
            assert desk.toolkit.call_sync("delete", sent()).status is Status.DENIED
            assert desk.ran == []

    def test_not_about_bad_arguments(self) -> None:
        asked: list[Any] = []
        with Desk(asked.append) as desk:
            assert desk.toolkit.call_sync("delete", {}).status is Status.INVALID
            assert asked == []

    def test_a_session_has_its_own(self) -> None:
        with Desk(lambda request: False) as desk:
            session = desk.toolkit.session(approver=lambda request: True)
            assert session.call_sync("delete", sent()).status is Status.SUCCESS
            assert desk.toolkit.call_sync("delete", sent()).status is Status.DENIED
            assert desk.ran == [EXPECTED]

    def test_time_for_thinking_is_not_the_tools(self) -> None:
        def found(limit: float) -> list[tuple[Status, bool]]:
            async def slowly(request: Any) -> bool:
                await asyncio.sleep(2 * limit)
                return True

            with Desk(slowly) as desk:
                results = both(desk.toolkit, "delete", sent(), policy=ExecutionPolicy(timeout=limit))
                return [(result.status, result.duration < limit) for result in results]

        fine = [(Status.SUCCESS, True)] * 2
        assert given_time(found, lambda each: each == fine, 0.2) == fine
