"""LlamaIndex: a `FunctionAgent`, with its own mock of a model that calls functions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

pytest.importorskip("llama_index")

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import HumanResponseEvent, InputRequiredEvent

from pegboard import Session, ToolCall, Toolkit
from pegboard_bridges.llamaindex import BoardProgress, from_llamaindex, to_llamaindex
from tests.plugins.bridges import frameworks
from tests.plugins.bridges.frameworks import Answer, FrameworkTests, Run, Shown


class Script:
    """Asks for calls, then stops; remembers what it is shown, and what it gets."""

    def __init__(self, calls: Iterable[ToolCall]) -> None:
        self.calls = [
            ToolCallBlock(tool_call_id=call.id, tool_name=call.name, tool_kwargs=dict(call.arguments)) for call in calls
        ]
        self.shown: tuple[Shown, ...] = ()
        self.got: list[Any] = []

    def __call__(self, messages: Any, tools: Any = (), **_: Any) -> ChatMessage:
        described = [tool.metadata.to_openai_tool()["function"] for tool in tools]
        self.shown = tuple(Shown(each["name"], each["description"], each["parameters"]) for each in described)
        self.got = [message for message in messages if message.role == "tool"]
        return ChatMessage(role="assistant", blocks=[TextBlock(text="done")] if self.got else list(self.calls))


class Stage(frameworks.Stage):
    framework = "llamaindex"
    distribution = "llama-index-core"

    def run(self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True) -> Run:
        script = Script(calls)
        progress: list[str] = []
        asked: list[str] = []

        async def go() -> None:
            handler = _agent(script, self.outwards(source)).run("go")
            async for event in handler.stream_events():
                if isinstance(event, BoardProgress):
                    progress.append(event.text)
                elif isinstance(event, InputRequiredEvent):
                    asked.append(event.tool)
                    answer = "yes" if approve else "no"
                    handler.ctx.send_event(HumanResponseEvent(response=answer, waiter_id=event.waiter_id))
            await handler

        asyncio.run(go())
        answers = {message.additional_kwargs["tool_call_id"]: _answer(message) for message in script.got}
        return Run(script.shown, answers, tuple(progress), tuple(asked))

    def native(self, functions: Iterable[Callable[..., Any]]) -> Any:
        return [FunctionTool.from_defaults(function, description=function.__doc__) for function in functions]

    def inwards(self, tools: Any) -> Any:
        return from_llamaindex(tools)

    def outwards(self, source: Toolkit | Session) -> Any:
        return to_llamaindex(source)

    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any:
        async def go() -> None:
            await _agent(Script(calls), tools).run("go")

        asyncio.run(go())


def _agent(script: Script, tools: Any) -> FunctionAgent:
    model = MockFunctionCallingLLM(response_generator=script)
    return FunctionAgent(tools=tools, llm=model, streaming=False, system_prompt="You call tools.", timeout=60)


def _answer(message: Any) -> Answer:
    text = "".join(block.text for block in message.blocks if isinstance(block, TextBlock))
    images = tuple(block.resolve_image().read() for block in message.blocks if isinstance(block, ImageBlock))
    return Answer(text, images)


class TestLlamaindex(FrameworkTests):
    stage = Stage()

    def test_what_the_program_has_filled_in_is_nothing_that_a_model_sets(self) -> None:
        def greet(name: str, user: str = "nobody") -> str:
            """Greet a person."""
            return f"{name} by {user}"

        with Toolkit(plugins=["bridges"]) as toolkit:
            toolkit.register(FunctionTool.from_defaults(greet, partial_params={"user": "the program"}))
            refused = toolkit.call_sync("greet", {"name": "Ada", "user": "root"})
            assert "user: unknown argument (known: name)" in refused.text
            assert toolkit.call_sync("greet", {"name": "Ada"}).text == "Ada by the program"
