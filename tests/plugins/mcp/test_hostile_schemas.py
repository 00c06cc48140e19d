"""Schemas of servers that want to freeze their host: each check ends soon, and other calls are answered meanwhile."""

import json
import sys
import threading
import time
from pathlib import Path

import pytest
from mcp_types import CallToolResult

from pegboard import Status, Toolkit, ToolResult
from pegboard_mcp import McpServer
from pegboard_mcp._client.incoming import result_of
from pegboard_schemas import judged
from tests.plugins.schemas.hostile_schemas import pattern_attacks, schema_attacks
from tests.support.measuring import paces
from tests.support.thinning import first

SCRIPT = str(Path(__file__).with_name("hostile_server.py"))
SEED = 16
# What froze took minutes, 100,000 and more; what takes the most takes 30 to 100, and 500 where a collection of garbage
# comes in between.
MOST = 1_000


def test_an_answer_that_takes_too_much_is_taken_as_it_is() -> None:
    schema = {"properties": {"x": {"items": {"oneOf": [{"const": number} for number in range(900)]}}}}
    found = judged(schema, "its output schema").check
    answer = CallToolResult(content=[], structured_content={"x": [-1] * 900})
    result = result_of(answer, "t", found, False, {})
    assert (result.status, result.data) == (Status.SUCCESS, {"x": [-1] * 900})
    (note,) = result.notes
    assert (note.kind, "the answer was taken as it is: cannot be checked" in note) == ("unchecked", True)


def ping(number: int) -> int:
    """Give a number back."""
    return number


def attacked(kind: str, number: int) -> None:
    """Register a hostile server, call all its tools twice, and a tool of our own all the while."""
    attacks = (pattern_attacks if kind == "patterns" else schema_attacks)(number, SEED)
    done = threading.Event()
    answered = calls = 0
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(ping)

        def keep_calling() -> None:
            nonlocal answered
            while not done.is_set():
                answered += toolkit.call_sync("ping", {"number": answered}).data == answered
                time.sleep(0.001)

        server = McpServer.stdio(sys.executable, [SCRIPT, kind, str(number), str(SEED)], connect_timeout=120)
        thread = threading.Thread(target=keep_calling)
        thread.start()
        try:
            toolkit.register(server)
            offered = {tool.name for tool in toolkit.tools}
            for index, attack in enumerate(attacks):
                name = f"attack{index}"
                if name not in offered:
                    continue  # refused
                for arguments in (json.dumps(attack.value), "{}"):
                    results: list[ToolResult] = []

                    def call(name: str = name, sent: str = arguments, to: list[ToolResult] = results) -> None:
                        to.append(toolkit.call_sync(name, sent))

                    # All of the process: what the server's answer takes, and what is asked meanwhile.
                    assert paces(call, most=MOST, clock=time.process_time) < MOST
                    assert results[0].status in (Status.SUCCESS, Status.INVALID, Status.ERROR), results[0].text
                    calls += 1
        finally:
            done.set()
            thread.join(60)
    assert len(offered) > number * 0.9
    assert answered > calls / 10


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("kind", first(1, ["patterns", "schemas"]))
def test_a_real_server(kind: str) -> None:
    attacked(kind, 20)


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(("kind", "number"), [("patterns", 2_000), ("schemas", 500)])
def test_a_real_server_for_long(kind: str, number: int) -> None:
    attacked(kind, number)
