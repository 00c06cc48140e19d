"""JSON Schema 2020-12 in the form of OpenAPI 3.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pegboard_dialects._schemas import distinct

__all__ = ["to_openapi"]

JsonSchema = dict[str, Any]

# Keywords without a counterpart. A discriminator needs references, for which a single schema has no place.
_UNKNOWN: Final = (
    "$schema", "$id", "$comment", "$anchor", "$defs", "additionalItems", "definitions", "dependencies",
    "propertyNames", "contains", "minContains", "maxContains", "if", "then", "else", "dependentRequired",
    "dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "contentMediaType", "contentSchema",
    "discriminator",
)  # fmt: skip
# The remaining keywords that hold schemas.
_ONE: Final = ("additionalProperties", "items", "not")
_SEVERAL: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED: Final = ("patternProperties", "properties")


def to_openapi(schema: Any) -> JsonSchema:
    """`schema` in OpenAPI 3.0, with its definitions as the `components` that it refers to.

    Null becomes `nullable`, `const` an enum of one, exclusive bounds their boolean form, and positional items the union
    of their types. Keywords that OpenAPI 3.0 does not have are left out: the result may accept more than the original.
    """
    converted = _object(schema)
    named = schema.get("$defs") if isinstance(schema, dict) else None
    if named:
        converted["components"] = {"schemas": {name: _object(each) for name, each in named.items()}}
    return converted


def _object(schema: Any) -> JsonSchema:
    """One schema, without its definitions."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    converted = {keyword: _inside(keyword, value) for keyword, value in schema.items() if keyword not in _UNKNOWN}
    for convert in (_reference, _positions, _alternatives, _types, _constants, _bounds, _annotations):
        converted = convert(converted)
    return converted


def _inside(keyword: str, value: Any) -> Any:
    """The value of a keyword, with the schemas in it converted."""
    if keyword in _SEVERAL or (keyword in _ONE and isinstance(value, list)):
        return [_inner(each) for each in value]
    if keyword in _NAMED:
        return {name: _inner(each) for name, each in value.items()}
    return _inner(value) if keyword in _ONE else value


def _inner(schema: Any) -> Any:
    # `additionalProperties: false` stays as it is; other booleans are rewritten where they stand.
    return schema if schema is False else _object(schema)


def _reference(schema: JsonSchema) -> JsonSchema:
    if "$ref" not in schema:
        return schema
    reference = {"$ref": schema.pop("$ref").replace("#/$defs/", "#/components/schemas/", 1)}
    # Keywords beside a reference are ignored.
    return {"allOf": [reference], **schema} if schema else reference


def _positions(schema: JsonSchema) -> JsonSchema:
    patterns = list(schema.pop("patternProperties", {}).values())
    if patterns:
        schema["additionalProperties"] = _any_of(patterns)
    positions = schema.pop("prefixItems", None)
    if positions is not None:
        schema["items"] = _any_of(positions)
    return {**schema, "items": {}} if schema.get("type") == "array" and not schema.get("items") else schema


def _any_of(schemas: list[Any]) -> Any:
    different = distinct(schemas)
    return different[0] if len(different) == 1 else {"anyOf": different}


def _alternatives(schema: JsonSchema) -> JsonSchema:
    for keyword in ("anyOf", "oneOf"):
        members = schema.get(keyword)
        if not members or _NULL not in members:
            continue
        rest = [member for member in members if member != _NULL]
        if any(map(_is_reference, rest)):
            continue  # `nullable` beside a reference has no effect
        kept = {key: value for key, value in schema.items() if key != keyword}
        if len(rest) == 1:
            return _nullable({**rest[0], **kept})
        # `nullable` applies to the type beside it, so it must be in an alternative that has a type.
        carrier = next((member for member in rest if "type" in member), rest[0])
        return {keyword: [_nullable(member) if member is carrier else member for member in rest], **kept}
    return schema


def _is_reference(schema: Any) -> bool:
    inner = schema.get("allOf") or [schema] if isinstance(schema, dict) else [schema]
    return isinstance(inner[0], dict) and "$ref" in inner[0]


def _types(schema: JsonSchema) -> JsonSchema:
    kinds = schema.get("type")
    if kinds == "null":
        return _nullable({key: value for key, value in schema.items() if key != "type"})
    if not isinstance(kinds, list):
        return schema
    rest = {key: value for key, value in schema.items() if key != "type"}
    named = [kind for kind in kinds if kind != "null"]
    typed = {"type": named[0], **rest} if len(named) == 1 else {"anyOf": [{"type": kind} for kind in named], **rest}
    return _nullable(typed) if "null" in kinds else typed


def _nullable(schema: Mapping[str, Any]) -> JsonSchema:
    choices = schema.get("enum", [])
    nullable = {**schema, "nullable": True}
    if "type" not in schema and not schema.keys() & {"anyOf", "oneOf", "allOf"} and not choices:
        return {**nullable, "enum": [None]}
    return {**nullable, "enum": [*choices, None]} if choices and None not in choices else nullable


def _constants(schema: JsonSchema) -> JsonSchema:
    if "const" in schema:
        schema = {("enum" if key == "const" else key): value for key, value in schema.items()}
        schema["enum"] = [schema["enum"]]
    return {**schema, "nullable": True} if None in schema.get("enum", []) else schema


def _bounds(schema: JsonSchema) -> JsonSchema:
    for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        limit = schema.get(exclusive)
        if not isinstance(limit, (int, float)) or isinstance(limit, bool):
            continue
        tighter = max if plain == "minimum" else min
        if plain in schema and tighter(limit, schema[plain]) != limit:
            schema.pop(exclusive)
        else:
            schema.update({plain: limit, exclusive: True})
    return schema


def _annotations(schema: JsonSchema) -> JsonSchema:
    if "examples" in schema:
        examples = schema.pop("examples")
        schema.update({"example": examples[0]} if isinstance(examples, list) and examples else {})
    if schema.pop("contentEncoding", None) == "base64":
        schema.setdefault("format", "byte")
    return schema


_NULL: JsonSchema = {"nullable": True, "enum": [None]}
