"""strands-agents: the stream of a decorated function, and a run of its agent."""

import json
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent, tool
from strands.models import Model

from tests.benchmarks.peers.harness import Carry, Function, Path, main


class Scripted(Model):
    """Asks for calls, then stops."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.texts: tuple[str, ...] = ()

    def update_config(self, **model_config: Any) -> None:
        """Nothing to configure."""

    def get_config(self) -> Any:
        """Nothing is configured."""
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        """Nothing here asks for structured output."""
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Say the next turn."""
        texts = self.texts if len(messages) == 1 else ()
        yield {"messageStart": {"role": "assistant"}}
        for n, text in enumerate(texts):
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"call_{n}", "name": self.name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": text}}}}
            yield {"contentBlockStop": {}}
        if not texts:
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if texts else "end_turn"}}


def narrow(function: Function) -> Carry:
    """Drain the stream of the tool."""
    made = tool(function)

    async def carry(texts: tuple[str, ...]) -> None:
        for text in texts:
            use: Any = {"toolUseId": "call", "name": made.tool_name, "input": json.loads(text)}
            async for _ in made.stream(use, {}):
                pass

    return carry


def agent(function: Function) -> Carry:
    """Run the agent; it begins anew each time."""
    made = tool(function)
    model = Scripted(made.tool_name)
    assistant = Agent(model=model, tools=[made], callback_handler=None)

    async def carry(texts: tuple[str, ...]) -> None:
        model.texts = texts
        assistant.messages.clear()
        await assistant.invoke_async("go")

    return carry


def schema(function: Function) -> Any:
    """The specification of the tool."""
    return tool(function).tool_spec


if __name__ == "__main__":
    main("strands-agents", Path("tool.stream", narrow), Path("Agent.invoke_async", agent, turns=True), schema)
