"""A server on loopback: it keeps what it is asked, and answers what it is told to."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Asked(NamedTuple):
    """One request; `target` is what stood in the first line."""

    method: str
    target: str
    headers: Any
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Sent(NamedTuple):
    """An answer; what is no bytes is sent as JSON."""

    body: Any = None
    status: int = 200
    media_type: str | None = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


class Server:
    """Answers with `answers`, one after the other, then with what `answer` says."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: list[Sent] = []
        self.answer: Callable[[Asked], Sent] = lambda asked: Sent({"path": asked.path})
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def last(self) -> Asked:
        return self.asked[-1]

    def take(self, asked: Asked) -> Sent:
        self.asked.append(asked)
        return self.answers.pop(0) if self.answers else self.answer(asked)


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size + 2)[:-2]
                self.rfile.readline()
            sent = server.take(Asked(self.command, self.path, self.headers, body))
            content = sent.body if isinstance(sent.body, bytes) else json.dumps(sent.body).encode()
            content = b"" if sent.status in (204, 304) else content
            self.send_response(sent.status)
            if sent.media_type is not None and content:
                self.send_header("Content-Type", sent.media_type)
            for name, value in sent.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            with suppress(ConnectionError):  # the client may have disconnected
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else content)

        do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = do_POST = do_PUT = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # the client may have disconnected
            super().handle_error(request, client_address)


@contextmanager
def running(server: Server) -> Iterator[Server]:
    with _Http(("127.0.0.1", 0), _handler(server)) as http:
        server.port = http.server_port
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
