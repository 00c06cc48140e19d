"""A model behind real HTTP that gives scripted replies: chat completions on loopback, whole and streamed."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias, final

from attrs import field, frozen

__all__ = ["Broken", "Failing", "Raw", "ScriptedServer"]

Call: TypeAlias = tuple[str, Any]
"""A tool and its arguments; a text is sent as it is, so that it may be no JSON."""
Content: TypeAlias = "str | Call | Sequence[Any] | Failing | Broken | Raw"
Reply: TypeAlias = "Content | Callable[[dict[str, Any]], Content]"


@final
@frozen
class Failing:
    """The server answers with an HTTP error.

    Args:
        status: Status of the answer.
        message: Message in its body.
        headers: Headers of the answer.
    """

    status: int
    message: str = "scripted failure"
    headers: Mapping[str, str] = field(factory=dict)


@final
@frozen
class Broken:
    """The server sends a part of a reply, waits, and disconnects.

    Args:
        reply: The reply.
        events: Number of its chunks that are sent.
        seconds: Seconds that it waits.
    """

    reply: Any = ""
    events: int = 0
    seconds: float = 0.0


@final
@frozen
class Raw:
    """The server answers with just this body.

    Args:
        body: The body.
        content_type: Its `Content-Type`.
    """

    body: str
    content_type: str = "text/event-stream"


@final
class ScriptedServer:
    """An OpenAI-compatible server on loopback that gives the written replies, one for each request.

    A reply is a text, a call `("roll", {"sides": 6})`, a list of both (calls that are made at once; a mapping in it is
    a `tool_calls` entry as it stands), `Failing`, `Broken` or `Raw`; or a function of the request that returns one of
    these. When all are given, `forever` is. Streams cut text and arguments into fragments of `fragment` characters.

        with ScriptedServer(("roll", {"sides": 6}), "You rolled a 6.") as server:
            model = OpenAIChat("scripted", base_url=server.url)

    `requests` are the bodies that were received, `headers` their headers; `connections` counts the connections.

    Args:
        replies: The replies, one for each request.
        forever: Reply to requests after that.
        fragment: Characters of each piece of a stream.
    """

    def __init__(
        self,
        *replies: Reply,
        forever: Reply = Failing(400, "the script is over"),
        fragment: int = 8,
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self._replies = list(replies)
        self._forever = forever
        self.fragment = fragment
        self._lock = threading.Lock()
        self._http = _Http(self)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        """Close every connection, and stop listening."""
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def take(self, request: dict[str, Any], headers: Mapping[str, str]) -> Content:
        """Record a request. Returns the reply to it."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
            self.headers.append({name.lower(): value for name, value in headers.items()})
            reply = self._replies[number] if number < len(self._replies) else self._forever
        return reply(request) if callable(reply) else reply


@final
class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, script: ScriptedServer) -> None:
        self.script = script
        self.open: set[Any] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        self.script.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self.open):  # kept alive by clients: their threads wait for a next request
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that disconnects is not reported."""


@final
class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        script = self.server.script
        reply = script.take(request, dict(self.headers))
        broken = reply if isinstance(reply, Broken) else None
        while isinstance(reply, Broken):
            reply = reply.reply
        if isinstance(reply, Failing):
            body = json.dumps({"error": {"message": reply.message, "type": "scripted"}})
            self._send(reply.status, "application/json", body, reply.headers)
        elif isinstance(reply, Raw):
            self._send(200, reply.content_type, reply.body)
        elif broken is not None:
            streamed = events(reply, request, script.fragment) if request.get("stream") else ()
            self._break(broken, list(streamed)[: broken.events])
        elif request.get("stream"):
            self._send(200, "text/event-stream", "".join(events(reply, request, script.fragment)))
        else:
            self._send(200, "application/json", json.dumps(whole(reply, request)))

    def _send(self, status: int, content_type: str, body: str, headers: Mapping[str, str] = {}) -> None:
        encoded = body.encode()
        self.send_response(status)
        for name, value in {"Content-Type": content_type, "Content-Length": str(len(encoded)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(encoded)

    def _break(self, broken: Broken, begun: list[str]) -> None:
        if begun:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", "1000000000")
            self.end_headers()
            self.wfile.write("".join(begun).encode())
        time.sleep(broken.seconds)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
        """Nothing is printed."""


def _parts(reply: Any, request: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The text and the calls of a reply; their ids are new in the conversation."""
    turn = len(request.get("messages", ()))
    parts = [reply] if isinstance(reply, (str, tuple)) else list(reply)
    text = "".join(part for part in parts if isinstance(part, str))
    calls: list[dict[str, Any]] = []
    for number, part in enumerate(part for part in parts if not isinstance(part, str)):
        if isinstance(part, Mapping):
            calls.append(dict(part))
            continue
        name, arguments = part
        sent = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        calls.append(
            {"id": f"call_{turn}_{number + 1}", "type": "function", "function": {"name": name, "arguments": sent}}
        )
    return text, calls


_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def whole(reply: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """A reply as one chat completion."""
    text, calls = _parts(reply, request)
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {**_head(request, "chat.completion"), "choices": [choice], "usage": _USAGE}


def events(reply: Any, request: Mapping[str, Any], fragment: int) -> Iterator[str]:
    """A reply as the events of a stream."""
    head = _head(request, "chat.completion.chunk")
    text, calls = _parts(reply, request)

    def event(delta: dict[str, Any], finish: str | None = None) -> str:
        return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield event({"role": "assistant", "content": ""})
    for piece in _cut(text, fragment):
        yield event({"content": piece})
    for index, call in enumerate(calls):
        function = call.get("function", {})
        pieces = list(_cut(function.get("arguments", ""), fragment))
        first = {**call, "index": call.get("index", index), "function": {**function, "arguments": ""}}
        yield event({"tool_calls": [first]})
        for piece in pieces:
            yield event({"tool_calls": [{"index": first["index"], "function": {"arguments": piece}}]})
    yield event({}, "tool_calls" if calls else "stop")
    if (request.get("stream_options") or {}).get("include_usage"):
        yield _event({**head, "choices": [], "usage": _USAGE})
    yield "data: [DONE]\n\n"


def _head(request: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": request.get("model", "")}


def _event(chunk: dict[str, Any]) -> str:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"


def _cut(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]
