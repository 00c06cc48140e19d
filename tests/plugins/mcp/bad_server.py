"""A server over stdio that misbehaves in the way that its argument names; run as a script.

It speaks the older protocol, so that every byte of it can be seen here.
"""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

CASE = sys.argv[1] if len(sys.argv) > 1 else "good"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
STRICT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
BAD_SCHEMAS: dict[str, Any] = {
    "schema-nonsense": {"type": "object", "properties": {"a": {"type": "nonsense"}}},
    "schema-remote-ref": {"type": "object", "properties": {"a": {"$ref": "http://example.invalid/schema.json"}}},
    "schema-endless-ref": {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
    "schema-slow-pattern": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
    "schema-array": {"type": "array"},
    "schema-huge": {"type": "object", "properties": {f"p{number}": {"enum": [number] * 5} for number in range(20_000)}},
}
NO_TOOLS: dict[str, Any] = {
    "entry-no-name": {"description": "Nameless.", "inputSchema": TEXT},
    "entry-name-number": {"name": 7, "inputSchema": TEXT},
    "entry-no-schema": {"name": "broken"},
    "entry-schema-text": {"name": "broken", "inputSchema": "object"},
    "entry-schema-null": {"name": "broken", "inputSchema": None},
    "entry-null": None,
    "entry-text": "echo",
    "entry-hints": {"name": "broken", "inputSchema": TEXT, "annotations": {"readOnlyHint": {"no": 1}}},
    "entry-output": {"name": "broken", "inputSchema": TEXT, "outputSchema": ["object"]},
    "entry-title": {"name": "broken", "inputSchema": TEXT, "title": 7, "icons": "none"},
    "entry-properties": {"name": "broken", "inputSchema": {"type": "object", "properties": ["a"]}},
}
BAD_OUTPUTS: dict[str, Any] = {
    "output-unfit": STRICT,
    "output-missing": STRICT,
    "output-nonsense": {"type": "object", "properties": {"n": {"type": "nonsense"}}},
}
calls = 0


def send(message: Any) -> None:
    text = message if isinstance(message, str) else json.dumps(message)
    if CASE == "drip":
        for character in text + "\n":
            sys.stdout.write(character)
            sys.stdout.flush()
            time.sleep(0.0005)
        return
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any], result: Any) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def refuse(request: dict[str, Any], code: int, message: str) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}})


def described(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "Say it again.", "inputSchema": TEXT, **more}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


LISTS: dict[str, Any] = {
    "list-malformed": "none",
    "list-of-nothing": [described("echo"), *[None] * 500],
    "list-names": [described(name) for name in ("a b", "c/d.e", "ünï", "x" * 200, "9lives", "echo")],
    "list-5000": [described(f"echo{number}") for number in range(5000)],
}


def begin(request: dict[str, Any]) -> None:
    result = {
        "protocolVersion": "1999-01-01" if CASE == "old-version" else "2025-11-25",
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "bad", "version": "1"},
    }
    if CASE == "begin-error":
        refuse(request, -32603, "not today")
    elif CASE == "begin-malformed":
        answer(request, {"hello": "world"})
    elif CASE == "begin-dies":
        sys.stderr.write("cannot open the database\n")
        sys.stderr.flush()
        os._exit(3)
    else:
        answer(request, result)


def tools(request: dict[str, Any]) -> None:  # noqa: C901 - a case a branch
    cursor = (request.get("params") or {}).get("cursor")
    found: dict[str, Any] = {"tools": [described("echo")]}
    if CASE == "list-error":
        refuse(request, -32603, "no list today")
        return
    if CASE in LISTS:
        found = {"tools": LISTS[CASE]}
    elif CASE == "list-twice":
        found["tools"].append(described("echo", description="Another."))
    elif CASE == "list-empty-cursor":
        found["nextCursor"] = ""
    elif CASE == "list-endless":
        found["nextCursor"] = "again"
    elif CASE == "list-pages":
        page = int(cursor or 0)
        found = {"tools": [described(f"echo{page}")], **({"nextCursor": str(page + 1)} if page < 9 else {})}
    elif CASE in BAD_SCHEMAS:
        found["tools"].append(described("broken", inputSchema=BAD_SCHEMAS[CASE]))
    elif CASE in NO_TOOLS:
        found["tools"].insert(0, NO_TOOLS[CASE])
    elif CASE in BAD_OUTPUTS:
        found = {"tools": [described("echo", outputSchema=BAD_OUTPUTS[CASE])]}
    elif CASE == "list-changes" and calls:
        found = {"tools": [described("echo"), described("late")]}
    answer(request, found)
    if CASE == "dies-after-list":
        os._exit(0)


def call(request: dict[str, Any]) -> None:
    global calls  # noqa: PLW0603 - a script
    calls += 1
    said = request["params"]["arguments"].get("text", "")
    good = text(said)
    if CASE in ACTIONS:
        ACTIONS[CASE](request, said)
    else:
        answer(request, ANSWERS.get(CASE, good))


ANSWERS: dict[str, Any] = {
    "malformed-result": {"content": "words"},
    "unknown-content": {"content": [{"type": "smell", "of": "roses"}]},
    "empty-error": {"content": [], "isError": True},
    "huge": text("x" * 5_000_000),
    "output-unfit": text("seven", structuredContent={"n": "seven"}),
    "output-missing": text("seven"),
    "deep": text(json.dumps("x"), structuredContent=json.loads("[" * 200 + "]" * 200) and {"deep": "x"}),
    "no-result": None,
}


def never(request: dict[str, Any], said: str) -> None:
    """No answer."""


