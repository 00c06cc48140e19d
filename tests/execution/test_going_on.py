"""Suspended calls whose tool goes on with the answer, sessions through another's view, and approval of a call."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pegboard import (
    ApprovalRequest,
    PegboardError,
    Secret,
    Status,
    Suspend,
    ToolCall,
    ToolError,
    Toolkit,
    ToolResult,
    tool,
)
from pegboard.extension import SuspendedCalls

pytestmark = pytest.mark.parametrize("way", ["plain", "loop"])


def called(toolkit: Any, way: str, name: str, arguments: Any = None, **options: Any) -> ToolResult:
    """A call from plain code or on a loop."""
    if way == "plain":
        plain: ToolResult = toolkit.call_sync(name, arguments, **options)
        return plain
    awaited: ToolResult = asyncio.run(toolkit.call(name, arguments, **options))
    return awaited


def resumed(toolkit: Any, way: str, call_id: str, value: Any) -> ToolResult:
    """An answer from plain code or on a loop."""
    if way == "plain":
        plain: ToolResult = toolkit.resume(call_id, value)
        return plain
    awaited: ToolResult = asyncio.run(toolkit.aresume(call_id, value))
    return awaited


async def later(value: str) -> str:
    await asyncio.sleep(0.001)
    return f"later {value}"


def again(value: str) -> str:
    raise Suspend(f"more than {value}?", resume=later)


def failing(value: str) -> str:
    raise ToolError(f"no {value}")


class TestResume:
    @pytest.mark.parametrize(
        ("function", "status", "text"),
        [
            (lambda value: value.upper(), "success", "YES"),
            (later, "success", "later yes"),
            (failing, "error", "no yes"),
            (lambda value: 1 / 0, "error", "Error: division by zero"),
        ],
    )
    def test_the_function_makes_the_result(
        self, way: str, function: Callable[[Any], Any], status: str, text: str
    ) -> None:
        def ask() -> str:
            raise Suspend("well?", resume=function, ticket=7)

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(ask)
            first = called(toolkit, way, "ask", call_id="c1")
            assert (first.status, first.metadata) == (Status.SUSPENDED, {"ticket": 7})
            (call,) = toolkit.pending
            result = resumed(toolkit, way, "c1", "yes")
            assert (result.status, result.text, result.call_id) == (status, text, "c1")
            assert call.result is result
            assert toolkit.pending == []
            assert toolkit.stats["tools"]["ask"]["calls"] == 1
            with pytest.raises(PegboardError, match="no suspended call"):
                resumed(toolkit, way, "c1", "yes")

    def test_it_may_suspend_again(self, way: str) -> None:
        async def ask() -> str:
            raise Suspend("well?", resume=again)

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(ask)
            called(toolkit, way, "ask", call_id="c1")
            second = resumed(toolkit, way, "c1", "a")
            assert (second.status, second.text) == (Status.SUSPENDED, "more than a?")
            assert [call.id for call in toolkit.pending] == ["c1"]
            assert resumed(toolkit, way, "c1", "b").text == "later b"

    def test_a_call_of_an_earlier_program_may_go_on(self, way: str) -> None:
        def note(text: str) -> str:
            return text

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(note)
            toolkit.suspend(ToolCall("c1", "note", {"text": "a"}), "asked", resume=later)
            assert resumed(toolkit, way, "c1", "b").text == "later b"

    def test_one_that_was_withdrawn_is_owed_again(self, way: str) -> None:
        def ask() -> str:
            raise Suspend("well?", resume=later)

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(ask)
            called(toolkit, way, "ask", call_id="c1")
            (call,) = toolkit.pending
            toolkit.withdraw(call)
            assert toolkit.pending == []
            assert toolkit.suspend(call).status is Status.SUSPENDED
            assert resumed(toolkit, way, "c1", "a").text == "later a"

    def test_a_store_is_told_the_result_and_which_session_looks(self, way: str) -> None:
        class Store:
            def __init__(self) -> None:
                self.looked: list[str | None] = []
                self.kept: list[str] = []

            def restore(self, session: Any) -> None:
                self.looked.append(session.id)

            def refresh(self) -> None:
                raise AssertionError("restore is there")

            def answer(self, session: Any, call: ToolCall, result: ToolResult) -> bool:
                self.kept.append(result.text)
                return True

        def ask() -> str:
            raise Suspend("well?", resume=again)

        store = Store()
        shared: SuspendedCalls = store
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(ask)
            session = toolkit.session(id="alice")
            session.share_suspended(shared)
            called(session, way, "ask", call_id="c1")
            resumed(session, way, "c1", "a")
            resumed(session, way, "c1", "b")
        assert store.kept == ["later b"]
        assert store.looked == ["alice", "alice"]

    def test_a_store_is_told_no_secret(self, way: str) -> None:
        class Store:
            kept = ""

            def refresh(self) -> None:
                """Nothing comes from elsewhere."""

            def answer(self, session: Any, call: ToolCall, result: ToolResult) -> bool:
                self.kept = result.text
                return True

        def ask(token: str) -> str:
            def refused(value: str) -> str:
                raise ToolError(f"{token} does not allow {value}")

            raise Suspend("well?", resume=refused)

        store = Store()
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(ask, presets={"ask": {"token": Secret("k-12345678")}})
            session = toolkit.session()
            session.share_suspended(store)
            called(session, way, "ask", call_id="c1")
            assert resumed(session, way, "c1", "that").text == "*** does not allow that"
        assert store.kept == "*** does not allow that"


class TestThrough:
    def test_tools_and_names_are_the_views_and_the_rest_is_the_sessions(self, way: str) -> None:
        def pay(amount: int, by: str = "card") -> str:
            return f"{amount} by {by}"

        def look() -> str:
            return "seen"

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(pay, look)
            view = toolkit.view(include="pay", prefix="bank_")
            narrow = toolkit.session(presets={"pay": {"by": "cash"}}, id="alice").view(include="look")
            both = narrow.through(view)
            assert [each.name for each in both.tools] == ["bank_pay"]
            assert both.id == "alice"
            assert "by" not in both["bank_pay"].parameters["properties"]
            assert called(both, way, "bank_pay", {"amount": 3}).text == "3 by cash"
            assert called(both, way, "look").status is Status.NOT_FOUND
            narrow.set_permission("look", "never")
            toolkit.set_permission("pay", "never")
            assert called(both, way, "bank_pay", {"amount": 3}).status is Status.DENIED


def test_a_predicate_may_be_asked_about_the_call(way: str) -> None:
    class Asks:
        def __call__(self, arguments: Any) -> bool:
            raise AssertionError("the call is asked about")

        def for_call(self, call: ToolCall) -> str:
            return f"{call.session.id} wants {call.arguments['what']}" if call.arguments["what"] != "tea" else ""

    @tool(requires_approval=Asks())
    def order(what: str) -> str:
        return what

    requests: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> bool:
        requests.append(request)
        return False

    with Toolkit(plugins=(), approver=approver) as toolkit:
        toolkit.register(order)
        session = toolkit.session(id="alice")
        assert called(session, way, "order", {"what": "tea"}).text == "tea"
        assert called(session, way, "order", {"what": "wine"}).status is Status.DENIED
    assert [request.reason for request in requests] == ["alice wants wine"]
