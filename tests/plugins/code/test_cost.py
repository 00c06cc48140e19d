"""What `docs/packs/code.md` says of requests and tokens: one task by calls, and by a program."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pegboard import Session, Toolkit
from pegboard_code import CodeMode
from tests.workspace.project import ROOT

ORDERS = 10
CUSTOMER = {
    "type": "object",
    "title": "Customer",
    "properties": {"name": {"type": "string"}, "country": {"type": "string"}, "address": {"type": "string"}},
    "required": ["name", "country"],
}
OPERATION = {
    "operationId": "getCustomer",
    "summary": "One customer.",
    "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
    "responses": {"200": {"description": "The customer", "content": {"application/json": {"schema": CUSTOMER}}}},
}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Customers", "version": "1"},
    "paths": {"/customers/{id}": {"get": OPERATION}},
}
PROGRAM = """\
import asyncio, json
listing = await list_directory(dir_path=".")
texts = await asyncio.gather(*[view_text_file(file_path=each["name"]) for each in listing["entries"]])
orders = [json.loads(text.split("\\n")[1].partition(": ")[2]) for text in texts]
customers = await asyncio.gather(*[getCustomer(id=order["customer"]) for order in orders])
sum(order["total"] for order, customer in zip(orders, customers) if customer["country"] == "NO")
"""
REPLIES: dict[str, list[Any]] = {
    "single calls": [
        ("list_directory", {"dir_path": "."}),
        [("view_text_file", {"file_path": f"order-{number}.json"}) for number in range(ORDERS)],
        [("getCustomer", {"id": 100 + number}) for number in range(ORDERS)],
        "800",
    ],
    "one program": [("run_code", {"code": PROGRAM}), "800"],
}


async def customers(scope: Any, receive: Any, send: Any) -> None:
    """The HTTP API, an ASGI application."""
    number = int(scope["path"].rpartition("/")[2])
    customer = {"name": f"Ann {number}", "country": ["NO", "SE"][number % 2], "address": "Storgata 1, 0155 Oslo " * 6}
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps(customer).encode()})


def cost(replies: list[Any], tools: Session) -> tuple[str, str]:
    """The requests, and about how many tokens they and the replies have: four characters are one."""
    from pegboard_agent import Agent, OpenAIChat
    from pegboard_testing import ScriptedServer

    with ScriptedServer(*replies) as server:
        agent = Agent("clerk", OpenAIChat("scripted", base_url=server.url, api_key="none"), tools)
        answer = agent.call_sync("What do the orders in this folder come to whose customers are in Norway?")
        assert answer.text == "800"
        read = "".join(str(each["content"]) for each in server.requests[-1]["messages"] if each["role"] == "tool")
        assert "Error" not in read
        sent = sum(len(json.dumps(each)) for each in (*server.requests, *replies))
        return str(len(server.requests)), f"{round(sent // 4, -2):,}"


def test_the_page_says_what_both_ways_cost(tmp_path: Path) -> None:
    files, openapi = pytest.importorskip("pegboard_files"), pytest.importorskip("pegboard_openapi")
    page = (ROOT / "docs" / "packs" / "code.md").read_text("utf-8")
    stated = {way: (requests, tokens) for way, requests, tokens in re.findall(r"\| (.+) \| (\d+) \| ([\d,]+) \|", page)}
    for number in range(ORDERS):
        order = {"customer": 100 + number, "total": 40 * number, "items": ["hat", "scarf", "gloves", "umbrella"] * 8}
        (tmp_path / f"order-{number}.json").write_text(json.dumps(order) + "\n")
    with Toolkit(plugins=()) as board:
        board.register(files.FileTools(tmp_path, read_only=True), openapi.OpenApi(DOCUMENT, app=customers))
        board.register(CodeMode(board.view()))
        views = {"single calls": board.view(exclude="run_code"), "one program": board.view(include="run_code")}
        found = {way: cost(replies, views[way]) for way, replies in REPLIES.items()}
    assert {way: stated.get(way) for way in found} == found
