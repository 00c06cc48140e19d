"""The SDKs' types judge what the models send, and the SDKs' clients read what the scripted servers send to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google.genai import Client
from google.genai import types as gemini
from hypothesis import given, settings
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from pegboard_testing import ScriptedServer
from tests.plugins.agent.conversations import Talk, talks
from tests.plugins.agent.desk import KEY
from tests.plugins.agent.test_models import SCRIPTS, agent_on, toolkit
from tests.plugins.agent.wires import WIRES, Say, Wire
from tests.plugins.dialects.sdks.oracles import _check, _check_model

BODIES: dict[str, Any] = {
    "openai": CompletionCreateParamsStreaming,
    "openai-responses": ResponseCreateParamsStreaming,
    "anthropic": MessageCreateParamsStreaming,
}
CONFIG = ("system_instruction", "tools", "tool_config", "safety_settings")
SAY = Say("I look.", (("get_weather", {"city": "Oslo"}), ("add", {"a": 15, "b": 27})), thought="Both.")
each_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
each_way = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "at once"])


@cache
def adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(BODIES[name])


def check_body(wire: Wire, body: Mapping[str, Any]) -> None:
    """Raises what the SDK's types raise, and AssertionError for members that they do not know."""
    if wire.name != "gemini":
        # DeepSeek's member of a message, which compatible servers ask for: not OpenAI's.
        messages = [{k: v for k, v in each.items() if k != "reasoning_content"} for each in body.get("messages", ())]
        _check(adapter(wire.name), {**body, **({"messages": messages} if messages else {})})
        return
    body = dict(body)
    for content in body.pop("contents"):
        _check_model(gemini.Content, _in_other_alphabet(content))
    config = {**body.pop("generation_config", {}), **{name: body.pop(name) for name in CONFIG if name in body}}
    _check_model(gemini.GenerateContentConfig, config)
    assert not body


@each_wire
@each_way
@pytest.mark.parametrize("name", SCRIPTS)
def test_what_models_send(wire: Wire, name: str, stream: bool) -> None:
    with ScriptedServer(*wire.replies(*SCRIPTS[name], stream=stream)) as server:
        agent_on(wire, server).call_sync("What now?")
    for request in server.requests:
        check_body(wire, request)


@each_wire
@given(talk=talks())
@settings(max_examples=50)
def test_any_conversation(wire: Wire, talk: Talk) -> None:
    model = wire.model("m", api_key=KEY)
    dialect = toolkit().dialect(wire.name)
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    option = {"temperature": 0.5} if wire.name == "gemini" else {"service_tier": "auto"}
    choice = {"tool_config" if wire.name == "gemini" else "tool_choice": dialect.tool_choice("required")}
    body = model._body(talk.messages, dialect.tools(), {**choice, **option, "response_format": form})
    check_body(wire, json.loads(json.dumps(body)))


def _in_other_alphabet(value: Any) -> Any:
    """Base64 as the SDK of Gemini writes it."""
    if isinstance(value, list):
        return [_in_other_alphabet(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: each.translate(str.maketrans("+/", "-_")) if name == "data" else _in_other_alphabet(each)
        for name, each in value.items()
    }


def _openai(url: str, stream: bool) -> dict[str, Any]:
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    with openai.OpenAI(base_url=url, api_key=KEY) as client:
        if stream:
            with client.chat.completions.stream(**asked) as events:
                message: Any = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**asked).choices[0].message
    calls = [(each.function.name, json.loads(each.function.arguments)) for each in message.tool_calls or ()]
    return {"text": message.content, "calls": calls, "thought": getattr(message, "reasoning_content", None)}


def _openai_responses(url: str, stream: bool) -> dict[str, Any]:
    with openai.OpenAI(base_url=url, api_key=KEY) as client:
        if stream:
            with client.responses.stream(model="m", input="hi") as events:
                response: Any = events.get_final_response()
        else:
            response = client.responses.create(model="m", input="hi")
    calls = [(item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
    (thought,) = [item.summary[0].text for item in response.output if item.type == "reasoning"]
    return {"text": response.output_text, "calls": calls, "thought": thought}


def _anthropic(url: str, stream: bool) -> dict[str, Any]:
    asked: Any = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
    with anthropic.Anthropic(base_url=url, api_key=KEY) as client:
        if stream:
            with client.messages.stream(**asked) as events:
                message: Any = events.get_final_message()
        else:
            message = client.messages.create(**asked)
    found: dict[str, Any] = {"calls": []}
    for block in message.content:
        if block.type == "tool_use":
            found["calls"].append((block.name, block.input))
        elif block.type in ("text", "thinking"):
            found["text" if block.type == "text" else "thought"] = getattr(block, block.type)
    assert message.usage.output_tokens == 5
    return found


def _gemini(url: str, stream: bool) -> dict[str, Any]:
    with Client(api_key=KEY, http_options=gemini.HttpOptions(base_url=url)) as client:
        if stream:
            chunks: list[Any] = list(client.models.generate_content_stream(model="m", contents="hi"))
        else:
            chunks = [client.models.generate_content(model="m", contents="hi")]
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
    return {
        "text": "".join(part.text for part in parts if part.text and not part.thought),
        "calls": [(part.function_call.name, part.function_call.args) for part in parts if part.function_call],
        "thought": "".join(part.text for part in parts if part.text and part.thought),
    }


CLIENTS = {
    "openai": _openai,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}


@each_wire
@each_way
def test_what_clients_read(wire: Wire, stream: bool) -> None:
    with ScriptedServer(*wire.replies(SAY, stream=stream)) as server:
        read = CLIENTS[wire.name](server.url, stream)
    assert read == {"text": SAY.text, "calls": list(SAY.calls), "thought": SAY.thought}
