"""Anthropic's messages: content blocks, images and documents in results."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Final

from pegboard import Block, Dialect, FileBlock, Tool, ToolCall, ToolResult
from pegboard_dialects._blocks import NOTHING, Media, as_text, content_of, file_text, is_picture, media_type_of
from pegboard_dialects._cut import LENGTH, STOPPED, UNFINISHED, why_cut
from pegboard_dialects._external import external
from pegboard_dialects._losses import Loss
from pegboard_dialects._reading import (
    Collector,
    as_plain,
    assembled,
    decoded,
    number_in,
    object_in,
    objects_in,
    several,
    text_in,
    unknown_response,
)
from pegboard_dialects._schemas import Rules, words
from pegboard_dialects._tools import Definition, Provider, Wanted, call_of, refuse_subset, searches, wanted

__all__ = ["DIALECT"]

EXPECTED: Final = "a message, its content or a list of stream events"
CUTTING: Final = {
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), LENGTH),
    # After a stop sequence, too: a call that is whole ends a message with the reason `tool_use`.
    **dict.fromkeys(("refusal", "stop_sequence"), STOPPED),
}
"""Values of `stop_reason` after which the last call may not be whole."""


def _stays(keyword: str, value: Any) -> bool:
    return keyword != "minItems" or value in (0, 1)


STRICT: Final = Rules(
    keywords=words(
        "additionalProperties anyOf const description enum format items minItems properties required title type"
    ),
    formats=words("date date-time duration email hostname ipv4 ipv6 time uri uuid"),
    stays=_stays,
    closed=True,
    typed=True,
    bare_choices=True,
)
PROVIDER: Final = Provider(strict=STRICT, takes=frozenset({"defer", "examples"}), members=r"[A-Za-z0-9_.-]{1,64}")
SEARCH: Final = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}


def tools(tools: Iterable[Tool], *, strict: bool = False) -> list[dict[str, Any]]:
    """Tool definitions. Anthropic's search comes with deferred ones, unless Pegboard's own search is offered."""
    return _listed(PROVIDER.definitions(tools, strict))


def _listed(definitions: Sequence[Definition]) -> list[dict[str, Any]]:
    deferring = not searches(each.tool for each in definitions)
    found = [_definition(each, deferring) for each in definitions]
    first = next((place for place, each in enumerate(found) if "defer_loading" in each), None)
    # The search follows the first of them: there it keeps its place when definitions are added.
    return found if first is None else [*found[: first + 1], dict(SEARCH), *found[first + 1 :]]


def _definition(each: Definition, deferring: bool) -> dict[str, Any]:
    options = each.tool.options
    examples = [as_plain(example) for example in options.examples if isinstance(example, Mapping)]
    return {
        "name": each.tool.name,
        **each.described,
        "input_schema": each.parameters,
        **({"strict": True} if each.strict else {}),
        **({"input_examples": examples} if examples else {}),
        **({"defer_loading": True} if deferring and options.defer else {}),
    }


def lint(tools: Iterable[Tool], *, strict: bool = False) -> list[Loss]:
    """The losses: what the definitions do not carry."""
    return PROVIDER.lint(tools, strict=strict)


class Content:
    """The blocks of a message, put together from events."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._ended: set[int] = set()
        self._reason = UNFINISHED

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event."""
        kind, index = event.get("type"), number_in(event, "index")
        if kind == "content_block_start":
            self._blocks[index] = dict(object_in(event, "content_block"))
        elif kind == "content_block_delta":
            self._add_delta(index, object_in(event, "delta"))
        elif kind == "content_block_stop":
            self._ended.add(index)
        elif kind == "message_delta":
            self._reason = text_in(object_in(event, "delta"), "stop_reason") or self._reason

    def _add_delta(self, index: int, delta: Mapping[str, Any]) -> None:
        block, kind = self._blocks.setdefault(index, {}), text_in(delta, "type")
        if kind == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + text_in(delta, "partial_json")
        elif kind == "citations_delta":
            block["citations"] = [*objects_in(block, "citations"), object_in(delta, "citation")]
        elif kind in _DELTAS:
            name = kind.removesuffix("_delta")
            block[name] = text_in(block, name) + text_in(delta, name)

    @property
    def response(self) -> dict[str, Any]:
        """The message so far; input that is not a JSON object is text."""
        return {"role": "assistant", "content": self._content, "stop_reason": self._reason}

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The message, to append to the conversation; an empty list if the message is empty."""
        content = [_sent_back(block) for block in self._content if not _is_blank(block)]
        return [{"role": "assistant", "content": content}] if content else []

    @property
    def _content(self) -> list[dict[str, Any]]:
        return [{**block, **self._input(index, block)} for index, block in sorted(self._blocks.items())]

    def _input(self, index: int, block: Mapping[str, Any]) -> dict[str, Any]:
        """The input that came in pieces. That of an unfinished call is text, which may be empty."""
        text = self._inputs.get(index, "")
        if index not in self._ended and block.get("type") == "tool_use" and not block.get("input"):
            value = decoded(text)
            return {"input": value if text and isinstance(value, dict) else text}
        return {"input": decoded(text)} if index in self._inputs else {}


