"""A worker process of the tests of stores: agents on one store, a scripted model, and orders read line by line.

    python -m tests.plugins.agent.workers STORE WORKER

It prints a line for each order that it has done. `turn CONVERSATION TEXT` is a turn in which the model calls a tool and
answers; `ask CONVERSATION TEXT` one that parks; `answer CONVERSATION CALL VALUE` answers the call that is parked there,
and goes on.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

from pegboard import PegboardError, Tool, Toolkit, tool
from pegboard_agent import Agent, ConversationStore, Memory, PostgresMemory

__all__ = ["Scripted", "main", "store_at"]


class Scripted:
    """Calls a tool for each message of the user's, `approve` if it begins with that word, and then answers."""

    async def stream(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], **options: Any
    ) -> AsyncIterator[Any]:
        last = messages[-1]
        if last["role"] == "user":
            text = last["content"]
            name = "approve" if text.startswith("approve") else "double"
            function = {"name": name, "arguments": json.dumps({"text": text})}
            call = {"index": 0, "id": f"call {text}", "type": "function", "function": function}
            delta: dict[str, Any] = {"tool_calls": [call]}
        else:
            delta = {"content": f"done: {last['content']}"}
        yield {"choices": [{"delta": delta, "finish_reason": "stop"}]}


def store_at(place: str) -> ConversationStore:
    """The store that a command line names."""
    return PostgresMemory(place) if place.startswith("postgresql:") else Memory(place)


def agent_at(place: str) -> Agent:
    """An agent on that store, which asks for approvals and doubles texts."""

    @tool
    def double(text: str) -> str:
        """Double."""
        return text * 2

    toolkit = Toolkit(plugins=())
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    toolkit.register(double, Tool.external("approve", "Approve.", schema))
    return Agent("Worker", Scripted(), toolkit, memory=store_at(place))


async def obey(agent: Agent, order: str, conversation: str, *rest: str) -> str:
    """Do what a line says; what came of it."""
    if order in ("turn", "ask"):
        answer = await agent.call(rest[0], session_id=conversation)
        return answer.text or f"parked {len(answer.parked)}"
    if order == "answer":
        call_id, value = rest
        try:
            await asyncio.to_thread(agent.toolkit.resume, call_id, value)
        except PegboardError as error:
            return f"refused {error}"
        return "accepted"
    return (await agent.call(session_id=conversation)).text


async def main(place: str) -> None:
    """Do orders until there are no more, all at once: each conversation is for the store to keep in order."""
    agent = agent_at(place)
    loop, orders = asyncio.get_running_loop(), asyncio.Queue[str]()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(orders.put_nowait, line)
        loop.call_soon_threadsafe(orders.put_nowait, "")

    async def run(line: str) -> None:
        number, *order = json.loads(line)
        try:
            came = await obey(agent, *order)
        except PegboardError as error:
            came = f"failed {error}"
        print(json.dumps([number, came]), flush=True)

    threading.Thread(target=read, daemon=True).start()
    print(json.dumps([-1, "ready"]), flush=True)
    async with asyncio.TaskGroup() as group:
        while line := await orders.get():
            group.create_task(run(line))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
