"""Checks of tools: names, texts, presets, and what providers refuse."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from pegboard import PegboardError, Tool, Toolkit
from pegboard.inspection import board_of, plugins_of
from pegboard_cli._facts import ordered, place
from pegboard_cli._finding import Finding
from pegboard_cli._output import clean
from pegboard_cli._provider_limits import check_count, check_limits

__all__ = ["check_tools"]


def check_tools(toolkit: Toolkit) -> Iterator[Finding]:
    """Findings about the board and every tool on it. Tools behind import strings are imported."""
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
    left = {tool.name for tool in toolkit.all_tools}
    for tool in (each for each in readable if each.name in left):
        yield from chain(_check_texts(tool), _check_presets(toolkit, tool), check_limits(tool, _label(tool)))
    yield from check_count(toolkit.tools)
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
