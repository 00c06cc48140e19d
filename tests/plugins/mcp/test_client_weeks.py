"""What a client does in weeks, in some minutes: calls, connections and tokens that end, and long pauses."""

import asyncio
import gc
import random
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client

from pegboard import Status, Toolkit
from pegboard_mcp import McpServer, OAuth
from tests.plugins.mcp.over_http import started

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc"),
]

CALLS, RECONNECTS, RENEWALS = 20_000, 2_000, 200
USES = 100
"""Requests that a token is good for."""
GROWTH = 5.0
"""Megabytes."""
ROUNDS, PAUSE = 30, 5.0
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
        print(authority.refreshed, len(authority.asked), flush=True)
"""
BOTH = str(Path(__file__).with_name("both_servers.py"))
ROOT = str(Path(__file__).parents[3])

Call = Callable[[], Awaitable[bool]]


def megabytes() -> float:
    """What of this process's memory is its own."""
    gc.collect()
    resident, shared = Path("/proc/self/statm").read_text("ascii").split()[1:3]
    return (int(resident) - int(shared)) * 4096 / 2**20


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def consent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OAuth:
    import httpx2

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return OAuth(open=lambda url: httpx2.get(url).headers["location"])


def test_memory_stays_and_no_call_is_lost(consent: OAuth) -> None:
    """Calls over connections that end, with tokens that end."""
    with (
        started([sys.executable, "-c", GUARDED], cwd=ROOT, stdout=-1) as (process, url),
        Toolkit(plugins=()) as toolkit,
    ):
        assert process.stdout is not None
        counts = process.stdout
        last = [""]
        threading.Thread(target=lambda: last.extend(counts), daemon=True).start()
        server = McpServer.http(url, auth=consent, connect_timeout=60.0, call_timeout=60.0)
        toolkit.register(server)

        async def call(number: int) -> None:
            result = await toolkit.call("add", {"a": number, "b": 1})
            assert (result.status, result.data) == (Status.SUCCESS, number + 1), result.text

        async def connections(count: int) -> None:
            for _ in range(count):
                await asyncio.gather(*map(call, range(CALLS // RECONNECTS)))
                await asyncio.to_thread(server.close)

        asyncio.run(connections(RECONNECTS // 4))
        before, threads, open_files = megabytes(), threading.active_count(), descriptors()
        asyncio.run(connections(RECONNECTS - RECONNECTS // 4))
        after = megabytes()
        assert after - before < GROWTH, f"from {before:.1f} to {after:.1f} MB"
        assert threading.active_count() <= threads + 2
        assert descriptors() <= open_files + 4
        refreshed, asked = map(int, last[-1].split())
    assert refreshed >= RENEWALS
    assert asked == 1


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
