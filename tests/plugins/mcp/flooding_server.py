"""A server over HTTP whose tool sends progress without end where it is asked for a "flood"; run as a script."""

import json
import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ECHO = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 0, "progress": 1}}
BEGUN = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "floods", "version": "1"},
}


def event(message: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(message)}\n\n".encode()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in request:
            self.send_response(202)
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        method = request["method"]
        result: dict[str, Any] = {}
        if method == "initialize":
            result = BEGUN
        elif method == "tools/list":
            result = {"tools": [ECHO]}
        elif method == "tools/call":
            text = request["params"]["arguments"]["text"]
            with suppress(OSError):
                while text == "flood":
                    self.wfile.write(event(PROGRESS) * 1_000)
            result = {"content": [{"type": "text", "text": text}]}
        with suppress(OSError):
            self.wfile.write(event({"jsonrpc": "2.0", "id": request["id"], "result": result}))

    def do_GET(self) -> None:
        self.send_response(405)
        self.end_headers()

    def log_message(self, *parts: Any) -> None: ...


if __name__ == "__main__":
    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{web.server_address[1]}/mcp", file=sys.stderr, flush=True)
    web.serve_forever()
