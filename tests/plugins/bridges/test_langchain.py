"""LangChain: `create_agent`, with a chat model that says what it is told."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import pytest

pytest.importorskip("langgraph")
pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import InjectedToolArg, StructuredTool
from langchain_core.tools import Tool as SingleTool
from langchain_core.tools import tool as native_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from pegboard import Session, ToolCall, Toolkit
from pegboard_bridges.langchain import from_langchain, to_langchain
from tests.plugins.bridges import frameworks
from tests.plugins.bridges.frameworks import Answer, FrameworkTests, Run, Shown


class Scripted(BaseChatModel):
    """Asks for calls, then stops."""

    calls: Any = ()
    shown: Any = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        self.shown = [convert_to_openai_tool(tool)["function"] for tool in tools]
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        done = any(isinstance(message, ToolMessage) for message in messages)
        message = AIMessage("done") if done else AIMessage("", tool_calls=self.calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


class Stage(frameworks.Stage):
    framework = "langchain"
    distribution = "langchain-core"

    def run(self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True) -> Run:
        model = Scripted(calls=_asked(calls))
        agent = create_agent(model, self.outwards(source), checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "1"}}
        progress, asked = [], []
        given: Any = {"messages": [{"role": "user", "content": "go"}]}
        state: Any = None
        while given:
            for mode, state in agent.stream(given, config, stream_mode=["custom", "values"]):
                progress += [state["text"]] if mode == "custom" else []
            interrupts = agent.get_state(config).interrupts
            asked += [each.value["tool"] for each in interrupts]
            given = Command(resume=approve) if interrupts else None
        answers = {m.tool_call_id: _answer(m) for m in state["messages"] if isinstance(m, ToolMessage)}
        shown = tuple(Shown(each["name"], each["description"], each["parameters"]) for each in model.shown)
        return Run(shown, answers, tuple(progress), tuple(asked))

    def native(self, functions: Iterable[Callable[..., Any]]) -> Any:
        return [native_tool(function) for function in functions]

    def inwards(self, tools: Any) -> Any:
        return from_langchain(tools)

    def outwards(self, source: Toolkit | Session) -> Any:
        return to_langchain(source)

    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any:
        agent = create_agent(Scripted(calls=_asked(calls)), tools)
        return agent.invoke({"messages": [{"role": "user", "content": "go"}]})


def _asked(calls: Iterable[ToolCall]) -> list[Any]:
    return [{"type": "tool_call", "id": call.id, "name": call.name, "args": dict(call.arguments)} for call in calls]


def _answer(message: Any) -> Answer:
    content = [{"type": "text", "text": message.content}] if isinstance(message.content, str) else message.content
    text = "".join(part["text"] for part in content if part["type"] == "text")
    images = tuple(base64.b64decode(part["base64"]) for part in content if part["type"] == "image")
    return Answer(text, images, message.status == "error")


class TestLangchain(FrameworkTests):
    stage = Stage()

    def test_what_langchain_injects_is_nothing_that_a_model_sets(self) -> None:
        def greet(name: str, user: Annotated[str, InjectedToolArg] = "nobody") -> str:
            """Greet a person."""
            return f"{name} by {user}"

        with Toolkit(plugins=["bridges"]) as toolkit:
            toolkit.register(native_tool(greet))
            assert toolkit["greet"].parameters["properties"].keys() == {"name"}
            refused = toolkit.call_sync("greet", {"name": "Ada", "user": "root"})
            assert "user: unknown argument (known: name)" in refused.text
            assert toolkit.call_sync("greet", {"name": "Ada"}).text == "Ada by nobody"

    def test_a_tool_of_one_text_takes_that(self) -> None:
        with Toolkit(plugins=["bridges"]) as toolkit:
            toolkit.register(SingleTool("shout", str.upper, "Shout."))
            assert toolkit["shout"].parameters["properties"] == {"tool_input": {"type": "string"}}
            assert toolkit.call_sync("shout", {"tool_input": "hey"}).text == "HEY"

    @pytest.mark.skipif(sys.version_info >= (3, 14), reason="pydantic.v1 ends with Python 3.13")
    def test_a_schema_of_pydantic_1_is_one(self) -> None:
        from pydantic.v1 import BaseModel

        class Sum(BaseModel):
            first: int
            second: int = 2

        def add(first: int, second: int) -> int:
            return first + second

        with Toolkit(plugins=["bridges"]) as toolkit:
            toolkit.register(StructuredTool.from_function(add, description="Add.", args_schema=Sum))
            assert toolkit["add"].parameters["required"] == ["first"]
            assert toolkit.call_sync("add", {"first": 1}).text == "3"
