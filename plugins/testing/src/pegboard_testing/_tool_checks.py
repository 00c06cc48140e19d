"""Checks of single tools: names, documentation, schemas, examples, results."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from pegboard import Tool, Toolkit, ToolResult
from pegboard_testing._findings import Finding

__all__ = ["check_documentation", "check_examples", "check_names", "check_schema"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_PARAMETER = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LONGEST = 64


def check_names(tool: Tool) -> Iterator[Finding]:
    """Names that every provider can carry, also where the tool has to go by its pack's name."""
    if not _NAME.fullmatch(tool.name):
        yield Finding("names", f"{tool.name!r} is refused by some providers", 'write @tool(name="...")')
    qualified = f"{tool.pack}__{tool.name}"
    if tool.pack and len(qualified) > _LONGEST:
        remedy = f"shorten it: where two packs offer one name, this is its own, and {_LONGEST} characters are the most"
        yield Finding("names", f"{qualified!r} has {len(qualified)} characters", remedy)
    for name in tool.parameters.get("properties", {}):
        if not _PARAMETER.fullmatch(name):
            remedy = "use at most 64 letters, digits, '_', '.' and '-'"
            yield Finding("names", f"the parameter {name!r} of {tool.name} is refused by some providers", remedy)


def check_documentation(tool: Tool) -> Iterator[Finding]:
    """A description for the tool and for each parameter; nothing in them that a reader cannot see."""
    if not tool.description.strip():
        yield Finding("documentation", f"{tool.name} has no description", "give its function a docstring")
    schema = tool.parameters
    for name, part in schema.get("properties", {}).items():
        texts = [each.get("description", "") for each in (part, _referred(schema, part)) if isinstance(each, Mapping)]
        if not any(text.strip() for text in texts):
            remedy = 'describe it under "Args:" in the docstring, or as Annotated[..., "..."]'
            yield Finding("documentation", f"the parameter {name!r} of {tool.name} has no description", remedy)
    hidden = _hidden(json.dumps([tool.description, schema], ensure_ascii=False))
    if hidden:
        remedy = "remove it: a person who reviews the tool does not see what the model reads"
        yield Finding("documentation", f"the texts of {tool.name} hold the invisible character {hidden}", remedy)


def _referred(schema: Mapping[str, Any], part: Any) -> Any:
    """The definition that a part refers to; None where it refers to none."""
    reference = part.get("$ref") if isinstance(part, Mapping) else None
    found: Any = schema if isinstance(reference, str) and reference.startswith("#/") else None
    for key in (reference or "").split("/")[1:]:
        name = key.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _hidden(text: str) -> str:
    # Line breaks and tabs are escaped in JSON, so whatever controls or formats is meant for no reader.
    found = next((char for char in text if unicodedata.category(char) in ("Cc", "Cf")), None)
    return "" if found is None else f"U+{ord(found):04X}"


def check_schema(tool: Tool) -> Iterator[Finding]:
    """Valid schemas of the 2020-12 dialect, JSON through and through."""
    for what, schema in (("parameters", tool.parameters), ("returns", tool.returns)):
        if schema is not None:
            problem = _schema_problem(schema)
            if problem:
                remedy = "fix the schema, or the type handler that makes it"
                yield Finding("schemas", f"{what} of {tool.name}: {problem}", remedy)
    if tool.parameters.get("type") != "object":
        remedy = 'tools take an object: {"type": "object", "properties": {...}}'
        yield Finding("schemas", f"parameters of {tool.name} are no object", remedy)


def _schema_problem(schema: Any) -> str:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        json.dumps(schema, allow_nan=False)
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"not valid JSON Schema at #/{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
    except (TypeError, ValueError) as error:
        return f"not JSON: {error}"
    return ""


def check_examples(toolkit: Toolkit, tool: Tool, context: Any) -> Iterator[Finding]:
    """Every declared example is a call that succeeds, and its result is JSON."""
    for number, example in enumerate(tool.schema().examples, 1):
        what = f"example {number} of {tool.name}"
        if not isinstance(example, Mapping):
            remedy = 'an example is a mapping of arguments: @tool(examples=[{"city": "Oslo"}])'
            yield Finding("examples", f"{what} is a {type(example).__name__}", remedy)
            continue
        result = toolkit.call_sync(tool.name, example, context=context)
        if result.is_error:
            remedy = "fix the example, or give assert_conforms the context= and settings= that it needs"
            yield Finding("examples", f"{what} ends as {result.status.value}: {' '.join(result.text.split())}", remedy)
        yield from _check_result(what, result)


def _check_result(what: str, result: ToolResult) -> Iterator[Finding]:
    try:
        json.dumps(result.to_dict(), allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "return what JSON can carry, or provide a converter"
        yield Finding("results", f"the result of {what} is not JSON: {error}", remedy)
