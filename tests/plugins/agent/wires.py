"""The formats of four providers, as their servers send them: one reply, written down once, in each of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

from attrs import field, frozen

from pegboard import BoundDialect, Toolkit
from pegboard_agent import AnthropicChat, GeminiChat, OpenAIChat, OpenAIResponses
from pegboard_testing import Raw, ScriptedServer
from tests.plugins.agent.desk import AT_ONCE, KEY

__all__ = ["WIRES", "InDialect", "Say", "Wire", "model_on", "request_of"]

Event = dict[str, Any]
SIGNED = "c2lnbmVk"
"""Stands for a signature, or for encrypted reasoning."""
ENDS = {
    "anthropic": {"length": "max_tokens", "refusal": "refusal"},
    "gemini": {"length": "MAX_TOKENS", "refusal": "SAFETY"},
}

PARTS = {
    "summary_text": ("reasoning_summary_text", "text"),
    "output_text": ("output_text", "text"),
    "refusal": ("refusal", "refusal"),
}
"""Parts of items of Responses: what their events are called, and the member that is their text."""


@frozen
class Say:
    """What a model says. `cut`: the last call has only begun. `ends`: "", "length" or "refusal"."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    thought: str = ""
    ends: str = ""
    cut: bool = False
    tokens: bool = True

    def arguments(self, number: int) -> str:
        text = json.dumps(self.calls[number][1])
        return text[:8] if self.cut and number == len(self.calls) - 1 else text


def call_id(request: Mapping[str, Any], number: int) -> str:
    """The same call has the same id with each provider; it is new in the conversation."""
    turns = request.get("messages") or request.get("contents") or request.get("input") or ()
    said = [turn for turn in turns if isinstance(turn, dict) and _is_said(turn)]
    return f"call_{len(said)}_{number}"


def _is_said(turn: Mapping[str, Any]) -> bool:
    return turn.get("role") in ("assistant", "model") or turn.get("type") == "function_call"


def pieces(text: str) -> Iterator[str]:
    yield from (text[begin : begin + 7] for begin in range(0, len(text), 7))


