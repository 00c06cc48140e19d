"""google-adk: a FunctionTool by itself, and a run of its agent."""

import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from tests.benchmarks.peers.harness import Carry, Function, Path, main

# Without a usage each turn of the model logs a warning.
USAGE = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)


class Scripted(BaseLlm):
    """Asks for calls, then stops."""

    name: str
    texts: tuple[str, ...] = ()

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
        """Say the next turn."""
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            parts = [types.Part(text="done")]
        else:
            calls = enumerate(map(json.loads, self.texts))
            parts = [
                types.Part(function_call=types.FunctionCall(id=f"call_{n}", name=self.name, args=arguments))
                for n, arguments in calls
            ]
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=USAGE)


async def narrow(function: Function) -> Carry:
    """Run the tool with one context."""
    tool = FunctionTool(function)
    sessions = InMemorySessionService()
    session = await sessions.create_session(app_name="app", user_id="user")
    context = ToolContext(
        InvocationContext(
            invocation_id="invocation",
            agent=LlmAgent(name="agent", model=Scripted(model="scripted", name=tool.name), tools=[tool]),
            session=session,
            session_service=sessions,
        )
    )

    async def carry(texts: tuple[str, ...]) -> None:
        for text in texts:
            await tool.run_async(args=json.loads(text), tool_context=context)

    return carry


def agent(function: Function) -> Carry:
    """Run the agent in a new session each time."""
    model = Scripted(model="scripted", name=function.__name__)
    runner = InMemoryRunner(LlmAgent(name="agent", model=model, tools=[function]), app_name="app")
    go = types.Content(role="user", parts=[types.Part(text="go")])
    numbers = count()

    async def carry(texts: tuple[str, ...]) -> None:
        model.texts = texts
        session = f"session {next(numbers)}"
        await runner.session_service.create_session(app_name="app", user_id="user", session_id=session)
        async for _ in runner.run_async(user_id="user", session_id=session, new_message=go):
            pass
        await runner.session_service.delete_session(app_name="app", user_id="user", session_id=session)

    return carry


def schema(function: Function) -> Any:
    """What a model is given of a tool; the library keeps the method to itself and has no other."""
    return FunctionTool(function)._get_declaration()


if __name__ == "__main__":
    main("google-adk", Path("FunctionTool.run_async", narrow), Path("Runner.run_async", agent, turns=True), schema)
