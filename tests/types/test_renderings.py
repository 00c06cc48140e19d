"""Every type of the battery in every rendering: 2020-12, OpenAPI 3.0, with full names, inlined."""

import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from annotated_types import MaxLen
from jsonschema import Draft4Validator, Draft202012Validator

from pegboard._base.errors import PegboardError
from pegboard._base.markers import Param
from pegboard._model.subschemas import map_subschemas
from pegboard._types.annotations import qualified_name
from tests.support.thinning import one_in
from tests.types.battery import BATTERY, Bound, Color, Entry, Json, Names, Pair, Picked, Slug, Tree, UserId
from tests.types.table import plan, schema

RECURSIVE = [Json, Tree]
NOT_RECURSIVE = [entry for entry in BATTERY if entry.annotation not in RECURSIVE]
each = pytest.mark.parametrize("entry", one_in(4, BATTERY), ids=str)
each_finite = pytest.mark.parametrize("entry", one_in(4, NOT_RECURSIVE), ids=str)

# The Schema Object of the OpenAPI Specification 3.0.3, section 4.7.24.
OPENAPI_KEYWORDS = frozenset(
    [
        *(
            "title",
            "multipleOf",
            "maximum",
            "exclusiveMaximum",
            "minimum",
            "exclusiveMinimum",
            "maxLength",
            "minLength",
        ),
        *("pattern", "maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties", "required", "enum"),
        *("type", "allOf", "oneOf", "anyOf", "not", "items", "properties", "additionalProperties", "description"),
        *("format", "default", "nullable", "discriminator", "readOnly", "writeOnly", "xml", "externalDocs"),
        *("example", "deprecated"),
    ]
)
OPENAPI_TYPES = ["array", "boolean", "integer", "number", "object", "string"]


def subschemas(found: Any) -> Iterator[Any]:
    """A schema and all schemas inside it, those among its components included."""
    yield found
    if isinstance(found, dict):
        inside: list[Any] = [*found.get("components", {}).get("schemas", {}).values()]
        map_subschemas(found, inside.append)
        for inner in inside:
            yield from subschemas(inner)


def complaints(found: Any) -> Iterator[str]:
    """What is wrong with one OpenAPI 3.0 schema object, leaving out what stands inside it."""
    if not isinstance(found, dict):
        yield f"{found!r} is no object"
        return
    if "$ref" in found:
        yield from () if found.keys() == {"$ref"} else ("what stands beside a reference is ignored",)
        return
    yield from (f"{keyword} is no keyword" for keyword in sorted(found.keys() - OPENAPI_KEYWORDS))
    if found.get("type", "string") not in OPENAPI_TYPES:
        yield f"{found['type']!r} is no type"
    if found.get("type") == "array" and "items" not in found:
        yield "an array needs items"
    for bound in ("exclusiveMinimum", "exclusiveMaximum"):
        if not isinstance(found.get(bound, False), bool):
            yield f"{bound} is not boolean"
    if "enum" in found and not found["enum"]:
        yield "enum is empty"


@each
def test_is_valid_under_the_metaschema(entry: Entry) -> None:
    Draft202012Validator.check_schema(schema(entry.annotation))
    Draft202012Validator.check_schema(schema(entry.annotation, titles="qualified"))


@each
def test_is_a_schema_object_of_openapi(entry: Entry) -> None:
    found = schema(entry.annotation, dialect="openapi-3.0")
    objects = [inner for inner in subschemas(found) if not isinstance(inner, bool)]
    # Components stand at the root of the document that the schema is put into.
    objects[0] = {keyword: value for keyword, value in found.items() if keyword != "components"}
    assert [complaint for inner in objects for complaint in complaints(inner)] == []


@each
def test_openapi_accepts_the_good_values(entry: Entry) -> None:
    """Draft 4 is what OpenAPI 3.0 extends: the good values have to pass, null where it is nullable."""
    found = schema(entry.annotation, dialect="openapi-3.0")
    for sent, _ in entry.good:
        Draft4Validator(nullable_as_null(found)).validate(sent)


