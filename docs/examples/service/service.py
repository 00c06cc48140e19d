"""A desk that answers customers: FastAPI, any number of workers, PostgreSQL, a policy, a journal, spans.

    uvicorn --factory service:application --workers 3

It reads `SERVICE_DATABASE` (postgresql://...), `SERVICE_MODEL`, the key of the model, `PEGBOARD_CONFIG` (pegboard.toml)
and, for spans, `OTEL_EXPORTER_OTLP_ENDPOINT`. Who asks comes from your own sign-in: here from a header of a proxy.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Annotated, Any, LiteralString

import psycopg
from fastapi import Body, FastAPI, Header, HTTPException, Response

from pegboard import Approval, ApprovalRequest, Suspend, ToolCall, Toolkit, tool
from pegboard_agent import Agent, AgentStoppedError, ChatModel, OpenAIChat, PostgresMemory

PLUGINS = ("policy", "journal", "otel")  # and nothing else that is installed
TABLES: LiteralString = """
SELECT pg_advisory_xact_lock(7301); -- one worker at a time makes them
CREATE TABLE IF NOT EXISTS service_replies (conversation text, call text, customer text, reply text);
CREATE TABLE IF NOT EXISTS service_decisions (
    conversation text, call text, tool text, arguments text, reason text, approved boolean,
    PRIMARY KEY (conversation, call, arguments)
);
"""
CONVERSATION: ContextVar[str] = ContextVar("conversation")


class Database:
    """Statements on one connection, which is made at the first use, and again after it broke."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._turn = asyncio.Lock()
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def run(self, statement: LiteralString, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement; its rows."""
        async with self._turn:
            if self._connection is None or self._connection.closed:
                self._connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True)
            cursor = await self._connection.execute(statement, values or None)
            return await cursor.fetchall() if cursor.description else []

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()


class Desk:
    """The tools of the desk."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @tool(read_only=True, idempotent=True, open_world=False)
    async def look_up_orders(self, customer: str) -> str:
        """Look up what a customer has ordered."""
        return f"{customer} has ordered a lamp and a chair"

    @tool(read_only=True, idempotent=True, open_world=True)
    async def read_page(self, name: str) -> str:
        """Read a page of the forum. Customers write there."""
        return f"the page {name}"

    @tool(destructive=True, tags=["way-out"])
    async def send_reply(self, customer: str, reply: str, call: ToolCall) -> str:
        """Send a customer a reply."""
        insert: LiteralString = "INSERT INTO service_replies VALUES (%s, %s, %s, %s)"
        await self._database.run(insert, call.session.id, call.id, customer, reply)
        return "sent"


class People:
    """Requests for approval, in a table that every worker reads; a person answers them there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def approve(self, request: ApprovalRequest) -> bool | Approval:
        """What a person has decided about exactly this call; until then it waits, and its turn ends."""
        key = CONVERSATION.get(), request.call_id, json.dumps(dict(request.arguments), sort_keys=True)
        found = await self._database.run(
            "SELECT approved FROM service_decisions WHERE (conversation, call, arguments) = (%s, %s, %s)", *key
        )
        if not found:
            ask: LiteralString = "INSERT INTO service_decisions VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
            await self._database.run(ask, key[0], key[1], request.tool.name, key[2], request.reason)
        if not found or found[0][0] is None:
            raise Suspend("a person decides about it")
        return True if found[0][0] else Approval.deny("a person refused it")

    async def waiting(self) -> list[dict[str, Any]]:
        """What a person has to decide, with the reason."""
        rows = await self._database.run(
            "SELECT conversation, call, tool, arguments, reason FROM service_decisions WHERE approved IS NULL"
        )
        return [dict(zip(("conversation", "call", "tool", "arguments", "reason"), row, strict=True)) for row in rows]

    async def decide(self, conversation: str, call: str, approved: bool) -> bool:
        """Keep a decision; False if there is nothing to decide."""
        decide: LiteralString = (
            "UPDATE service_decisions SET approved = %s "
            "WHERE conversation = %s AND call = %s AND approved IS NULL RETURNING call"
        )
        return bool(await self._database.run(decide, approved, conversation, call))


async def answer(agent: Agent, conversation: str, number: int, text: str) -> tuple[int, dict[str, Any]]:
    """The status and answer of a turn. The same number again goes on with that turn, and begins no second one.

    So a client whose connection broke, because a worker died, sends its turn again, to any worker.
    """
    records = await asyncio.to_thread(agent.memory.load, conversation)
    begun = sum(record.get("role") == "user" for record in records)
    if number not in (begun, begun - 1):
        raise HTTPException(409, f"the next turn is {begun}")
    try:
        message = await agent.call(text if number == begun else None, session_id=conversation)
    except AgentStoppedError as error:  # without a message: nothing is left to do, the turn had ended
        records = await asyncio.to_thread(agent.memory.load, conversation)
        if records[-1].get("role") != "assistant" or records[-1].get("tool_calls"):
            raise HTTPException(503, str(error)) from error
        return 200, {"text": records[-1]["content"]}
    return (202, {"waits": list(message.parked)}) if message.parked else (200, {"text": message.text})


def send_spans() -> Any:
    """Send spans where the environment says, if it does; what ends that."""
    if "OTEL_EXPORTER_OTLP_ENDPOINT" not in os.environ:
        return lambda: None
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def make_app(model: ChatModel) -> FastAPI:
    """The application of one worker: one toolkit and one agent for all its users."""
    url = os.environ["SERVICE_DATABASE"]
    database = Database(url)
    people = People(database)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        end_spans = send_spans()
        await database.run(TABLES)
        with Toolkit(plugins=PLUGINS, approver=people.approve, on_plugin_error="raise") as toolkit:
            toolkit.register(Desk(database))
            app.state.agent = Agent("desk", model, toolkit, memory=PostgresMemory(url))
            yield
        await database.close()
        end_spans()

    app = FastAPI(lifespan=lifespan)

    @app.put("/conversations/{name}/turns/{number}")
    async def turn(
        name: str,
        number: int,
        text: Annotated[str, Body(embed=True)],
        x_user: Annotated[str, Header()],
        response: Response,
    ) -> dict[str, Any]:
        conversation = f"{x_user}/{name}"
        CONVERSATION.set(conversation)
        response.status_code, content = await answer(app.state.agent, conversation, number, text)
        return content

    @app.get("/approvals")
    async def approvals() -> list[dict[str, Any]]:
        return await people.waiting()

    @app.put("/approvals")
    async def decide(
        conversation: Annotated[str, Body()], call: Annotated[str, Body()], approved: Annotated[bool, Body()]
    ) -> dict[str, Any]:
        if not await people.decide(conversation, call, approved):
            raise HTTPException(404, "nothing waits under that name")
        return {"approved": approved}

    @app.get("/health")
    async def health() -> dict[str, Any]:
        toolkit: Any = app.state.agent.toolkit
        active = sorted(each.name for each in toolkit.plugins if each.state == "active")
        return {"worker": os.getpid(), "plugins": active, "problems": list(map(str, toolkit.problems))}

    return app


def application() -> FastAPI:
    """The application with the model that the environment names."""
    return make_app(OpenAIChat(os.environ["SERVICE_MODEL"]))
