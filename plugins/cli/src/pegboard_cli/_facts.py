"""Facts about tools as JSON-able data: what the commands print, compare and write down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from pegboard import PegboardError, Tool, Toolkit
from pegboard.inspection import is_loaded
from pegboard_cli._json import dumps

__all__ = [
    "approval_of",
    "example_of",
    "full",
    "hint_words",
    "ordered",
    "parameter_words",
    "place",
    "summary",
    "type_words",
]

_HINTS: Final = {
    "read_only": "read-only",
    "destructive": "destructive",
    "idempotent": "idempotent",
    "open_world": "open world",
}
_UNKNOWN: Final = dict.fromkeys(("description", "groups", "tags", "parameters", "hints", "approval"))


def ordered(toolkit: Toolkit) -> list[Tool]:
    """Every tool on the board, offered or not, by name."""
    return sorted(toolkit.all_tools, key=lambda tool: tool.name)


def summary(tool: Tool, *, load: bool) -> dict[str, Any]:
    """A line of the list. What only an import could tell is None, unless `load` allows it."""
    origin = tool.origin
    facts: dict[str, Any] = {
        "name": tool.name,
        "pack": origin.plugin,
        "distribution": origin.distribution,
        "version": origin.version,
        "loaded": load or is_loaded(tool),
    }
    if not facts["loaded"]:
        return facts | _UNKNOWN
    try:
        return facts | _details(tool)
    except PegboardError as error:
        return facts | _UNKNOWN | {"problem": str(error)}


def _details(tool: Tool) -> dict[str, Any]:
    schema = tool.parameters
    required = schema.get("required", ())
    return {
        "description": tool.description,
        "groups": list(tool.groups or tool.options.groups),
        "tags": list(tool.tags),
        "parameters": [{"name": name, "required": name in required} for name in schema.get("properties", ())],
        "hints": attrs.asdict(tool.hints),
        "approval": approval_of(tool),
    }


def full(tool: Tool) -> dict[str, Any]:
    """Everything about one tool. Raises `PegboardError` for one that cannot be read."""
    return {
        **summary(tool, load=True),
        **_details(tool),
        "qualified_name": tool.qualified_name,
        "entry_point": tool.origin.entry_point,
        "source": place(tool),
        "examples": [dict(each) if isinstance(each, Mapping) else each for each in tool.options.examples],
        "injected": [each.name for each in tool.params if each.source != "model"],
        "parameters": tool.parameters,
        "returns": tool.returns,
        "schema_hash": tool.schema_hash,
    }


def place(tool: Tool) -> str | None:
    """The file and line of the function behind a tool; None where there is none to be found."""
    import inspect

    try:
        function: Any = inspect.unwrap(tool.function)  # type: ignore[arg-type]
        code = getattr(function, "__func__", function).__code__
        return f"{code.co_filename}:{code.co_firstlineno}"
    except (AttributeError, TypeError, ValueError, PegboardError):
        return None


def parameter_words(parameters: list[dict[str, Any]] | None) -> str:
    """`city, days?`: the names of the parameters, optional ones with a question mark."""
    if parameters is None:
        return "(not loaded)"
    return ", ".join(each["name"] + ("" if each["required"] else "?") for each in parameters)


def hint_words(facts: Mapping[str, Any]) -> str:
    """What a tool declares about its effects, and whether it asks for approval."""
    hints = facts["hints"] or {}
    words = [word for name, word in _HINTS.items() if hints.get(name)]
    asks = {"always": ["asks first"], "sometimes": ["may ask first"]}.get(facts["approval"] or "", [])
    return ", ".join([*words, *asks])


def approval_of(tool: Tool) -> str:
    """Whether a tool asks before it runs: `never`, `sometimes` (its arguments decide) or `always`."""
    requires = tool.options.requires_approval
    return "sometimes" if callable(requires) else "always" if requires else "never"


def type_words(schema: Any) -> str:
    """A schema in a word or two: `string`, `integer or null`, `array of string`, `one of "C", "F"`."""
    if not isinstance(schema, Mapping) or not schema:
        return "any"
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        spelled = ", ".join(dumps(value, ensure_ascii=False) for value in values[:6])
        return f"one of {spelled}{', ...' if len(values) > 6 else ''}" if len(values) > 1 else spelled
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(type_words, schema[several])))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    kind = schema.get("type", "any")
    word = " or ".join(kind) if isinstance(kind, list) else str(kind)
    if word == "array" and "items" in schema:
        return f"array of {type_words(schema['items'])}"
    return f"{schema['format']} {word}" if word == "string" and "format" in schema else word


def example_of(tool: Tool) -> dict[str, Any] | None:
    """Arguments to try a tool with: its own first example, else one value for each required parameter."""
    from pegboard_cli._samples import sample

    own = [dict(each) for each in tool.options.examples if isinstance(each, Mapping)]
    if own:
        return own[0]
    schema = tool.parameters
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    return {name: sample(properties[name], schema, name) for name in properties if name in required}
