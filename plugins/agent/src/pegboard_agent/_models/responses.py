"""OpenAI's Responses over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, final

from pegboard import Block, ToolCall
from pegboard_agent._messages import library_dialect
from pegboard_agent._models.assembled import (
    AssembledReading,
    as_call,
    inside,
    list_inside,
    result_of,
    text_inside,
    usage_of,
)
from pegboard_agent._models.openai import OpenAIModel
from pegboard_agent._models.provider import Piece
from pegboard_agent._models.server import Chunk, Failure, Reading, offering
from pegboard_agent._models.turns import Turn, history_of

__all__ = ["OpenAIResponses"]

HELD_BACK: Final = "(The server's content filter held the answer back.)"
_PASSING: Final = {"server_error": 500, "rate_limit_exceeded": 429, "vector_store_timeout": 504}
"""Errors in a stream that may not occur in another attempt, with the corresponding HTTP status."""
_ENDS: Final = ("response.completed", "response.incomplete")
_TEXTS: Final = ("response.output_text.delta", "response.refusal.delta")
_THOUGHTS: Final = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


@final
class OpenAIResponses(OpenAIModel):
    """A model behind OpenAI's Responses. Each request holds the whole conversation: the server stores none of it.

    Raises ValueError for a key that cannot be sent and for a deadline that is not above 0, TypeError for a key that is
    not text.

    Args:
        model: Name of the model, as the server has it.
        base_url: Address of the server, with the version. OpenAI's by default.
        api_key: The key. None reads `OPENAI_API_KEY`.
        policy: How often a request is tried, as in `OpenAIChat`.
        deadline: Seconds for a complete response, all attempts included; 1,800 by default. None for no deadline.
        keeps: Whether the server takes `allowed_tools`, as in `OpenAIChat`.
        options: Members of every request, such as `reasoning`. `tool_choice` and `parallel_tool_calls` go only into
            those with tools.
    """

    dialect: ClassVar[str] = "openai-responses"

    @property
    def _path(self) -> str:
        return "/responses"

    def _body(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], options: Chunk) -> Chunk:
        history = history_of(self.dialect, messages)
        body: dict[str, Any] = {"model": self.model, "stream": True}
        body |= {"store": False, "include": ["reasoning.encrypted_content"]}
        body |= {"instructions": history.system} if history.system else {}
        body["input"] = [item for turn in history.turns for item in _items(turn, history.meta)]
        body |= {**({"tools": tools} if tools else {}), **self.options, **options}
        form = body.pop("response_format", None)
        if form is not None:
            flat = {name: value for name, value in form.items() if name != "json_schema"} | form.get("json_schema", {})
            body["text"] = {**body.get("text", {}), "format": flat}
        return offering(body, "tool_choice", "parallel_tool_calls")

    def _instead(self, body: Chunk, refusal: str) -> Chunk | None:
        """The request without the option for encrypted reasoning: models that do not reason refuse it."""
        if not body.get("include") or "ncrypted content is not supported" not in refusal:
            return None
        self.options = {**self.options, "include": []}  # only in the copy for this run
        return {**body, "include": []}

    def _reading(self) -> Reading:
        return _Response()


def _items(turn: Turn, meta: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if not turn.is_user:
        for piece in turn.pieces:
            yield from _sent(piece)
        return
    yield from library_dialect("openai-responses").results(turn.results, meta=meta)
    content = [shown for block in turn.blocks for shown in _shown(block)]
    if content:
        only_text = len(content) == 1 and content[0]["type"] == "input_text"
        yield {"role": "user", "content": content[0]["text"] if only_text else content}


def _shown(block: Block) -> list[dict[str, Any]]:
    if block.kind == "text":
        return [{"type": "input_text", "text": block.text}] if block.text else []
    found = result_of("openai-responses", block)["output"]
    return [{"type": "input_text", "text": found}] if isinstance(found, str) else list(found)


def _sent(piece: Piece) -> Iterator[dict[str, Any]]:
    own = dict(piece.own or {})
    if piece.call is not None:
        function = piece.call["function"]
        named = {"call_id": piece.call["id"], "name": function["name"], "arguments": function["arguments"]}
        yield {"type": "function_call", **named, **own}
    elif piece.text:
        yield {"role": "assistant", "content": piece.text, **own}
    elif own.get("type"):
        yield own


class _Response(AssembledReading):
    """Events of a response."""

    dialect = "openai-responses"

    def __init__(self) -> None:
        super().__init__()
        self._response: Any = None
        self._message: Any = None
        """The item of the text so far."""
        self._summary: Any = None
        """The summary, and its part, of the reasoning so far."""

    def error_in(self, event: Chunk) -> tuple[int, Any] | None:
        error = inside(event, "response", "error") or event.get("error")
        if event.get("type") == "error":
            error = error or {name: event.get(name) for name in ("code", "message")}
        if event.get("type") == "response.failed" or event.get("status") == "failed":
            error = error or {"message": "the response failed"}
        if not error:
            return None
        code = inside(error, "code")
        return code if type(code) is int else _PASSING.get(str(code), 500 if code is None else 400), error

    def events_of(self, response: Chunk) -> Iterable[Chunk]:
        if not isinstance(response.get("output"), list):
            raise Failure("the response has no output")
        for index, item in enumerate(response["output"]):
            thought = list_inside(item, "summary") or list_inside(item, "content")
            for number, part in enumerate(thought if text_inside(item, "type") == "reasoning" else ()):
                at = {"output_index": index, "summary_index": number}
                yield {"type": _THOUGHTS[0], **at, "delta": text_inside(part, "text")}
        ended = "incomplete" if response.get("status") == "incomplete" else "completed"
        yield {"type": f"response.{ended}", "response": response}

    def written(self, event: Chunk) -> tuple[str, str]:
        kind, delta, at = event.get("type"), text_inside(event, "delta"), event.get("output_index")
        if kind in _ENDS:
            self._response, self.is_over = event.get("response"), True
            why = text_inside(self._response, "incomplete_details", "reason")
            self.reason = why or ("completed" if kind == "response.completed" else "incomplete")
        elif kind in _TEXTS and delta:
            before, self._message = self._message, at
            return delta if before in (None, at) else f"\n\n{delta}", ""
        elif kind in _THOUGHTS and delta:
            part = at, event.get("summary_index")
            before, self._summary = self._summary, part
            return "", delta if before in (None, part) else f"\n\n{delta}"
        return "", ""

    def pieces(self, messages: list[Any], calls: list[ToolCall]) -> Iterable[Piece]:
        numbered, has_text = iter(calls), False
        for item in messages:
            kind = item.get("type")
            if kind == "message":
                parts = list_inside(item, "content")
                text = "".join(text_inside(part, "text") or text_inside(part, "refusal") for part in parts)
                phase = {"phase": item["phase"]} if item.get("phase") else None
                if text:
                    yield Piece(f"\n\n{text}" if has_text else text, own=phase)
                has_text = has_text or bool(text)
            elif kind == "function_call":
                call = next(numbered)
                yield Piece(call=as_call(call, item.get("arguments")), own=call.provider_meta)
            elif kind != "reasoning" or item.get("encrypted_content") or item.get("content"):
                yield Piece(own=item)  # other reasoning would be in the server's store, which is not used

    def finish(self, *, calls: bool) -> tuple[str, str]:
        if self.reason == "content_filter":
            return "content_filter", HELD_BACK
        output = list_inside(self._response, "output")
        if self.reason != "completed" or any(text_inside(item, "status") == "incomplete" for item in output):
            return "length", ""
        return "tool_calls" if calls else "stop", ""

    @property
    def usage(self) -> dict[str, Any]:
        usage = inside(self._response, "usage")
        return usage_of(
            prompt=inside(usage, "input_tokens"),
            completion=inside(usage, "output_tokens"),
            cached=inside(usage, "input_tokens_details", "cached_tokens"),
            written=inside(usage, "input_tokens_details", "cache_write_tokens"),
            reasoning=inside(usage, "output_tokens_details", "reasoning_tokens"),
        )
