"""AgentScope: an agent's reply, with a model that says what it is told."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import pytest

pytest.importorskip("agentscope")

from agentscope.agent import Agent
from agentscope.credential import CredentialBase
from agentscope.event import ConfirmResult, RequireUserConfirmEvent, UserConfirmResultEvent
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import Msg, TextBlock, ToolCallBlock
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import FunctionTool, ToolChunk
from agentscope.tool import Toolkit as ScopeToolkit

from pegboard import Approval, Session, ToolCall, Toolkit
from pegboard_bridges.agentscope import from_agentscope, to_agentscope
from tests.plugins.bridges import frameworks
from tests.plugins.bridges.frameworks import Answer, FrameworkTests, Run, Shown

ALLOWED = PermissionDecision(behavior=PermissionBehavior.ALLOW, message="allowed")


class Scripted(ChatModelBase):
    """Asks for calls, then stops; remembers what it is shown."""

    formatter = OpenAIChatFormatter()
    turns: Any = ()
    shown: tuple[Shown, ...] = ()

    async def _call_api(self, *_: Any, tools: Any = (), **__: Any) -> ChatResponse:
        described = [each["function"] for each in tools or ()]
        self.shown = tuple(Shown(each["name"], each["description"], each["parameters"]) for each in described)
        return ChatResponse(content=next(self.turns, None) or [TextBlock(text="done")], is_last=True)


class Stage(frameworks.Stage):
    framework = "agentscope"
    distribution = "agentscope"
    losses: ClassVar = {
        "progress": "it becomes part of the result",
    }

    def run(self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True) -> Run:
        model = _model(calls)
        asked: list[str] = []
        agent = Agent("agent", "You call tools.", model, ScopeToolkit(self.outwards(source)))

        async def go() -> None:
            given: Any = Msg(name="user", content=[TextBlock(text="go")], role="user")
            while given is not None:
                wants = None
                async for event in agent.reply_stream(given):
                    wants = event if isinstance(event, RequireUserConfirmEvent) else wants
                asked.extend(each.name for each in (wants.tool_calls if wants else ()))
                given = wants and UserConfirmResultEvent(
                    reply_id=wants.reply_id,
                    confirm_results=[ConfirmResult(confirmed=approve, tool_call=each) for each in wants.tool_calls],
                )

        asyncio.run(go())
        results = [b for m in agent.state.context for b in m.content if getattr(b, "type", "") == "tool_result"]
        return Run(model.shown, {each.id: _answer(each) for each in results}, asked=tuple(asked))

    def native(self, functions: Iterable[Callable[..., Any]]) -> Any:
        return [FunctionTool(function, permission=ALLOWED) for function in functions]

    def inwards(self, tools: Any) -> Any:
        return from_agentscope(tools)

    def outwards(self, source: Toolkit | Session) -> Any:
        return to_agentscope(source)

    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any:
        agent = Agent("agent", "You call tools.", _model(calls), ScopeToolkit(tools))
        return asyncio.run(agent.reply(Msg(name="user", content=[TextBlock(text="go")], role="user")))


def _model(calls: Iterable[ToolCall]) -> Scripted:
    model = Scripted(CredentialBase(), "scripted", Scripted.Parameters(), stream=False, context_size=1_000_000)
    made = [ToolCallBlock(id=call.id, name=call.name, input=json.dumps(call.arguments)) for call in calls]
    model.turns = iter([made])
    return model


def _answer(result: Any) -> Answer:
    blocks = [TextBlock(text=result.output)] if isinstance(result.output, str) else result.output
    text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
    images = tuple(base64.b64decode(block.source.data) for block in blocks if not isinstance(block, TextBlock))
    return Answer(text, images, result.state != "success")


class TestAgentscope(FrameworkTests):
    stage = Stage()


def test_toolkits_are_registered() -> None:
    async def add(first: int, second: int) -> ToolChunk:
        """Add."""
        return ToolChunk(content=[TextBlock(text=str(first + second))], state="success")

    with Toolkit(plugins=["bridges"]) as toolkit:
        toolkit.register(ScopeToolkit([FunctionTool(add)]))
        assert toolkit.call_sync("add", {"first": 2, "second": 3}).status == "denied"
    for answer, text in ((True, "5"), (Approval.edit({"first": 2, "second": 7}), "9")):
        with Toolkit(plugins=["bridges"], approver=lambda request, answer=answer: answer) as toolkit:
            toolkit.register(ScopeToolkit([FunctionTool(add)]))
            assert toolkit.call_sync("add", {"first": 2, "second": 3}).text == text
