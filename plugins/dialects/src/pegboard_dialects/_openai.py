"""OpenAI's chat completions: the format of most compatible servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pegboard import Dialect, Tool, ToolCall, ToolResult
from pegboard_dialects._blocks import NOTHING, as_text, content_of, data_url, is_picture
from pegboard_dialects._cut import LENGTH, STOPPED, UNFINISHED, why_cut
from pegboard_dialects._external import external
from pegboard_dialects._losses import Loss
from pegboard_dialects._reading import (
    Collector,
    as_plain,
    assembled,
    first_object,
    number_in,
    object_in,
    objects_in,
    several,
    text_in,
    unknown_response,
)
from pegboard_dialects._schemas import Rules, words
from pegboard_dialects._tools import Definition, Provider, Wanted, call_of, chosen, wanted

__all__ = ["DIALECT", "STRICT", "Choice", "Message", "arguments"]

EXPECTED: Final = "a chat completion, its message or a list of its chunks"
CUTTING: Final = {
    **dict.fromkeys(("length", "max_tokens", "model_length"), LENGTH),
    **dict.fromkeys(("abort", "content_filter", "error", "insufficient_system_resource"), STOPPED),
}
"""Values of `finish_reason` after which the last call may not be whole, those of compatible servers included."""


def _stays(keyword: str, value: Any) -> bool:
    """Whether a keyword may stay: the provider refuses patterns with look-around."""
    return not (keyword == "pattern" and any(look in value for look in ("(?=", "(?!", "(?<=", "(?<!")))


STRICT: Final = Rules(
    keywords=words(
        "additionalProperties anyOf const description enum exclusiveMaximum exclusiveMinimum format items maxItems "
        "maximum minItems minimum multipleOf pattern properties required title type"
    ),
    formats=words("date date-time duration email hostname ipv4 ipv6 time uuid"),
    stays=_stays,
    closed=True,
    all_required=True,
    typed=True,
    null_as_type=True,
    most_members=5_000,
    deepest=10,
    most_choices=1_000,
    longest=120_000,
)
PROVIDER: Final = Provider(strict=STRICT)


def tools(tools: Iterable[Tool], *, strict: bool = False) -> list[dict[str, Any]]:
    """Function definitions."""
    return functions(PROVIDER.definitions(tools, strict))


def functions(definitions: Iterable[Definition]) -> list[dict[str, Any]]:
    """Definitions in the form of OpenAI's chat completions."""
    return [
        {
            "type": "function",
            "function": {
                "name": each.tool.name,
                **each.described,
                "parameters": each.parameters,
                **({"strict": True} if each.strict else {}),
            },
        }
        for each in definitions
    ]


def lint(tools: Iterable[Tool], *, strict: bool = False) -> list[Loss]:
    """The losses: what the definitions do not carry."""
    return PROVIDER.lint(tools, strict=strict)


class Choice(NamedTuple):
    """A message, or the part that a chunk adds to it, and why it ended (`finish_reason`)."""

    message: Mapping[str, Any]
    reason: str = ""


class Message:
    """A model's message, put together from chunks. `choice_of` reads from a chunk what it adds and why it ends."""

    def __init__(self, choice_of: Callable[[Mapping[str, Any]], Choice]) -> None:
        self._choice_of = choice_of
        self._reason = UNFINISHED
        self._content: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[tuple[int, dict[str, Any]]] = []
        self._open: dict[int, dict[str, Any]] = {}
        self._ids: dict[int, str] = {}  # for calls without one: the call and the message have the same

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Add a chunk."""
        delta, reason = self._choice_of(chunk)
        self._reason = reason or self._reason
        for fragment in objects_in(delta, "tool_calls"):
            self._add_call(fragment)
        for name, piece in delta.items():
            if name not in ("role", "tool_calls") and isinstance(piece, str):
                self._content[name] = (self._content.get(name) or "") + piece

    def _add_call(self, fragment: Mapping[str, Any]) -> None:
        index, call_id = number_in(fragment, "index"), text_in(fragment, "id")
        call = self._open.get(index)
        if call is None or (call_id and call["id"] and call_id != call["id"]):
            # Some servers give all calls the same number: another id is another call.
            call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            self._open[index] = call
            self._calls.append((index, call))
        sent, function = object_in(fragment, "function"), call["function"]
        name, arguments = text_in(sent, "name"), text_in(sent, "arguments")
        if not arguments and isinstance(sent.get("arguments"), Mapping):  # some servers do not write them as text
            arguments = json.dumps(sent["arguments"], ensure_ascii=False)
        # A server that repeats the id and the name in each chunk repeats all arguments too.
        again = bool(call_id) and call["id"] == call_id and name == function["name"]
        call["id"] = call["id"] or call_id
        function["name"] += "" if again else name
        # Python extends a text in place if nothing else refers to it.
        text, function["arguments"] = function["arguments"], ""
        whole = again and arguments.startswith(text)
        text += "" if whole else arguments
        function["arguments"] = arguments if whole else text
        if not fragment.keys() <= _CALL:
            call.update({name: value for name, value in fragment.items() if name not in _CALL and value is not None})

    @property
    def response(self) -> dict[str, Any]:
        """The completion so far."""
        return {"choices": [{"message": self.message, "finish_reason": self._reason}]}

    @property
    def message(self) -> dict[str, Any]:
        """The message in it."""
        calls = [
            {**call, "id": call["id"] or self._ids.setdefault(id(call), ToolCall().id)}
            for _, call in sorted(self._calls, key=lambda numbered: numbered[0])
        ]
        return {**self._content, **({"tool_calls": calls} if calls else {})}

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The message, to append to the conversation."""
        return [self.message]


