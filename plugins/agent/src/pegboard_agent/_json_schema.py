"""Tools for small models: the server holds the model to a JSON Schema, and calls and results are text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pegboard_agent._models.model import new_id

__all__ = ["NO_STEP", "in_words", "step_in"]

INSTRUCTION: Final = """\
Work step by step. Each step is one JSON object and nothing else: {"name": ..., "arguments": {...}}. It calls one of
these tools, and you are told its result. Do what was asked and no more. When nothing is left to do, call """

NEXT: Final = """

The request was: {request}
If all of it is done now, give the final answer, in whole sentences, with everything that was asked for. Else call the
tool for what is missing."""
"""The text after the last result: small models forget the question, and do not know when they are done."""

NO_STEP: Final = 'that is no JSON object of the form {"name": ..., "arguments": {...}}'
_REFERENCE: Final = '"$ref": "#'


def in_words(
    messages: list[dict[str, Any]], tools: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The request in this form: messages after a description of the tools, and options that allow only their calls."""
    functions = [tool["function"] for tool in tools]
    described = [
        f"- {each['name']}: {each.get('description', '')}\n  {json.dumps(each['parameters'])}" for each in functions
    ]
    prompt = "\n".join([f"{INSTRUCTION}{functions[-1]['name']}.", *described])
    if messages and messages[0]["role"] == "system":
        prompt = f"{messages[0]['content']}\n\n{prompt}"
        messages = messages[1:]
    schema = {"name": "next_step", "schema": _any_of(functions)}
    options = {"response_format": {"type": "json_schema", "json_schema": schema}}
    return [{"role": "system", "content": prompt}, *_as_texts(messages)], options


def step_in(text: str) -> dict[str, Any] | None:
    """The one call in a model's text, as a message of chat completions; None if there is none."""
    try:
        step = json.loads(text)
        function = {"name": str(step["name"]), "arguments": json.dumps(step["arguments"], ensure_ascii=False)}
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    call = {"id": new_id(), "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _any_of(functions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A schema for a call of any of the functions. A schema that refers to itself stays whole, as a definition."""
    calls: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    for function in functions:
        name, parameters = function["name"], function["parameters"]
        written = json.dumps(parameters)
        if _REFERENCE in written:  # only a member looks like this: in a text the quotes would be escaped
            definitions[name] = json.loads(written.replace(_REFERENCE, f"{_REFERENCE}/$defs/{name}"))
            parameters = {"$ref": f"#/$defs/{name}"}
        members = {"name": {"type": "string", "const": name}, "arguments": parameters}
        required = ["name", "arguments"]
        calls.append({"type": "object", "properties": members, "required": required, "additionalProperties": False})
    return {"anyOf": calls, **({"$defs": definitions} if definitions else {})}


def _as_texts(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages with calls and results as text, in the form in which the model has to write calls."""
    texts: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    request: Any = None
    for message in messages:
        role, content = message["role"], message["content"]
        if message.get("tool_calls"):
            calls = [call["function"] for call in message["tool_calls"]]
            names = {call["id"]: call["function"]["name"] for call in message["tool_calls"]}
            steps = [f'{{"name": {json.dumps(call["name"])}, "arguments": {call["arguments"]}}}' for call in calls]
            texts.append({"role": "assistant", "content": "\n".join(steps)})
        elif role == "tool":
            texts.append({"role": "user", "content": f"Result of {names.get(message['tool_call_id'])}: {content}"})
        else:
            texts.append(message)
            request = content if role == "user" else request
    if messages and messages[-1]["role"] == "tool" and isinstance(request, str):
        texts[-1]["content"] += NEXT.format(request=request)
    return texts