_DELTAS: Final = ("text_delta", "thinking_delta", "signature_delta")
_EVENTS: Final = frozenset(
    {"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "ping"}
)


def collector(read: Callable[[Any], list[ToolCall]]) -> Collector:
    """Collects the events of a streamed message."""
    return Collector(read, Content())


def _is_blank(block: Mapping[str, Any]) -> bool:
    """Whether the block is an empty text, which a request may not hold."""
    return block.get("type") == "text" and not text_in(block, "text").strip()


def _sent_back(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block as a request takes it: the input of a call must be an object."""
    kept = {name: value for name, value in block.items() if value is not None}
    return {**kept, "input": {"INVALID_JSON": kept["input"]}} if isinstance(kept.get("input"), str) else kept


def calls(response: Any, *, tools: Sequence[Tool] = ()) -> list[ToolCall]:
    """The calls among the blocks of a message. The provider runs those of server tools: they are left out."""
    blocks, reason = _blocks_of(response)
    found = [block for block in blocks if block.get("type") == "tool_use"]
    return [
        call_of(block.get("id"), block.get("name"), sent, _meta(block), tools, cut=cut)
        for block in found
        for sent in [block.get("input")]
        for cut in [why_cut(reason, CUTTING, sent, last=block is found[-1])]
    ]


def _meta(block: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name not in ("type", "id", "name", "input")}


def _blocks_of(response: Any) -> tuple[list[Mapping[str, Any]], str]:
    """The blocks of a response in any form, and why the message ended; an empty text if that is not known."""
    found = several(response)
    plain: Any = as_plain(response) if found is None else None
    if found is None and not (isinstance(plain, Mapping) and plain.keys() & {"content", "type"}):
        raise unknown_response("anthropic", EXPECTED, plain)
    found = [plain] if found is None else found
    if any(text_in(each, "type") in _EVENTS for each in found):
        plain = assembled(found, Content())
    if plain is not None and "content" in plain and plain.get("type") in ("message", None):
        return objects_in(plain, "content"), text_in(plain, "stop_reason")
    return found, ""


def results(results: Iterable[ToolResult], *, meta: Mapping[str, Mapping[str, Any]] | None = None) -> list[Any]:
    """One message of the user with a block for each result; an empty list if there are no results."""
    blocks = [
        {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": _content(result),
            **({"is_error": True} if result.is_error else {}),
            **{name: details[name] for name in ("toolset_name",) if name in details},
        }
        for result in results
        for details in [(meta or {}).get(result.call_id, {})]
    ]
    return [{"role": "user", "content": blocks}] if blocks else []


def _content(result: ToolResult) -> str | list[dict[str, Any]]:
    parts = list(map(_part, content_of(result)))
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts) or NOTHING
    return parts


def _part(block: Block) -> dict[str, Any]:
    if is_picture(block):
        return {"type": "image", "source": _source(block)}
    if isinstance(block, FileBlock):
        kind = media_type_of(block)
        titled = {"title": block.name} if block.name else {}
        if kind == "application/pdf":
            return {"type": "document", "source": _source(block), **titled}
        text = file_text(block)
        if text:
            return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}, **titled}
    return {"type": "text", "text": as_text(block, "a tool's result takes text, images and documents")}


def _source(block: Media) -> dict[str, Any]:
    if block.url is not None:
        return {"type": "url", "url": block.url}
    return {"type": "base64", "media_type": media_type_of(block), "data": block.data}


def tool_choice(choice: str | Sequence[str], *, tools: Sequence[Tool] = ()) -> Any:
    """The choice as a request holds it. Raises `PegboardError` for a subset of the tools: the provider has no form."""
    return _written(wanted(choice, [tool.name for tool in tools]))


def _written(choice: Wanted) -> dict[str, Any]:
    if choice.mode == "tool":
        return {"type": "tool", "name": (choice.names or ("",))[0]}
    if choice.names is not None:
        refuse_subset("anthropic", choice.names)
    return {"type": {"required": "any"}.get(choice.mode, choice.mode)}


def request(
    tools: Sequence[Tool],
    *,
    first: Container[str] = (),
    choice: str | Sequence[str] = "auto",
    strict: bool = False,
    parallel: bool | None = None,
    cache: bool = True,
) -> dict[str, Any]:
    """Definitions and choice. The choice also limits the model to one call at a time.

    There are two marks for the cache: after the definitions that were listed first, which seldom change, and after all.
    """
    listed = _listed(PROVIDER.definitions(tools, strict))
    chosen = _written(wanted(choice, [each["name"] for each in listed]))
    if not listed:
        return {}
    if parallel is False and chosen["type"] != "none":
        chosen["disable_parallel_tool_use"] = True
    markable = [each for each in listed if "defer_loading" not in each] if cache else []
    for marked in ([each for each in markable if each["name"] in first][-1:], markable[-1:]):
        for definition in marked:
            definition["cache_control"] = {"type": "ephemeral"}
    return {"tools": listed, **({} if chosen == {"type": "auto"} else {"tool_choice": chosen})}


DIALECT: Final = Dialect("anthropic", tools, calls, results, tool_choice, lint, collector, external, request)