def chat(say: Say, request: Mapping[str, Any]) -> Iterator[Event]:
    def event(delta: Event, finish: str | None = None) -> Event:
        return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield event({"role": "assistant", "content": ""})
    yield from (event({"reasoning_content": piece}) for piece in pieces(say.thought))
    yield from (event({"content": piece}) for piece in pieces(say.text))
    if say.ends == "refusal":
        yield event({"refusal": "I may not say that."})
    for number, (name, _) in enumerate(say.calls):
        begun = {"index": number, "id": call_id(request, number), "type": "function"}
        yield event({"tool_calls": [{**begun, "function": {"name": name, "arguments": ""}}]})
        for piece in pieces(say.arguments(number)):
            yield event({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield event({}, "length" if say.ends == "length" else "tool_calls" if say.calls else "stop")
    if say.tokens:
        details = {"cached_tokens": 4, "cache_write_tokens": 3}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": details}
        yield {"choices": [], "usage": {**usage, "completion_tokens_details": {"reasoning_tokens": 2}}}


def chat_whole(say: Say, request: Mapping[str, Any]) -> Event:
    calls = [{"id": call_id(request, number), "type": "function",
              "function": {"name": name, "arguments": say.arguments(number)}}
             for number, (name, _) in enumerate(say.calls)]  # fmt: skip
    *_, last = chat(say, request)
    message = {"role": "assistant", "content": say.text or None, **({"tool_calls": calls} if calls else {})}
    message |= {"reasoning_content": say.thought} if say.thought else {}
    message |= {"refusal": "I may not say that."} if say.ends == "refusal" else {}
    finish = "length" if say.ends == "length" else "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"object": "chat.completion", "choices": [choice], **({"usage": last["usage"]} if say.tokens else {})}


def items(say: Say, request: Mapping[str, Any]) -> list[Event]:
    found: list[Event] = []
    if say.thought:
        summary = [{"type": "summary_text", "text": say.thought}]
        found.append({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": SIGNED})
    refusal = {"type": "refusal", "refusal": "I may not say that."}
    content: list[Event] = [{"type": "output_text", "text": say.text, "annotations": []}] if say.text else []
    content += [refusal] if say.ends == "refusal" else []
    if content:
        status = "incomplete" if say.ends == "length" and not say.calls else "completed"
        found.append({"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content})
    for number, (name, _) in enumerate(say.calls):
        named = {"type": "function_call", "id": f"fc_{number}", "call_id": call_id(request, number), "name": name}
        is_cut = say.cut and number == len(say.calls) - 1
        status = "incomplete" if is_cut else "completed"
        found.append({**named, "arguments": say.arguments(number), "status": status})
    return found


def responses_whole(say: Say, request: Mapping[str, Any]) -> Event:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
             "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
             "output_tokens_details": {"reasoning_tokens": 2}}  # fmt: skip
    why = {"incomplete_details": {"reason": "max_output_tokens"}} if say.ends == "length" else {}
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": [], "error": None}  # fmt: skip
    status = "incomplete" if why else "completed"
    return {**head, "status": status, **why, "output": items(say, request), "usage": usage if say.tokens else None}


def responses(say: Say, request: Mapping[str, Any]) -> Iterator[Event]:
    whole = responses_whole(say, request)
    numbers = count()

    def event(kind: str, **data: Any) -> Event:
        return {"type": kind, "sequence_number": next(numbers), **data}

    yield event("response.created", response={**whole, "output": [], "status": "in_progress"})
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        begun = {**item, "status": "in_progress", **({"arguments": ""} if "arguments" in item else {})}
        begun |= {"content": []} if item["type"] == "message" else {}
        begun |= {"encrypted_content": "aW5j", "summary": []} if item["type"] == "reasoning" else {}
        yield event("response.output_item.added", output_index=index, item=begun)
        for number, part in enumerate(item.get("summary") or item.get("content") or ()):
            kind, member = PARTS[part["type"]]
            place = {**at, "summary_index" if kind.startswith("reasoning") else "content_index": number}
            added = "reasoning_summary_part" if kind.startswith("reasoning") else "content_part"
            yield event(f"response.{added}.added", part={**part, member: ""}, **place)
            for piece in pieces(part[member]):
                yield event(f"response.{kind}.delta", delta=piece, **place)
        for piece in pieces(item.get("arguments", "")):
            yield event("response.function_call_arguments.delta", delta=piece, **at)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event(f"response.{whole['status']}", response=whole)


def blocks(say: Say, request: Mapping[str, Any]) -> list[Event]:
    found: list[Event] = []
    if say.thought:
        found.append({"type": "thinking", "thinking": say.thought, "signature": SIGNED})
        found.append({"type": "redacted_thinking", "data": SIGNED})
    found += [{"type": "text", "text": say.text, "citations": None}] if say.text else []
    for number, (name, arguments) in enumerate(say.calls):
        cut = say.cut and number == len(say.calls) - 1
        named = {"type": "tool_use", "id": call_id(request, number), "name": name}
        found.append({**named, "input": {} if cut else arguments, "caller": {"type": "direct"}})
    return found


def anthropic_whole(say: Say, request: Mapping[str, Any]) -> Event:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3, "output_tokens": 5}
    details = {"output_tokens_details": {"thinking_tokens": 2}}
    reason = ENDS["anthropic"].get(say.ends, "tool_use" if say.calls else "end_turn")
    refused = {"type": "refusal", "category": None, "explanation": "I may not say that."}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": blocks(say, request),
        "stop_reason": reason,
        "stop_sequence": None,
        "stop_details": refused if say.ends == "refusal" else None,
        "usage": {**usage, **details} if say.tokens else {},
    }


def anthropic(say: Say, request: Mapping[str, Any]) -> Iterator[Event]:
    whole = anthropic_whole(say, request)
    usage = {**whole["usage"], "output_tokens": 1} if say.tokens else {}
    begun: Event = {"content": [], "stop_reason": None, "stop_details": None, "usage": usage}
    yield {"type": "message_start", "message": {**whole, **begun}}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        deltas: list[Event] = []
        empty: Event = {}
        if block["type"] == "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
            empty = {"text": ""}
        elif block["type"] == "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            empty = {"thinking": "", "signature": ""}
        elif block["type"] == "tool_use":
            number = [each for each in whole["content"] if each["type"] == "tool_use"].index(block)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(say.arguments(number))]
            empty = {"input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    delta = {name: whole[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    yield {"type": "message_delta", "delta": delta, "usage": whole["usage"]}
    yield {"type": "message_stop"}


def parts(say: Say, request: Mapping[str, Any]) -> list[Event]:
    found: list[Event] = [{"text": say.thought, "thought": True}] if say.thought else []
    found += [{"text": say.text}] if say.text else []
    signed = {"thoughtSignature": SIGNED} if say.thought else {}
    for number, (name, arguments) in enumerate(say.calls):
        call = {"id": call_id(request, number), "name": name, "args": arguments}
        found.append({"functionCall": call, **(signed if number == 0 else {})})
    return found + ([{"text": "", **signed}] if signed and not say.calls else [])


def candidate(*parts: Event, **members: Any) -> Event:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0, **members}]}


