"""References inside a schema: `#/$defs/X`, `#/definitions/X`, `#`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["recursive", "references", "resolved", "target"]


def target(reference: str, root: Mapping[str, Any]) -> Any:
    """The schema that a local reference names; an empty one if there is none."""
    found: Any = root
    for part in reference.lstrip("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            found = found.get(key, {}) if isinstance(found, Mapping) else {}
    return found


def resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema without a reference at its top. Keywords beside a reference stay."""
    beside: dict[str, Any] = {}
    past: set[str] = set()
    while isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str) and reference not in past:
        past.add(reference)
        beside = {**{key: value for key, value in schema.items() if key != "$ref"}, **beside}
        schema = target(reference, root)
    if not isinstance(schema, Mapping):
        return beside if schema is not False else {"not": {}}
    return {**schema, **beside} if beside else schema


def references(schema: Any) -> Iterator[str]:
    """Every reference in a schema, at any depth."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for inner in schema.values():
            yield from references(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from references(inner)


def recursive(root: Mapping[str, Any]) -> frozenset[str]:
    """The references that lead back to themselves, directly or through others."""
    leads: dict[str, set[str]] = {}
    waiting = list(references(root))
    while waiting:
        reference = waiting.pop()
        if reference not in leads:
            leads[reference] = set(references(target(reference, root)))
            waiting.extend(leads[reference])
    return frozenset(reference for reference in leads if reference in _reached(reference, leads))


def _reached(start: str, leads: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(leads[start])
    while waiting:
        reference = waiting.pop()
        if reference not in found:
            found.add(reference)
            waiting.extend(leads[reference])
    return found
