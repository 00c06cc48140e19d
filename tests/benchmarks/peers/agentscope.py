"""agentscope: its toolkit, and a reply of its agent."""

from typing import Any

from agentscope.agent import Agent
from agentscope.credential import CredentialBase
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import Msg, TextBlock, ToolCallBlock
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.state import AgentState
from agentscope.tool import FunctionTool, Toolkit

from tests.benchmarks.peers.harness import Carry, Function, Path, main


class Scripted(ChatModelBase):
    """Asks for calls, then stops."""

    formatter = OpenAIChatFormatter()
    name = ""
    texts: tuple[str, ...] = ()

    async def _call_api(self, *_: Any, **__: Any) -> ChatResponse:
        texts, self.texts = self.texts, ()
        calls = [ToolCallBlock(id=f"call_{n}", name=self.name, input=text) for n, text in enumerate(texts)]
        return ChatResponse(content=calls or [TextBlock(text="done")], is_last=True)


def allowed(function: Function) -> FunctionTool:
    """A tool that needs no confirmation."""
    decision = PermissionDecision(behavior=PermissionBehavior.ALLOW, message="allowed")
    return FunctionTool(function, permission=decision)


def narrow(function: Function) -> Carry:
    """Drain the toolkit's stream."""
    toolkit, state = Toolkit([allowed(function)]), AgentState()

    async def carry(texts: tuple[str, ...]) -> None:
        for text in texts:
            async for _ in toolkit.call_tool(ToolCallBlock(id="call", name=function.__name__, input=text), state):
                pass

    return carry


def agent(function: Function) -> Carry:
    """Reply, with a new agent each time."""
    toolkit = Toolkit([allowed(function)])
    model = Scripted(CredentialBase(), "scripted", Scripted.Parameters(), stream=False, context_size=1_000_000)
    model.name = function.__name__

    async def carry(texts: tuple[str, ...]) -> None:
        model.texts = texts
        await Agent("agent", "You call tools.", model, toolkit).reply(
            Msg(name="user", content=[TextBlock(text="go")], role="user")
        )

    return carry


def schema(function: Function) -> Any:
    """JSON Schema of the parameters."""
    return FunctionTool(function).input_schema


if __name__ == "__main__":
    main("agentscope", Path("Toolkit.call_tool", narrow), Path("Agent.reply", agent, turns=True), schema)
