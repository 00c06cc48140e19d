"""Many calls over one connection, and what a call costs beside the bare client of the SDK."""

import asyncio
import gc
import statistics
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import TextContent

from pegboard import Status, Toolkit
from pegboard_mcp import McpServer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]

# It answers with bare JSON, so that what is measured is the client and not the server.
SERVER = [str(Path(__file__).with_name("bad_server.py")), "good"]
CALLS, ROUNDS = 1_000, 5

Call = Callable[[int], Awaitable[None]]


class Cost(NamedTuple):
    """Microseconds of a call: of this process, and on the wall."""

    processor: float
    wall: float


async def spread(call: Call, at_once: int) -> Cost:
    """What each of a thousand calls costs, `at_once` of them in flight."""
    numbers = iter(range(CALLS))

    async def work() -> None:
        for number in numbers:
            await call(number)

    gc.collect()
    wall, processor = perf_counter(), process_time()
    await asyncio.gather(*(work() for _ in range(at_once)))
    wall, processor = perf_counter() - wall, process_time() - processor
    return Cost(processor / CALLS * 1e6, wall / CALLS * 1e6)


@asynccontextmanager
async def both_clients() -> AsyncIterator[tuple[Call, Call, McpServer]]:
    """The bare client and ours, each with a process of its own."""
    server = McpServer.stdio(sys.executable, SERVER)
    await server.connect()
    parameters = StdioServerParameters(command=sys.executable, args=SERVER)
    async with Toolkit(plugins=()) as toolkit, Client(parameters) as client:
        toolkit.register(server)

        async def bare(number: int) -> None:
            result = await client.session.call_tool("echo", {"text": str(number)})
            assert isinstance(result.content[0], TextContent)
            assert result.content[0].text == str(number)

        async def ours(number: int) -> None:
            result = await toolkit.call("echo", {"text": str(number)})
            assert (result.status, result.text) == (Status.SUCCESS, str(number))

        yield bare, ours, server


async def measured(at_once: int) -> list[tuple[Cost, Cost]]:
    """The bare client and ours in turn: others use this machine too."""
    async with both_clients() as (bare, ours, _):
        await spread(bare, at_once), await spread(ours, at_once)
        return [(await spread(bare, at_once), await spread(ours, at_once)) for _ in range(ROUNDS)]


# The best of many short rounds are 0.9 and 1.2. On a machine that others use all the time the medians were 0.8 to 1.1
# and 1.1 to 1.3, so the bounds are where only a mechanism too many can reach them.
@pytest.mark.parametrize(("at_once", "most"), [(50, 1.5), (1, 1.8)])
def test_a_thousand_calls_over_one_connection_cost_little_more_than_bare_ones(at_once: int, most: float) -> None:
    rounds = asyncio.run(measured(at_once))
    ratios = sorted(ours.processor / bare.processor for bare, ours in rounds)
    walls = sorted(ours.wall / bare.wall for bare, ours in rounds)
    floor = statistics.median(bare.processor for bare, _ in rounds)
    print(
        f"{at_once} in flight: bare {floor:.0f} us of processor time a call, "
        f"on the board {statistics.median(ratios):.2f} of that; on the wall {statistics.median(walls):.2f}"
    )
    # The figures to look at are the medians, which are printed. What else the machine does can only make a round
    # worse, and not all of them as a rule: the best one shows whether the promise can be kept.
    assert ratios[0] < most


async def counted(at_once: int) -> float:
    """Functions that a call of ours passes, here and in the connection's thread, beside those of a bare one."""
    passed = [0]

    def count(frame: Any, event: str, argument: Any) -> None:
        passed[0] += event in ("call", "c_call")

    async def within(call: Call) -> int:
        passed[0] = 0
        sys.setprofile(count)
        try:
            await spread(call, at_once)
        finally:
            sys.setprofile(None)
        return passed[0]

    async with both_clients() as (bare, ours, server):
        await spread(bare, at_once), await spread(ours, at_once)
        floor = await within(bare)

        async def profile(function: Any) -> None:
            async def set_there(client: Any) -> None:
                asyncio.get_running_loop().call_soon(sys.setprofile, function)

            assert server._connection is not None
            await server._connection.carry(set_there)

        await profile(count)
        try:
            ratio = await within(ours) / floor
        finally:
            await profile(None)
    print(f"{at_once} in flight: {floor / CALLS:.0f} functions a bare call, on the board {ratio:.2f} of that")
    return ratio


# Counted, so that other users of the machine change nothing: it is 0.80 and 0.79. What is not counted is that the
# connection's thread wakes that of the caller, which with many calls in flight it does for many at once.
@pytest.mark.parametrize(("at_once", "most"), [(50, 0.9), (1, 0.9)])
def test_a_call_passes_fewer_functions_than_a_bare_one(at_once: int, most: float) -> None:
    assert asyncio.run(counted(at_once)) < most
