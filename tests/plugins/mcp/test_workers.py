"""Two server processes behind a balancer: what one of them asks is answered at the other."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.plugins.mcp.over_http import started
from tests.support.waiting import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]
SCRIPT = str(Path(__file__).with_name("worker.py"))
KEY, OTHER = "k" * 32, "o" * 32


class Balancer:
    """Passes each connection on to the next of the workers; `to` says to whom it went."""

    def __init__(self, ports: list[int]) -> None:
        self.to: list[int] = []
        self._ports = ports
        self._turn = count()

    async def passed_on(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        port = self._ports[next(self._turn) % len(self._ports)]
        self.to.append(port)
        worker, on = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(piped(client, on), piped(worker, back))


async def piped(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65_536):
            to.write(data)
            await to.drain()
    to.close()


@contextmanager
def workers(*keys: str) -> Iterator[dict[int, int]]:
    """A worker for each key: their processes, by port."""
    with started([sys.executable, SCRIPT, keys[0]]) as (process, url):
        port = int(url.rpartition(":")[2].partition("/")[0])
        if len(keys) == 1:
            yield {port: process.pid}
            return
        with workers(*keys[1:]) as others:
            yield {port: process.pid, **others}


@asynccontextmanager
async def behind(balancer: Balancer, mode: str, answer: Any) -> AsyncIterator[Client]:
    """A client that opens a connection for each request, so that every request goes to the next worker."""
    server = await asyncio.start_server(balancer.passed_on, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    async with (
        httpx2.AsyncClient(limits=httpx2.Limits(max_keepalive_connections=0), timeout=PATIENCE) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, elicitation_callback=answer) as client,
    ):
        yield client
    server.close()


class Human:
    """Agrees to everything, and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, context: Any, parameters: Any) -> types.ElicitResult:
        self.asked.append(parameters.message)
        names = parameters.requested_schema.get("properties", {})
        return types.ElicitResult(action="accept", content=dict.fromkeys(names, "yes"))


async def called(client: Client, name: str, **arguments: Any) -> tuple[str, bool]:
    result = await client.call_tool(name, arguments)
    return "".join(getattr(block, "text", "") for block in result.content), bool(result.is_error)


def processes(*texts: str) -> list[int]:
    """Those that the texts tell of, one after the other."""
    return [int(number) for text in texts for number in re.findall(r"(?:from|by) (\d+)", text)]


async def asked_and_answered(pids: dict[int, int]) -> None:
    balancer, human = Balancer(list(pids)), Human()
    async with behind(balancer, "auto", human) as client:
        for _ in range(2):  # beginning at either of them
            human.asked.clear()
            text, failed = await called(client, "asks")
            assert not failed, text
            first, second, last = processes(*human.asked, text)
            assert first != second != last
            assert {first, second, last} == set(pids.values())
            text, failed = await called(client, "pay", amount=5)
            assert not failed, text
            asked_at, answered_at = (pids[port] for port in balancer.to[-2:])
            assert asked_at != answered_at
            assert text == f"paid 5 by {answered_at}"
            await called(client, "who")


def test_a_question_and_an_approval_of_one_are_answered_at_the_other() -> None:
    with workers(KEY, KEY) as pids:
        asyncio.run(asyncio.wait_for(asked_and_answered(pids), PATIENCE))


def test_one_with_another_key_takes_no_answer() -> None:
    async def main(pids: dict[int, int]) -> None:
        async with behind(Balancer(list(pids)), "auto", Human()) as client:
            for name, arguments in (("asks", {}), ("pay", {"amount": 5})):
                with pytest.raises(Exception, match="requestState"):
                    await called(client, name, **arguments)

    with workers(KEY, OTHER) as pids:
        asyncio.run(asyncio.wait_for(main(pids), PATIENCE))


def test_clients_of_the_older_protocol_are_answered_by_any() -> None:
    async def main(pids: dict[int, int]) -> None:
        async with behind(Balancer(list(pids)), "legacy", Human()) as client:
            said = {(await called(client, "who"))[0] for _ in range(4)}
            assert said == {str(pid) for pid in pids.values()}
            text, failed = await called(client, "pay", amount=5)  # there is no connection to ask over
            assert failed
            assert "needs approval" in text

    with workers(KEY, KEY) as pids:
        asyncio.run(asyncio.wait_for(main(pids), PATIENCE))
