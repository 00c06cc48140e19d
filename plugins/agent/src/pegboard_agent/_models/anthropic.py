"""Anthropic's messages over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, final

from pegboard import Block, ExecutionPolicy, ToolCall
from pegboard_agent._messages import library_dialect
from pegboard_agent._models.assembled import AssembledReading, as_call, inside, result_of, text_inside, usage_of
from pegboard_agent._models.model import ModelError
from pegboard_agent._models.provider import Piece
from pegboard_agent._models.server import DEADLINE, Chunk, Failure, Key, Reading, ServerModel, offering, status_of
from pegboard_agent._models.turns import Turn, history_of

__all__ = ["AnthropicChat"]

ANTHROPIC: Final = "https://api.anthropic.com/v1"
VERSION: Final = "2023-06-01"
MAX_TOKENS: Final = 32_000
"""Tokens of a response that every model of the fourth generation allows."""
REFUSED: Final = "(The model refused to answer.)"
_THOUGHTS: Final = ("thinking", "redacted_thinking")
_REFUSED_THOUGHT: Final = re.compile(r"signature.{0,20}thinking|thinking.{0,80}(block_binding|cannot be modified)")
_FINISH: Final = {
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded", "pause_turn"), "length"),
    "refusal": "content_filter",
}
_STATUSES: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


@final
class AnthropicChat(ServerModel):
    """A model behind Anthropic's messages.

    Raises ValueError for a key that cannot be sent and for a deadline that is not above 0, TypeError for a key that is
    not text.

    Args:
        model: Name of the model, as the server has it.
        base_url: Address of the server, with the version. Anthropic's by default.
        api_key: The key. None reads `ANTHROPIC_API_KEY`.
        policy: How often a request is tried, as in `OpenAIChat`.
        deadline: Seconds for a complete response, all attempts included; 1,800 by default. None for no deadline.
        max_tokens: Longest response in tokens; 32,000 by default.
        options: Members of every request, such as `thinking`. `tool_choice` goes only into those with tools.
    """

    dialect: ClassVar[str] = "anthropic"
    keeps: ClassVar[bool] = False
    """The provider has no form for tools that are listed and may not be called."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str = ANTHROPIC,
        api_key: Key = None,
        policy: ExecutionPolicy | None = None,
        deadline: float | None = DEADLINE,
        max_tokens: int = MAX_TOKENS,
        **options: Any,
    ) -> None:
        super().__init__(model, base_url, api_key, policy, deadline, {"max_tokens": max_tokens, **options})
        self._forgets = False
        """Whether the server no longer takes the reasoning in this conversation."""

    @property
    def _variable(self) -> str:
        return "ANTHROPIC_API_KEY"

    @property
    def _path(self) -> str:
        return "/messages"

    def _key_headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def _body(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], options: Chunk) -> Chunk:
        history = history_of(self.dialect, messages)
        body: dict[str, Any] = {"model": self.model, "stream": True}
        body |= {"system": history.system} if history.system.strip() else {}
        turns = [{"role": "user" if turn.is_user else "assistant", "content": _content(turn, history.meta)}
                 for turn in history.turns]  # fmt: skip
        body["messages"] = [turn for turn in (_thoughtless(turns) if self._forgets else turns) if turn["content"]]
        body |= {**({"tools": tools} if tools else {}), **self.options, **options}
        form = body.pop("response_format", None)
        if form is not None:
            body["output_config"] = {**body.get("output_config", {}), "format": _format(form)}
        return offering(body, "tool_choice")

    def _instead(self, body: Chunk, refusal: str) -> Chunk | None:
        """The request without reasoning, which the server refuses after a change of the part before it.

        Tools that a search found later are such a change, and so is a summary. Newer models check it (preserved
        thinking).
        """
        if self._forgets or not _REFUSED_THOUGHT.search(refusal):
            return None
        self._forgets = True  # only in the copy for this run
        return {**body, "messages": [turn for turn in _thoughtless(body["messages"]) if turn["content"]]}

    def _reading(self) -> Reading:
        return _Message()


def _format(form: Chunk) -> dict[str, Any]:
    schema = inside(form, "json_schema", "schema")
    if schema is None:
        raise ModelError("Anthropic takes a response_format with a json_schema alone")
    return {"type": "json_schema", "schema": schema}


