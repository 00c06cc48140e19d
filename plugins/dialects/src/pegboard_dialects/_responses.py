"""OpenAI's Responses: items, namespaces, images and files in results."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import count, groupby
from typing import Any, Final

from pegboard import Block, Dialect, FileBlock, Group, Tool, ToolCall, ToolResult
from pegboard_dialects._blocks import NOTHING, as_text, content_of, data_url, is_picture, media_type_of
from pegboard_dialects._cut import LENGTH, STOPPED, UNFINISHED, why_cut
from pegboard_dialects._external import external
from pegboard_dialects._losses import Loss
from pegboard_dialects._openai import STRICT, arguments
from pegboard_dialects._reading import (
    Collector,
    as_plain,
    assembled,
    number_in,
    object_in,
    objects_in,
    several,
    text_in,
    unknown_response,
)
from pegboard_dialects._tools import Definition, Provider, Wanted, call_of, chosen, searches, wanted

__all__ = ["DIALECT"]

EXPECTED: Final = "a response, a list of its output items or a list of its events"
CUTTING: Final = {
    "incomplete": STOPPED,
    "max_output_tokens": LENGTH,
    **dict.fromkeys(("cancelled", "content_filter", "failed"), STOPPED),
}
"""Reasons why a response is not complete, else its `status`, after which the last call may not be whole."""
PROVIDER: Final = Provider(strict=STRICT, takes=frozenset({"defer"}))
_DOCUMENT: Final = re.compile(r"text/.*|application/(pdf|json|xml|msword|vnd\.(openxmlformats|ms-).*)")
_OWN: Final = frozenset({"type", "id", "call_id", "name", "arguments", "status", "parsed_arguments"})
"""Members of a call that are read elsewhere; all other members go back with its answer."""


def tools(tools: Iterable[Tool], *, strict: bool = False, groups: Sequence[Group] = ()) -> list[dict[str, Any]]:
    """Function definitions, those of a group in a namespace. A tool that joins the group later gets another namespace.

    OpenAI's search comes with deferred tools, unless Pegboard's own search is offered.
    """
    return _items(PROVIDER.definitions(tools, strict), groups)


def _items(definitions: Sequence[Definition], groups: Iterable[Group]) -> list[dict[str, Any]]:
    described = {group.name: group.description for group in groups}
    deferring = not searches(each.tool for each in definitions)
    found: list[dict[str, Any]] = []
    names: set[str] = set()
    for group, run in groupby(definitions, _group_of):
        members = list(run)
        functions = [_function(each, deferring) for each in members]
        if group is not None:
            name = _namespace(group, names)
            names.add(name)
            about = described.get(group) or group
            functions = [{"type": "namespace", "name": name, "description": about, "tools": functions}]
        found += functions
        # After the first of them: there it keeps its place when definitions are added.
        if deferring and any(each.tool.options.defer for each in members):
            at = next(place for place, each in enumerate(members) if each.tool.options.defer) if group is None else 0
            found.insert(len(found) - len(functions) + at + 1, {"type": "tool_search"})
            deferring = False
    return found


def _group_of(each: Definition) -> str | None:
    return next(iter(each.tool.groups or each.tool.options.groups), None)


def _function(each: Definition, deferring: bool) -> dict[str, Any]:
    promised = each.promised
    return {
        "type": "function",
        "name": each.tool.name,
        **each.described,
        "parameters": each.parameters,
        "strict": each.strict,
        **({"defer_loading": True} if deferring and each.tool.options.defer else {}),
        **({} if promised is None else {"output_schema": promised}),
    }


def _namespace(group: str, taken: Container[str]) -> str:
    """A legal name for a group's namespace that is not among those `taken`."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", group)[:60]
    numbered = (f"{name}_{number}" for number in count(2))
    return name if name not in taken else next(each for each in numbered if each not in taken)


def lint(tools: Iterable[Tool], *, strict: bool = False) -> list[Loss]:
    """The losses: what the definitions do not carry."""
    return PROVIDER.lint(tools, strict=strict)


class Output:
    """The items of a response, put together from events."""

    def __init__(self) -> None:
        self._items: dict[int, dict[str, Any]] = {}
        self._end: dict[str, Any] = {"status": UNFINISHED}

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event."""
        kind, index = event.get("type"), number_in(event, "output_index")
        if kind in ("response.output_item.added", "response.output_item.done"):
            self._items[index] = dict(object_in(event, "item"))
        elif kind == "response.function_call_arguments.delta":
            item = self._items.setdefault(index, {"type": "function_call"})
            item["arguments"] = text_in(item, "arguments") + text_in(event, "delta")
        elif kind == "response.function_call_arguments.done":
            done = {"arguments": text_in(event, "arguments"), "status": "completed"}
            self._items[index] = {"type": "function_call", **self._items.get(index, {}), **done}
        elif kind in _ENDS:
            self._end = {"status": kind.removeprefix("response."), **object_in(event, "response")}

    @property
    def response(self) -> dict[str, Any]:
        """The response so far, its items in order."""
        items = objects_in(self._end, "output") or [self._items[index] for index in sorted(self._items)]
        return {**self._end, "output": items}

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The items, to append to the input."""
        return list(map(_sent_back, self.response["output"]))


