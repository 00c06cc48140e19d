"""Suspended calls: external tools and tools that suspend, and how their answers come back."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pegboard import PegboardError, Session, Status, Suspend, Tool, ToolCall, ToolError, Toolkit, ToolResult, tool
from tests.support.desk import run
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("path")

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        made.register(Tool.external("ask", "Ask a person.", NOTHING))
        yield made


class TestSuspended:
    def test_external_tools_wait_for_their_answer(self, toolkit: Toolkit) -> None:
        schema = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
        toolkit.register(Tool.external("ask_human", "Ask.", schema))
        result = toolkit.call_sync("ask_human", '{"question": "why?"}', call_id="c1")
        assert result.status is Status.SUSPENDED
        assert not result.is_error
        (call,) = toolkit.pending
        assert (call.id, call.name, call.arguments) == ("c1", "ask_human", {"question": "why?"})
        answer = toolkit.resume("c1", {"because": 1})
        assert (answer.status, answer.call_id, answer.name) == (Status.SUCCESS, "c1", "ask_human")
        assert (answer.text, answer.data) == ('{"because": 1}', {"because": 1})
        assert toolkit.pending == []
        assert call.result is answer

    def test_bad_arguments_of_an_external_tool(self, toolkit: Toolkit) -> None:
        schema = NOTHING | {"additionalProperties": False}
        toolkit.register(Tool.external("ask_nothing", "", schema))
        assert toolkit.call_sync("ask_nothing", {"x": 1}).status is Status.INVALID
        assert toolkit.pending == []

    @pytest.mark.parametrize("kind", ["sync", "async"])
    @pytest.mark.parametrize("prepared", [True, False])
    def test_a_tool_that_suspends(self, toolkit: Toolkit, kind: str, prepared: bool) -> None:
        def ask(n: int) -> int:
            raise Suspend("ask Ann", ticket=7)

        async def ask_later(n: int) -> int:
            raise Suspend("ask Ann", ticket=7)

        toolkit.register({"sync": ask, "async": ask_later}[kind], name="ask", on_conflict="replace")
        if prepared:
            result = toolkit.prepare("ask", '{"n": 1}', call_id="c1").execute_sync()
        elif kind == "sync":
            result = toolkit.call_sync("ask", '{"n": 1}', call_id="c1")
        else:
            result = asyncio.run(toolkit.call("ask", '{"n": 1}', call_id="c1"))
        assert (result.status, result.text) == (Status.SUSPENDED, "ask Ann")
        (call,) = toolkit.pending
        assert (call.arguments, call.typed, call.status) == ({"n": 1}, {"n": 1}, Status.SUSPENDED)
        assert toolkit.resume("c1", 5).value == 5
        assert call.execute_sync().value == 5
        assert asyncio.run(call.execute()).value == 5

    def test_resume_with_an_error(self, toolkit: Toolkit) -> None:
        toolkit.call_sync("ask", call_id="c1")
        result = toolkit.resume("c1", ValueError("no answer came"))
        assert (result.status, result.text) == (Status.ERROR, "Error: no answer came")

    def test_unknown_ids_name_what_is_owed(self, toolkit: Toolkit) -> None:
        with pytest.raises(PegboardError, match="'c9'; owed: none"):
            toolkit.resume("c9", 1)
        toolkit.call_sync("ask", call_id="c2")
        toolkit.call_sync("ask", call_id="c1")
        with pytest.raises(PegboardError, match="'c9'; owed: c1, c2"):
            toolkit.resume("c9", 1)
        toolkit.resume("c1", 1)
        with pytest.raises(PegboardError, match="'c1'; owed: c2"):
            toolkit.resume("c1", 1)

    def test_what_one_session_owes_is_not_anothers(self, toolkit: Toolkit) -> None:
        ann, bob = toolkit.session(), toolkit.session()
        ann.call_sync("ask", call_id="c1")
        assert bob.pending == []
        with pytest.raises(PegboardError, match="owed: none"):
            bob.resume("c1", 1)
        assert ann.resume("c1", 1).value == 1


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

    def test_the_caller_that_waits_has_the_answer(self, toolkit: Toolkit) -> None:
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
        result = toolkit.resume("c1", ToolError("No answer before Monday."))
        assert (result.status, result.text) == (Status.ERROR, "No answer before Monday.")
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
        class Answer:
            pass

        toolkit.call_sync("ask", call_id="c1")
        (call,) = toolkit.pending
        gone = weakref.ref(toolkit.resume("c1", Answer()).value)
        del call
        gc.collect()
        assert gone() is None


class TestSuspendedEarlier:
    """Calls that waited for their answer when the program ended, and wait on in the next one."""

    def test_a_call_waits_on_and_never_runs(self, toolkit: Toolkit) -> None:
        ran: list[str] = []
        toolkit.register(ran.append, name="note", description="Note.")
        call = toolkit.prepare("note", {"object": "x"}, call_id="c7")
        result = toolkit.suspend(call, "ask Ann")
        assert (result.status, result.text, toolkit.pending) == (Status.SUSPENDED, "ask Ann", [call])
        assert toolkit.resume("c7", 7).data == 7
        assert call.execute_sync().data == 7
        assert ran == []

    def test_a_call_that_cannot_be_made_any_more_says_so(self, toolkit: Toolkit) -> None:
        result = toolkit.suspend(ToolCall("c8", "gone"))
        assert (result.status, toolkit.pending) == (Status.NOT_FOUND, [])


class Shared:
    """Calls that two programs have, each in a toolkit of its own; `answered` says by whom they were."""

    def __init__(self) -> None:
        self.answered: dict[str, str] = {}
        self.fails = False
        self.looks = True
        self._programs: list[tuple[Toolkit, Session, dict[str, ToolCall]]] = []

    def program(self) -> Toolkit:
        toolkit = Toolkit(plugins=())
        toolkit.register(Tool.external("ask", "Ask.", {"type": "object"}))
        session = toolkit.session()
        session.share_suspended(self)
        self._programs.append((toolkit, session, {}))
        return toolkit

    def refresh(self) -> None:
        for _, session, calls in self._programs if self.looks else ():
            for name in ("one", "two"):
                if name in self.answered and name in calls:
                    session.withdraw(calls[name])
                elif name not in calls:
                    calls[name] = session.prepare("ask", {}, call_id=name)
                    session.suspend(calls[name], "asked elsewhere")

    def answer(self, session: Any, call: ToolCall, result: ToolResult) -> bool:
        if self.fails:
            raise OSError("no place to keep it")
        return self.answered.setdefault(call.id, result.text) is result.text


class TestShared:
    """Suspended calls that several programs answer."""

    def test_what_is_pending_is_looked_up_first(self) -> None:
        shared = Shared()
        one, other = shared.program(), shared.program()
        assert [call.id for call in one.pending] == [call.id for call in other.pending] == ["one", "two"]
        assert one.resume("one", "yes").text == "yes"
        assert [call.id for call in other.pending] == ["two"]
        assert shared.answered == {"one": "yes"}

    def test_of_two_answers_the_first_counts(self) -> None:
        shared = Shared()
        one, other = shared.program(), shared.program()
        (there, _), _ = other.pending, one.pending
        shared.answered["one"] = "no"
        shared.looks = False  # the answer comes after the look
        with pytest.raises(PegboardError, match="'one' was answered meanwhile, by another program"):
            other.resume(there, "yes")
        assert shared.answered == {"one": "no"}
        shared.looks = True
        with pytest.raises(PegboardError, match="owed: two"):
            other.resume("one", "yes")

    def test_a_call_whose_answer_is_not_kept_still_waits(self) -> None:
        shared = Shared()
        toolkit = shared.program()
        shared.fails = True
        with pytest.raises(OSError, match="no place"):
            toolkit.resume("one", "yes")
        shared.fails = False
        assert toolkit.resume("one", "yes").text == "yes"

    def test_a_session_that_has_ended_keeps_nothing(self, toolkit: Toolkit) -> None:
        session, shared = toolkit.session(), Shared()
        session.share_suspended(shared)
        ended = weakref.ref(shared)
        del session, shared
        gc.collect()
        assert ended() is None
        assert toolkit.pending == []

    def test_a_call_that_is_withdrawn_waits_no_longer(self, toolkit: Toolkit) -> None:
        call = toolkit.prepare("ask", {}, call_id="c1")
        toolkit.suspend(call, "asked")
        toolkit.withdraw(call)
        toolkit.withdraw(call)
        assert toolkit.pending == []
        with pytest.raises(PegboardError, match="owed: none"):
            toolkit.resume(call, "yes")
