"""Google ADK: a runner, with a model that says what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, ClassVar

import pytest

pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types

from pegboard import Approval, Session, ToolCall, Toolkit
from pegboard_bridges.adk import from_adk, to_adk
from tests.plugins.bridges import frameworks
from tests.plugins.bridges.desk import board
from tests.plugins.bridges.frameworks import Answer, FrameworkTests, Run, Shown, native_sum

# Without a usage each turn of the model logs a warning.
USAGE = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
CONFIRM = "adk_request_confirmation"


class Scripted(BaseLlm):
    """Asks for calls, then stops; remembers what it is shown."""

    calls: Any = ()
    shown: Any = ()

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
        told = [tool for each in llm_request.config.tools or () for tool in each.function_declarations]
        self.shown = tuple(Shown(tool.name, tool.description, tool.parameters_json_schema or {}) for tool in told)
        answered = any(part.function_response for content in llm_request.contents for part in content.parts)
        parts = [types.Part(text="done")] if answered else [types.Part(function_call=call) for call in self.calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=USAGE)


class Stage(frameworks.Stage):
    framework = "adk"
    distribution = "google-adk"
    blocks: ClassVar = True
    losses: ClassVar = {
        "progress": "a running tool of ADK reports nothing, except in live sessions",
        "cost": "of a coroutine function; a plain one costs 1.3 in a thread of the toolkit, and blocks the loop in ADK",
    }

    def run(self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True) -> Run:
        model = _model(calls)
        answers: dict[str, Answer] = {}
        asked: list[str] = []
        runner = InMemoryRunner(LlmAgent(name="agent", model=model, tools=[self.outwards(source)]), app_name="app")

        async def go() -> None:
            waiting: list[types.Part] = [types.Part(text="go")]
            while waiting:
                heard = [event async for event in _said(runner, waiting)]
                waiting = []
                for event in heard:
                    for call in event.get_function_calls():
                        if call.name == CONFIRM:
                            asked.append(call.args["originalFunctionCall"]["name"])
                            waiting.append(_confirmed(call, approve))
                    for response in event.get_function_responses():
                        answers[response.id] = _answer(response)

        asyncio.run(go())
        return Run(model.shown, answers, asked=tuple(asked))

    def native(self, functions: Iterable[Callable[..., Any]]) -> Any:
        return [FunctionTool(function) for function in functions]

    def inwards(self, tools: Any) -> Any:
        return from_adk(tools)

    def outwards(self, source: Toolkit | Session) -> Any:
        return to_adk(source)

    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any:
        given = tools if isinstance(tools, list) else [tools]
        runner = InMemoryRunner(LlmAgent(name="agent", model=_model(calls), tools=given), app_name="app")

        async def go() -> None:
            async for _ in _said(runner, [types.Part(text="go")]):
                pass

        asyncio.run(go())


def _model(calls: Iterable[ToolCall]) -> Scripted:
    made = [types.FunctionCall(id=call.id, name=call.name, args=dict(call.arguments)) for call in calls]
    return Scripted(model="scripted", calls=made)


async def _said(runner: InMemoryRunner, parts: list[types.Part]) -> AsyncIterator[Any]:
    known = await runner.session_service.get_session(app_name="app", user_id="user", session_id="session")
    if known is None:
        await runner.session_service.create_session(app_name="app", user_id="user", session_id="session")
    message = types.Content(role="user", parts=parts)
    async for event in runner.run_async(user_id="user", session_id="session", new_message=message):
        yield event


def _confirmed(call: Any, approve: bool) -> types.Part:
    response = types.FunctionResponse(id=call.id, name=CONFIRM, response={"confirmed": approve})
    return types.Part(function_response=response)


def _answer(response: Any) -> Answer:
    said = response.response
    images = tuple(part.inline_data.data for part in response.parts or () if part.inline_data)
    return Answer(str(said.get("error", said.get("result"))), images, "error" in said)


class TestAdk(FrameworkTests):
    stage = Stage()


def test_tools_are_those_of_the_session_at_each_request() -> None:
    seen = []
    with board() as toolkit:
        toolkit.create_group("extra", active=False)
        toolkit.register(lambda: "here", name="extra", description="In a group.", group="extra")
        toolkit.register(lambda: toolkit.update_groups("extra", True), name="open", description="Open it.")

        class Spied(Scripted):
            async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
                async for response in super().generate_content_async(llm_request, stream):
                    seen.append("extra" in [tool.name for tool in self.shown])
                    yield response

        model = Spied(model="scripted", calls=[types.FunctionCall(id="call_0", name="open", args={})])
        runner = InMemoryRunner(LlmAgent(name="agent", model=model, tools=[to_adk(toolkit)]), app_name="app")

        async def go() -> None:
            async for _ in _said(runner, [types.Part(text="go")]):
                pass

        asyncio.run(go())
    assert seen == [False, True]


def test_confirmation_that_a_native_tool_asks_for_is_the_approvers() -> None:
    answers = (
        (lambda request: True, "5"),
        (lambda request: False, "not approved"),
        (lambda request: Approval.edit({"first": 2, "second": 7}), "9"),
    )
    for approver, text in answers:
        with Toolkit(plugins=["bridges"], approver=approver) as toolkit:
            toolkit.register(FunctionTool(native_sum, require_confirmation=True))
            assert text in toolkit.call_sync("native_sum", {"first": 2, "second": 3}).text