def nullable_as_null(found: Any) -> Any:
    """`nullable` as Draft 4 has it."""
    if not isinstance(found, dict):
        return found
    inner = map_subschemas(found, nullable_as_null)
    if "components" in found:
        named = found["components"]["schemas"]
        inner["components"] = {"schemas": {name: nullable_as_null(each) for name, each in named.items()}}
    if inner.get("type") == "integer":  # 1.0 is one today, but was none in Draft 4
        inner |= {"type": "number", "multipleOf": inner.get("multipleOf", 1)}
    return {"anyOf": [inner, {"enum": [None]}]} if inner.pop("nullable", False) else inner


@pytest.mark.parametrize("annotation", RECURSIVE)
@pytest.mark.parametrize("dialect", ["openapi-3.0", "2020-12"])
def test_a_recursive_type_cannot_be_inlined(annotation: Any, dialect: str) -> None:
    with pytest.raises(PegboardError, match="contains itself"):
        schema(annotation, refs="inline", dialect=dialect)


@pytest.mark.parametrize("annotation", [Tree, list[Tree], Annotated[Tree, Param(description="Where it begins.")]])
def test_a_recursive_type_is_a_component_of_openapi(annotation: Any) -> None:
    found = schema(annotation, dialect="openapi-3.0", titles="qualified")
    assert found["components"]["schemas"].keys() == {"Tree"}
    assert "$defs" not in str(found)
    good: Any
    for good in ({}, {"a": {"b": {}}}):
        assert Draft4Validator(found).is_valid([good] if annotation == list[Tree] else good)
    for bad in ({"a": 1}, {"a": {"b": {"c": None}}}):
        assert not Draft4Validator(found).is_valid([bad] if annotation == list[Tree] else bad)


@each_finite
def test_inlined_there_are_no_references(entry: Entry) -> None:
    found = list(subschemas(schema(entry.annotation, refs="inline")))
    assert not [inner for inner in found if isinstance(inner, dict) and inner.keys() & {"$ref", "$defs"}]


ALIASES = {
    UserId: "int",
    Names: "list[str]",
    Pair[int]: "tuple[int, int]",
    Json: "str | int | list[tests.types.battery.Json] | dict[str, tests.types.battery.Json] | None",
    Tree: "dict[str, tests.types.battery.Tree]",
    Bound: "int",
    Picked: "int | str",
    Annotated[Slug, MaxLen(3)]: "str",
}
"""Another name for a type: the title is that of the type itself, which a recursive alias names inside."""


@each
def test_is_named_in_full(entry: Entry) -> None:
    found = schema(entry.annotation, titles="qualified")
    title = found["$defs"][found["$ref"].rpartition("/")[2]]["title"] if "$ref" in found else found["title"]
    aliases = [title for alias, title in ALIASES.items() if alias == entry.annotation]
    assert title == (aliases[0] if aliases else qualified_name(entry.annotation))


def test_names_are_those_of_seed_004() -> None:
    """A list of mappings to a class of one's own, named all the way down."""
    found = schema(list[dict[str, Color]], titles="qualified")
    titles = [inner["title"] for inner in subschemas(found) if isinstance(inner, dict)]
    own = "tests.types.battery.Color"
    assert titles == [f"list[dict[str, {own}]]", f"dict[str, {own}]", own]


@each
def test_is_the_same_every_time(entry: Entry) -> None:
    assert schema(entry.annotation) == schema(entry.annotation)
    assert str(schema(entry.annotation)) == str(schema(entry.annotation))


def test_complaints_are_made() -> None:
    bad = {"type": ["string", "null"], "const": 1, "$defs": {}, "prefixItems": []}
    assert len(list(complaints(bad))) == 4
    assert list(complaints({"type": "array"})) == ["an array needs items"]
    assert list(complaints({"exclusiveMinimum": 1, "enum": []})) == ["exclusiveMinimum is not boolean", "enum is empty"]
    assert plan(dt.date).schema == {"type": "string", "format": "date"}
