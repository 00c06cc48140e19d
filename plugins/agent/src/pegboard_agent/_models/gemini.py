"""Google's Gemini over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, final
from urllib.parse import quote

from pegboard import Block, ExecutionPolicy, ToolCall
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
from pegboard_agent._models.provider import Piece
from pegboard_agent._models.server import DEADLINE, Chunk, Failure, Key, Reading, ServerModel, offering
from pegboard_agent._models.turns import Turn, history_of

__all__ = ["GeminiChat"]

GEMINI: Final = "https://generativelanguage.googleapis.com/v1beta"
UNSIGNED: Final = "skip_thought_signature_validator"
"""Google's value for the missing signature of a call that another provider's model made."""
_TOP: Final = frozenset((
    "cached_content", "contents", "labels", "safety_settings", "service_tier", "store", "system_instruction",
    "tool_config", "tools",
))  # fmt: skip
"""Members of a request; all other options belong to its `generation_config`."""
_FINISH: Final = {"STOP": "stop", "FINISH_REASON_UNSPECIFIED": "stop", "MAX_TOKENS": "length", "CONTINUATION": "length"}
_MALFORMED: Final = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"})
"""Reasons of a response that cannot be used; another attempt may succeed."""
_RETRY_DELAY: Final = re.compile(r'"retryDelay":\s*"(\d{1,9}(?:\.\d+)?)s"')


@final
class GeminiChat(ServerModel):
    """A model behind Google's Gemini API.

    Raises ValueError for a key that cannot be sent and for a deadline that is not above 0, TypeError for a key that is
    not text.

    Args:
        model: Name of the model, as the server has it.
        base_url: Address of the server, with the version. Google's by default.
        api_key: The key. None reads `GEMINI_API_KEY`.
        policy: How often a request is tried, as in `OpenAIChat`.
        deadline: Seconds for a complete response, all attempts included; 1,800 by default. None for no deadline.
        options: Members of every request, such as `safety_settings`, and those of its `generation_config`, such as
            `temperature` or `thinking_config`. `tool_config` goes only into those with tools.
    """

    dialect: ClassVar[str] = "gemini"
    keeps: ClassVar[bool] = True
    """A request can forbid calls of some of the listed tools."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str = GEMINI,
        api_key: Key = None,
        policy: ExecutionPolicy | None = None,
        deadline: float | None = DEADLINE,
        **options: Any,
    ) -> None:
        super().__init__(model, base_url, api_key, policy, deadline, options)

    @property
    def _variable(self) -> str:
        return "GEMINI_API_KEY"

    @property
    def _path(self) -> str:
        named = self.model if "/" in self.model else f"models/{self.model}"
        return f"/{quote(named)}:streamGenerateContent?alt=sse"

    def _key_headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def _body(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], options: Chunk) -> Chunk:
        history = history_of(self.dialect, messages)
        turns = [{"role": "user" if turn.is_user else "model", "parts": _parts(turn, history.meta)}
                 for turn in history.turns]  # fmt: skip
        body: dict[str, Any] = {"contents": [turn for turn in turns if turn["parts"]]}
        if history.system.strip():
            body["system_instruction"] = {"parts": [{"text": history.system}]}
        given = {**({"tools": tools} if tools else {}), **self.options, **options}
        config = {**given.pop("generation_config", {}), **_format(given.pop("response_format", None))}
        config |= {name: value for name, value in given.items() if name not in _TOP}
        body |= {name: value for name, value in given.items() if name in _TOP}
        return offering({**body, **({"generation_config": config} if config else {})}, "tool_config")

    def _reading(self) -> Reading:
        return _Content()

    def _wait_named(self, headers: Mapping[str, str], body: str) -> float | None:
        found = _RETRY_DELAY.search(body)  # Google sends it here, and not in a header
        return float(found[1]) if found else super()._wait_named(headers, body)


def _format(form: Any) -> dict[str, Any]:
    if form is None:
        return {}
    schema = inside(form, "json_schema", "schema")
    return {"response_mime_type": "application/json", **({"response_json_schema": schema} if schema else {})}


