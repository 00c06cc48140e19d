"""pydantic-ai: the validator and the call of a tool, and a run of its agent."""

from functools import cache
from typing import Any

from pydantic_ai import Agent, ModelResponse, RunContext, RunUsage, TextPart, Tool, ToolCallPart
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from tests.benchmarks.peers.harness import Carry, Function, Path, main

# With a usage the model does not count words to make one up.
USAGE = RequestUsage(input_tokens=1, output_tokens=1)


def narrow(function: Function) -> Carry:
    """Validate the text and call the function."""
    tool = Tool(function)
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    validate, call = tool.function_schema.validator.validate_json, tool.function_schema.call

    async def carry(texts: tuple[str, ...]) -> None:
        for text in texts:
            await call(validate(text), context)

    return carry


def agent(function: Function) -> Carry:
    """Run the agent."""

    @cache
    def asked(texts: tuple[str, ...]) -> list[ToolCallPart]:
        return [ToolCallPart(function.__name__, text, f"call_{n}") for n, text in enumerate(texts)]

    current: list[ToolCallPart] = []

    def model(messages: list[Any], info: Any) -> ModelResponse:
        first = len(messages) == 1 and isinstance(messages[0], ModelRequest)
        return ModelResponse(parts=list(current) if first else [TextPart("done")], usage=USAGE)

    assistant = Agent(FunctionModel(model), tools=[Tool(function)])

    async def carry(texts: tuple[str, ...]) -> None:
        current[:] = asked(texts)
        await assistant.run("go")

    return carry


def schema(function: Function) -> Any:
    """JSON Schema of the parameters."""
    return Tool(function).tool_def.parameters_json_schema


if __name__ == "__main__":
    main(
        "pydantic-ai-slim",
        Path("function_schema: validate_json, then call", narrow),
        Path("Agent.run", agent, turns=True),
        schema,
    )
