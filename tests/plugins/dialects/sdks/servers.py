"""Providers on loopback: each asks for two calls at once, then answers; whole, or as a stream in small pieces."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from attrs import define, field

__all__ = ["ANSWER", "Provider", "serving"]

ANSWER = "Sunny, and 42."
CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (("call_1", "add", {"a": 15, "b": 27}), ("call_2", "chart", {}))
Event = tuple[str | None, Any]


def pieces(text: str) -> list[str]:
    return [text[begin : begin + 3] for begin in range(0, len(text), 3)]


@define
class Provider:
    """What a provider says: at first `asking`, and when results are there `answering`."""

    path: str
    """The end of the paths that it serves."""
    has_results: Callable[[dict[str, Any]], bool]
    whole: Callable[[bool], Any]
    """The response; whether it asks."""
    events: Callable[[bool], Iterable[Event]]
    requests: list[dict[str, Any]] = field(factory=list)

    def respond(self, path: str, body: dict[str, Any]) -> tuple[str, str]:
        """The content type and the text of a response."""
        self.requests.append(body)
        asks = not self.has_results(body)
        if not (body.get("stream") or "streamGenerateContent" in path):
            return "application/json", json.dumps(self.whole(asks))
        lines = (
            (f"event: {name}\n" if name else "") + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
            for name, data in self.events(asks)
        )
        return "text/event-stream", "".join(lines)


@contextmanager
def serving(provider: Provider) -> Iterator[str]:
    """Serve on loopback; gives the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known = self.path.partition("?")[0].endswith(tuple(provider.path.split()))
            kind, text = provider.respond(self.path, body) if known else ("text/plain", f"unknown: {self.path}")
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# OpenAI -------------------------------------------------------------------------------------------------------------

_CHAT = {"id": "chatcmpl-1", "created": 1, "model": "m"}


def _chat(asks: bool) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": None if asks else ANSWER, "refusal": None}
    if asks:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for call_id, name, arguments in CALLS
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if asks else "stop", "logprobs": None}
    return {**_CHAT, "object": "chat.completion", "choices": [choice]}


def _chat_events(asks: bool) -> Iterator[Event]:
    def chunk(**delta: Any) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        return None, {**_CHAT, "object": "chat.completion.chunk", "choices": [choice]}

    yield chunk(role="assistant", content="")
    for piece in pieces("" if asks else ANSWER):
        yield chunk(content=piece)
    for index, (call_id, name, arguments) in enumerate(CALLS if asks else ()):
        function = {"name": name, "arguments": ""}
        yield chunk(tool_calls=[{"index": index, "id": call_id, "type": "function", "function": function}])
        for piece in pieces(json.dumps(arguments)):
            yield chunk(tool_calls=[{"index": index, "function": {"arguments": piece}}])
    yield None, {**_CHAT, "object": "chat.completion.chunk", "choices": []}
    yield None, "[DONE]"


def openai() -> Provider:
    """Chat completions."""
    return Provider(
        "/chat/completions",
        lambda body: any(message["role"] == "tool" for message in body["messages"]),
        _chat,
        _chat_events,
    )


# OpenAI Responses ---------------------------------------------------------------------------------------------------


def _items(asks: bool) -> list[dict[str, Any]]:
    if not asks:
        content = [{"type": "output_text", "text": ANSWER, "annotations": []}]
        return [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}]
    return [
        {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": name,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        for call_id, name, arguments in CALLS
    ]


def _response(asks: bool) -> Any:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": _items(asks),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _response_events(asks: bool) -> Iterator[Event]:
    numbers = iter(range(1000))

    def event(kind: str, **data: Any) -> Event:
        return kind, {"type": kind, "sequence_number": next(numbers), **data}

    yield event("response.created", response={**_response(asks), "output": [], "status": "in_progress"})
    for index, item in enumerate(_items(asks)):
        if item["type"] == "function_call":
            begun = {**item, "arguments": "", "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=begun)
            at = {"output_index": index, "item_id": item["id"]}
            for piece in pieces(item["arguments"]):
                yield event("response.function_call_arguments.delta", delta=piece, **at)
            yield event("response.function_call_arguments.done", arguments=item["arguments"], name=item["name"], **at)
        else:
            begun = {**item, "content": [], "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=begun)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=_response(asks))


def openai_responses() -> Provider:
    """Responses."""
    return Provider(
        "/responses",
        lambda body: any(item.get("type") == "function_call_output" for item in body["input"]),
        _response,
        _response_events,
    )


# Anthropic ----------------------------------------------------------------------------------------------------------


def _blocks(asks: bool) -> list[dict[str, Any]]:
    if not asks:
        return [{"type": "text", "text": ANSWER, "citations": None}]
    return [{"type": "tool_use", "id": call_id, "name": name, "input": arguments} for call_id, name, arguments in CALLS]


def _anthropic(asks: bool) -> Any:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": _blocks(asks),
        "stop_reason": "tool_use" if asks else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _anthropic_events(asks: bool) -> Iterator[Event]:
    def event(kind: str, **data: Any) -> Event:
        return kind, {"type": kind, **data}

    yield event("message_start", message={**_anthropic(asks), "content": [], "stop_reason": None})
    for index, block in enumerate(_blocks(asks)):
        if block["type"] == "text":
            begun, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": each} for each in pieces(ANSWER)]
        else:
            begun = {**block, "input": {}}
            texts = pieces(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": each} for each in ["", *texts]]
        yield event("content_block_start", index=index, content_block=begun)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    stop = {"stop_reason": "tool_use" if asks else "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": 5})
    yield event("message_stop")


def anthropic() -> Provider:
    """Messages."""
    return Provider(
        "/messages",
        lambda body: any(
            isinstance(message["content"], list) and message["content"][0]["type"] == "tool_result"
            for message in body["messages"]
        ),
        _anthropic,
        _anthropic_events,
    )


# Gemini -------------------------------------------------------------------------------------------------------------


def _candidates(*parts: dict[str, Any]) -> Any:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0}]}


def _parts(asks: bool) -> list[dict[str, Any]]:
    if not asks:
        return [{"text": ANSWER}]
    # The second one without an id, as older models send all of them.
    return [
        {"functionCall": {"name": name, "args": arguments, **({"id": call_id} if name == "add" else {})}}
        | ({"thoughtSignature": "c2lnbmVk"} if name == "add" else {})
        for call_id, name, arguments in CALLS
    ]


def _gemini_events(asks: bool) -> Iterator[Event]:
    parts = _parts(True) if asks else [{"text": piece} for piece in pieces(ANSWER)]
    for part in parts:
        yield None, _candidates(part)


def gemini() -> Provider:
    """`generateContent` and `streamGenerateContent`."""
    return Provider(
        ":generateContent :streamGenerateContent",
        lambda body: any("functionResponse" in part for content in body["contents"] for part in content["parts"]),
        lambda asks: _candidates(*_parts(asks)),
        _gemini_events,
    )
