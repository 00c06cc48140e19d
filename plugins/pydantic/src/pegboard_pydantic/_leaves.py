"""Plans of schemas without schemas inside: texts, numbers, constants. Values stay JSON."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any
from uuid import UUID

from attrs import evolve

from pegboard import Check, Choice, Mismatch, Param, Scalar, Shape, Text, TypePlan, Types, shaped

__all__ = ["as_is", "bounds", "kept", "leaf"]

_FORMATS: Mapping[str, type] = {
    "date": dt.date,
    "date-time": dt.datetime,
    "ipv4": IPv4Address,
    "ipv6": IPv6Address,
    "regex": re.Pattern,
    "time": dt.time,
    "uuid": UUID,
}
"""Formats that validators check, with the types whose plans read exactly what they accept."""
_BASE64 = r"^([{0}]{{4}})*([{0}]{{2}}==|[{0}]{{3}}=)?$"
_PATTERNS: Mapping[str, str] = {
    "base64": _BASE64.format("A-Za-z0-9+/"),
    "base64url": _BASE64.format("A-Za-z0-9_-"),
    # A year is 365 days to pydantic, which writes them so; a month is nothing to either. Larger numbers overflow.
    "duration": r"^-?P([0-9]{1,8}W|([0-9]{1,4}Y)?([0-9]{1,8}D)?"
    r"(T([0-9]{1,5}H)?([0-9]{1,7}M)?([0-9]{1,9}(\.[0-9]{1,6})?S)?)?)$",
}
"""Formats that no validator checks, or not as closely as pydantic does."""
_UUID_VERSION = r"^[0-9A-Fa-f-]{{14}}{0}[0-9A-Fa-f]{{3}}-[89ABab]"
_TYPES: Mapping[str, Any] = {"boolean": bool, "integer": int, "null": None, "number": float, "string": str}
_BOUNDS = {
    "exclusiveMaximum": "lt",
    "exclusiveMinimum": "gt",
    "maximum": "le",
    "maxLength": "max_length",
    "minimum": "ge",
    "minLength": "min_length",
    "multipleOf": "multiple_of",
    "pattern": "pattern",
}
_SIZES = {
    "maxItems": "len({value}) <= {limit}",
    "maxProperties": "len({value}) <= {limit}",
    "minItems": "len({value}) >= {limit}",
    "minProperties": "len({value}) >= {limit}",
}


def as_is(value: Any) -> Any:
    """The value, unchanged."""
    return value


def kept(schema: dict[str, Any], shape: Shape) -> TypePlan:
    """A plan whose values stay as they are in both directions."""
    return shaped(schema, shape, as_is)


def bounds(node: Mapping[str, Any]) -> tuple[Check, ...]:
    """The limits that a schema sets to the size of arrays and objects."""
    return tuple(Check(word, node[word], text) for word, text in _SIZES.items() if word in node)


def leaf(node: Mapping[str, Any], types: Types) -> TypePlan:
    """The plan of a schema without schemas inside; keywords that assert nothing here are only shown."""
    choices = node.get("enum", [node["const"]] if "const" in node else None)
    if choices is not None and all(isinstance(choice, str | int | float | None) for choice in choices):
        return kept(dict(node), Choice(tuple((choice, choice) for choice in choices)))
    kind = node.get("type")
    if kind not in _TYPES:
        return kept(dict(node), Scalar(object))
    if kind == "string":
        return _text(node, types)
    return _scalar(node, types)


def _text(node: Mapping[str, Any], types: Types) -> TypePlan:
    if node.get("format") == "password":
        # Pydantic enforces the bounds, in words that do not repeat the secret.
        return kept(dict(node), Text(as_is))
    label = node.get("format", "")
    if label in _PATTERNS:
        return _patterned({**node, "pattern": _PATTERNS[label]}, types)
    if label[:4] == "uuid" and label[4:].isdigit():
        node = {**node, "format": "uuid", "pattern": _UUID_VERSION.format(label[4:])}
        label = "uuid"
    cls = _FORMATS.get(label)
    plan = None if cls is None else types.plan(cls)
    # The program may have other ideas about the type; pydantic reads what the format says.
    if plan is None or plan.schema.get("format") != label:
        return _scalar(node, types)
    return kept({**plan.schema, **node}, Text(_checking(plan.structure, _scalar(node, types).structure)))


def _patterned(node: dict[str, Any], types: Types) -> TypePlan:
    checks = [_scalar(node, types).structure, *([_ended] if node["format"] == "duration" else [])]
    return kept(node, Text(_checking(*checks)))


def _ended(text: str) -> None:
    """Refuse a duration that ends where a number should follow: its format forbids that, so the pattern need not."""
    if text[-1] in "PT":
        raise Mismatch


def _checking(*structures: Callable[[Any], Any]) -> Callable[[str], str]:
    def check(text: str) -> str:
        for structure in structures:
            structure(text)
        return text

    return check


def _scalar(node: Mapping[str, Any], types: Types) -> TypePlan:
    limits: dict[str, Any] = {name: node[word] for word, name in _BOUNDS.items() if word in node}
    kind = _TYPES[node["type"]]
    plan = types.plan(Annotated[kind, Param(**limits)] if limits else kind)
    return evolve(plan, schema=dict(node), unstructure=as_is)