_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")


def collector(read: Callable[[Any], list[ToolCall]]) -> Collector:
    """Collects the events of a streamed response."""
    return Collector(read, Output())


def _sent_back(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as a request takes it: without the members that the SDK adds or renames."""
    return {
        "async" if name == "async_" else name: value
        for name, value in item.items()
        if value is not None and name != "parsed_arguments"
    }


def calls(response: Any, *, tools: Sequence[Tool] = ()) -> list[ToolCall]:
    """The function calls among the items of a response. The provider runs all other calls: they are left out."""
    items, reason = _items_of(response)
    found = [item for item in items if item.get("type") == "function_call"]
    return [
        call_of(item.get("call_id"), item.get("name"), item.get("arguments"), _meta(item), tools, cut=cut)
        for item in found
        for cut in [_why_cut(item, reason, last=item is found[-1])]
    ]


def _why_cut(item: Mapping[str, Any], reason: str, *, last: bool) -> str:
    """Why a call is not complete. A call has a status of its own, which servers may leave out."""
    status = text_in(item, "status")
    if status == "incomplete":
        return CUTTING.get(reason, STOPPED)
    if status and not (last and reason in CUTTING):
        reason = UNFINISHED if status == "in_progress" else ""
    return why_cut(reason, CUTTING, item.get("arguments"), last=last)


def _meta(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in _sent_back(item).items() if name not in _OWN}


def _items_of(response: Any) -> tuple[list[Mapping[str, Any]], str]:
    """The items of a response in any form, and why the response is not complete, else its status."""
    found = several(response)
    plain: Any = as_plain(response) if found is None else None
    if found is None and not (isinstance(plain, Mapping) and ("type" in plain or _is_whole(plain))):
        raise unknown_response("openai-responses", EXPECTED, plain)
    found = [plain] if found is None else found
    if any(text_in(each, "type").startswith("response.") for each in found):
        plain = assembled(found, Output())
    if plain is not None and _is_whole(plain):
        reason = text_in(object_in(plain, "incomplete_details"), "reason")
        return objects_in(plain, "output"), reason if reason in CUTTING else text_in(plain, "status")
    return found, ""


def _is_whole(plain: Mapping[str, Any]) -> bool:
    return isinstance(plain.get("output"), list)


def results(results: Iterable[ToolResult], *, meta: Mapping[str, Mapping[str, Any]] | None = None) -> list[Any]:
    """An output item for each result, with the caller and the namespace of its call."""
    return [
        {
            "type": "function_call_output",
            "call_id": result.call_id,
            "output": _output(result),
            **{name: details[name] for name in ("caller", "namespace") if name in details},
        }
        for result in results
        for details in [(meta or {}).get(result.call_id, {})]
    ]


def _output(result: ToolResult) -> str | list[dict[str, Any]]:
    parts = list(map(_part, content_of(result)))
    if all(part["type"] == "input_text" for part in parts):
        return "\n".join(part["text"] for part in parts) or NOTHING
    return parts


def _part(block: Block) -> dict[str, Any]:
    if is_picture(block):
        return {"type": "input_image", "image_url": data_url(block), "detail": "auto"}
    if isinstance(block, FileBlock) and _DOCUMENT.fullmatch(media_type_of(block)):
        if block.url is not None:
            return {"type": "input_file", "file_url": block.url}
        return {"type": "input_file", "filename": block.name or "file", "file_data": data_url(block)}
    return {"type": "input_text", "text": as_text(block, "a function's output takes text, images and documents")}


def tool_choice(choice: str | Sequence[str], *, tools: Sequence[Tool] = ()) -> Any:
    """The choice as a request holds it."""
    return _written(wanted(choice, [tool.name for tool in tools]))


def _written(choice: Wanted) -> Any:
    named = [{"type": "function", "name": name} for name in choice.names or ()]
    if choice.mode == "tool":
        return named[0]
    return {"type": "allowed_tools", "mode": choice.mode, "tools": named} if named else choice.mode


def request(
    tools: Sequence[Tool],
    *,
    kept: Sequence[Tool],
    choice: str | Sequence[str] = "auto",
    strict: bool = False,
    parallel: bool | None = None,
    groups: Sequence[Group] = (),
) -> dict[str, Any]:
    """Definitions, choice and parallel calls. Tools that are only kept are not among the allowed ones."""
    definitions = PROVIDER.definitions(kept, strict)
    return arguments(_items(definitions, groups), _written(chosen(choice, tools, kept, definitions)), parallel)


DIALECT: Final = Dialect("openai-responses", tools, calls, results, tool_choice, lint, collector, external, request)
