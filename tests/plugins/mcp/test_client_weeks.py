"""What a client does in weeks, in some minutes: calls, connections and tokens that end, and long pauses."""

import asyncio
import gc
import os
import random
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import final

import pytest
from mcp import Client

from pegboard import Status, Toolkit
from pegboard_mcp import McpServer, OAuth
from tests.plugins.mcp.over_http import started
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc"),
]

CALLS, RECONNECTS, RENEWALS = 20_000, 2_000, 200
PARTS = 20
"""No test may take longer than five minutes. A run of all tests has two; `PEGBOARD_WHOLE_WEEK=1` has all."""
USES = 100
"""Requests that a token is good for."""
GROWTH = 5.0
"""Megabytes."""
ROUNDS, PAUSE = 30 if os.environ.get("PEGBOARD_WHOLE_WEEK") else 6, 5.0
"""The pause is as long as the pools of clients, and uvicorn by default, keep an idle connection: seconds."""

GUARDED = f"""
import time
from tests.plugins.mcp.authority import Authority, guarded_board

class Tired(Authority):
    def __init__(self):
        super().__init__()
        self.uses = {{}}

    async def load_access_token(self, token):
        self.uses[token] = self.uses.get(token, 0) + 1
        return None if self.uses[token] > {USES} else await super().load_access_token(token)

authority = Tired()
with guarded_board(authority) as url:
    import sys
    print(url, file=sys.stderr, flush=True)
    while not time.sleep(0.5):
        print(authority.refreshed, flush=True)
"""
BOTH = str(Path(__file__).with_name("both_servers.py"))
ROOT = str(Path(__file__).parents[3])

Call = Callable[[], Awaitable[bool]]


def resources() -> tuple[float, int, int]:
    """What of the memory is this process's own, in megabytes; its threads and its descriptors."""
    gc.collect()
    resident, shared = Path("/proc/self/statm").read_text("ascii").split()[1:3]
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    return (int(resident) - int(shared)) * 4096 / 2**20, threading.active_count(), descriptors


@final
class Week:
    """A client of a server whose tokens end, and what the server says of them."""

    def __init__(self, toolkit: Toolkit, server: McpServer, lines: list[str]) -> None:
        self._toolkit = toolkit
        self._server = server
        self._lines = lines
        self.resources: tuple[float, int, int] | None = None
        """The memory, threads and descriptors of this process after the first part."""

    @property
    def refreshed(self) -> int:
        return int(self._lines[-1]) if self._lines else 0

    async def call(self, number: int) -> None:
        result = await self._toolkit.call("add", {"a": number, "b": 1})
        assert (result.status, result.data) == (Status.SUCCESS, number + 1), result.text

    async def connect(self, times: int) -> None:
        """Make some calls over each of so many connections."""
        for _ in range(times):
            await asyncio.to_thread(self._server.close)
            await asyncio.gather(*map(self.call, range(CALLS // RECONNECTS)))


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Week]:
    import httpx2

    consent = OAuth(open=lambda url: httpx2.get(url).headers["location"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("tokens")))
        guarded = started([sys.executable, "-c", GUARDED], cwd=ROOT, stdout=subprocess.PIPE)
        with guarded as (process, url), Toolkit(plugins=()) as toolkit:
            assert process.stdout is not None
            lines: list[str] = []
            threading.Thread(target=lines.extend, args=(process.stdout,), daemon=True).start()
            server = McpServer.http(url, auth=consent, connect_timeout=60.0, call_timeout=60.0)
            toolkit.register(server)
            yield Week(toolkit, server, lines)


@pytest.mark.parametrize("part", range(PARTS if os.environ.get("PEGBOARD_WHOLE_WEEK") else 2))
def test_memory_stays_and_no_call_is_lost(week: Week, part: int) -> None:
    """Calls over connections that end, with tokens that end: a week in parts, which are none for the client."""
    before = week.refreshed
    asyncio.run(week.connect(RECONNECTS // PARTS))
    memory, threads, descriptors = resources()
    first = week.resources = week.resources or (memory, threads, descriptors)
    assert memory - first[0] < GROWTH, f"from {first[0]:.1f} to {memory:.1f} MB"
    assert threads <= first[1] + 2
    assert descriptors <= first[2] + 4
    assert eventually(lambda: week.refreshed - before >= RENEWALS // PARTS)


@asynccontextmanager
async def clients() -> AsyncIterator[dict[str, Call]]:
    """Ours at a server of ours and at one of the SDK, and the SDK's at ours, in both eras."""
    async with AsyncExitStack() as stack:
        urls = {
            whose: stack.enter_context(started([sys.executable, BOTH, whose, "http"]))[1] for whose in ("ours", "bare")
        }
        found: dict[str, Call] = {}
        for mode in ("auto", "legacy"):
            for whose, url in urls.items():
                toolkit = await stack.enter_async_context(Toolkit(plugins=()))
                server = McpServer.http(url, mode=mode)
                await server.connect()
                toolkit.register(server)
                found[f"ours at {whose}, {mode}"] = _called(toolkit)
            client = await stack.enter_async_context(Client(urls["ours"], mode=mode))
            found[f"bare at ours, {mode}"] = _called_bare(client)
        yield found


def _called(toolkit: Toolkit) -> Call:
    async def call() -> bool:
        result = await toolkit.call("add", {"a": 1, "b": 2})
        return (result.status, result.text) == (Status.SUCCESS, "3")

    return call


def _called_bare(client: Client) -> Call:
    async def call() -> bool:
        return not (await client.call_tool("add", {"a": 1, "b": 2})).is_error

    return call


@pytest.mark.usefixtures("nothing_left")
def test_no_call_is_lost_after_a_pause() -> None:
    async def one(call: Call) -> list[int]:
        lost = []
        for number in range(ROUNDS):
            if not await call():
                lost.append(number)
            await asyncio.sleep(PAUSE + random.uniform(-0.02, 0.02))
        return lost

    async def main() -> dict[str, list[int]]:
        async with clients() as found:
            return dict(zip(found, await asyncio.gather(*map(one, found.values())), strict=True))

    assert {name: lost for name, lost in asyncio.run(main()).items() if lost} == {}
