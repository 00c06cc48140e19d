"""Pydantic AI: `Agent.run`, with a model that is a function."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai import (
    Agent,
    ApprovalRequired,
    BinaryContent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRequest,
    ModelResponse,
    RunContext,
    TextPart,
    Tool,
    ToolCallPart,
    ToolFailed,
)
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.toolsets import AbstractToolset

from pegboard import Approval, Session, ToolCall, Toolkit
from pegboard_bridges.pydantic_ai import BoardProgress, from_pydantic_ai, to_pydantic_ai
from tests.plugins.bridges import frameworks
from tests.plugins.bridges.desk import board, call_of
from tests.plugins.bridges.frameworks import Answer, FrameworkTests, Run, Shown


class Scripted:
    """Asks for calls, then stops; remembers what it is shown."""

    def __init__(self, calls: Iterable[ToolCall]) -> None:
        self.calls = [ToolCallPart(call.name, json.dumps(call.arguments), call.id) for call in calls]
        self.shown: tuple[Shown, ...] = ()

    def __call__(self, messages: list[Any], info: Any) -> ModelResponse:
        self.shown = tuple(
            Shown(tool.name, tool.description or "", tool.parameters_json_schema) for tool in info.function_tools
        )
        first = len(messages) == 1 and isinstance(messages[0], ModelRequest)
        return ModelResponse(parts=list(self.calls) if first else [TextPart("done")])

    async def stream(self, messages: list[Any], info: Any) -> Any:
        """The same in pieces: a listener to a run makes the model stream."""
        for number, part in enumerate(self(messages, info).parts):
            calls = isinstance(part, ToolCallPart)
            yield (
                {number: DeltaToolCall(part.tool_name, part.args, tool_call_id=part.tool_call_id)}
                if calls
                else part.content
            )


class Stage(frameworks.Stage):
    framework = "pydantic_ai"
    distribution = "pydantic-ai-slim"

    def run(self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True) -> Run:
        model = Scripted(calls)
        progress: list[str] = []
        asked: list[str] = []

        async def hear(_: Any, events: Any) -> None:
            progress.extend([event.text async for event in events if isinstance(event, BoardProgress)])

        scripted = FunctionModel(model, stream_function=model.stream)
        outputs = [str, DeferredToolRequests]
        agent: Any = Agent(scripted, toolsets=[self.outwards(source)], output_type=outputs)

        async def go() -> Any:
            result = await agent.run("go", event_stream_handler=hear)
            while isinstance(result.output, DeferredToolRequests):
                waiting = result.output
                asked.extend(each.tool_name for each in waiting.approvals)
                # The id is the board's too: the program gives the answer there.
                done = {
                    each.tool_call_id: source.resume(
                        each.tool_call_id, waiting.metadata[each.tool_call_id]["reason"]
                    ).text
                    for each in waiting.calls
                }
                given = DeferredToolResults(
                    calls=done, approvals={each.tool_call_id: approve for each in waiting.approvals}
                )
                result = await agent.run(
                    message_history=result.all_messages(), deferred_tool_results=given, event_stream_handler=hear
                )
            return result

        messages = asyncio.run(go()).all_messages()
        parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        return Run(model.shown, {part.tool_call_id: _answer(part) for part in parts}, tuple(progress), tuple(asked))

    def native(self, functions: Iterable[Callable[..., Any]]) -> Any:
        return [Tool(function) for function in functions]

    def inwards(self, tools: Any) -> Any:
        return from_pydantic_ai(tools)

    def outwards(self, source: Toolkit | Session) -> Any:
        return to_pydantic_ai(source)

    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any:
        given: Any = {"toolsets": [tools]} if isinstance(tools, AbstractToolset) else {"tools": tools}
        return asyncio.run(Agent(FunctionModel(Scripted(calls)), **given).run("go"))


def _answer(part: Any) -> Answer:
    content = part.content if isinstance(part.content, list) else [part.content]
    images = tuple(each.data for each in content if isinstance(each, BinaryContent))
    return Answer("".join(each for each in content if isinstance(each, str)), images, part.outcome == "failed")


class TestPydanticAi(FrameworkTests):
    stage = Stage()


def test_tools_are_those_of_the_session_at_each_step() -> None:
    with board() as toolkit:
        toolkit.create_group("extra", active=False)
        toolkit.register(lambda: "here", name="extra", description="In a group.", group="extra")
        toolkit.register(lambda: toolkit.update_groups("extra", True), name="open", description="Open it.")
        model = Scripted([call_of(0, ("open", {}))])
        seen = []

        def spied(messages: list[Any], info: Any) -> ModelResponse:
            answer = model(messages, info)
            seen.append("extra" in [tool.name for tool in model.shown])
            return answer

        asyncio.run(Agent(FunctionModel(spied), toolsets=[to_pydantic_ai(toolkit)]).run("go"))
    assert seen == [False, True]


def test_text_that_is_no_json_gets_the_boards_answer() -> None:
    with board() as toolkit:
        model = Scripted([])
        model.calls = [ToolCallPart("forecast", '{"city": ', "call_0")]
        result = asyncio.run(Agent(FunctionModel(model), toolsets=[to_pydantic_ai(toolkit)]).run("go"))
        said = [p.content for m in result.all_messages() for p in m.parts if isinstance(p, ToolReturnPart)]
        assert said == [toolkit.call_sync("forecast", '{"city": ').text]


def test_does_not_wait_where_the_program_says_so() -> None:
    with board() as toolkit:
        model = Scripted([call_of(0, ("wipe", {"disk": "a"})), call_of(1, ("measure", {"what": "rain"}))])
        toolset = to_pydantic_ai(toolkit, wait=False)
        result = asyncio.run(Agent(FunctionModel(model), toolsets=[toolset]).run("go"))
        said = [p.content for m in result.all_messages() for p in m.parts if isinstance(p, ToolReturnPart)]
    assert ["cannot be given here" in said[0], said[1]] == [True, "a person measures rain"]


def test_approval_that_a_native_tool_asks_for_is_the_approvers() -> None:
    def native_sum(context: RunContext[None], first: int, second: int) -> int:
        """Add."""
        if not context.tool_call_approved:
            raise ApprovalRequired
        return first + second

    answers = ((True, "5"), (False, "not approved"), (Approval.edit({"first": 2, "second": 7}), "9"))
    for native in (Tool(native_sum), Tool(native_sum, requires_approval=True)):
        for answer, text in answers:
            with Toolkit(plugins=["bridges"], approver=lambda request, answer=answer: answer) as toolkit:
                toolkit.register(native)
                assert text in toolkit.call_sync("native_sum", {"first": 2, "second": 3}).text


def test_native_tool_that_was_approved_may_still_fail_or_wait() -> None:
    def judge(context: RunContext[None], verdict: str) -> str:
        """Judge."""
        if not context.tool_call_approved:
            raise ApprovalRequired
        raise ToolFailed("no ink") if verdict == "fail" else CallDeferred

    with Toolkit(plugins=["bridges"], approver=lambda request: True) as toolkit:
        toolkit.register(Tool(judge))
        assert toolkit.call_sync("judge", {"verdict": "fail"}).text == "no ink"
        assert toolkit.call_sync("judge", {"verdict": "wait"}).status == "suspended"
