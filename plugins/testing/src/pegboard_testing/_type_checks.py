"""Checks of type handlers: whether what a schema accepts is what its `structure` accepts, value by value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pegboard import PegboardError, Toolkit, qualified_name
from pegboard.inspection import plugins_of
from pegboard_testing._findings import Finding

__all__ = ["check_types"]

_BASIC: Final = (bool, int, float, str, bytes, list[int], dict[str, int], tuple[int, str], set[str])
"""Types that a handler may map by mistake."""
_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 7, 2**70, 1.0, 1.5, -0.5, 1e300),
    *("", "a", "1", "1.5", "true", "null", "[]", "2026-01-31", "2026-01-31T12:00:00Z", "YQ==", "\u00e9"),
    *([], [1], ["a"], [None], [1, "a"], {}, {"a": 1}, {"1": 1}, {"a": None}),
)
_PROBE: Final = "probe_of_type_handlers"
_MOST: Final = 300


def check_types(toolkit: Toolkit, pack: str | None = None) -> Iterator[Finding]:
    """Find the values about which a handler's schema and its `structure` disagree.

    Looked at are the types that handlers name, those of the tools' parameters, and basic ones, with values of all JSON
    types and with such as the schema describes.

    Args:
        toolkit: The toolkit.
        pack: Pack whose handlers are checked. None for all.
    """
    owners = {record.origin.plugin for name, record in plugins_of(toolkit).packs.items() if pack in (None, name)}
    for annotation in _annotations(toolkit, pack):
        try:
            _, origin, _ = toolkit.types.handler_for(annotation)
            if origin.plugin in owners:
                yield from _check(toolkit, annotation, str(origin))
        except PegboardError:
            continue  # a type that cannot be a parameter; registration says why


def _annotations(toolkit: Toolkit, pack: str | None) -> list[Any]:
    found: list[Any] = []
    for each in plugins_of(toolkit).contributions("provide_types"):
        if not each.builtin and pack in (None, each.pack):
            matches = each.value.matches
            found += matches if isinstance(matches, tuple) else [matches]
    for tool in toolkit.all_tools:
        found += [parameter.annotation for parameter in tool.params if parameter.source == "model"]
    distinct = {id(each): each for each in (*found, *_BASIC)}
    return [each for each in distinct.values() if isinstance(each, type) or hasattr(each, "__origin__")]


def _check(toolkit: Toolkit, annotation: Any, origin: str) -> Iterator[Finding]:
    from jsonschema import Draft202012Validator, FormatChecker

    schema = _schema(toolkit, annotation)
    validator = Draft202012Validator(schema, format_checker=FormatChecker())
    structure = toolkit.types.plan(annotation).structure
    # What no checker knows is a remark to jsonschema, and may be more to the handler.
    unknown = set(_formats(schema)) - FormatChecker.checkers.keys()
    for value in (*_VALUES, *_near(schema, schema)):
        fits, taken = validator.is_valid(value), _takes(structure, value)
        if fits == taken or (fits and unknown):
            continue
        what = "refuses what its schema accepts" if fits else "accepts what its schema refuses"
        shown = json.dumps(value)
        yield Finding(
            "types",
            f"the handler of {origin} for {qualified_name(annotation)} {what}: "
            f"{shown if len(shown) <= 80 else shown[:77] + '...'}",
            "make schema and structure say the same; plans of pegboard.shaped are checked against their shape",
        )
        return  # one is enough to look at it


def _schema(toolkit: Toolkit, annotation: Any) -> dict[str, Any]:
    def probe(value: Any) -> None: ...

    probe.__annotations__["value"] = annotation
    (tool,) = toolkit.register(probe, name=_PROBE, description="Shows the schema of a type.")
    schema = tool.parameters
    toolkit.unregister(_PROBE)
    return {**schema["properties"]["value"], "$defs": schema.get("$defs", {})}


def _takes(structure: Any, value: Any) -> bool:
    try:
        structure(value)
    except Exception:  # noqa: BLE001 - whatever a handler raises, it refuses
        return False
    return True


def _formats(schema: Any) -> Iterator[str]:
    for key, inner in schema.items() if isinstance(schema, Mapping) else ():
        if key == "format" and isinstance(inner, str):
            yield inner
        yield from _formats(inner)
    for inner in schema if isinstance(schema, list) else ():
        yield from _formats(inner)


def _near(schema: Any, root: Mapping[str, Any], depth: int = 0) -> list[Any]:
    """Values about as the schema describes them: fitting, and with one thing wrong."""
    if not isinstance(schema, Mapping) or depth > 3:
        return []
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix("#/$defs/")
        return _near(root.get("$defs", {}).get(name), root, depth + 1)
    found: list[Any] = [*schema.get("enum", ()), *schema.get("examples", ())]
    found += [schema[word] for word in ("const", "default", "minimum", "maximum") if word in schema]
    found += [schema[word] + step for word in ("minimum", "maximum") if word in schema for step in (-1, 1)]
    for word in ("minLength", "maxLength"):
        found += ["x" * max(0, schema.get(word, 0) + step) for step in (-1, 0, 1) if word in schema]
    for word in ("anyOf", "oneOf", "allOf"):
        found += [value for each in schema.get(word, ()) for value in _near(each, root, depth + 1)]
    properties = schema.get("properties", {})
    members = {name: (_near(part, root, depth + 1) or _of_type(part)) for name, part in properties.items()}
    if members:
        whole = {name: values[0] for name, values in members.items()}
        found += [whole, {**whole, "no such member": 1}]
        found += [{key: value for key, value in whole.items() if key != name} for name in whole]
        found += [{**whole, name: value} for name in whole for value in (*members[name][1:], None, 1, "a", [])]
    if isinstance(items := schema.get("items"), Mapping):
        inner = _near(items, root, depth + 1) or _of_type(items)
        found += [[value] for value in inner] + [inner[:1] * 2, [*inner[:1], None]]
    return found[:_MOST]


def _of_type(schema: Any) -> list[Any]:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = {"integer": 7, "number": 1.5, "string": "a", "boolean": True, "array": [], "object": {}, "null": None}
    return [kinds.get(str(kind), "a")]
