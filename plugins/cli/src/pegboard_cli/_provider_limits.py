"""What the well-known model providers refuse: names, sizes and words of schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import define

from pegboard import Tool
from pegboard_cli._finding import Finding

__all__ = ["check_count", "check_limits"]

MOST_TOOLS: Final = 128
"""Tools in one request to OpenAI."""

_MOST_PROPERTIES: Final = 5_000
_MOST_LEVELS: Final = 10
_MOST_CHARACTERS: Final = 120_000
_MOST_CHOICES: Final = 1_000
_NOT_STRICT: Final = frozenset(
    ("allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties")
)
_SINGLE: Final = ("items", "additionalProperties", "not", "if", "then", "else")
_SEVERAL: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED: Final = ("properties", "$defs", "patternProperties")


@define
class _Measure:
    """What a schema comes to, as OpenAI counts it."""

    properties: int = 0
    levels: int = 0
    characters: int = 0
    choices: int = 0
    odd_choices: bool = False
    siblings: bool = False
    words: frozenset[str] = frozenset()


def check_count(offered: Sequence[Tool]) -> Iterator[Finding]:
    """More tools at once than a provider takes."""
    if len(offered) > MOST_TOOLS:
        message = f"{len(offered)} tools are offered at once, and OpenAI takes {MOST_TOOLS}"
        fix = "put tools into groups, declare them with @tool(defer=True), or offer a part: toolkit.view(include=[...])"
        yield Finding("warning", "too-many-tools", "the board", message, fix)


def check_limits(tool: Tool, label: str) -> Iterator[Finding]:
    """What at least one provider refuses of a tool."""
    measure = _Measure()
    _walk(tool.parameters, 1, measure)
    for message, fix in _complaints(tool, measure):
        yield Finding("warning", "provider-schema", label, message, fix)


def _complaints(tool: Tool, measure: _Measure) -> Iterator[tuple[str, str]]:
    smaller = "split the tool, or take a JSON text and check it in the tool"
    if measure.properties > _MOST_PROPERTIES:
        yield f"its schema has {measure.properties:,} properties; OpenAI takes {_MOST_PROPERTIES:,}", smaller
    if measure.levels > _MOST_LEVELS:
        yield f"its schema nests {measure.levels} levels deep; OpenAI takes {_MOST_LEVELS}", smaller
    if measure.characters > _MOST_CHARACTERS:
        yield f"names and choices come to {measure.characters:,} characters; OpenAI takes {_MOST_CHARACTERS:,}", smaller
    if measure.choices > _MOST_CHOICES:
        fix = "take a str, and say which are allowed with ToolError; or offer a second tool that searches them"
        yield f"it offers {measure.choices:,} choices; OpenAI takes {_MOST_CHOICES:,}", fix
    if measure.odd_choices:
        yield "it has choices that are neither text nor numbers, which Gemini refuses", "use bool or Optional instead"
    if measure.siblings:
        yield "a $ref has other keywords beside it, which Gemini refuses", "describe the record, not the parameter"
    if tool.options.strict and measure.words & _NOT_STRICT:
        words = ", ".join(sorted(measure.words & _NOT_STRICT))
        yield f"it asks for strict, and OpenAI's strict mode knows no {words}", "leave strict=True out"


def _walk(schema: Any, level: int, measure: _Measure) -> None:
    if not isinstance(schema, Mapping):
        return
    measure.words |= frozenset(schema)
    _count(schema, level, measure)
    for word in _SINGLE:
        _walk(schema.get(word), level + 1, measure)
    for word in _SEVERAL:
        for each in schema.get(word, ()):
            _walk(each, level, measure)
    for word in _NAMED:
        for each in schema.get(word, {}).values():
            _walk(each, level + (word == "properties"), measure)


def _count(schema: Mapping[str, Any], level: int, measure: _Measure) -> None:
    properties = schema.get("properties", {})
    choices = schema.get("enum", ())
    measure.levels = max(measure.levels, level)
    measure.properties += len(properties)
    measure.choices += len(choices)
    texts = [*properties, *(each for each in (*choices, schema.get("const")) if isinstance(each, str))]
    measure.characters += sum(map(len, texts))
    measure.odd_choices |= any(not isinstance(each, str | int | float) or isinstance(each, bool) for each in choices)
    # A description is let pass: every rendering may drop it, and it is there in most schemas.
    measure.siblings |= "$ref" in schema and bool(set(schema) - {"$ref", "description", "$defs"})
