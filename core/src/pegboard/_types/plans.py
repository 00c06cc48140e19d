"""Making type plans: the pieces that handlers of records, containers and scalars are written with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from attrs import evolve

from pegboard._base.errors import RegistrationError
from pegboard._base.markers import MISSING
from pegboard._model.shapes import Member, Nullable, Record, Scalar, Shape, TypePlan, identity
from pegboard._schema.nodes import JsonSchema, SchemaNode, SchemaRef, extend, object_schema
from pegboard._types.annotations import Metadata, qualified_name, read_metadata, split
from pegboard._types.codegen import structurer
from pegboard._types.constraints import bounded
from pegboard.extension import Types

__all__ = ["json_default", "optional_member", "record_member", "record_plan", "record_schema", "refine", "shaped"]


def shaped(schema: JsonSchema, shape: Shape, unstructure: Callable[[Any], Any] = identity) -> TypePlan:
    """A plan whose `structure` is compiled from its shape on first use."""
    return TypePlan(schema, structurer(shape), unstructure, shape)


def record_plan(
    annotation: Any,
    shape: Record,
    unstructure: Callable[[Any], Any],
    *,
    description: str | None = None,
    schema: JsonSchema | None = None,
) -> TypePlan:
    """The plan of a named record: a class with members that arrives as an instance of itself.

    `unstructure` takes an instance and returns JSON-able data under the members' keys. The schema is made from the
    members unless it is given; inside other schemas it stands as a reference that rendering resolves, so records may
    contain each other. `annotation` gives the name, generics included.
    """
    name = qualified_name(annotation)
    body = record_schema(shape, description) if schema is None else schema
    node = SchemaNode(body, lambda: name)
    return shaped(SchemaRef(name, lambda: node), shape, unstructure)


def record_schema(shape: Record, description: str | None = None) -> JsonSchema:
    """The schema of a record: its type, its description if there is one, properties, required, additionalProperties."""
    properties = {member.key: member.plan.schema for member in shape.members}
    required = [member.key for member in shape.members if member.required]
    schema = object_schema(properties, required, surplus=shape.open)
    return {"type": schema.pop("type"), "description": description, **schema} if description else schema


def record_member(
    types: Types,
    name: str,
    annotation: Any,
    *,
    default: Any = MISSING,
    required: bool | None = None,
    key: str | None = None,
    description: str | None = None,
) -> Member:
    """One member of a record, or one parameter of a tool, from its annotation and default.

    Metadata of the annotation renames it (`Param(name=...)`), describes it and bounds it; `key` and `description` are
    what holds where the metadata says nothing. A default makes it optional unless `required` says otherwise, and is
    part of the schema when it is JSON-able. `Optional[T] = None` is plain `T` and may be left out, but not be null.
    Raises `RegistrationError` for a type that nobody maps.
    """
    _, items = split(annotation)
    metadata = read_metadata(items) if items else _NO_METADATA
    plan = optional_member(types, annotation, default)
    keywords: dict[str, Any] = {}
    if description and "description" not in plan.schema:
        keywords["description"] = description
    shown = json_default(plan, default)
    if shown is not MISSING:
        keywords["default"] = shown
    plan = evolve(plan, schema=extend(plan.schema, keywords)) if keywords else plan
    optional = default is not MISSING if required is None else not required
    return Member(name, metadata.name or key or name, plan, not optional, default)


def optional_member(types: Types, annotation: Any, default: Any = MISSING) -> TypePlan:
    """The plan of `annotation` beside `default`.

    `Optional[T] = None` gives the plan of `T`: the model leaves the member out instead of sending null.
    """
    plan = types.plan(annotation)
    if default is not None or not isinstance(plan.shape, Nullable):
        return plan
    bare, items = split(annotation)
    whole = types.plan(bare)
    if not isinstance(whole.shape, Nullable):
        return plan
    # Null cannot be sent, but None is still what the program may hold.
    return evolve(refine(whole.shape.inner, read_metadata(items), bare), unstructure=whole.unstructure)


def refine(plan: TypePlan, metadata: Metadata, annotation: Any) -> TypePlan:
    """`plan` with the bounds enforced and the schema described as `metadata` says.

    Raises `RegistrationError` for a bound that does not fit the type.
    """
    if metadata.bounds or metadata.predicates:
        plan = bounded(plan, metadata, annotation)
    keywords = metadata.keywords
    if "examples" in keywords:
        keywords["examples"] = [_shown_example(plan, example) for example in metadata.examples]
    return evolve(plan, schema=extend(plan.schema, keywords)) if keywords else plan


def _shown_example(plan: TypePlan, example: Any) -> Any:
    """An example as the model would send it, given as a Python value or as JSON."""
    written = json_default(plan, example)
    if written is MISSING and not _is_json(example):
        raise RegistrationError(f"the example {example!r} cannot be written as JSON for this type")
    return example if written is MISSING else written


def json_default(plan: TypePlan, value: Any) -> Any:
    """A default as JSON-able data, or MISSING where it has no place in a schema.

    None is left out (a model that wants it leaves the member out), and so is what the type's plan cannot write.
    """
    if value is MISSING or value is None:
        return MISSING
    shape = plan.shape
    if isinstance(shape, Scalar) and shape.type is not object and not _is_instance(value, shape.type):
        return MISSING
    try:
        written = plan.unstructure(value)
    except Exception:  # noqa: BLE001 - a default that its own handler cannot write stays the program's affair
        return MISSING
    return written if _is_json(written) else MISSING


def _is_instance(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _is_json(value: Any) -> bool:
    if value is None or type(value) in (bool, int, str):
        return True
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is list:
        return all(map(_is_json, value))
    return type(value) is dict and all(type(key) is str and _is_json(inner) for key, inner in value.items())


_NO_METADATA = Metadata()
