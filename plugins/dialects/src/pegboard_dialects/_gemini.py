"""Google's Gemini: function declarations, parts, thought signatures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from pegboard import AudioBlock, Block, Dialect, FileBlock, ImageBlock, Tool, ToolCall, ToolResult, VideoBlock
from pegboard_dialects._blocks import NOTHING, as_text, content_of, media_type_of
from pegboard_dialects._cut import BROKEN_OFF, LENGTH, STOPPED, UNFINISHED, why_cut
from pegboard_dialects._external import external
from pegboard_dialects._losses import Loss
from pegboard_dialects._reading import (
    Collector,
    as_plain,
    assembled,
    decoded,
    first_object,
    object_in,
    objects_in,
    several,
    text_in,
    unknown_response,
)
from pegboard_dialects._schemas import Rules, rendered, words
from pegboard_dialects._tools import Definition, Provider, Wanted, call_of, chosen, wanted

__all__ = ["DIALECT"]

EXPECTED: Final = "a response, its content or a list of its chunks"
CUTTING: Final = {
    "MAX_TOKENS": LENGTH,
    UNFINISHED: BROKEN_OFF,
    **dict.fromkeys(words("BLOCKLIST LANGUAGE OTHER PROHIBITED_CONTENT RECITATION SAFETY SPII"), STOPPED),
    **dict.fromkeys(words("MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE"), STOPPED),
}
"""Values of `finish_reason` after which the last call may not be whole."""
RULES: Final = Rules(
    keywords=words(
        "additionalProperties anyOf description enum format items maxItems maximum minItems minimum prefixItems "
        "properties required title type"
    ),
    enum_types=(str, int, float),
    null_as_type=True,
    loose_cycles=True,
)
PROVIDER: Final = Provider(plain=RULES)
_MEDIA: Final = re.compile(r"image/(png|jpeg|webp|heic|heif)|audio/.*|video/.*|application/pdf|text/plain")


def tools(tools: Iterable[Tool], *, strict: bool = False) -> list[dict[str, Any]]:
    """One tool that holds all function declarations; an empty list if there are no tools."""
    return _listed(PROVIDER.definitions(tools, strict))


def _listed(definitions: Iterable[Definition]) -> list[dict[str, Any]]:
    declarations = list(map(_declaration, definitions))
    return [{"function_declarations": declarations}] if declarations else []


def _declaration(each: Definition) -> dict[str, Any]:
    promised = each.promised
    written = None if promised is None else rendered(each.tool.name, _answer(promised), RULES).parameters
    return {
        "name": each.tool.name,
        **each.described,
        "parameters_json_schema": each.parameters,
        **({} if written is None else {"response_json_schema": written}),
    }


def _answer(returns: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a function response: the value is its member `output`."""
    inner = {keyword: value for keyword, value in returns.items() if keyword not in ("$defs", "definitions")}
    shared = {keyword: returns[keyword] for keyword in ("$defs", "definitions") if keyword in returns}
    return {"type": "object", "properties": {"output": inner}, **shared}


def lint(tools: Iterable[Tool], *, strict: bool = False) -> list[Loss]:
    """The losses: what the declarations do not carry."""
    return PROVIDER.lint(tools, strict=strict)


def _of(part: Mapping[str, Any], name: str) -> Any:
    """A member by its name in Python; in JSON it is written in camel case."""
    head, *rest = name.split("_")
    return part.get(name, part.get(head + "".join(map(str.capitalize, rest))))


