"""Stubs: the tools of a session as Python signatures, for a model to read and a type checker to check against."""

from __future__ import annotations

import builtins
import json
import keyword
import re
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, Final, final

from attrs import field, frozen

from pegboard import PegboardError, Tool

__all__ = ["OWN_NAMES", "Stub", "Stubs"]

MAX_DEPTH: Final = 12
MAX_DESCRIPTION: Final = 1_000
MAX_COMMENT: Final = 100
OWN_NAMES: Final = frozenset({"Handle", "ToolError", "describe_tool", "find_tools", "show"})
"""What programs have besides tools."""
_TAKEN: Final = frozenset({*dir(builtins), *keyword.kwlist, *keyword.softkwlist, *OWN_NAMES})
_TYPING: Final = frozenset({"Any", "Literal", "NotRequired", "TypedDict"})
_SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

PREAMBLE: Final = """\
from typing import Any, Literal, NotRequired, TypedDict

ToolError = RuntimeError

class Handle(TypedDict):
    handle: str
    kind: str
    media_type: str

def show(handle: Any) -> None: ...
async def find_tools(query: str) -> str: ...
async def describe_tool(name: str) -> str: ...
"""


@final
@frozen
class Stub:
    """One tool as a program sees it: `name` there, the `tool`'s own name, its signature, and the types it names."""

    name: str
    tool: str
    head: str
    text: str = field(repr=False)
    optional: frozenset[str] = field(repr=False)
    """Parameters that may be left out and take no null: a None for them is left out."""
    types: tuple[str, ...] = field(repr=False)
    returns: Mapping[str, Any] | None = field(repr=False)
    """The schema of its results; None where nothing is known of them."""


@final
class Stubs:
    """The stubs of some tools, which share the types that they name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._types = _Types()
        self.by_name: dict[str, Stub] = {}
        for tool in sorted(tools, key=lambda tool: tool.name):
            name = _free(_identifier(tool.name), self.by_name)
            self.by_name[name] = self._stub(name, tool)

    def _stub(self, name: str, tool: Tool) -> Stub:
        types, camel = self._types, _camel(name)
        types.used = {}
        schema = _qualified(tool, "parameters") or {}
        members, required, root = schema.get("properties", {}), set(schema.get("required", ())), _Root(schema)
        words = {own: types.annotation(member, root, camel + _camel(own)) for own, member in members.items()}
        returned = _qualified(tool, "returns")
        result = "Any" if returned is None else types.annotation(returned, _Root(returned), f"{camel}Result")
        if all(map(_is_name, members)):
            free = schema.get("additionalProperties", True) is not False
            head = f"async def {name}({_parameters(members, words, required, free)}) -> {result}"
            lines = [f"{own}: {_described(member)}" for own, member in members.items() if _described(member)]
        else:  # a checker takes what stands in `**{}` for a value of every parameter
            head = f"async def {name}(**arguments: Any) -> {result}"
            lines = [_named_so(own, members[own], word, own in required) for own, word in words.items()]
        optional = frozenset(own for own, member in members.items() if own not in required and not _takes_null(member))
        return Stub(
            name, tool.name, head, _function(head, tool.description, lines), optional, tuple(types.used), returned
        )

    def render(self, names: Iterable[str] | None = None) -> str:
        """The stubs of these tools, of all by default, after the types that they name."""
        chosen = [self.by_name[name] for name in (self.by_name if names is None else names)]
        types = dict.fromkeys(name for stub in chosen for name in stub.types)
        return "\n\n".join([*(self._types.texts[name] for name in types), *(stub.text for stub in chosen)])


@final
class _Root:
    """The whole of a schema, in which references are looked up."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.definitions = schema.get("$defs") or schema.get("definitions") or {}
        self.open: list[str] = []  # definitions that are being read
        self.records: list[tuple[str, ...]] = []  # the same of objects

    def found(self, reference: str) -> tuple[str, Any]:
        """The name of a definition, and the definition; nothing is known of one that is not there."""
        name = reference.rpartition("/")[2]
        return name, self.definitions.get(name, True)