def _thoughtless(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**turn, "content": [block for block in turn["content"] if block["type"] not in _THOUGHTS]}
            for turn in turns]  # fmt: skip


def _content(turn: Turn, meta: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a turn, without empty texts, which a request may not hold."""
    if turn.is_user:
        results = [block for message in library_dialect("anthropic").results(turn.results, meta=meta)
                   for block in message["content"]]  # fmt: skip
        return [*results, *(shown for block in turn.blocks for shown in _shown(block))]
    content = [block for piece in turn.pieces for block in _sent(piece)]
    while content and content[-1]["type"] in _THOUGHTS:  # no message may end with one
        content.pop()
    return content


def _shown(block: Block) -> list[dict[str, Any]]:
    found = result_of("anthropic", block)["content"][0]["content"] if block.text.strip() or not _is_text(block) else []
    return [{"type": "text", "text": found}] if isinstance(found, str) else list(found)


def _is_text(block: Block) -> bool:
    return block.kind == "text"


def _sent(piece: Piece) -> Iterator[dict[str, Any]]:
    if piece.call is not None:
        function = piece.call["function"]
        called = {"name": function["name"], "input": json.loads(function["arguments"])}
        yield {"type": "tool_use", "id": piece.call["id"], **called, **(piece.own or {})}
        return
    if piece.text.strip():
        yield {"type": "text", "text": piece.text, **(piece.own or {})}
    elif piece.own:
        yield dict(piece.own)


class _Message(AssembledReading):
    """Events of a message."""

    dialect = "anthropic"

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, Any] = {}
        self._details: Any = None

    def error_in(self, event: Chunk) -> tuple[int, Any] | None:
        error = event.get("error")
        return (status_of(error, _STATUSES), error) if error else None

    def events_of(self, response: Chunk) -> Iterable[Chunk]:
        content = response.get("content")
        if not isinstance(content, list):
            raise Failure("the response is no message")
        yield {"type": "message_start", "message": response}
        for index, block in enumerate(content):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": response, "usage": response.get("usage")}

    def written(self, event: Chunk) -> tuple[str, str]:
        kind = event.get("type")
        usage = inside(event, "message", "usage") or event.get("usage")
        self._counts |= {name: count for name, count in usage.items() if count} if isinstance(usage, Mapping) else {}
        self.is_over = self.is_over or kind == "message_stop"
        if kind == "message_delta":
            self.reason = text_inside(event, "delta", "stop_reason") or self.reason
            self._details = inside(event, "delta", "stop_details") or self._details
        part = {"content_block_start": "content_block", "content_block_delta": "delta"}.get(str(kind), "")
        return text_inside(event, part, "text"), text_inside(event, part, "thinking")

    def pieces(self, messages: list[Any], calls: list[ToolCall]) -> Iterable[Piece]:
        numbered = iter(calls)
        for block in messages[0]["content"] if messages else ():
            kind = block.get("type")
            if kind == "text":
                rest = {name: value for name, value in block.items() if name not in ("type", "text")}
                yield Piece(text_inside(block, "text"), own=rest or None)
            elif kind == "tool_use":
                call = next(numbered)
                yield Piece(call=as_call(call), own=call.provider_meta)
            elif kind not in _THOUGHTS or block.get("signature") or block.get("data"):  # otherwise it was cut
                yield Piece(own=block)

    def finish(self, *, calls: bool) -> tuple[str, str]:
        why = text_inside(self._details, "explanation")
        notice = (f"(The model refused to answer: {why})" if why else REFUSED) if self.reason == "refusal" else ""
        if self.reason == "stop_sequence" and calls:  # after a complete call the reason is "tool_use"
            return "length", notice
        return _FINISH.get(self.reason, "tool_calls" if calls else "stop"), notice

    @property
    def usage(self) -> dict[str, Any]:
        counts = self._counts
        parts = [counts.get(name) for name in
                 ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")]  # fmt: skip
        return usage_of(
            prompt=sum(count for count in parts if type(count) is int) if "input_tokens" in counts else None,
            completion=counts.get("output_tokens"),
            cached=parts[1],
            written=parts[2],
            reasoning=inside(counts.get("output_tokens_details"), "thinking_tokens"),
        )