def _call_in(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    call = _of(part, "function_call")
    return call if isinstance(call, Mapping) else None


class Content:
    """The parts of the model's response, put together from chunks."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None
        self._reason = ""

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Add a chunk."""
        self._reason = reason_of(chunk) or self._reason
        for part in parts_of(chunk):
            call = _call_in(part)
            if call is not None:
                self._add_call(part, call)
            elif not self._continues(part):
                self._parts.append(dict(part))

    def _continues(self, part: Mapping[str, Any]) -> bool:
        """Add the rest of a text; whether it was one. A signature has a part of its own."""
        last = self._parts[-1] if self._parts else {}
        if not (_is_text(last) and _is_text(part)) or bool(last.get("thought")) != bool(part.get("thought")):
            return False
        last["text"] += part["text"]
        return True

    def _add_call(self, part: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        """Add a whole call, or the beginning of one, a piece of its arguments, or its end."""
        if self._open is None or call.get("name"):
            self._open = {"name": text_in(call, "name"), "args": call.get("args") or {}}
            self._open |= {"id": call["id"]} if text_in(call, "id") else {}
            begun = {name: value for name, value in part.items() if name not in ("function_call", "functionCall")}
            self._parts.append({**begun, "function_call": self._open})
        pieces = _of(call, "partial_args")
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, Mapping) and isinstance(self._open["args"], dict):
                _put(self._open["args"], piece)
        if not _of(call, "will_continue"):
            self._open = None

    @property
    def response(self) -> dict[str, Any]:
        """The response so far. It has not ended while a call is unfinished."""
        reason = self._reason if self._open is None else self._reason or UNFINISHED
        return {"candidates": [{"content": self._content, "finish_reason": reason}]}

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The content, to append to the contents of the conversation."""
        return [self._content]

    @property
    def _content(self) -> dict[str, Any]:
        return {"role": "model", "parts": list(self._parts)}


def _is_text(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("text"), str) and _of(part, "thought_signature") is None


_STEP: Final = re.compile(r"\[(\d+)\]|\.?\[?['\"]?([^.\[\]'\"$]+)['\"]?\]?")


def _put(arguments: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Put a piece of an argument at its path, such as `$.filter.tags[0]`. Text is appended to existing text."""
    path = [int(index) if index else name for index, name in _STEP.findall(str(_of(piece, "json_path") or ""))]
    place: Any = arguments
    for step, after in pairwise(path):
        place = _at(place, step, [] if isinstance(after, int) else {})
    if not path or not _has_room(place, path[-1]):
        return
    values = [_of(piece, kind) for kind in ("string_value", "number_value", "bool_value")]
    value = next((each for each in values if each is not None), None)
    before = _at(place, path[-1], "" if isinstance(value, str) else value)
    place[path[-1]] = before + value if isinstance(before, str) and isinstance(value, str) else value


def _has_room(place: Any, step: int | str) -> bool:
    """Whether a step leads to an existing member, or to the next one: a large number must not make a huge list."""
    if isinstance(step, int):
        return isinstance(place, list) and step <= len(place)
    return isinstance(place, dict)


def _at(place: Any, step: int | str, fresh: Any) -> Any:
    """The member at a step. An absent one becomes `fresh`; None if there can be no such member."""
    if not _has_room(place, step):
        return None
    if isinstance(place, list):
        place.extend([fresh] if step == len(place) else [])
    else:
        place.setdefault(step, fresh)
    return place[step]


def collector(read: Callable[[Any], list[ToolCall]]) -> Collector:
    """Collects the chunks of a streamed response."""
    return Collector(read, Content())


def parts_of(response: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The parts of a response, a candidate or a content."""
    if "candidates" in response:
        response = first_object(response, "candidates")
    if "content" in response:
        response = object_in(response, "content")
    return objects_in(response, "parts")


def reason_of(response: Mapping[str, Any]) -> str:
    """Why a response or a candidate ended; empty if that is not known."""
    candidate = first_object(response, "candidates") if "candidates" in response else response
    reason = _of(candidate, "finish_reason")
    return reason if isinstance(reason, str) else ""


def calls(response: Any, *, tools: Sequence[Tool] = ()) -> list[ToolCall]:
    """The function calls in a response, without those that the provider runs. A blocked prompt has none."""
    parts, reason = _parts_read(response)
    found = [(part, call) for part in parts if (call := _call_in(part)) is not None]
    return [
        call_of(call.get("id"), call.get("name"), call.get("args"), _meta(part, call), tools, cut=cut)
        for part, call in found
        for cut in [why_cut(reason, CUTTING, {}, last=part is found[-1][0])]
    ]


def _parts_read(response: Any) -> tuple[list[Mapping[str, Any]], str]:
    """The parts of a response in any form, and why it ended; an empty text if that is not known."""
    found = several(response)
    if found is None:
        plain = as_plain(response)
        if not isinstance(plain, Mapping) or not plain.keys() & _MEMBERS:
            raise unknown_response("gemini", EXPECTED, plain)
        found = [plain]
    elif all(_call_in(each) is not None for each in found):
        return found, ""
    whole = assembled(found, Content())
    return parts_of(whole), reason_of(whole)


_MEMBERS: Final = frozenset({"candidates", "content", "parts", "promptFeedback", "prompt_feedback"})
"""Members that mark a response, a candidate or a content. The response to a blocked prompt has no candidates."""


def _meta(part: Mapping[str, Any], call: Mapping[str, Any]) -> dict[str, Any]:
    """The thought signature of a call, and whether the provider gave it no id: then no id is sent back."""
    signature = _of(part, "thought_signature")
    extra = {} if signature is None else {"thought_signature": signature}
    return extra if text_in(call, "id") else {**extra, "id": ""}


def results(results: Iterable[ToolResult], *, meta: Mapping[str, Mapping[str, Any]] | None = None) -> list[Any]:
    """One content of the user with a function response for each result; an empty list if there are no results."""
    parts = [
        {
            "function_response": {
                **({"id": result.call_id} if (meta or {}).get(result.call_id, {}).get("id", True) else {}),
                "name": result.name,
                **_response(result),
            }
        }
        for result in results
    ]
    return [{"role": "user", "parts": parts}] if parts else []


def _response(result: ToolResult) -> dict[str, Any]:
    words: list[str] = []
    parts: list[dict[str, Any]] = []
    for block in content_of(result):
        media = _part(block)
        if media is None:
            words.append(as_text(block, "a function's response takes no such part"))
        else:
            parts.append(media)
    text = "\n".join(words)
    key = "error" if result.is_error else "output"
    shown = f"[{len(parts)} attached]" if parts else NOTHING
    return {"response": {key: _data(result, text) if text else shown}, **({"parts": parts} if parts else {})}


def _data(result: ToolResult, text: str) -> Any:
    """The data of a result if the text is all of it. A text that was shortened stays a text."""
    data = result.data
    if result.is_error or isinstance(data, str) or data is None:
        return text
    return data if decoded(f'{{"": {text}}}') == {"": data} else text


def _part(block: Block) -> dict[str, Any] | None:
    if not isinstance(block, (ImageBlock, AudioBlock, VideoBlock, FileBlock)):
        return None
    kind = media_type_of(block)
    if not _MEDIA.fullmatch(kind):
        return None
    if block.url is not None:
        return {"file_data": {"file_uri": block.url, "mime_type": kind}}
    return {"inline_data": {"mime_type": kind, "data": block.data}}


def tool_choice(choice: str | Sequence[str], *, tools: Sequence[Tool] = ()) -> Any:
    """The `tool_config` of a request."""
    return _written(wanted(choice, [tool.name for tool in tools]))


def _written(choice: Wanted) -> dict[str, Any]:
    # A subset has a mode of its own if the model may also write text.
    free = "AUTO" if choice.names is None else "VALIDATED"
    mode = {"auto": free, "required": "ANY", "tool": "ANY", "none": "NONE"}[choice.mode]
    allowed = {"allowed_function_names": list(choice.names)} if choice.names else {}
    return {"function_calling_config": {"mode": mode, **allowed}}


def request(
    tools: Sequence[Tool], *, kept: Sequence[Tool], choice: str | Sequence[str] = "auto", strict: bool = False
) -> dict[str, Any]:
    """The `config` with declarations and choice. The provider has no option for parallel calls."""
    definitions = PROVIDER.definitions(kept, strict)
    if not definitions:
        return {}
    config = _written(chosen(choice, tools, kept, definitions))
    tool_config = {} if config["function_calling_config"] == {"mode": "AUTO"} else {"tool_config": config}
    return {"config": {"tools": _listed(definitions), **tool_config}}


DIALECT: Final = Dialect("gemini", tools, calls, results, tool_choice, lint, collector, external, request)
