"""Tools as JSON-able data, for the commands to print and check; and arguments to try a tool with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from pegboard import PegboardError, Tool, Toolkit
from pegboard.inspection import is_loaded
from pegboard_cli._output.printing import dumps

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
_DEEPEST: Final = 6
_FORMATS: Final = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "duration": "PT1H",
    "email": "ada@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "time": "12:00:00",
    "uri": "https://example.com/",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}


def ordered(toolkit: Toolkit) -> list[Tool]:
    """Every tool of a toolkit, offered or not, by name."""
    return sorted(toolkit.all_tools, key=lambda tool: tool.name)


def summary(tool: Tool, *, load: bool) -> dict[str, Any]:
    """A line of the list. What only an import can show is None, unless `load` allows the import."""
    origin = tool.origin
    data: dict[str, Any] = {
        "name": tool.name,
        "pack": origin.plugin,
        "distribution": origin.distribution,
        "version": origin.version,
        "loaded": load or is_loaded(tool),
    }
    if not data["loaded"]:
        return data | _UNKNOWN
    try:
        return data | _details(tool)
    except PegboardError as error:
        return data | _UNKNOWN | {"problem": str(error)}


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


def hint_words(data: Mapping[str, Any]) -> str:
    """What a tool declares about its effects, and whether it asks for approval."""
    hints = data["hints"] or {}
    words = [word for name, word in _HINTS.items() if hints.get(name)]
    asks = {"always": ["asks first"], "sometimes": ["may ask first"]}.get(data["approval"] or "", [])
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
    own = [dict(each) for each in tool.options.examples if isinstance(each, Mapping)]
    if own:
        return own[0]
    schema = tool.parameters
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    return {name: _sample(properties[name], schema, name) for name in properties if name in required}


def _sample(schema: Any, root: Mapping[str, Any], name: str = "", depth: int = 0) -> Any:
    """A plausible value. Whether it fits is for a toolkit to say: patterns are not read."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    for given in ("examples", "enum"):
        if schema.get(given):
            return schema[given][0]
    for given in ("default", "const"):
        if given in schema:
            return schema[given]
    if "$ref" in schema:
        return _sample(_resolve(schema["$ref"], root), root, name, depth + 1)
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several):
            return _sample(schema[several][0], root, name, depth + 1)
    kind = schema.get("type", "string")
    return _of_type(kind[0] if isinstance(kind, list) else kind, schema, root, name, depth)


def _of_type(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], name: str, depth: int) -> Any:
    if kind == "object":
        properties = schema.get("properties", {})
        return {key: _sample(properties[key], root, key, depth + 1) for key in schema.get("required", ())}
    if kind == "array":
        first = schema.get("prefixItems")
        if first:
            return [_sample(item, root, name, depth + 1) for item in first]
        wanted = max(1, schema.get("minItems", 1))
        return [_sample(schema.get("items", {}), root, name, depth + 1)] * wanted
    if kind in ("integer", "number"):
        return _number(schema)
    return {"boolean": True, "null": None}.get(kind, _text(schema, name))


def _number(schema: Mapping[str, Any]) -> Any:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    high = schema.get("maximum", low)
    return min(low, high)


def _text(schema: Mapping[str, Any], name: str) -> str:
    text = str(_FORMATS.get(schema.get("format", ""), name or "text"))
    return text.ljust(int(schema.get("minLength", 0)), "x")


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part, {}) if isinstance(found, Mapping) else {}
    return found
