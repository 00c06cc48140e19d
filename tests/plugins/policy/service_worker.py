"""A worker of the example of a service, with a model that does what the last message says.

`read a b` reads two pages at once; `serve ann` looks up orders, reads a page and sends a reply, one after the other.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

from tests.workspace.project import ROOT

SERVICE = ROOT / "docs" / "examples" / "service"
"""The folder of the example."""


class Scripted:
    """A model that makes the calls which the last message of the user asks for."""

    async def stream(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], **options: Any
    ) -> AsyncIterator[Any]:
        await asyncio.sleep(0.01)
        last = max(number for number, message in enumerate(messages) if message["role"] == "user")
        results = [message["content"] for message in messages[last:] if message["role"] == "tool"]
        calls = _calls(messages[last]["content"].split(), len(results))
        made = [
            {
                "index": index,
                "id": f"c{len(messages)}-{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(calls)
        ]
        delta: dict[str, Any] = {"tool_calls": made} if made else {"content": " | ".join(results)}
        yield {"choices": [{"delta": delta, "finish_reason": "stop"}]}


def _calls(words: list[str], done: int) -> list[tuple[str, dict[str, str]]]:
    order, *rest = words
    if order == "read":
        return [] if done else [("read_page", {"name": name}) for name in rest]
    customer = rest[0]
    steps: list[tuple[str, dict[str, str]]] = [
        ("look_up_orders", {"customer": customer}),
        ("read_page", {"name": "more"}),
        ("send_reply", {"customer": customer, "reply": "It comes."}),
    ]
    return steps[done : done + 1]


def application() -> Any:
    """What uvicorn calls in each worker."""
    sys.path.insert(0, str(SERVICE))
    return import_module("service").make_app(Scripted())
