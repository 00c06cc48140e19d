"""The inspector on a loop of its own, and a client that speaks to it as a browser would."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import attrs

from pegboard import Toolkit
from pegboard_inspector._serving import serve_async
from tests.support.waiting import PATIENCE

JSON = "application/json"


@attrs.frozen
class Answer:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@attrs.define
class Client:
    """Speaks to `127.0.0.1:port`; `headers` are sent with everything."""

    url: str
    headers: dict[str, str] = attrs.field(factory=dict)

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str | None) -> Answer:
        """Send a request; a header of None is left out. Names have `_` for `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in {**self.headers, **named}.items() if value is not None}
        try:
            connection.putrequest(method, path, skip_host="host" in sent)
            for name, value in sent.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def enter(self) -> None:
        """Take the token to the door, and keep the cookie."""
        answer = self.send("GET", f"/?{urlsplit(self.url).query}")
        assert answer.status == 303, answer.body
        self.headers["cookie"] = answer.headers["set-cookie"].partition(";")[0]
        self.headers["x-pegboard-key"] = answer.headers["location"].removeprefix("/#key=")

    def get(self, path: str) -> Any:
        """What the API says."""
        answer = self.send("GET", f"/api/{path}")
        assert answer.status == 200, answer.body
        return answer.data

    def post(self, path: str, **sent: Any) -> Answer:
        """Ask the API to do something."""
        body = json.dumps(sent).encode()
        return self.send("POST", f"/api/{path}", body, content_type=JSON, origin=self.origin)

    def later(self, path: str, **sent: Any) -> Callable[[], Answer]:
        """`post` in a thread; what is returned waits for the answer."""
        answers: list[Answer] = []
        thread = threading.Thread(target=lambda: answers.append(self.post(path, **sent)), daemon=True)
        thread.start()

        def answer() -> Answer:
            thread.join(PATIENCE)
            return answers[0]

        return answer

    def call(self, name: str, **arguments: Any) -> str:
        """Begin a call; its id."""
        answer = self.post("calls", name=name, arguments=json.dumps(arguments))
        assert answer.status == 200, answer.body
        return str(answer.data["id"])

    def ended(self, call_id: str) -> dict[str, Any]:
        """A call when it has ended."""
        for news in self.news():
            if any(call["id"] == call_id and call["done"] for call in news["calls"]):
                found: dict[str, Any] = self.get(f"calls/{call_id}")
                return found
        raise AssertionError(f"{call_id} has not ended")

    def news(self, since: int | str = 0) -> Iterator[dict[str, Any]]:
        """What is told, as it comes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", "/api/events", headers={**self.headers, "last-event-id": str(since)})
            answer = connection.getresponse()
            assert answer.status == 200
            assert answer.getheader("content-type", "").startswith("text/event-stream")
            while line := answer.readline():
                if line.startswith(b"data: "):
                    yield json.loads(line.removeprefix(b"data: "))
        finally:
            connection.close()


@contextmanager
def served(
    toolkit: Toolkit | Callable[[], Toolkit], target: str | None = None, title: str | None = None
) -> Iterator[Client]:
    """The toolkit behind an inspector, and who has just been told the address."""
    told: list[str] = []
    started = threading.Event()
    ended: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def run() -> None:
        end = asyncio.Event()
        ended.append((asyncio.get_running_loop(), end))

        def announce(url: str) -> None:
            told.append(url)
            started.set()

        await serve_async(toolkit, 0, target=target, title=title, announce=announce, ended=end)

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="inspector under test", daemon=True)
    thread.start()
    assert started.wait(PATIENCE), "the inspector did not start"
    try:
        yield Client(told[0])
    finally:
        loop, end = ended[0]
        loop.call_soon_threadsafe(end.set)
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the inspector did not end"