def die(request: dict[str, Any], said: str) -> None:
    sys.stderr.write("segmentation fault, more or less\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def twice(request: dict[str, Any], said: str) -> None:
    answer(request, text(said))
    answer(request, text("again"))


def wrong_id(request: dict[str, Any], said: str) -> None:
    answer({"id": 987_654}, text("for another client"))


def id_as_text(request: dict[str, Any], said: str) -> None:
    answer({"id": str(request["id"])}, text(said))


def rpc_error(request: dict[str, Any], said: str) -> None:
    refuse(request, -32000 - 500, "the disk is full")


def stray(request: dict[str, Any], said: str) -> None:
    sys.stdout.buffer.write(b"debug: \xff\xfe called\n{not json}\n\n")
    answer(request, text(said))


def flood(request: dict[str, Any], said: str) -> None:
    token = request["params"].get("_meta", {}).get("progressToken", 0)
    for number in range(3_000):
        send(
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": number},
            }
        )
    answer(request, text(said))


def false_progress(request: dict[str, Any], said: str) -> None:
    send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "no-such", "progress": 1}})
    answer(request, text(said))


def changes(request: dict[str, Any], said: str) -> None:
    for _ in range(20):
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    answer(request, text(said))


def unknown_notice(request: dict[str, Any], said: str) -> None:
    send({"jsonrpc": "2.0", "method": "notifications/gossip", "params": {"about": "you"}})
    answer(request, text(said))


def asks_model(request: dict[str, Any], said: str) -> None:
    send({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}})
    reply = json.loads(sys.stdin.readline())
    answer(request, text("refused" if "error" in reply else "answered"))


def asks_nonsense(request: dict[str, Any], said: str) -> None:
    send({"jsonrpc": "2.0", "id": 1, "method": "secrets/read", "params": {}})
    reply = json.loads(sys.stdin.readline())
    answer(request, text("refused" if "error" in reply else "answered"))


def asks_human(request: dict[str, Any], said: str) -> None:
    form = {"type": "object", "properties": {"name": {"type": "string", "default": "nobody"}}}
    parameters = {"message": "Who are you?", "requestedSchema": form}
    send({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": parameters})
    for line in sys.stdin:
        reply = json.loads(line)
        if reply.get("id") == 1 and "method" not in reply:
            answer(request, text(json.dumps(reply.get("result"))))
            return


def closes_stdout(request: dict[str, Any], said: str) -> None:
    os.close(1)
    time.sleep(600)


def not_a_number(request: dict[str, Any], said: str) -> None:
    send(f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": {{"content": [], "structuredContent": {{"n": NaN}}}}}}')


def infinity(request: dict[str, Any], said: str) -> None:
    answer(request, text(said, structuredContent={"n": float("inf")}))


def half_line(request: dict[str, Any], said: str) -> None:
    sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {request["id"]}, "resu')
    sys.stdout.flush()
    os._exit(0)


def error_text(request: dict[str, Any], said: str) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "error": "broken"})


def both(request: dict[str, Any], said: str) -> None:
    error = {"code": 1, "message": "the disk is full"}
    send({"jsonrpc": "2.0", "id": request["id"], "result": text(said), "error": error})


def batch(request: dict[str, Any], said: str) -> None:
    send(json.dumps([{"jsonrpc": "2.0", "id": request["id"], "result": text(said)}]))


def surrogate(request: dict[str, Any], said: str) -> None:
    send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": text("\ud800")}))


def pings(request: dict[str, Any], said: str) -> None:
    for number in range(500):
        send({"jsonrpc": "2.0", "id": 1_000 + number, "method": "ping"})
    answer(request, text(said))


def late_question(request: dict[str, Any], said: str) -> None:
    answer(request, text(said))
    parameters = {"message": "Who are you?", "requestedSchema": {"type": "object", "properties": {}}}
    send({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": parameters})


def takes_it_back(request: dict[str, Any], said: str) -> None:
    send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request["id"]}})


ACTIONS: dict[str, Any] = {
    "never": never,
    "die": die,
    "twice": twice,
    "wrong-id": wrong_id,
    "id-as-text": id_as_text,
    "rpc-error": rpc_error,
    "stray": stray,
    "flood": flood,
    "false-progress": false_progress,
    "list-changes": changes,
    "unknown-notice": unknown_notice,
    "asks-model": asks_model,
    "asks-nonsense": asks_nonsense,
    "asks-human": asks_human,
    "closes-stdout": closes_stdout,
    "nan": not_a_number,
    "infinity": infinity,
    "half-line": half_line,
    "error-text": error_text,
    "both": both,
    "batch": batch,
    "surrogate": surrogate,
    "pings": pings,
    "late-question": late_question,
    "takes-it-back": takes_it_back,
}


def prepare() -> None:
    if CASE == "banner":
        sys.stdout.write("*** Welcome to the server ***\n\n\x00\x01\n")
    elif CASE == "exits":
        sys.exit("no configuration found")
    elif CASE == "silent":
        time.sleep(600)
    elif CASE == "stderr-flood":
        sys.stderr.write("noise\n" * 200_000)
    elif CASE == "frame-without-end":
        sys.stdout.write("x" * 1_000_000)
        sys.stdout.flush()
        time.sleep(600)
    elif CASE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif CASE == "grandchild":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])  # holds our pipes


def serve() -> None:
    prepare()
    methods = {"initialize": begin, "tools/list": tools, "tools/call": call}
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        if request["method"] in methods:
            methods[request["method"]](request)
        else:
            refuse(request, -32601, "unknown method")
    while CASE == "stubborn":
        time.sleep(1)


if __name__ == "__main__":
    serve()
