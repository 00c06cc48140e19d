"""Checks of tools: names, texts, presets, and what providers refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from attrs import define

from pegboard import PegboardError, Tool, Toolkit
from pegboard.inspection import board_of, plugins_of
from pegboard_cli._checks.finding import Finding
from pegboard_cli._output.printing import clean
from pegboard_cli._output.tool_data import ordered, place

__all__ = ["check_tools"]


def check_tools(toolkit: Toolkit) -> Iterator[Finding]:
    """Findings about every tool of a toolkit, and about all of them. Tools behind import strings are imported."""
    yield from _check_clashes(toolkit)
    readable = []
    for tool in ordered(toolkit):
        try:
            tool.schema()
            readable.append(tool)
        except PegboardError as error:
            fix = "correct what the message names" + (", or tell its author" if tool.origin.distribution else "")
            yield Finding("error", "tool-broken", tool.name, str(error), fix)
    # A tool behind an import string may have removed its whole pack just now.
    remaining = {tool.name for tool in toolkit.all_tools}
    for tool in (each for each in readable if each.name in remaining):
        yield from chain(_check_texts(tool), _check_presets(toolkit, tool), _check_limits(tool, _label(tool)))
    yield from _check_count(toolkit.tools)
    yield from _check_dialects(toolkit)


def _label(tool: Tool) -> str:
    return f"{tool.name} ({tool.origin})"


def _check_clashes(toolkit: Toolkit) -> Iterator[Finding]:
    for name, clash in sorted(board_of(toolkit).clashes.items()):
        names = sorted(tool.name for tool in clash.sides)
        first = clash.sides[0]
        fix = (
            f"call them {' and '.join(names)}; or one declares @tool(replaces={names[0]!r}); "
            f"or PEGBOARD_BLOCK={first.origin.plugin}"
        )
        yield Finding("warning", "name-clash", name, str(clash), fix)


def _check_texts(tool: Tool) -> Iterator[Finding]:
    where = place(tool) or "its source"
    schema = tool.parameters
    if not tool.description.strip():
        yield Finding(
            "warning",
            "no-description",
            _label(tool),
            "it has no description, and a model reads nothing else to know what it is for",
            f'write a docstring at {where}, or @tool(description="...")',
        )
    bare = [name for name, each in schema.get("properties", {}).items() if not _described(each)]
    if bare and tool.description.strip():
        message = f"these parameters are not described: {', '.join(bare)}"
        fix = f"add them to the docstring (Args:) at {where}, or write Annotated[..., 'what it is']"
        yield Finding("warning", "no-parameter-description", _label(tool), message, fix)
    hidden = [text for text in _texts(tool.description, schema) if clean(text) != text]
    if hidden:
        message = f"a text that the model reads has invisible characters: {clean(hidden[0])[:120]!r}"
        fix = f"remove them at {where}; in a third-party pack, ask why they are there before you use it"
        yield Finding("error", "hidden-characters", _label(tool), message, fix)


def _described(schema: Any) -> bool:
    return isinstance(schema, dict) and bool(schema.get("description") or "$ref" in schema)


def _texts(*values: Any) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from _texts(*value, *value.values())
        elif isinstance(value, list):
            yield from _texts(*value)


def _check_presets(toolkit: Toolkit, tool: Tool) -> Iterator[Finding]:
    presets = toolkit.session().presets_of(tool.name)
    plain = sorted(name for name, preset in presets.items() if not preset.locked)
    if plain:
        yield Finding(
            "warning",
            "overridable-preset",
            _label(tool),
            f"a model that sends {', '.join(map(repr, plain))} is obeyed: presets are defaults unless they are locked",
            f"presets={{{tool.name!r}: {{{plain[0]!r}: Locked(...)}}}}, or Toolkit(preset_override=False) for all",
        )


def _check_dialects(toolkit: Toolkit) -> Iterator[Finding]:
    for each in plugins_of(toolkit).contributions("provide_dialects"):
        name = each.value.name
        dialect = toolkit.dialect(name)
        try:
            dialect.tools()
            losses = dialect.lint()
        except Exception as error:  # noqa: BLE001 - a pack's code may raise anything
            message = f"the dialect {name!r} cannot describe the tools: {type(error).__name__}: {error}"
            fix = f"pegboard schema --dialect {name} --traceback shows where; tell its author"
            yield Finding("error", "dialect-failed", str(each.origin), message, fix)
            continue
        for loss in losses:
            if getattr(loss, "severity", None) == "error":
                fix = "give it another name or another type, or leave it out of the view for that provider"
                yield Finding("warning", "refused-by-provider", loss.tool, f"{name}: {loss}", fix)


# What the well-known model providers refuse: names, sizes and words of schemas -------------------------------------

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


def _check_count(offered: Sequence[Tool]) -> Iterator[Finding]:
    """More tools at once than a provider takes."""
    if len(offered) > MOST_TOOLS:
        message = f"{len(offered)} tools are offered at once, and OpenAI takes {MOST_TOOLS}"
        fix = "put tools into groups, declare them with @tool(defer=True), or offer a part: toolkit.view(include=[...])"
        yield Finding("warning", "too-many-tools", "the board", message, fix)


def _check_limits(tool: Tool, label: str) -> Iterator[Finding]:
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
    # Descriptions do not count: every provider's format may drop them.
    measure.siblings |= "$ref" in schema and bool(set(schema) - {"$ref", "description", "$defs"})
