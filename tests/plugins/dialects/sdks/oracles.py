"""What the SDKs' own types say of what we render."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from anthropic.types import MessageParam, ToolChoiceParam, ToolUnionParam
from dashscope.api_entities.dashscope_response import Message
from google.genai import types as gemini
from mcp_types import CallToolResult
from mcp_types import Tool as McpTool
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolChoiceOptionParam, ChatCompletionToolParam
from openai.types.responses import ResponseInputItemParam, ToolParam, response_create_params
from pydantic import BaseModel, TypeAdapter

__all__ = ["check_choice", "check_definition", "check_message"]


@cache
def _adapter(name: str, what: str) -> TypeAdapter[Any]:
    kinds: dict[tuple[str, str], Any] = {
        ("openai", "definition"): ChatCompletionToolParam,
        ("openai", "message"): ChatCompletionMessageParam,
        ("openai", "choice"): ChatCompletionToolChoiceOptionParam,
        ("openai-responses", "definition"): ToolParam,
        ("openai-responses", "message"): ResponseInputItemParam,
        ("openai-responses", "choice"): response_create_params.ToolChoice,
        ("anthropic", "definition"): ToolUnionParam,
        ("anthropic", "message"): MessageParam,
        ("anthropic", "choice"): ToolChoiceParam,
        # The SDK has no types of its own for these: it speaks of OpenAI's.
        ("dashscope", "definition"): ChatCompletionToolParam,
        ("dashscope", "choice"): ChatCompletionToolChoiceOptionParam,
    }
    return TypeAdapter(kinds[name, what])


def check_definition(name: str, definition: Any) -> None:
    """Raises what the SDK's type raises, and AssertionError for members that it does not know."""
    if name == "gemini":
        _check_model(gemini.Tool, definition)
    elif name == "mcp":
        _check_model(McpTool, definition)
    else:
        _check(_adapter(name, "definition"), definition)


def check_message(name: str, message: Any) -> None:
    """The same for what is appended to a conversation."""
    if name == "gemini":
        _check_model(gemini.Content, message)
    elif name == "mcp":
        _check_model(CallToolResult, message)
    elif name == "dashscope":
        assert dict(Message(**message)) == message
        _check(_adapter("openai", "message"), {key: value for key, value in message.items() if key != "name"})
    else:
        _check(_adapter(name, "message"), message)


def check_choice(name: str, choice: Any) -> None:
    """The same for a tool choice."""
    if name == "gemini":
        _check_model(gemini.ToolConfig, choice)
    else:
        _check(_adapter(name, "choice"), choice)


def _check(adapter: TypeAdapter[Any], value: Any) -> None:
    # Members that the SDK's dicts do not know are dropped by pydantic, so that they would be missing here.
    assert _plain(adapter.validate_python(value)) == value


def _check_model(model: type[BaseModel], value: Any) -> None:
    """Models refuse members that they do not know, and what they keep goes out as it came in."""
    assert _told(value) <= _told(model.model_validate(value).model_dump(mode="json", exclude_unset=True))


def _told(value: Any, path: str = "") -> set[str]:
    """Every atom with where it stands; a name in Python and in JSON are the same name."""
    if isinstance(value, Mapping):
        return {each for key, inner in value.items() for each in _told(inner, f"{path}.{key.replace('_', '').lower()}")}
    if isinstance(value, list):
        return {each for number, inner in enumerate(value) for each in _told(inner, f"{path}.{number}")}
    return {f"{path}={value!r}"}


def _plain(value: Any) -> Any:
    """Dicts and lists; pydantic reads an Iterable only as it is iterated."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, Iterator) or (isinstance(value, Iterable) and not isinstance(value, (str, bytes))):
        return [_plain(inner) for inner in value]
    return value
