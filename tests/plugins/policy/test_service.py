"""The example of a service: 200 users at once, three workers, one of which is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pegboard_policy import Policy
from tests.plugins.policy.service_worker import SERVICE
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually
from tests.workspace.project import ROOT

httpx = pytest.importorskip("httpx2")
pytest.importorskip("fastapi")
pytest.importorskip("opentelemetry.sdk")
agents = pytest.importorskip("pegboard_agent")
journals = pytest.importorskip("pegboard_journal")

USERS = 200
READS = 3
"""Pages that a session may read, by the settings of the example."""


class Collector:
    """Takes spans as a server of OpenTelemetry does, and counts them by the calls' tools."""

    def __init__(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        self.spans: Counter[str] = Counter()
        spans = self.spans

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in resource.scope_spans:
                        spans.update(span.name for span in scope.spans)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - its name there
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()


class Service:
    """The example as uvicorn runs it, on a socket in a folder."""

    def __init__(self, folder: str, database: str, spans: str) -> None:
        self.socket = f"{folder}/socket"
        self.log = Path(folder, "log")
        command = [sys.executable, "-m", "uvicorn", "--factory", "tests.plugins.policy.service_worker:application"]
        command += ["--workers", "3", "--uds", self.socket, "--log-level", "warning"]
        environment = {
            **os.environ,
            "SERVICE_DATABASE": database,
            "PEGBOARD_CONFIG": str(SERVICE / "pegboard.toml"),
            "OTEL_EXPORTER_OTLP_ENDPOINT": spans,
            "OTEL_BSP_SCHEDULE_DELAY": "500",
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)

    def client(self) -> Any:
        """A client that makes a connection for each request, so that any worker may take it."""
        transport = httpx.AsyncHTTPTransport(uds=self.socket, limits=httpx.Limits(max_keepalive_connections=0))
        return httpx.AsyncClient(transport=transport, base_url="http://service", timeout=60)

    async def workers(self, number: int) -> set[int]:
        """The processes of its workers, once there are so many."""
        found: dict[int, dict[str, Any]] = {}
        async with self.client() as client, asyncio.timeout(60):
            while len(found) < number:
                try:
                    health = (await client.get("/health")).json()
                except httpx.TransportError:
                    assert self.process.poll() is None, self.log.read_text()
                    await asyncio.sleep(0.1)
                    continue
                assert (health["plugins"], health["problems"]) == (["journal", "otel", "policy"], [])
                found[health["worker"]] = health
        return set(found)

    def stop(self) -> None:
        """End it, with its workers."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


@pytest.fixture(scope="module")
def service(server: PostgresServer, collector: Collector) -> Iterator[Service]:
    server.execute("DROP TABLE IF EXISTS service_replies, service_decisions")
    server.empty()
    with tempfile.TemporaryDirectory(prefix="pegboard-service-") as folder:
        service = Service(folder, server.url(), collector.url)
        yield service
        service.stop()


class User:
    """One customer, with two turns: reads four pages, then has its orders looked up and a reply sent."""

    def __init__(self, client: Any, number: int) -> None:
        self.client = client
        self.number = number
        self.name = f"user{number}"
        self.answers: list[str] = []
        self.broken = 0

    async def send(self, method: str, path: str, body: Any) -> Any:
        """Send a request again, to any worker, if its connection broke."""
        for _ in range(20):
            try:
                return await self.client.request(method, path, json=body, headers={"X-User": self.name})
            except httpx.TransportError:
                self.broken += 1
                await asyncio.sleep(0.2)
        raise AssertionError("no worker answers")

    async def turn(self, number: int, text: str) -> None:
        """A turn, with the decision of a person if it waits for one: no for every second user."""
        for _ in range(5):
            response = await self.send("PUT", f"/conversations/main/turns/{number}", {"text": text})
            if response.status_code == 200:
                self.answers.append(response.json()["text"])
                return
            assert response.status_code == 202, response.text
            (call,) = response.json()["waits"]
            decision = {"conversation": f"{self.name}/main", "call": call, "approved": self.number % 2 == 0}
            assert (await self.send("PUT", "/approvals", decision)).status_code in (200, 404)
        raise AssertionError("the turn does not end")

    async def run(self) -> None:
        """Both turns."""
        await self.turn(0, "read a b c d")
        await self.turn(1, f"serve {self.name}")


async def use(service: Service) -> list[User]:
    """All users at once; a worker is killed when a quarter of the turns has ended."""
    victim = min(await service.workers(3))
    async with service.client() as client:
        users = [User(client, number) for number in range(USERS)]
        running = [asyncio.create_task(user.run()) for user in users]
        while sum(len(user.answers) for user in users) < USERS // 2:
            await asyncio.sleep(0.01)
            assert not any(task.done() and task.exception() for task in running)
        os.kill(victim, signal.SIGKILL)
        await asyncio.gather(*running)
    return users


@pytest.mark.slow
def test_no_turn_and_no_row_is_lost_and_the_policy_holds(
    service: Service, server: PostgresServer, collector: Collector
) -> None:
    users = asyncio.run(use(service))
    assert sum(user.broken for user in users) > 0  # the worker was killed at work
    memory, journal = agents.PostgresMemory(server.url()), journals.Journal(server.url())
    sent = Counter(str(row[0]) for row in server.execute("SELECT conversation FROM service_replies"))
    entries: dict[str, list[Any]] = {}
    for entry in journal.calls():
        entries.setdefault(entry.session, []).append(entry)
    unfinished = {(entry.session, entry.call_id) for entry in journal.unfinished()}
    for user in users:
        conversation = f"{user.name}/main"
        records, made = memory.load(conversation), entries[conversation]
        # No turn is lost, and none is there twice.
        asked = [record["content"] for record in records if record.get("role") == "user"]
        assert asked == ["read a b c d", f"serve {user.name}"]
        assert [record["content"] for record in records if record.get("role") == "assistant"][-1] == user.answers[1]
        # Each call of the model is in the journal; but for one that the worker may have begun when it was killed, and
        # that the agent therefore did not make again.
        left = "it was not run again" in user.answers[1]
        recorded = {entry.call_id for entry in made}
        calls = [call["id"] for record in records for call in record.get("tool_calls") or ()]
        assert len(set(calls) - recorded) <= left
        # Of the pages that a session may read, none too many, whichever workers it was in.
        read = Counter(entry.status for entry in made if entry.tool == "read_page")
        assert read["success"] == READS
        assert read["denied"] >= 2
        # A reply goes out after a person has agreed, once, and is in the journal.
        replies = [entry for entry in made if entry.tool == "send_reply"]
        done = [entry for entry in replies if entry.status == "success"]
        assert all(entry.decided_by == "approver" for entry in done)
        allowed = user.number % 2 == 0
        assert sent[conversation] <= allowed
        if not left:
            assert (len(done), sent[conversation]) == (allowed, allowed)
            assert ("sent" if allowed else "a person refused it") in user.answers[1]
        elif sent[conversation]:  # it was killed between the reply and the end of the call: then the journal says so
            assert len(done) == 1 or unfinished.intersection((entry.session, entry.call_id) for entry in replies)
    assert journal.verify() == []
    assert eventually(lambda: collector.spans["execute_tool read_page"] > USERS)
    asyncio.run(service.workers(3))  # uvicorn has started another one
    memory.close()
    journal.close()


def test_the_settings_of_the_example_fit_its_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a server: what holds for each tool."""
    from pegboard import Toolkit

    monkeypatch.syspath_prepend(SERVICE)
    monkeypatch.setenv("SERVICE_DATABASE", f"sqlite:///{tmp_path}/calls.db")
    from importlib import import_module

    pytest.importorskip("psycopg")
    service: Any = import_module("service")
    with Toolkit(plugins=service.PLUGINS, config=SERVICE / "pegboard.toml") as toolkit:
        toolkit.register(service.Desk(service.Database("")))
        orders, page, reply = Policy.explain(toolkit)
        assert orders.begins == ("private data",)
        assert page.limits[0] == f"{READS} calls per session of read_page"
        assert reply.flow == ("ask after private data and untrusted content",)
        assert toolkit.call_sync("look_up_orders", {"customer": "ann"}).status == "success"
