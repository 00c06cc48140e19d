"""What a call of a served tool costs beside the SDK's own server, in turn in the same run."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.plugins.mcp.over_http import started

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]
SCRIPT = str(Path(__file__).with_name("both_servers.py"))
ROUNDS, CALLS = 40, 5
MOST = 2.0
"""It is 1.0 to 1.2; the figures to look at are printed."""


@contextmanager
def over_http(whose: str) -> Iterator[str]:
    with started([sys.executable, SCRIPT, whose, "http"]) as (_, url):
        yield url


async def cost(targets: dict[str, Any], mode: str) -> float:
    """How many times as long a call of ours takes: the lower quartiles of the best of each round."""
    times: dict[str, list[float]] = {whose: [] for whose in targets}
    async with AsyncExitStack() as stack:
        clients = {
            whose: await stack.enter_async_context(Client(target, mode=mode)) for whose, target in targets.items()
        }
        for client in clients.values():
            await client.list_tools()
        for _ in range(ROUNDS):
            for whose, client in clients.items():
                best = 1e9
                for _ in range(CALLS):
                    began = perf_counter()
                    await client.call_tool("add", {"a": 1, "b": 2})
                    best = min(best, perf_counter() - began)
                times[whose].append(best)
    ours, bare = (sorted(times[whose])[ROUNDS // 4] for whose in ("ours", "bare"))
    print(f"{mode}: {ours * 1e3:.2f} ms, {bare * 1e3:.2f} ms bare: {ours / bare:.2f}")
    return ours / bare


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_served_call(transport: str, mode: str) -> None:
    with ExitStack() as stack:
        targets: dict[str, Any] = {}
        for whose in ("ours", "bare"):
            if transport == "http":
                targets[whose] = stack.enter_context(over_http(whose))
            else:
                parameters = StdioServerParameters(command=sys.executable, args=[SCRIPT, whose, "stdio"])
                targets[whose] = stdio_client(parameters)
        assert asyncio.run(cost(targets, mode)) < MOST