@final
class _Types:
    """The TypedDicts of several tools by name; equal ones are one. `used` are those of the tool that is being read."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.used: dict[str, None] = {}

    def annotation(self, schema: Any, root: _Root, hint: str, depth: int = 0) -> str:
        """What Python calls the values of a schema; `Any` where it has no word for them."""
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return "Any"
        if "$ref" in schema:
            return self._referred(str(schema["$ref"]), root, depth)
        if "const" in schema or "enum" in schema:
            return _literal([schema["const"]] if "const" in schema else schema["enum"])
        several = schema.get("anyOf") or schema.get("oneOf")
        if not several and isinstance(schema.get("type"), list):
            several = [{**schema, "type": kind} for kind in schema["type"]]
        if several:
            return _union(self.annotation(each, root, hint, depth + 1) for each in several)
        if len(schema.get("allOf", ())) == 1:
            return self.annotation(schema["allOf"][0], root, hint, depth + 1)
        kind = schema.get("type")
        if kind == "array":
            return self._array(schema, root, hint, depth)
        if kind == "object" or "properties" in schema:
            return self._object(schema, root, hint, depth)
        return _SCALARS.get(str(kind), "Any")

    def _referred(self, reference: str, root: _Root, depth: int) -> str:
        name, schema = root.found(reference)
        is_record = isinstance(schema, Mapping) and bool(schema.get("properties"))
        if not is_record and name in root.open:
            return "Any"  # a recursive alias, for which a TypedDict would be no word
        root.open.append(name)
        try:
            return self.annotation(schema, root, _camel(name), depth + 1)
        finally:
            root.open.pop()

    def _array(self, schema: Mapping[str, Any], root: _Root, hint: str, depth: int) -> str:
        fixed = schema.get("prefixItems", ())
        rest = schema.get("items", not fixed)
        items = [*fixed, *([rest] if rest is not False else [])]
        return f"list[{_union(self.annotation(each, root, f'{hint}Item', depth + 1) for each in items)}]"

    def _object(self, schema: Mapping[str, Any], root: _Root, hint: str, depth: int) -> str:
        members = schema.get("properties")
        if not members:
            rest = schema.get("additionalProperties", True)
            return f"dict[str, {self.annotation(rest, root, f'{hint}Value', depth + 1)}]"
        name = _titled(schema) or hint
        if (name, *sorted(members)) in root.records:
            self.used[name] = None
            return name
        return self._record(name, schema, root, depth)

    def _record(self, name: str, schema: Mapping[str, Any], root: _Root, depth: int) -> str:
        """A TypedDict for an object: the one of that name if it is the same, else one of another name."""
        mark = (name, *sorted(schema["properties"]))
        before, self.used = self.used, {}
        root.records.append(mark)
        required = set(schema.get("required", ()))
        members = {
            own: self.annotation(member, root, name + _camel(own), depth + 1)
            for own, member in schema["properties"].items()
        }
        root.records.remove(mark)
        inner, self.used = self.used, before
        inner.pop(name, None)
        for number in count(2):
            text = _typed_dict(name, members, required, schema["properties"])
            if self.texts.setdefault(name, text) == text:
                break
            name = f"{mark[0]}{number}"
        self.used.update(inner)
        self.used[name] = None
        return name


# Texts ---------------------------------------------------------------------------------------------------------------


def _qualified(tool: Tool, of: Any) -> dict[str, Any] | None:
    """A schema of a tool with the names of its types, where it can be had so."""
    try:
        return tool.json_schema(of=of, titles="qualified")
    except PegboardError:
        return tool.parameters if of == "parameters" else tool.returns


def _parameters(members: Mapping[str, Any], words: Mapping[str, str], required: set[str], free: bool) -> str:
    """What stands between the brackets of a function."""
    named = [f"{own}: {word}{'' if own in required else _default(members[own], word)}" for own, word in words.items()]
    named.sort(key=lambda each: " = " in each)
    return ", ".join([*(["*", *named] if named else []), *(["**others: Any"] if free else [])])


def _named_so(own: str, schema: Any, word: str, required: bool) -> str:
    """How a parameter is passed that a signature cannot name."""
    described = _described(schema)
    return f'**{{"{own}": ...}} ({word}, {"required" if required else "optional"}){described and f": {described}"}'


def _described(schema: Any) -> str:
    return " ".join(str(schema.get("description", "")).split()) if isinstance(schema, Mapping) else ""


def _typed_dict(name: str, members: Mapping[str, str], required: set[str], schemas: Mapping[str, Any]) -> str:
    typed = {own: each if own in required else f"NotRequired[{each}]" for own, each in members.items()}
    if all(map(_is_name, members)):
        lines = [f"    {own}: {each}{_comment(schemas[own])}" for own, each in typed.items()]
        return "\n".join([f"class {name}(TypedDict):", *lines])
    inside = ", ".join(f"{_written(own)}: {each}" for own, each in typed.items())
    return f'{name} = TypedDict("{name}", {{{inside}}})'


def _function(head: str, description: str, lines: list[str]) -> str:
    text = description.strip()
    if len(text) > MAX_DESCRIPTION:
        text = f"{text[:MAX_DESCRIPTION].rstrip()}..."
    text = "\n".join([*([text] if text else []), *([""] if text and lines else []), *lines])
    if not text:
        return f"{head}: ..."
    # What a description holds must not end the docstring.
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    end = "\n    " if "\n" in text or text.endswith('"') else ""
    body = re.sub(r"\n(?=[^\n])", "\n    ", text)
    return f'{head}:\n    """{body}{end}"""'


def _comment(schema: Any) -> str:
    text = _described(schema)
    short = text if len(text) <= MAX_COMMENT else f"{text[: MAX_COMMENT - 3]}..."
    return f"  # {short}" if short else ""


def _literal(values: Iterable[Any]) -> str:
    words = [_written(value) for value in values if value is None or isinstance(value, str | int)]
    return f"Literal[{', '.join(words)}]" if words else "Any"


def _written(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _union(parts: Iterable[str]) -> str:
    words = list(dict.fromkeys(parts))
    return "Any" if "Any" in words or not words else " | ".join(words)


def _takes_null(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return True
    kinds, options = schema.get("type", ()), [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if not kinds and not options and not {"enum", "const", "$ref"} & schema.keys():
        return True
    named = "null" in ([kinds] if isinstance(kinds, str) else kinds)
    return named or None in schema.get("enum", ()) or any(map(_takes_null, options))


def _default(schema: Any, annotation: str) -> str:
    value = schema.get("default") if isinstance(schema, Mapping) else None
    if isinstance(value, str | int | float):
        return f" = {_written(value)}"
    nullable = annotation == "Any" or "None" in annotation.split(" | ")
    return " = None" if nullable else " | None = None"


def _titled(schema: Mapping[str, Any]) -> str:
    """The name of the class that a title names; none for a title in words or of a generic."""
    name = str(schema.get("title", "")).rpartition(".")[2]
    return name if _is_name(name) and name[:1].isupper() and name not in _TAKEN | _TYPING else ""


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.isascii() and not keyword.iskeyword(text)


def _identifier(name: str) -> str:
    legal = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{legal}" if legal[:1].isdigit() else legal


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """A name that neither Python nor another tool has."""
    while name in _TAKEN or name in taken:
        name += "_"
    return name


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name))
