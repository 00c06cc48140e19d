"""Requests that leave from the caller's thread, over the pipe to the server, and answers that wake no other caller."""

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pegboard import Toolkit
from pegboard_mcp import McpServer
from tests.plugins.mcp.test_pipes import BEGIN
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("nothing_left")

SEEN = r"""
import threading

heard = open(sys.argv[1], "a")

def hearing():
    for sent in real:
        message = json.loads(sent)
        if message["method"] in ("tools/call", "notifications/cancelled"):
            told = message["params"].get("requestId", message["id"] if "id" in message else "")
            heard.write(f"{message['method']} {told}\n")
            heard.flush()
        yield sent

real, sys.stdin = sys.stdin, hearing()
"""


def server(script: str, *arguments: object, **options: Any) -> McpServer:
    given = ["-c", BEGIN + script, *map(str, arguments)]
    return McpServer.stdio(sys.executable, given, name="s", **{"mode": "legacy", **options})


def test_callers_on_many_loops_get_their_own_answers() -> None:
    texts: list[list[str]] = []
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server("for request in requests():\n    write(answer_to(request) + '\\n')"))

        async def calls(who: int) -> list[str]:
            each = (toolkit.call("echo", {"text": f"{who} {number}"}) for number in range(10))
            return [result.text for result in await asyncio.gather(*each)]

        # A loop each time: what is kept of one that has ended would be in the way of the next at the same address.
        threads = [
            threading.Thread(target=lambda who=who: texts.append([*asyncio.run(calls(who)), *asyncio.run(calls(who))]))
            for who in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(texts) == [[f"{who} {number}" for number in range(10)] * 2 for who in range(3)]


def test_large_requests_of_several_threads_arrive_whole() -> None:
    script = r"""
for request in requests():
    text = request["params"]["arguments"]["text"]
    answer = f"{len(text)} times {''.join(set(text))}"
    write(line(request, {"content": [{"type": "text", "text": answer}]}) + "\n")
"""
    answers: list[str] = []
    with Toolkit(plugins=()) as toolkit:
        far = server(script)
        toolkit.register(far)

        def call(letter: str) -> None:
            for _ in range(3):
                answers.append(toolkit.call_sync("echo", {"text": letter * 500_000}).text)
                far.refresh()  # what the SDK sends takes the same pipe

        threads = [threading.Thread(target=call, args=(letter,)) for letter in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(answers) == [f"500000 times {letter}" for letter in "abc" for _ in range(3)]


def test_an_id_may_come_back_as_text() -> None:
    script = """
for request in requests():
    request["id"] = str(request["id"])
    write(answer_to({**request, "id": "9" * 5000}) + '\\n' + answer_to(request) + '\\n')
"""
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server(script, call_timeout=60))
        assert toolkit.call_sync("echo", {"text": "x"}).text == "x"


def test_who_is_cancelled_tells_the_server_if_it_has_heard_of_him(tmp_path: Path) -> None:
    script = """
for request in requests():
    if request["params"]["arguments"]["text"] == "now":
        write(answer_to(request) + '\\n')
"""
    seen = tmp_path / "seen"

    async def calls() -> None:
        async with Toolkit(plugins=()) as toolkit:
            s = server(SEEN + script, seen)
            await s.connect()
            toolkit.register(s)

            waiting = asyncio.create_task(toolkit.call("echo", {"text": "never"}))
            assert await asyncio.to_thread(eventually, lambda: bool(seen.read_text()))
            # With another one under way it goes out at the end of the turn, which it does not live to see.
            at_once = asyncio.create_task(toolkit.call("echo", {"text": "never"}))
            asyncio.get_running_loop().call_soon(at_once.cancel)
            await asyncio.wait({at_once})
            waiting.cancel()
            await asyncio.wait({waiting})
            assert (await toolkit.call("echo", {"text": "now"})).text == "now"

    asyncio.run(calls())
    methods, numbers = zip(*(each.split() for each in seen.read_text().splitlines()), strict=True)
    assert methods == ("tools/call", "notifications/cancelled", "tools/call")
    assert numbers[0] == numbers[1]


def test_a_later_round_that_cannot_be_sent_does_not_begin_again(tmp_path: Path) -> None:
    script = """
for request in requests():
    os.close(0)
    write(line(request, {"resultType": "input_required", "requestState": "halfway"}) + "\\n")
    time.sleep(0.5)
"""
    seen = tmp_path / "seen"
    modern = BEGIN.replace('{"tools": [', '{"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [')
    with Toolkit(plugins=()) as toolkit:
        given = ["-c", modern + SEEN + script, str(seen)]
        toolkit.register(McpServer.stdio(sys.executable, given, name="s", mode="2026-07-28"))
        result = toolkit.call_sync("echo", {"text": "x"})
    assert result.error is not None
    assert result.error.kind == "connection_lost"
    assert len(seen.read_text().splitlines()) == 1
