"""A schema without the null that it allows: providers write in different ways that a value may be null."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

__all__ = ["ALTERNATIVES", "NOTES", "Parted", "is_null", "listed", "only", "without_null"]

ALTERNATIVES: Final = ("anyOf", "oneOf")
NOTES: Final = frozenset(("title", "description"))


class Parted(NamedTuple):
    """A schema without its null. If one alternative remains, it is `only`, and `rest` are the other keywords."""

    rest: dict[str, Any]
    nullable: bool = False
    only: Any = None


def without_null(schema: dict[str, Any]) -> Parted:
    kinds = schema.get("type")
    if "const" in schema or "enum" in schema:
        choices = [schema["const"]] if "const" in schema else schema["enum"]
        return _choice_without_null(schema, choices)
    if isinstance(kinds, list):
        named = [kind for kind in kinds if kind != "null"]
        found = {**schema, "type": named[0] if len(named) == 1 else named or "null"}
        return Parted(found, "null" in kinds and bool(named))
    for keyword in ALTERNATIVES:
        members = schema.get(keyword)
        if not isinstance(members, list):
            continue
        rest = {key: value for key, value in schema.items() if key != keyword}
        remaining = [member for member in members if not is_null(member)]
        if len(remaining) == 1:
            return Parted(rest, len(remaining) < len(members), remaining[0])
        if not remaining:
            return Parted({"type": "null"})
        return Parted({**rest, keyword: remaining}, len(remaining) < len(members))
    return Parted(schema)


def _choice_without_null(schema: dict[str, Any], choices: list[Any]) -> Parted:
    kinds = [kind for kind in listed(schema.get("type")) if kind != "null"]
    remaining = [each for each in choices if each is not None]
    if not remaining:
        return Parted({**only(schema, NOTES), "type": "null"})
    found = {key: value for key, value in schema.items() if key not in ("type", "enum", "const")}
    found |= {"const": remaining[0]} if "const" in schema else {"enum": remaining}
    if len(kinds) == 1:
        found["type"] = kinds[0]
    admitted = not schema.get("type") or "null" in listed(schema["type"])
    return Parted(found, len(remaining) < len(choices) and admitted)


def only(schema: Mapping[str, Any], keywords: Collection[str]) -> dict[str, Any]:
    return {keyword: value for keyword, value in schema.items() if keyword in keywords}


def listed(kinds: Any) -> list[Any]:
    return kinds if isinstance(kinds, list) else [] if kinds is None else [kinds]


def is_null(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    return schema.get("type") == "null" or schema.get("enum") == [None] or schema.get("const", schema) is None