def gemini_tail(say: Say) -> Event:
    counts = {"promptTokenCount": 10, "candidatesTokenCount": 3, "thoughtsTokenCount": 2, "totalTokenCount": 15}
    told = {"usageMetadata": {**counts, "cachedContentTokenCount": 4}} if say.tokens else {}
    reason = {"finishReason": ENDS["gemini"].get(say.ends, "STOP")}
    return {"reason": reason, "told": told}


def gemini_whole(say: Say, request: Mapping[str, Any]) -> Event:
    tail = gemini_tail(say)
    message = {"finishMessage": "I may not say that."} if say.ends == "refusal" else {}
    return {**candidate(*parts(say, request), **tail["reason"], **message), **tail["told"]}


def gemini(say: Say, request: Mapping[str, Any]) -> Iterator[Event]:
    for part in parts(say, request):
        if "text" in part and "thoughtSignature" not in part:
            yield from (candidate({**part, "text": piece}) for piece in pieces(part["text"]))
        else:
            yield candidate(part)
    tail = gemini_tail(say)
    message = {"finishMessage": "I may not say that."} if say.ends == "refusal" else {}
    yield {**candidate(**tail["reason"], **message), **tail["told"]}


@frozen
class Wire:
    """A provider's format, and the model that speaks it."""

    name: str
    model: Callable[..., Any]
    variable: str
    path: str
    key: str
    """The header that carries the key."""
    events: Callable[[Say, Mapping[str, Any]], Iterator[Event]] = field(repr=False)
    whole: Callable[[Say, Mapping[str, Any]], Event] = field(repr=False)
    done: str = ""
    error: Callable[[str, str], Event] = lambda kind, message: {"error": {"type": kind, "message": message}}

    def stream(self, say: Say, request: Mapping[str, Any] = {}, *, most: int | None = None) -> Raw:
        """A reply as a stream, or its first events."""
        lines = [f"{_named(event)}data: {json.dumps(event)}\n\n" for event in self.events(say, request)]
        return Raw("".join(lines) + self.done if most is None else "".join(lines[:most]))

    def at_once(self, say: Say, request: Mapping[str, Any] = {}) -> Raw:
        return Raw(json.dumps(self.whole(say, request)), "application/json")

    def replies(self, *script: Any, stream: bool = True) -> list[Any]:
        """Replies of a `ScriptedServer`; what is no `Say` stays as it is."""
        form = self.stream if stream else self.at_once

        def reply(say: Say) -> Callable[[dict[str, Any]], Raw]:
            return lambda request: form(say, request)

        return [reply(each) if isinstance(each, Say) else each for each in script]


def model_on(wire: Wire, server: ScriptedServer, **options: Any) -> Any:
    """A model of that provider behind a server."""
    return wire.model("scripted", base_url=server.url, **{"api_key": KEY, "policy": AT_ONCE, **options})


def request_of(dialect: BoundDialect, choice: Any = "auto", **options: Any) -> tuple[list[Any], dict[str, Any]]:
    """What a request of the dialect holds, as a model takes it: the definitions of tools, and all else."""
    found = dialect.request(choice, **options)
    found |= found.pop("config", {})
    return found.pop("tools", []), found


class InDialect:
    """A model that is given definitions of tools as its dialect has them, whatever the agent hands over."""

    def __init__(self, model: Any, toolkit: Toolkit) -> None:
        self.model = model
        self.dialect, self.keeps = model.dialect, model.keeps
        self.chat = toolkit.dialect(model.dialect)

    async def stream(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], **options: Any) -> Any:
        definitions, choice = request_of(self.chat, keep=self.keeps) if tools else ([], {})
        async for chunk in self.model.stream(messages, definitions, **{**choice, **options}):
            yield chunk


def _named(event: Event) -> str:
    return f"event: {event['type']}\n" if "type" in event else ""


def _failed(kind: str, message: str) -> Event:
    return {"type": "response.failed", "response": {"status": "failed", "error": {"code": kind, "message": message}}}


WIRES = (
    Wire("openai", OpenAIChat, "OPENAI_API_KEY", "/chat/completions", "authorization", chat, chat_whole,
         "data: [DONE]\n\n"),
    Wire("openai-responses", OpenAIResponses, "OPENAI_API_KEY", "/responses", "authorization", responses,
         responses_whole, error=_failed),
    Wire("anthropic", AnthropicChat, "ANTHROPIC_API_KEY", "/messages", "x-api-key", anthropic, anthropic_whole,
         error=lambda kind, message: {"type": "error", "error": {"type": kind, "message": message}}),
    Wire("gemini", GeminiChat, "GEMINI_API_KEY", "/models/scripted:streamGenerateContent?alt=sse", "x-goog-api-key",
         gemini, gemini_whole),
)  # fmt: skip
