"""The JSON Schemas that pydantic and msgspec themselves make for a type, and a form in which schemas are compared."""

import json
from collections.abc import Callable
from types import GenericAlias, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from annotated_types import GroupedMetadata
from pydantic import Field, TypeAdapter

from pegboard._base.markers import Param

BOUNDS = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length")
NOISE = {"title", "description", "$defs"}
"""What says nothing about values."""
DEFAULTS: dict[str, Any] = {"items": ({}, True, False), "additionalProperties": ({}, True), "minItems": (0,)}
"""Values of keywords that change nothing where they stand; `items: false` stands behind `prefixItems`."""


def pydantic_schema(annotation: Any) -> dict[str, Any]:
    return TypeAdapter(in_words_of(annotation, lambda given: Field(**given))).json_schema()


def msgspec_schema(annotation: Any) -> dict[str, Any]:
    return msgspec.json.schema(in_words_of(annotation, lambda given: msgspec.Meta(**given)))


def in_words_of(annotation: Any, meta: Callable[[dict[str, Any]], Any]) -> Any:
    """A type with its bounds in the words of another library: neither knows our `Param`, msgspec only its own."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        given = {name: value for item in annotation.__metadata__ for name, value in bounds(item).items()}
        return Annotated[in_words_of(arguments[0], meta), meta(given)] if given else annotation
    if origin in (Union, UnionType):
        return Union[tuple(in_words_of(argument, meta) for argument in arguments)]  # noqa: UP007 - made at run time
    if isinstance(annotation, GenericAlias) and origin in (list, dict, set):
        return GenericAlias(origin, tuple(in_words_of(argument, meta) for argument in arguments))
    return annotation


def bounds(item: Any) -> dict[str, Any]:
    if isinstance(item, GroupedMetadata):
        return {name: value for each in item for name, value in bounds(each).items()}
    names = (*BOUNDS, "pattern") if isinstance(item, Param) else BOUNDS
    found = {name: getattr(item, name, None) for name in names}
    return {name: number(value) for name, value in found.items() if value is not None}


def number(value: Any) -> Any:
    return value if isinstance(value, (int, str)) else float(value)


def normal(schema: dict[str, Any]) -> Any:
    """A schema without what is only another way to write it."""
    return _normal(schema, schema.get("$defs", {}), ())


def _normal(schema: Any, defs: dict[str, Any], inside: tuple[str, ...]) -> Any:
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return {"$ref": inside.index(name)} if name in inside else _normal(defs[name], defs, (*inside, name))
    found = {keyword: value for keyword, value in schema.items() if keyword not in NOISE}
    found = {keyword: value for keyword, value in found.items() if value not in DEFAULTS.get(keyword, ())}
    if "const" in found:
        found["enum"] = [found.pop("const")]
    if "enum" in found:
        found.pop("type", None)  # the values tell
        found["enum"] = sorted(found["enum"], key=json.dumps)
    return {keyword: _normal_value(keyword, value, defs, inside) for keyword, value in sorted(found.items())}


def _normal_value(keyword: str, value: Any, defs: dict[str, Any], inside: tuple[str, ...]) -> Any:
    match keyword:
        case "properties":
            return {name: _normal(inner, defs, inside) for name, inner in sorted(value.items())}
        case "anyOf" | "oneOf":
            return sorted((_normal(inner, defs, inside) for inner in value), key=json.dumps)
        case "prefixItems":
            return [_normal(inner, defs, inside) for inner in value]
        case "required":
            return sorted(value)
        case "propertyNames":
            names = _normal(value, defs, inside)
            return {inner: value for inner, value in names.items() if inner != "type"}  # names are text
    return number(value) if hasattr(value, "as_tuple") else _normal(value, defs, inside)
