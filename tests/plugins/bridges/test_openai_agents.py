"""OpenAI Agents SDK: `Runner.run`, with a model that says what it is told."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, ClassVar

import pytest

pytest.importorskip("agents")

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.testing import assistant_message, function_call

from pegboard import Approval, Session, ToolCall, Toolkit, tool
from pegboard_bridges.openai_agents import from_openai_agents, to_openai_agents
from tests.plugins.bridges import frameworks
from tests.plugins.bridges.desk import board, call_of
from tests.plugins.bridges.frameworks import Answer, FrameworkTests, Run, Shown
from tests.support.board_tools import named

QUIET = RunConfig(tracing_disabled=True)


class Scripted(Model):
    """Asks for calls, then stops; remembers what it is shown, and what it gets."""

    def __init__(self, calls: Iterable[ToolCall]) -> None:
        self.turns = iter(
            [
                [function_call(call.name, json.dumps(call.arguments), call_id=call.id) for call in calls],
                [assistant_message("done")],
            ]
        )
        self.shown: tuple[Shown, ...] = ()
        self.got: Any = None

    async def get_response(self, *_: Any, input: Any, tools: Any, **__: Any) -> ModelResponse:  # noqa: A002
        self.shown = tuple(Shown(tool.name, tool.description, tool.params_json_schema) for tool in tools)
        self.got = input
        return ModelResponse(output=next(self.turns), usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


class Stage(frameworks.Stage):
    framework = "openai_agents"
    distribution = "openai-agents"
    losses: ClassVar = {
        "progress": "the SDK has no channel for it",
        "status": "an error is a text like any other",
    }

    def run(self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True) -> Run:
        model = Scripted(calls)
        agent = Agent(name="agent", model=model, tools=self.outwards(source))

        async def go() -> list[str]:
            asked = []
            result = await Runner.run(agent, "go", run_config=QUIET)
            while result.interruptions:
                state = result.to_state()
                for item in result.interruptions:
                    asked.append(str(item.name))
                    (state.approve if approve else state.reject)(item)
                result = await Runner.run(agent, state, run_config=QUIET)
            return asked

        asked = asyncio.run(go())
        answers = {item["call_id"]: _answer(item["output"]) for item in model.got if "output" in item}
        return Run(model.shown, answers, asked=tuple(asked))

    def native(self, functions: Iterable[Callable[..., Any]]) -> Any:
        return [function_tool(function) for function in functions]

    def inwards(self, tools: Any) -> Any:
        return from_openai_agents(tools)

    def outwards(self, source: Toolkit | Session) -> Any:
        return to_openai_agents(source)

    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any:
        agent = Agent(name="agent", model=Scripted(calls), tools=tools)
        return asyncio.run(Runner.run(agent, "go", run_config=QUIET))


def _answer(output: Any) -> Answer:
    if isinstance(output, str):
        return Answer(output)
    text = "".join(part["text"] for part in output if part["type"] == "input_text")
    urls = [part["image_url"] for part in output if part["type"] == "input_image"]
    return Answer(text, tuple(base64.b64decode(url.partition(",")[2]) for url in urls))


class TestOpenaiAgents(FrameworkTests):
    stage = Stage()


def test_tools_come_and_go_with_their_group() -> None:
    with board() as toolkit:
        toolkit.create_group("extra", active=False)
        toolkit.register(lambda: "here", name="extra", description="In a group.", group="extra")
        tools = to_openai_agents(toolkit)
        seen = []
        for active in (False, True):
            toolkit.update_groups("extra", active)
            model = Scripted([call_of(0, ("forecast", {"city": "Oslo"}))])
            asyncio.run(Runner.run(Agent(name="agent", model=model, tools=tools), "go", run_config=QUIET))
            seen.append("extra" in [each.name for each in model.shown])
    assert seen == [False, True]


def test_what_is_enabled_later_follows_and_the_search_is_there() -> None:
    with Toolkit(plugins=(), defer_threshold=0) as toolkit:
        toolkit.create_group("extra", active=False)
        toolkit.register(named("early"), group="extra")
        toolkit.register(named("plain"), tool(defer=True)(named("rare")))
        tools = to_openai_agents(toolkit)
        seen = []
        for active in (False, True):
            toolkit.update_groups("extra", active)
            model = Scripted([call_of(0, ("search_tools", {"query": "rare"}))])
            asyncio.run(Runner.run(Agent(name="agent", model=model, tools=tools), "go", run_config=QUIET))
            seen.append([each.name for each in model.shown])
    assert seen[0][:2] == ["plain", "search_tools"]
    assert set(seen[1]) == {"plain", "search_tools", "early", "rare"}
    assert seen[1][:2] == seen[0][:2]


@pytest.mark.parametrize(("text", "said"), [("", "1"), ("{", "arguments are not valid JSON")])
def test_text_that_is_no_json_is_the_boards_to_judge(text: str, said: str) -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(lambda: 1, name="one", description="One.")
        model = Scripted([])
        model.turns = iter([[function_call("one", text, call_id="call-1")], [assistant_message("done")]])
        agent = Agent(name="agent", model=model, tools=to_openai_agents(toolkit))
        asyncio.run(Runner.run(agent, "go", run_config=QUIET))
        (answer,) = [item["output"] for item in model.got if "output" in item]
        assert said in answer
        toolkit.set_permission("one", "prompt")
        model = Scripted([call_of(0, ("one", {}))])
        asked = asyncio.run(Runner.run(agent.clone(model=model), "go", run_config=QUIET))
        assert [item.name for item in asked.interruptions] == ["one"]


def test_strict_schemas_are_kept_to_what_strict_mode_can_say() -> None:
    with board() as toolkit:
        strict = {tool.name: tool for tool in to_openai_agents(toolkit, strict=True)}
    assert strict["forecast"].strict_json_schema
    assert sorted(strict["forecast"].params_json_schema["required"]) == ["city", "days", "metric", "wind"]


def test_approval_that_a_native_tool_asks_for_is_the_approvers() -> None:
    def native_sum(first: int, second: int) -> int:
        """Add."""
        return first + second

    native = function_tool(needs_approval=True)(native_sum)
    for answer, text in ((True, "5"), (False, "not approved"), (Approval.edit({"first": 2, "second": 7}), "9")):
        with Toolkit(plugins=["bridges"], approver=lambda request, answer=answer: answer) as toolkit:
            toolkit.register(native)
            assert text in toolkit.call_sync("native_sum", {"first": 2, "second": 3}).text