def _parts(turn: Turn, meta: Mapping[str, Any]) -> list[dict[str, Any]]:
    if turn.is_user:
        results = [part for content in library_dialect("gemini").results(turn.results, meta=meta)
                   for part in content["parts"]]  # fmt: skip
        return [*results, *(shown for block in turn.blocks for shown in _shown(block))]
    parts = [part for piece in turn.pieces for part in _sent(piece)]
    first = next((part for part in parts if "function_call" in part), {})
    if first and all(piece.own is None for piece in turn.pieces if piece.call is not None):
        first["thought_signature"] = UNSIGNED
    return parts


def _shown(block: Block) -> list[dict[str, Any]]:
    if block.kind == "text":
        return [{"text": block.text}] if block.text else []
    function = result_of("gemini", block)["parts"][0]["function_response"]
    parts: list[dict[str, Any]] = function.get("parts") or [{"text": function["response"]["output"]}]
    return parts


def _sent(piece: Piece) -> Iterator[dict[str, Any]]:
    own = dict(piece.own or {})
    if piece.call is not None:
        function, call_id = piece.call["function"], {"id": piece.call["id"]} if own.pop("id", True) else {}
        arguments = json.loads(function["arguments"])
        yield {"function_call": {**call_id, "name": function["name"], "args": arguments}, **own}
    elif piece.text or piece.own is not None:
        yield {**({"text": piece.text} if piece.text or own.pop("text", None) is not None else {}), **own}


class _Content(AssembledReading):
    """Reads the chunks of a content."""

    dialect = "gemini"

    def __init__(self) -> None:
        super().__init__()
        self._counts: Any = None
        self._message = ""

    def events_of(self, response: Chunk) -> Iterable[Chunk]:
        return (response,)

    def written(self, event: Chunk) -> tuple[str, str]:
        self._counts = event.get("usageMetadata") or self._counts
        self.reason = (
            text_inside(event, "candidates", 0, "finishReason")
            or text_inside(event, "promptFeedback", "blockReason")
            or self.reason
        )
        self._message = (
            text_inside(event, "candidates", 0, "finishMessage")
            or text_inside(event, "promptFeedback", "blockReasonMessage")
            or self._message
        )
        if self.reason in _MALFORMED:
            raise Failure(f"the response ended with {self.reason}")
        parts = list_inside(event, "candidates", 0, "content", "parts")
        texts = [part for part in parts if text_inside(part, "text")]
        text, thought = ([part["text"] for part in texts if bool(part.get("thought")) is is_thought]
                         for is_thought in (False, True))  # fmt: skip
        return "".join(text), "".join(thought)

    def pieces(self, messages: list[Any], calls: list[ToolCall]) -> Iterable[Piece]:
        numbered = iter(calls)
        for part in messages[0]["parts"]:
            own = {name: value for name, value in part.items() if name not in ("text", "thought")}
            if "function_call" in part:
                call = next(numbered)
                yield Piece(call=as_call(call), own={"id": call.id, **call.provider_meta})
            elif not part.get("thought") or "thoughtSignature" in part:
                text = "" if part.get("thought") else text_inside(part, "text")
                yield Piece(text, own={**own, **({} if text else {"text": ""})} if own else None)

    def finish(self, *, calls: bool) -> tuple[str, str]:
        finish = _FINISH.get(self.reason, "content_filter")
        if finish == "content_filter":
            why = f"{self.reason}: {self._message}" if self._message else self.reason
            return finish, f"(The server held the answer back: {why})"
        return "tool_calls" if finish == "stop" and calls else finish, ""

    @property
    def usage(self) -> dict[str, Any]:
        def count(*names: str) -> int | None:
            found = [each for name in names if type(each := inside(self._counts, name)) is int]
            return sum(found) if found else None

        return usage_of(
            prompt=count("promptTokenCount", "toolUsePromptTokenCount"),
            completion=count("candidatesTokenCount", "thoughtsTokenCount"),
            cached=count("cachedContentTokenCount"),
            written=None,
            reasoning=count("thoughtsTokenCount"),
        )
