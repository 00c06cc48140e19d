"""Strands: an agent, with a model that says what it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest

pytest.importorskip("strands")

from strands import Agent
from strands import tool as native_tool
from strands.models import Model

from pegboard import Session, ToolCall, Toolkit
from pegboard_bridges.strands import from_strands, to_strands
from tests.plugins.bridges import frameworks
from tests.plugins.bridges.frameworks import Answer, FrameworkTests, Run, Shown


class Scripted(Model):
    """Asks for calls, then stops; remembers what it is shown."""

    def __init__(self, calls: Iterable[ToolCall]) -> None:
        self.calls = list(calls)
        self.shown: tuple[Shown, ...] = ()

    def update_config(self, **model_config: Any) -> None:
        """Nothing to configure."""

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, tool_specs: Any = (), *_: Any, **__: Any) -> AsyncIterator[Any]:
        self.shown = tuple(
            Shown(each["name"], each["description"], each["inputSchema"]["json"]) for each in tool_specs or ()
        )
        calls = self.calls if len(messages) == 1 else []
        yield {"messageStart": {"role": "assistant"}}
        for call in calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": call.id, "name": call.name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(call.arguments)}}}}
            yield {"contentBlockStop": {}}
        if not calls:
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


class Stage(frameworks.Stage):
    framework = "strands"
    distribution = "strands-agents"

    def run(self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True) -> Run:
        model = Scripted(calls)
        agent = Agent(model=model, tools=self.outwards(source), callback_handler=None)
        progress: list[str] = []
        asked: list[str] = []

        async def go() -> None:
            given: Any = "go"
            while given is not None:
                result: Any = None
                async for event in agent.stream_async(given):
                    if "tool_stream_event" in event:
                        progress.append(event["tool_stream_event"]["data"]["text"])
                    result = event.get("result", result)
                asked.extend(each.reason["tool"] for each in result.interrupts or ())
                answers = [{"interruptId": each.id, "response": approve} for each in result.interrupts or ()]
                given = [{"interruptResponse": each} for each in answers] or None

        asyncio.run(go())
        results = [part["toolResult"] for m in agent.messages for part in m["content"] if "toolResult" in part]
        answers = {each["toolUseId"]: _answer(each) for each in results}
        return Run(model.shown, answers, tuple(progress), tuple(asked))

    def native(self, functions: Iterable[Callable[..., Any]]) -> Any:
        return [native_tool(function) for function in functions]

    def inwards(self, tools: Any) -> Any:
        return from_strands(tools)

    def outwards(self, source: Toolkit | Session) -> Any:
        return to_strands(source)

    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any:
        agent = Agent(model=Scripted(calls), tools=tools, callback_handler=None)
        return asyncio.run(agent.invoke_async("go"))


def _answer(result: Any) -> Answer:
    text = "".join(part["text"] for part in result["content"] if "text" in part)
    images = tuple(part["image"]["source"]["bytes"] for part in result["content"] if "image" in part)
    return Answer(text, images, result["status"] == "error")


class TestStrands(FrameworkTests):
    stage = Stage()
