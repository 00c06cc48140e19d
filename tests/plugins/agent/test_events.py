"""Events and messages: what a page that follows an agent is told, and how it is sent."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegboard_agent
from pegboard import (
    Approval,
    ApprovalRequest,
    DataBlock,
    Emitter,
    ImageBlock,
    Session,
    Status,
    Suspend,
    Tool,
    ToolCall,
    Toolkit,
    ToolOutput,
)
from pegboard_agent import (
    RESTARTED,
    Agent,
    ApprovalNeeded,
    CallEnded,
    CallStarted,
    ChunkEvent,
    Event,
    Final,
    Message,
    Parked,
    ReasoningDelta,
    Stopped,
    TextDelta,
    Usage,
)
from pegboard_agent._usage import reported
from tests.plugins.agent.desk import Calculator, Scripted, calls, events_of

ADD = ("add", {"a": 1, "b": 2})
ASK = Tool.external("ask_user", "Ask the user.", {"type": "object", "properties": {}})


def toolkit_with(*tools: Any) -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(*(tools or (Calculator(),)))
    return toolkit


def strictly(value: dict[str, Any]) -> dict[str, Any]:
    """What a page reads of it."""
    told: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    assert told == value
    return told


class TestReasoning:
    def thinking(self, *pieces: str) -> Any:
        class Thinking:
            async def stream(self, messages: Any, tools: Any, **options: Any) -> Any:
                for piece in pieces:
                    chunk = {"choices": [{"delta": {"reasoning_content": piece}}]}
                    yield RESTARTED if piece == "RESTARTED" else chunk
                yield {"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]}

        return Thinking()

    @pytest.mark.parametrize(
        ("pieces", "told"),
        [
            (["Let me ", "see."], ["Let me ", "see."]),
            ([], []),
            (["Let me", "RESTARTED", "Let ", "me see."], ["Let me", " see."]),
            (["Let me", "RESTARTED", "No."], ["Let me", "\nNo."]),
            (["Let me", "RESTARTED", "Let", "RESTARTED", "Let me go."], ["Let me", " go."]),
        ],
    )
    def test_is_told_as_it_comes_and_not_twice(self, pieces: list[str], told: list[str]) -> None:
        happened = events_of(Agent("A", self.thinking(*pieces)), "?")
        assert [event.text for event in happened if isinstance(event, ReasoningDelta)] == told
        assert [event.text for event in happened if isinstance(event, TextDelta)] == ["Yes."]
        assert isinstance(happened[-1], Final)
        assert happened[-1].message.text == "Yes."

    def test_of_a_sub_agent_is_no_text_of_its_call(self) -> None:
        below = Agent("Below", self.thinking("Hm."))
        above = Scripted(calls(("below", {"message": "?"})), "ok")
        happened = events_of(Agent("Above", above, toolkit_with(below.as_tool(name="below"))), "?")
        chunks = [event.chunk for event in happened if isinstance(event, ChunkEvent)]
        assert chunks[0].content == DataBlock({"agent": "Below", "event": "reasoning_delta", "text": "Hm."})
        assert [chunk.text for chunk in chunks] == ["", "Yes."]


class Approver:
    """An approver that is an object, and waits."""

    async def __call__(self, request: ApprovalRequest) -> Any:
        await asyncio.sleep(0)
        return request.arguments["a"] == 1


async def waiting(request: ApprovalRequest) -> Any:
    return await Approver()(request)


APPROVERS: list[Callable[..., Any]] = [
    lambda request: request.arguments["a"] == 1,
    lambda request: waiting(request),  # noqa: PLW0108 - a plain function that gives a coroutine
    waiting,
    partial(waiting),
    Approver(),
]


class TestApproval:
    @pytest.mark.parametrize("approver", APPROVERS)
    def test_is_told_before_it_is_decided(self, approver: Any) -> None:
        toolkit = toolkit_with()
        toolkit.set_permission("add", "prompt")
        model = Scripted(calls(ADD, ("add", {"a": 5, "b": 6}), ("multiply", {"a": 1, "b": 1})), "ok")
        agent = Agent("A", model, toolkit, approver=approver)
        happened = events_of(agent, "go")
        asked = [event.request for event in happened if isinstance(event, ApprovalNeeded)]
        asked.sort(key=lambda request: request.arguments["a"])  # both calls are asked about at once
        assert [(each.tool.name, dict(each.arguments)) for each in asked] == [
            ("add", {"a": 1, "b": 2}),
            ("add", {"a": 5, "b": 6}),
        ]
        for request in asked:
            kinds = [type(event) for event in happened if _call_id(event) == request.call_id]
            assert kinds == [CallStarted, ApprovalNeeded, CallEnded]
        ended = {event.result.call_id: event.result.status for event in happened if isinstance(event, CallEnded)}
        assert [ended[request.call_id] for request in asked] == [Status.SUCCESS, Status.DENIED]

    def test_a_form_is_in_the_request_and_on_the_page(self) -> None:
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        event = ApprovalNeeded(ApprovalRequest(toolkit_with()["add"], "1", {"a": 1}, "Who are you?", form))
        assert event.to_dict()["request"] == {
            "call_id": "1",
            "tool": "add",
            "arguments": {"a": 1},
            "reason": "Who are you?",
            "form": form,
        }

    def test_an_edit_is_an_answer_too(self) -> None:
        toolkit = toolkit_with()
        toolkit.set_permission("add", "prompt")
        agent = Agent("A", Scripted(calls(ADD), "ok"), toolkit, approver=lambda _: Approval.edit({"a": 2, "b": 2}))
        ended = [event for event in events_of(agent, "go") if isinstance(event, CallEnded)]
        assert ended[0].result.text == "4.0"

    def test_of_a_call_that_is_parked_is_told_each_time_it_is_asked_for(self) -> None:
        decided: list[bool] = []

        def approver(request: ApprovalRequest) -> bool:
            if not decided:
                raise Suspend("later")
            return True

        toolkit = toolkit_with()
        toolkit.set_permission("add", "prompt")
        agent = Agent("A", Scripted(calls(ADD), "ok"), toolkit, approver=approver)
        assert [type(event) for event in events_of(agent, "go")] == [CallStarted, ApprovalNeeded, Parked]
        decided.append(True)
        kinds = [type(event) for event in events_of(agent)]
        assert kinds == [CallStarted, ApprovalNeeded, CallEnded, TextDelta, Final]

    def test_without_an_approver_no_one_is_asked(self) -> None:
        toolkit = toolkit_with()
        toolkit.set_permission("add", "prompt")
        happened = events_of(Agent("A", Scripted(calls(ADD), "ok"), toolkit), "go")
        assert [type(event) for event in happened] == [CallStarted, CallEnded, TextDelta, Final]
        (ended,) = [event.result for event in happened if isinstance(event, CallEnded)]
        assert "cannot be given here" in ended.text

    def test_the_approver_of_the_toolkit_may_change_between_runs(self) -> None:
        toolkit = toolkit_with()
        toolkit.set_permission("add", "prompt")
        agent = Agent("A", Scripted(calls(ADD), "ok", calls(ADD), "ok", calls(ADD), "ok"), toolkit)
        statuses = []
        for approver in (lambda _: True, lambda _: False, None):
            toolkit.approver = approver
            (ended,) = [event.result for event in events_of(agent, "go") if isinstance(event, CallEnded)]
            statuses.append((ended.status, "cannot be given" in ended.text))
        assert statuses == [(Status.SUCCESS, False), (Status.DENIED, False), (Status.DENIED, True)]

    def test_of_a_sub_agent_comes_as_a_chunk_of_its_call(self) -> None:
        asked: list[str] = []

        def approver(request: ApprovalRequest) -> bool:
            asked.append(request.call_id)
            return True

        below_toolkit = toolkit_with()
        below_toolkit.set_permission("add", "prompt")
        below = Agent("Below", Scripted(calls(ADD), "3", calls(ADD), "3"), below_toolkit)
        above = Scripted(calls(("below", {"message": "?"})), "ok")
        boss = Agent("Boss", above, toolkit_with(below.as_tool(name="below")), approver=approver)
        happened = events_of(boss, "?")
        told = [event.chunk.content for event in happened if isinstance(event, ChunkEvent)]
        asks = [each.data for each in told if isinstance(each, DataBlock) and each.data["event"] == "approval_needed"]
        assert asks == [
            {
                "agent": "Below",
                "event": "approval_needed",
                "call_id": asked[0],
                "name": "add",
                "arguments": {"a": 1, "b": 2},
                "reason": "add always asks",
            }
        ]
        assert not any(isinstance(event, ApprovalNeeded) for event in happened)
        own_id = next(m["content"] for m in above.messages[1] if m["role"] == "tool").split()[1]
        again = events_of(below, "again", session_id=own_id)  # of the program's, and the run above is long over
        assert [type(event) for event in again].count(ApprovalNeeded) == 1
        assert len(asked) == 2

    def test_a_tool_may_keep_the_approver_of_its_session(self) -> None:
        kept: list[Any] = []

        def keep(session: Session) -> str:
            """Keep."""
            kept.append(session.approver)
            return "kept"

        events_of(Agent("A", Scripted(calls(("keep", {})), "ok"), toolkit_with(keep), approver=lambda _: True), "go")
        toolkit = toolkit_with()
        toolkit.set_permission("add", "prompt")
        toolkit.approver = kept[0]
        assert toolkit.call_sync("add", {"a": 1, "b": 2}).text == "3.0"  # though the run is over


def _call_id(event: Event) -> str:
    match event:
        case CallStarted(call):
            return call.id
        case CallEnded(result):
            return result.call_id
        case ApprovalNeeded(request):
            return request.call_id
    return ""


class TestToDict:
    def test_of_everything_on_the_way(self) -> None:
        picture = ImageBlock.from_bytes(b"\x89PNG", "image/png")

        def look(emitter: Emitter, secret: str = "hunter2") -> Any:
            """Look.

            Args:
                secret: The program's
            """
            emitter.progress(1, 2, "half")
            return ToolOutput(picture, metadata={"secret": secret, "object": object()})

        toolkit = toolkit_with(look)
        toolkit.set_presets("look", {"secret": "hunter2"})
        toolkit.set_permission("look", "prompt")
        said = {**calls(("look", {})), "reasoning_content": "Hm."}
        agent = Agent("A", Scripted(said, "A picture."), toolkit, approver=lambda _: True)
        told = [strictly(event.to_dict()) for event in events_of(agent, "go")]
        call_id = told[1]["call"]["id"]
        names = {"call_id": call_id, "name": "look"}
        assert [each["type"] for each in told] == [
            "reasoning_delta",
            "call_started",
            "approval_needed",
            "chunk",
            "call_ended",
            "text_delta",
            "final",
        ]
        reasoning, started, asked, chunk, ended, text, final = told
        assert reasoning == {"type": "reasoning_delta", "text": "Hm."}
        assert started == {"type": "call_started", "call": {"id": call_id, "name": "look", "arguments": {}}}
        request = {"call_id": call_id, "tool": "look", "arguments": {}, "reason": "look always asks"}
        assert asked == {"type": "approval_needed", "request": request}
        progress = {"content": {"type": "text", "text": "half"}, "progress": {"done": 1, "total": 2}}
        assert chunk == {"type": "chunk", "chunk": {**names, **progress}}
        result = ended["result"]
        assert (result["status"], result["content"]) == ("success", [picture.to_dict()])
        assert "metadata" not in result
        assert text == {"type": "text_delta", "text": "A picture."}
        assert final["message"]["content"] == "A picture."
        assert "hunter2" not in json.dumps(told)

    def test_of_the_ends_of_a_run(self) -> None:
        assert strictly(Parked(("c1", "c2")).to_dict()) == {"type": "parked", "call_ids": ["c1", "c2"]}
        stopped = Stopped("it failed", RuntimeError("sk-secret"))
        assert strictly(stopped.to_dict()) == {"type": "stopped", "reason": "it failed"}

    def test_every_event_has_a_type_of_its_own(self) -> None:
        kinds = get_args(Event)
        assert {kind.__name__ for kind in kinds} <= set(pegboard_agent.__all__)
        assert all(callable(kind.to_dict) for kind in kinds)

    def test_of_a_message(self) -> None:
        picture = ImageBlock.from_bytes(b"\x89PNG", "image/png")
        message = Message("user", ["What is this?", picture], "ann")
        assert strictly(message.to_dict()) == {
            "role": "user",
            "content": [{"type": "text", "text": "What is this?"}, picture.to_dict()],
            "name": "ann",
            "data": None,
            "usage": {
                "requests": 0,
                "input_tokens": None,
                "output_tokens": None,
                "cached_tokens": None,
                "cache_written_tokens": None,
                "reasoning_tokens": None,
            },
            "parked": [],
            "stopped": None,
            "is_cut_off": False,
        }

    @pytest.mark.parametrize(
        ("output", "said", "data"),
        [
            (list[int], {"answer": [1, 2]}, [1, 2]),
            (str, {"answer": "42"}, "42"),
            (int, {"answer": 42}, 42),
            (date, {"answer": "2026-11-27"}, "2026-11-27"),
            (dict[str, float], {"answer": {"a": 1.5}}, {"a": 1.5}),
        ],
    )
    def test_of_an_answer_of_a_type_has_what_the_model_gave(self, output: Any, said: Any, data: Any) -> None:
        agent = Agent("A", Scripted(calls(("final_answer", said))), output=output)
        assert strictly(agent.call_sync("?").to_dict())["data"] == data

    def test_what_json_cannot_say_is_left_out(self) -> None:
        event = CallStarted(ToolCall("c1", "add", {"a": math.inf, "b": [math.nan, object(), {1}]}))
        assert strictly(event.to_dict())["call"]["arguments"] == {"a": None, "b": [None, "object", [1]]}

    def test_arguments_that_are_no_json_stay_as_they_came(self) -> None:
        event = CallStarted(ToolCall("c1", "add", '{"a": 1, '))
        assert strictly(event.to_dict())["call"]["arguments"] == '{"a": 1, '

    def test_text_is_what_utf_8_can_carry(self) -> None:
        told = TextDelta("a\ud83d\ude00b\ud83d").to_dict()["text"]
        assert told.encode() == "a\U0001f600b\ufffd".encode()

    def test_arguments_as_deep_as_calls_take_them(self) -> None:
        deep = '{"a": ' + "[" * 90 + "]" * 90 + "}"
        call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": deep}}
        for said in (deep, deep.replace("[", "[" * 100).replace("]", "]" * 100)):
            call["function"] = {"name": "add", "arguments": said}
            model = Scripted({"content": None, "tool_calls": [call]}, "ok")
            for event in events_of(Agent("A", model, toolkit_with()), "go"):
                strictly(event.to_dict())

    @given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5))
    def test_of_any_arguments_is_json(self, value: Any) -> None:
        event = CallStarted(ToolCall("c1", "add", {"a": value}))
        told = json.loads(json.dumps(event.to_dict(), allow_nan=False))
        assert told["call"]["name"] == "add"


class TestUsage:
    def test_is_what_the_server_reports_in_any_of_the_usual_forms(self) -> None:
        openai = {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": 120,
        }
        deepseek = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}
        agent = Agent("A", Scripted(calls(ADD), "3", usage=openai), toolkit_with())
        assert agent.call_sync("?").usage == Usage(2, 200, 40, 128, 16, 10)
        assert reported(deepseek) == Usage(0, 10, 2, 4)

    def test_of_what_is_not_said_is_none(self) -> None:
        assert Agent("A", Scripted("ok", usage=None)).call_sync("?").usage == Usage(1)

    @pytest.mark.parametrize("count", [-1, 1.5, "7", True, None, [], {}, 10**30])
    def test_of_what_is_no_count_is_none_too(self, count: Any) -> None:
        usage = {
            "prompt_tokens": count,
            "completion_tokens": count,
            "prompt_tokens_details": {"cached_tokens": count, "cache_write_tokens": count},
            "completion_tokens_details": count,
            "prompt_cache_hit_tokens": count,
        }
        message = Agent("A", Scripted("ok", usage=usage)).call_sync("?")
        assert message.usage == Usage(1)

    def test_sums_what_some_requests_say(self) -> None:
        whole = {"choices": [{"message": {"content": "3"}}]}
        agent = Agent("A", Scripted(calls(ADD), whole), toolkit_with())
        usage = agent.call_sync("?").usage
        assert (usage, usage.total_tokens) == (Usage(2, 10, 5), 15)

    def test_of_calls_that_wait(self) -> None:
        assert Agent("A", Scripted(calls(("ask_user", {}))), toolkit_with(ASK)).call_sync("?").usage == Usage(1, 10, 5)

    def test_is_frozen(self) -> None:
        with pytest.raises(AttributeError):
            Usage().requests = 1  # type: ignore[misc]
