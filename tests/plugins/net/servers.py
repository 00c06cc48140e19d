"""A server on loopback that sends what it is told to, byte by byte, and keeps what it is asked."""

import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

Pieces = Iterable[bytes]


def answer(body: bytes = b"x", status: int = 200, **headers: str) -> list[bytes]:
    """A whole answer; names of headers are written with underscores."""
    sent = {"Content-Length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    head = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in sent.items())]
    return ["\r\n".join([*head, "", ""]).encode("latin-1"), body]


def redirect(to: str, status: int = 302) -> list[bytes]:
    """A redirect."""
    return answer(b"", status, Location=to)


class Server:
    """`answers` are by path; each connection gets one of them. `heads` are the requests as they came."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: dict[str, Callable[[], Pieces] | Pieces] = {}
        self.heads: list[str] = []
        self.hellos: list[bytes] = []

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [head.split(" ")[1] for head in self.heads]

    def sends(self, path: str, pieces: Callable[[], Pieces] | Pieces) -> str:
        """The URL at which these pieces are sent."""
        self.answers[path] = pieces
        return f"{self.origin}{path}"

    def header(self, name: str, index: int = -1) -> str | None:
        """A header of a request."""
        lines = (line.partition(": ") for line in self.heads[index].split("\r\n")[1:])
        return next((value for each, _, value in lines if each.lower() == name.lower()), None)


@contextmanager
def running() -> Iterator[Server]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):  # the client may have disconnected
                head = self.request.recv(65536)
                if head[:1] == b"\x16":  # the beginning of TLS
                    server.hellos.append(head)
                    return
                while b"\r\n\r\n" not in head:
                    head += self.request.recv(65536)
                server.heads.append(head.decode("latin-1"))
                found = server.answers.get(server.paths[-1].partition("?")[0], answer(b"", 404))
                for piece in found() if callable(found) else found:
                    self.request.sendall(piece)

    class Quiet(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Quiet(("127.0.0.1", 0), Handler) as listening:
        server = Server(listening.server_address[1])
        thread = threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()
