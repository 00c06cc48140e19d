"""Conversations that several programs go on with, and long ones of which a model is sent the end."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import PegboardError, Session, Suspend, Tool, Toolkit, tool
from pegboard_agent import (
    Agent,
    CallEnded,
    ConversationConflictError,
    ConversationStore,
    ConversationStoreError,
    Memory,
    estimated_tokens,
)
from tests.plugins.agent.desk import Scripted, calls, events_of, faults_of
from tests.support.board_tools import board
from tests.support.waiting import begin, eventually

ASK = Tool.external("ask_user", "Ask the user.", {"type": "object", "properties": {"question": {"type": "string"}}})
HELLO = {"role": "user", "content": "hello"}


class Model:
    """Gives prepared answers: a text, or the calls to make."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[list[dict[str, Any]]] = []

    async def stream(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], **options: Any) -> Any:
        self.sent.append(json.loads(json.dumps(messages)))
        answer = self.answers.pop(0) if self.answers else "ok"
        answer = answer() if callable(answer) else answer
        if isinstance(answer, str):
            yield {"choices": [{"delta": {"content": answer}, "finish_reason": "stop"}]}
            return
        calls = [
            {"index": n, "id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for n, (name, given) in enumerate(answer)
        ]
        yield {"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}


def worker(memory: ConversationStore, *answers: Any, tools: Sequence[Any] = (ASK,), **options: Any) -> Agent:
    """An agent as one of several programs has it."""
    toolkit = Toolkit(plugins=())
    toolkit.register(*tools)
    return Agent("Worker", Model(*answers), toolkit, memory=memory, **options)


def sent_to(agent: Agent) -> list[list[dict[str, Any]]]:
    assert isinstance(agent.model, Model)
    for messages in agent.model.sent:
        assert faults_of(messages) == []
    return agent.model.sent


class TestWorkers:
    @pytest.fixture
    def memory(self, tmp_path: Path) -> Callable[[], Memory]:
        return lambda: Memory(tmp_path / "talk.jsonl")

    def test_each_begins_with_what_the_other_added(self, memory: Callable[[], Memory]) -> None:
        one, other = worker(memory(), "first"), worker(memory(), "second", "third")
        one.call_sync("1?")
        other.call_sync("2?")
        one.call_sync("3?")
        assert [m["content"] for m in sent_to(one)[-1]] == ["1?", "first", "2?", "second", "3?"]

    def test_one_sees_what_the_other_parked_after_it_was_made(self, memory: Callable[[], Memory]) -> None:
        one, other = worker(memory(), [("ask_user", {})], "To Rome."), worker(memory(), "To Rome.")
        assert other.toolkit.pending == []
        (call_id,) = one.call_sync("Go!", session_id="ann").parked
        assert other.owed("ann") == (call_id,)
        assert [call.id for call in other.toolkit.pending] == [call_id]
        assert other.toolkit.resume(call_id, "Rome").text == "Rome"
        assert one.toolkit.pending == []
        assert one.owed("ann") == ()
        assert one.call_sync(session_id="ann").text == "To Rome."
        assert sent_to(one)[-1][-1]["content"] == "Rome"
        assert sent_to(other) == []

    def test_an_answer_is_kept_as_soon_as_it_is_given(self, memory: Callable[[], Memory]) -> None:
        one = worker(memory(), [("ask_user", {})])
        (call_id,) = one.call_sync("Go!").parked
        one.toolkit.resume(call_id, "Rome")
        fresh = worker(memory(), "To Rome.")
        assert fresh.toolkit.pending == []
        assert fresh.call_sync().text == "To Rome."

    def test_of_two_answers_the_first_counts(self, memory: Callable[[], Memory]) -> None:
        one, other = worker(memory(), [("ask_user", {})]), worker(memory())
        one.call_sync("Go!")
        (here,), (there,) = one.toolkit.pending, other.toolkit.pending
        other.toolkit.resume(there, "Paris")
        for again in (here, here.id):
            with pytest.raises(PegboardError, match="no suspended call has the id 'c0'; owed: none"):
                one.toolkit.resume(again, "Rome")
        one.call_sync()
        assert sent_to(one)[-1][-1]["content"] == "Paris"

    def test_of_two_at_the_same_instant_too(self, memory: Callable[[], Memory]) -> None:
        for number in range(20):
            name = f"talk {number}"
            agents = [worker(memory()) for _ in range(3)]
            worker(memory(), [("ask_user", {})]).call_sync("Go!", session_id=name)
            calls = [agent.toolkit.pending[0] for agent in agents]
            barrier = threading.Barrier(3)

            def answer(who: int, agents: Any = agents, calls: Any = calls, barrier: Any = barrier) -> str:
                barrier.wait(30)
                try:
                    return str(agents[who].toolkit.resume(calls[who], f"by {who}").text)
                except PegboardError as error:
                    return str(error)

            came = [each.result(60) for each in [begin(lambda who=who: answer(who)) for who in range(3)]]  # type: ignore[misc]
            kept = [record["messages"][0]["content"] for record in memory().load(name) if "answers" in record]
            assert [text for text in came if text.startswith("by")] == kept, came
            assert len(kept) == 1
            assert all("answered meanwhile" in text or "no suspended" in text for text in came if text not in kept)
            agents[0].call_sync(session_id=name)

    def test_an_answer_comes_in_while_the_turn_runs_elsewhere(self, memory: Callable[[], Memory]) -> None:
        begun, going = threading.Event(), threading.Event()

        async def slow() -> str:
            """Work."""
            begun.set()
            await asyncio.to_thread(going.wait, 60)
            return "worked"

        one = worker(memory(), [("ask_user", {}), ("slow", {})], "Done.", tools=(ASK, slow))
        running = begin(lambda: one.call_sync("Go!"))
        assert begun.wait(60)
        other = worker(memory())
        assert eventually(lambda: other.toolkit.pending)
        other.toolkit.resume("c0", "Rome")
        going.set()
        assert running.result(60).text == "Done."  # it does not park for what has come
        assert [m["content"] for m in sent_to(one)[-1]][-2:] == ["Rome", "worked"]

    def test_a_message_and_an_answer_at_the_same_instant(self, memory: Callable[[], Memory]) -> None:
        """Either the user went on without it or it counts, and the record says what the model was told."""
        for number in range(15):
            name = f"talk {number}"
            one, other = worker(memory(), [("ask_user", {})]), worker(memory())
            one.call_sync("Go!", session_id=name)
            (call,) = other.toolkit.pending
            talking = begin(lambda: one.call_sync("Forget it.", session_id=name))  # noqa: B023
            try:
                other.toolkit.resume(call, "Rome")
                accepted = True
            except PegboardError:
                accepted = False
            talking.result(60)
            told = sent_to(one)[-1]
            answer = next(m["content"] for m in told if m["role"] == "tool")
            assert (answer == "Rome") == accepted
            again = worker(memory())
            again.call_sync("Well?", session_id=name)
            assert sent_to(again)[-1][: len(told)] == told

    def test_an_approver_who_decides_later_is_asked_by_any(self, memory: Callable[[], Memory]) -> None:
        paid: list[int] = []

        @tool(requires_approval=True, destructive=True)
        def pay(amount: int) -> str:
            """Pay."""
            paid.append(amount)
            return "paid"

        def later(request: Any) -> bool:
            raise Suspend("not now")

        one = worker(memory(), [("pay", {"amount": 3})], tools=(pay,), approver=later)
        other = worker(memory(), "Paid.", tools=(pay,), approver=lambda request: True)
        assert one.call_sync("Pay!").parked == ("c0",)
        assert other.owed() == ("c0",)
        assert other.call_sync().text == "Paid."
        assert (paid, one.owed()) == ([3], ())

    def test_results_that_came_between_turns_are_events(self, memory: Callable[[], Memory]) -> None:
        one = worker(memory(), [("ask_user", {})], "To Rome.")
        one.call_sync("Go!")
        one.toolkit.resume("c0", "Rome")
        assert [event.result.text for event in events_of(one) if isinstance(event, CallEnded)] == ["Rome"]

    def test_what_goes_on_without_an_answer_waits_for_it_no_longer(self, memory: Callable[[], Memory]) -> None:
        one = worker(memory(), [("ask_user", {})], "Never mind.")
        one.call_sync("Go!")
        one.call_sync("Forget it.")
        assert one.toolkit.pending == []
        with pytest.raises(PegboardError, match="no suspended call"):
            one.toolkit.resume("c0", "Rome")

    def test_another_writer_in_the_middle_of_a_turn_is_an_error(self, memory: Callable[[], Memory]) -> None:
        def intrude() -> str:
            memory().append(None, [HELLO], 1)
            return "an answer"

        one = worker(memory(), intrude, "fine")
        with pytest.raises(ConversationConflictError, match="has 2 records, not 1"):
            one.call_sync("1?")
        assert one.call_sync("3?").text == "fine"
        assert [m["content"] for m in sent_to(one)[-1]] == ["1?", "hello", "3?"]

    def test_the_order_of_what_was_shown_is_kept(self, memory: Callable[[], Memory]) -> None:
        def program() -> tuple[Agent, Toolkit]:
            toolkit = board("plain", g_off="late", h="more")
            return Agent("Worker", Model(), toolkit, memory=memory()), toolkit

        (one, switched), (other, fresh) = program(), program()
        one.call_sync("hi", session_id="a")
        switched.update_groups("g_off", True)
        one.call_sync("again", session_id="a")
        kept = [record["shown"] for record in memory().load("a") if "shown" in record]
        assert kept == [["plain", "more"], ["plain", "more", "late"]]
        fresh.update_groups("g_off", True)
        other.call_sync("still there?", session_id="a")
        assert other._conversation("a").session.shown == ("plain", "more", "late")
        assert [record for record in memory().load("a") if "shown" in record][2:] == []


class Failing:
    """A store that fails when it is told to, before or after it has written."""

    def __init__(self) -> None:
        self._memory = Memory()
        self.fails = ""
        self.seconds = 0.0

    def load(self, session_id: str | None, after: int = 0) -> list[dict[str, Any]]:
        time.sleep(self.seconds)
        self._fail("load")
        return self._memory.load(session_id, after)

    def append(self, session_id: str | None, records: Sequence[Mapping[str, Any]], expected: int) -> None:
        time.sleep(self.seconds)
        self._fail("append")
        self._memory.append(session_id, records, expected)
        self._fail("appended")

    def lock(self, session_id: str | None) -> AbstractAsyncContextManager[None]:
        return self._memory.lock(session_id)

    def waiting(self) -> Mapping[str | None, int]:
        self._fail("waiting")
        return self._memory.waiting()

    def _fail(self, where: str) -> None:
        if self.fails == where:
            raise ConversationStoreError(f"no {where}")


class TestStoresThatFail:
    @pytest.mark.parametrize("where", ["append", "appended"])
    def test_nothing_is_lost_or_there_twice(self, where: str) -> None:
        ran: list[str] = []
        store = Failing()

        def pay() -> str:
            """Pay."""
            ran.append("paid")
            store.fails = where
            return "paid"

        agent = worker(store, [("pay", {})], "Thank you.", tools=(pay,))
        with pytest.raises(ConversationStoreError, match=f"no {where}"):
            agent.call_sync("Pay!")
        store.fails = ""
        assert agent.call_sync().text == "Thank you."
        assert ran == ["paid"]
        assert [next(iter(record)) for record in store.load(None)] == ["role", "shown", "role", "answers", "role"]
        assert sent_to(agent)[-1][-1]["content"] == "paid"

    def test_a_call_whose_answer_cannot_be_kept_still_waits(self) -> None:
        store = Failing()
        agent = worker(store, [("ask_user", {})], "To Rome.")
        agent.call_sync("Go!")
        store.fails = "append"
        with pytest.raises(ConversationStoreError, match="no append"):
            agent.toolkit.resume("c0", "Rome")
        store.fails = ""
        assert agent.toolkit.resume("c0", "Rome").text == "Rome"
        assert agent.call_sync().text == "To Rome."

    @pytest.mark.parametrize("where", ["load", "waiting"])
    def test_what_cannot_be_read_is_said(self, where: str) -> None:
        store = Failing()
        agent = worker(store)
        store.fails = where
        with pytest.raises(ConversationStoreError, match=f"no {where}"):
            _ = agent.call_sync("hi") if where == "load" else agent.toolkit.pending

    def test_a_slow_one_blocks_no_event_loop(self) -> None:
        store = Failing()
        store.seconds = 0.3

        async def longest() -> float:
            agent = worker(store)
            turn = asyncio.create_task(agent.call("hi"))
            longest, before = 0.0, time.monotonic()
            while not turn.done():
                await asyncio.sleep(0.005)
                longest, before = max(longest, time.monotonic() - before), time.monotonic()
            assert (await turn).text == "ok"
            return longest

        assert asyncio.run(longest()) < 0.25

    def test_what_is_no_store_is_refused(self) -> None:
        with pytest.raises(TypeError, match=r"memory is such as Memory\(path\), not list"):
            Agent("A", Model(), memory=[])  # type: ignore[arg-type]


def long_talk(memory: Memory, turns: int) -> Agent:
    """A conversation with a call in each turn, each of some hundred tokens."""

    def note(text: str) -> str:
        """Note."""
        return f"noted {text}"

    agent = worker(memory, tools=(note,))
    assert isinstance(agent.model, Model)
    for number in range(turns):
        agent.model.answers[:] = [[("note", {"text": f"{number} " * 20})], f"answer {number}"]
        agent.call_sync(f"question {number}: {'x' * 200}")
    return agent


class TestTrimming:
    def test_a_model_is_sent_the_last_turns_and_the_record_keeps_all(self, tmp_path: Path) -> None:
        memory = Memory(tmp_path / "talk.jsonl", max_tokens=1_000)
        agent = long_talk(memory, 30)
        requests = sent_to(agent)  # each is well-formed: no call without its answer
        assert max(map(estimated_tokens, requests)) <= 1_000
        assert all(request[0]["role"] == "user" for request in requests)
        assert all(request[0]["content"].startswith("question") for request in requests)
        said = [record["content"] for record in memory.load() if record.get("role") == "user"]
        assert [text.split(":")[0] for text in said] == [f"question {number}" for number in range(30)]

    def test_between_two_trimmings_requests_are_only_added_to(self) -> None:
        requests = sent_to(long_talk(Memory(max_tokens=1_000), 40))
        kept = [after[: len(before)] == before for before, after in pairwise(requests)]
        assert 1 <= kept.count(False) <= len(requests) // 6

    def test_another_program_sends_the_same(self, tmp_path: Path) -> None:
        path = tmp_path / "talk.jsonl"
        before = sent_to(long_talk(Memory(path, max_tokens=1_000, summarize=lambda messages: "much"), 12))[-1]
        fresh = worker(Memory(path))
        fresh.call_sync("And?")
        assert sent_to(fresh)[-1][: len(before)] == before

    @pytest.mark.parametrize("is_async", [False, True])
    def test_what_is_left_out_is_summed_up(self, is_async: bool) -> None:
        asked: list[list[dict[str, Any]]] = []

        def plain(messages: list[dict[str, Any]]) -> str:
            asked.append(messages)
            return f"{len(messages)} messages"

        async def later(messages: list[dict[str, Any]]) -> str:
            await asyncio.sleep(0)
            return plain(messages)

        memory = Memory(max_tokens=1_000, summarize=later if is_async else plain)
        requests = sent_to(long_talk(memory, 20))
        assert len(asked) >= 2
        assert all(faults_of(messages) == [] for messages in asked)
        assert asked[1][0]["content"].startswith(
            f"Summary of the conversation so far:\n{len(asked[0])} messages\n\nquest"
        )
        assert requests[-1][0]["content"].startswith(f"Summary of the conversation so far:\n{len(asked[-1])} messages")

    def test_the_last_turn_is_never_left_out(self) -> None:
        memory = Memory(max_tokens=100)
        agent = worker(memory)
        agent.call_sync("short")
        agent.call_sync("y" * 5_000)
        assert [m["content"][:1] for m in sent_to(agent)[-1]] == ["y"]

    def test_a_summary_goes_before_images_too(self) -> None:
        memory = Memory(max_tokens=100, summarize=lambda messages: "much")
        parts = [{"type": "text", "text": "z" * 900}]
        memory.append(None, [HELLO, {"role": "assistant", "content": "hi"}, {"role": "user", "content": parts}], 0)
        agent = worker(memory)
        agent.call_sync()
        (message,) = sent_to(agent)[-1]
        assert [part["text"][:7] for part in message["content"]] == ["Summary", "zzzzzzz"]

    def test_a_user_may_begin_with_the_word_that_asks_for_another_answer(self) -> None:
        memory = Memory(max_tokens=300)
        agent = worker(memory)
        for number in range(12):
            agent.call_sync(f"Error: the printer says {number}" + "." * 200)
        assert max(map(estimated_tokens, sent_to(agent))) <= 300

    def test_a_message_that_asks_for_another_answer_begins_no_turn(self) -> None:
        model = Scripted("no number " * 60, "7")
        toolkit = Toolkit(plugins=["dataclasses"])
        Agent("Sums", model, toolkit, memory=Memory(max_tokens=100), output=int).call_sync("How many?")
        asked, _, again = model.messages[1]
        assert asked == {"role": "user", "content": "How many?"}
        assert again == {"role": "user", "content": again["content"]}
        assert again["content"].startswith("Error: ")

    @pytest.mark.parametrize(
        ("summarize", "why"),
        [(lambda messages: 5, "returns a text, not int"), (lambda messages: 1 // 0, "failed: ZeroDivisionError")],
    )
    def test_a_summary_that_fails_is_said(self, summarize: Any, why: str) -> None:
        agent = worker(Memory(max_tokens=100, summarize=summarize))
        agent.call_sync("x" * 300)
        with pytest.raises(PegboardError, match=f"summarize {why}"):
            agent.call_sync("y" * 300)

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"max_tokens": 0}, "max_tokens must be a whole number >= 1, not 0"),
            ({"max_tokens": True}, "max_tokens must be a whole number >= 1, not True"),
            ({"summarize": str}, "summarize is asked for what max_tokens leaves out"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, options: dict[str, Any], why: str) -> None:
        with pytest.raises(ValueError, match=why):
            Memory(**options)

    @given(st.lists(st.text(max_size=40)))
    def test_an_estimate_grows_with_the_text(self, texts: list[str]) -> None:
        messages = [{"role": "user", "content": text} for text in texts]
        assert estimated_tokens(messages) >= sum(map(len, texts)) // 4
        assert estimated_tokens(messages) <= estimated_tokens([*messages, HELLO])

    def test_an_image_counts_as_a_thousand(self) -> None:
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}
        assert 1_000 <= estimated_tokens([{"role": "user", "content": [image]}]) < 1_100


def test_the_session_of_a_conversation_has_its_name() -> None:
    names: list[str | None] = []

    def note(session: Session) -> None:
        names.append(session.id)

    toolkit = Toolkit(plugins=())
    toolkit.register(note)
    for session in (toolkit, toolkit.session(id="chat 7")):
        for name in (None, "ann"):
            agent = Agent("clerk", Scripted(calls(("note", {})), "done"), session)
            assert agent.call_sync("Note it.", session_id=name).text == "done"
    assert names == [None, "ann", "chat 7", "chat 7/ann"]
