"""openai-agents: a FunctionTool by itself, and a run of its agent."""

from collections.abc import AsyncIterator
from functools import cache
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.testing import assistant_message, function_call
from agents.tool_context import ToolContext

from tests.benchmarks.peers.harness import Carry, Function, Path, main


class Scripted(Model):
    """Says what it is told. The scripted model of the library keeps copies of all that it hears, which costs time."""

    def __init__(self, *turns: list[Any]) -> None:
        self._turns = iter(turns)

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        """Say the next turn."""
        return ModelResponse(output=next(self._turns), usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Nothing here streams."""
        raise NotImplementedError


def narrow(function: Function) -> Carry:
    """Call the tool with a context that is made for each call, as its arguments are."""
    tool = function_tool(function)

    async def carry(texts: tuple[str, ...]) -> None:
        for text in texts:
            context = ToolContext(None, tool_name=tool.name, tool_call_id="1", tool_arguments=text)
            await tool.on_invoke_tool(context, text)

    return carry


def agent(function: Function) -> Carry:
    """Run the agent."""
    tool = function_tool(function)
    done = [assistant_message("done")]

    @cache
    def asked(texts: tuple[str, ...]) -> list[Any]:
        return [function_call(tool.name, text, call_id=f"call_{n}") for n, text in enumerate(texts)]

    async def carry(texts: tuple[str, ...]) -> None:
        await Runner.run(Agent(name="agent", model=Scripted(asked(texts), done), tools=[tool]), "go")

    return carry


def schema(function: Function) -> Any:
    """JSON Schema of the parameters."""
    return function_tool(function).params_json_schema


if __name__ == "__main__":
    set_tracing_disabled(True)
    main("openai-agents", Path("FunctionTool.on_invoke_tool", narrow), Path("Runner.run", agent, turns=True), schema)
