"""B15: a whole conversation of the agent, over a loop written by hand."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any

import httpx2

from pegboard import Toolkit
from pegboard_agent import Agent, OpenAIChat
from tests.benchmarks.measuring import Figure, Pace, alternate

__all__ = ["BENCHMARKS"]

TURNS = 50
CALLS = 4
TLS = httpx2.create_ssl_context()

SERVER = f"""
from pegboard_testing import ScriptedServer

def reply(request):
    turn = sum(message["role"] == "assistant" for message in request["messages"])
    return "The end." if turn == {TURNS} else [("add", {{"a": turn, "b": number}}) for number in range({CALLS})]

server = ScriptedServer(forever=reply)
print(server.url, flush=True)
input()
"""


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@contextmanager
def _served() -> Iterator[str]:
    """The address of a server in a process of its own: what it takes is no part of either loop."""
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.write("\n")


async def by_hand(url: str, toolkit: Toolkit, bare: bool) -> str:
    """The loop of a program that trusts the server; a `bare` one has no toolkit, and trusts the model too."""
    chat = toolkit.dialect("openai")
    tools = chat.tools()
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go!"}]
    async with httpx2.AsyncClient(timeout=60, verify=TLS) as client:
        while True:
            body = {"model": "scripted", "messages": messages, "tools": tools, "stream": True}
            text, calls = "", list[dict[str, Any]]()
            async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
                response.raise_for_status()
                async for line in response.aiter_lines():
                    if not line.startswith("data: ") or line == "data: [DONE]":
                        continue
                    delta = json.loads(line[6:])["choices"][0]["delta"]
                    text += delta.get("content") or ""
                    for piece in delta.get("tool_calls", ()):
                        if piece["index"] == len(calls):
                            calls.append({"id": piece["id"], "type": "function", "function": dict(piece["function"])})
                        else:
                            calls[piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]
            if not calls:
                return text
            message = {"role": "assistant", "content": text or None, "tool_calls": calls}
            messages.append(message)
            if not bare:
                messages += chat.messages(await toolkit.call_many(chat.calls(message)))
                continue
            results = await asyncio.gather(*(add(**json.loads(call["function"]["arguments"])) for call in calls))
            for call, result in zip(calls, results, strict=True):
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})


def _loops(pace: Pace) -> Iterator[Figure]:
    with _served() as url, Toolkit(plugins=["dialects"]) as toolkit, asyncio.Runner() as runner:
        toolkit.register(add)
        model = OpenAIChat("scripted", base_url=url, api_key="")

        def hand(bare: bool) -> float:
            started = perf_counter()
            assert runner.run(by_hand(url, toolkit, bare)) == "The end."
            return perf_counter() - started

        def agent() -> float:
            made = Agent("A", model, toolkit, max_iterations=TURNS + 1)
            started = perf_counter()
            assert runner.run(made.call("Go!")).text == "The end."
            return perf_counter() - started

        rounds = alternate(partial(hand, False), agent, pace.repeats * 3).rounds
        yield Figure.of("B15", f"an agent, {TURNS} turns of {CALLS} calls", rounds, 1.2, 1.1)
        rounds = alternate(partial(hand, True), agent, pace.repeats * 3).rounds
        yield Figure.of("B15", "  over a loop without a toolkit", rounds, None, None)


BENCHMARKS = {"B15": _loops}