_CALL: Final = frozenset({"id", "index", "type", "function"})


def choice_of(chunk: Mapping[str, Any]) -> Choice:
    """The first choice of a chunk: what it adds, and why it ends."""
    choices = (each for each in objects_in(chunk, "choices") if not each.get("index"))
    choice = next(choices, {})
    return Choice(object_in(choice, "delta"), text_in(choice, "finish_reason"))


def collector(read: Callable[[Any], list[ToolCall]]) -> Collector:
    """Collects the chunks of a streamed chat completion."""
    return Collector(read, Message(choice_of))


def calls(response: Any, *, tools: Sequence[Tool] = ()) -> list[ToolCall]:
    """The calls in a completion, a message or chunks, without those of custom tools."""
    message, reason = _choice_in(response)
    found = [call for call in objects_in(message, "tool_calls") if isinstance(call.get("function"), Mapping)]
    return [
        call_of(call.get("id"), function.get("name"), sent, _meta(call), tools, cut=cut)
        for call in found
        for function in [call["function"]]
        for sent in [function.get("arguments")]
        for cut in [why_cut(reason, CUTTING, sent, last=call is found[-1])]
    ]


def _meta(call: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in call.items() if name not in ("id", "type", "function")}


def _choice_in(response: Any) -> Choice:
    """The message of a response in any form, as plain data, and why it ended; empty if that is not known."""
    found = several(response)
    if found is not None:
        if all("function" in each for each in found):
            return Choice({"tool_calls": found})
        plain = assembled(found, Message(choice_of))
    else:
        plain = as_plain(response)
    if isinstance(plain, Mapping) and "choices" in plain:
        choice = first_object(plain, "choices")
        if object_in(choice, "message"):
            return Choice(object_in(choice, "message"), text_in(choice, "finish_reason"))
        return _choice_in(assembled([plain], Message(choice_of)))
    if isinstance(plain, Mapping) and plain.keys() & {"role", "tool_calls"}:
        return Choice(plain)
    raise unknown_response("openai", EXPECTED, plain)


def results(results: Iterable[ToolResult]) -> list[dict[str, Any]]:
    """A tool message for each result, and after them one message of the user with their images."""
    messages: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    for result in results:
        words: list[str] = []
        for block in content_of(result):
            if not is_picture(block):
                words.append(as_text(block, "a tool message takes text alone"))
                continue
            label = f"[image {len(pictures) // 2 + 1} of {result.name}, {result.call_id}]"
            words.append(f"{label[:-1]}: it follows in the next message of the user]")
            pictures += [
                {"type": "text", "text": label},
                {"type": "image_url", "image_url": {"url": data_url(block)}},
            ]
        messages.append({"role": "tool", "tool_call_id": result.call_id, "content": "\n".join(words) or NOTHING})
    return [*messages, *([{"role": "user", "content": pictures}] if pictures else [])]


def tool_choice(choice: str | Sequence[str], *, tools: Sequence[Tool] = ()) -> Any:
    """The choice as a request holds it."""
    return _written(wanted(choice, [tool.name for tool in tools]))


def _written(choice: Wanted) -> Any:
    named = [{"type": "function", "function": {"name": name}} for name in choice.names or ()]
    if choice.mode == "tool":
        return named[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": named}} if named else choice.mode


def request(
    tools: Sequence[Tool],
    *,
    kept: Sequence[Tool],
    choice: str | Sequence[str] = "auto",
    strict: bool = False,
    parallel: bool | None = None,
) -> dict[str, Any]:
    """Definitions, choice and parallel calls. Tools that are only kept are not among the allowed ones."""
    definitions = PROVIDER.definitions(kept, strict)
    return arguments(functions(definitions), _written(chosen(choice, tools, kept, definitions)), parallel)


def arguments(tools: list[dict[str, Any]], choice: Any, parallel: bool | None) -> dict[str, Any]:
    """The keyword arguments of OpenAI's client, without its defaults. Servers refuse a choice without tools."""
    if not tools:
        return {}
    chosen = {} if choice == "auto" else {"tool_choice": choice}
    return {"tools": tools, **chosen, **({"parallel_tool_calls": False} if parallel is False else {})}


DIALECT: Final = Dialect("openai", tools, calls, results, tool_choice, lint, collector, external, request)
