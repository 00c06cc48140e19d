"""DashScope: Qwen's models by Alibaba's own protocol. For its compatible mode there is `openai`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from pegboard import Dialect, ToolCall, ToolResult
from pegboard_dialects import _openai
from pegboard_dialects._blocks import text_of
from pegboard_dialects._external import external
from pegboard_dialects._openai import Choice, Message
from pegboard_dialects._reading import (
    Collector,
    as_plain,
    assembled,
    first_object,
    object_in,
    objects_in,
    several,
    text_in,
    unknown_response,
)
from pegboard_dialects._tools import Provider, refuse_subset, wanted

__all__ = ["DIALECT"]

EXPECTED: Final = 'a generation response (result_format="message"), its message or a list of its chunks'
PROVIDER: Final = Provider()


def tools(tools: Iterable[Any]) -> list[dict[str, Any]]:
    """Function definitions, as OpenAI writes them; there is no strict mode."""
    return _openai.functions(PROVIDER.definitions(tools, strict=False))


def _choice_of(chunk: Mapping[str, Any]) -> Choice:
    """What a chunk adds. DashScope calls it a message; the content of a multimodal model consists of parts."""
    choice = first_object(object_in(chunk, "output"), "choices")
    added, reason = object_in(choice, "message"), text_in(choice, "finish_reason")
    if isinstance(added.get("content"), list):
        added = {**added, "content": "".join(text_in(part, "text") for part in objects_in(added, "content"))}
    return Choice(added, "" if reason == _GOES_ON else reason)


_GOES_ON: Final = "null"  # as text


class _TextMessage(Message):
    """A message whose content is always text."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [{**self.message, "content": self.message["content"] or ""}]


def collector(read: Callable[[Any], list[ToolCall]]) -> Collector:
    """Collects the chunks of a streamed generation, made with `incremental_output=True`."""
    return Collector(read, _TextMessage(_choice_of))


def calls(response: Any, *, tools: Sequence[Any] = ()) -> list[ToolCall]:
    """The calls in a response, a message or chunks."""
    found = several(response)
    if found is not None and any("output" in each for each in found):
        return _openai.calls(assembled(found, _TextMessage(_choice_of)), tools=tools)
    plain = as_plain(response) if found is None else found
    if isinstance(plain, Mapping) and isinstance(plain.get("output"), Mapping):
        message, reason = _choice_of(plain)
        whole = {"message": {"role": "assistant", **message}, "finish_reason": reason}
        return _openai.calls({"choices": [whole]}, tools=tools)
    if not isinstance(plain, list) and not (isinstance(plain, Mapping) and plain.keys() & _OF_OPENAI):
        raise unknown_response("dashscope", EXPECTED, plain)
    return _openai.calls(plain, tools=tools)


_OF_OPENAI: Final = frozenset({"choices", "role", "tool_calls"})


def results(results: Iterable[ToolResult]) -> list[dict[str, Any]]:
    """A tool message for each result."""
    return [
        {
            "role": "tool",
            "tool_call_id": result.call_id,
            "name": result.name,
            "content": text_of(result, "a tool message takes text alone"),
        }
        for result in results
    ]


def tool_choice(choice: str | Sequence[str], *, tools: Sequence[Any] = ()) -> Any:
    """The choice as a request holds it. Raises `PegboardError` for a subset of the tools: the provider has no form."""
    read = wanted(choice, [tool.name for tool in tools])
    if read.names is not None and read.mode != "tool":
        refuse_subset("dashscope", read.names)
    return _openai.tool_choice(choice, tools=tools)


def request(
    tools: Sequence[Any], *, choice: str | Sequence[str] = "auto", parallel: bool | None = None
) -> dict[str, Any]:
    """Definitions, choice and parallel calls."""
    definitions = PROVIDER.definitions(tools, strict=False)
    chosen = tool_choice(choice, tools=[each.tool for each in definitions])
    return _openai.arguments(_openai.functions(definitions), chosen, parallel)


DIALECT: Final = Dialect("dashscope", tools, calls, results, tool_choice, PROVIDER.lint, collector, external, request)
