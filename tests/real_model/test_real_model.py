"""What a small model gets right on a board, by the protocol that is meant for small ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from pegboard import Status, ToolCall
from pegboard_agent import Agent, AgentStoppedError, CallEnded, CallStarted, Final, OpenAIChat
from tests.real_model.board import ONE_CALL, Desk, board

pytestmark = pytest.mark.real_model

TASKS: list[tuple[str, Callable[[str, Desk], bool]]] = [
    (
        "What's the weather in Beijing? Also, what is 15 + 27?",
        lambda said, _: "42" in said and ("sunny" in said.lower() or "25" in said),
    ),
    ("What's the weather in Paris?", lambda said, _: "rain" in said.lower() or "12" in said),
    ("What is 19 + 23?", lambda said, _: "42" in said),
    ("What is 2 + 3, and what do you get if you add 10 to that?", lambda said, _: "15" in said),
    ("What does todo.txt say?", lambda said, _: "milk" in said.lower()),
    (
        "Read city.txt, which holds the name of a city. How is the weather in that city?",
        lambda said, _: "snow" in said.lower(),
    ),
    ("Read numbers.txt, add the two numbers in it and tell me the sum.", lambda said, _: "42" in said),
    (
        "Send an e-mail to ann@example.com, subject 'Sum', whose body is the sum of 20 and 22.",
        lambda _, desk: any(mail["to"] == "ann@example.com" and "42" in mail["body"] for mail in desk.sent),
    ),
    ("Run the command `make test`, then tell me when it is done.", lambda _, desk: "make test" in desk.ran),
    ("Is it warmer in Paris or in Oslo?", lambda said, _: "paris" in said.lower()),
]


async def first_call(agent: Agent, prompt: str) -> tuple[ToolCall | None, bool]:
    """The first call that the model makes, and whether its arguments fit."""
    call = None
    async with aclosing(agent.stream(prompt)) as events:
        async for event in events:
            if isinstance(event, CallStarted):
                call = event.call
            elif isinstance(event, CallEnded):
                return call, event.result.status is not Status.INVALID
            elif isinstance(event, Final):
                break
    return call, call is not None


def holds(arguments: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether the arguments have at least the wanted values."""
    return all(arguments.get(name) == value for name, value in wanted.items())


def test_single_calls(model: OpenAIChat) -> None:
    wrong, misfits = [], []
    for prompt, name, arguments in ONE_CALL:
        toolkit, _ = board()
        agent = Agent("one", model, toolkit, tool_protocol="json_schema")
        call, fits = asyncio.run(first_call(agent, prompt))
        if call is None or call.name != name or not holds(dict(call.arguments), arguments):
            wrong.append((prompt, None if call is None else (call.name, dict(call.arguments))))
        if not fits:
            misfits.append(prompt)
    print(f"single calls: {len(ONE_CALL) - len(wrong)} of {len(ONE_CALL)} right", *wrong, sep="\n")
    assert not misfits
    assert len(wrong) <= 1


def test_tasks_of_several_steps(model: OpenAIChat) -> None:
    wrong = []
    for prompt, right in TASKS:
        toolkit, desk = board()
        agent = Agent("steps", model, toolkit, tool_protocol="json_schema", max_iterations=6)
        try:
            said = agent.call_sync(prompt).text
        except AgentStoppedError as stopped:
            said = str(stopped)
        if not right(said, desk):
            wrong.append((prompt, said, agent.memory.load(None)))
    print(f"tasks: {len(TASKS) - len(wrong)} of {len(TASKS)} right", *wrong, sep="\n")
    assert len(wrong) <= 1
