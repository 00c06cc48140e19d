"""Making type plans: the pieces that handlers of records, containers and scalars are written with."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from attrs import evolve

from pegboard._base.errors import BareMismatch, RegistrationError
from pegboard._base.markers import MISSING
from pegboard._model import shapes
from pegboard._model.shapes import Convert
from pegboard._model.subschemas import distinct
from pegboard._schema.nodes import SchemaNode, SchemaRef, extend, object_schema
from pegboard._types.annotations import Metadata, qualified_name, read_metadata, runtime_class, split
from pegboard._types.codegen import structurer
from pegboard._types.json_kinds import schema_kinds
from pegboard.extension import Types

# The keywords of a schema that refuse no value.
ANNOTATIONS: Final = frozenset(
    {"$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"}
)


def shaped(schema: shapes.JsonSchema, shape: shapes.Shape, unstructure: Convert = shapes.identity) -> shapes.TypePlan:
    """A plan whose `structure` is compiled from its shape on first use.

    Args:
        schema: JSON Schema of the values.
        shape: What the values look like.
        unstructure: Takes the Python value and returns JSON-able data.
    """
    return shapes.TypePlan(schema, structurer(shape), unstructure, shape)


def record_plan(
    annotation: Any,
    shape: shapes.Record,
    unstructure: Convert,
    *,
    description: str | None = None,
) -> shapes.TypePlan:
    """Make the plan of a named record: a class with members that arrives as an instance of itself.

    The schema is made from the members; inside other schemas it stands as a reference that rendering resolves, so
    records may contain each other.

    Args:
        annotation: The type, which gives the name, generics included.
        shape: The members.
        unstructure: Takes an instance and returns JSON-able data under the members' keys.
        description: Description in the schema. None for none.
    """
    name = qualified_name(annotation)
    properties = {member.key: member.plan.schema for member in shape.members}
    required = [member.key for member in shape.members if member.required]
    schema = object_schema(properties, required, surplus=shape.open)
    if description:
        schema = {"type": schema.pop("type"), "description": description, **schema}
    node = SchemaNode(schema, lambda: name)
    return shaped(SchemaRef(name, lambda: node), shape, unstructure)


def record_member(
    types: Types,
    name: str,
    annotation: Any,
    *,
    default: Any = MISSING,
    required: bool | None = None,
    key: str | None = None,
    description: str | None = None,
) -> shapes.Member:
    """Make one member of a record, or one parameter of a tool, from its annotation and default.

    `Optional[T] = None` is plain `T` and may be left out, but not be null. Raises `RegistrationError` for a type that
    no handler maps.

    Args:
        types: The type table.
        name: Keyword of the record's `build`.
        annotation: The type. Its metadata renames the member (`Param(name=...)`), describes and bounds it.
        default: Value that it has otherwise; part of the schema when it is JSON-able.
        required: Whether it must be there. None: if it has no default.
        key: Name in JSON where the metadata gives none. None: `name`.
        description: Description where the metadata gives none.
    """
    metadata = read_metadata(split(annotation)[1])
    plan = optional_member(types, annotation, default)
    keywords: dict[str, Any] = {}
    if description and "description" not in plan.schema:
        keywords["description"] = description
    shown = json_default(plan, default)
    if shown is not MISSING:
        keywords["default"] = shown
    plan = evolve(plan, schema=extend(plan.schema, keywords)) if keywords else plan
    optional = default is not MISSING if required is None else not required
    return shapes.Member(name, metadata.name or key or name, plan, not optional, default)


def optional_member(types: Types, annotation: Any, default: Any = MISSING) -> shapes.TypePlan:
    """The plan of `annotation` beside `default`.

    `Optional[T] = None` gives the plan of `T`: the model leaves the member out instead of sending null.
    """
    plan = types.plan(annotation)
    if default is not None or not isinstance(plan.shape, shapes.Nullable):
        return plan
    bare, items = split(annotation)
    whole = types.plan(bare)
    if not isinstance(whole.shape, shapes.Nullable):
        return plan
    # Null cannot be sent, but None is still what the program may hold.
    return evolve(refine(whole.shape.inner, read_metadata(items), bare), unstructure=whole.unstructure)


def refine(plan: shapes.TypePlan, metadata: Metadata, annotation: Any) -> shapes.TypePlan:
    """`plan` with the bounds enforced and the schema described as `metadata` says.

    Raises `RegistrationError` for a bound that does not fit the type.
    """
    if metadata.bounds:
        bounded = _bounded(plan, metadata)
        if bounded is None:
            names = ", ".join(f"{name}={limit!r}" for name, limit in metadata.bounds)
            raise RegistrationError(
                f"the bound {names} does not fit {qualified_name(annotation)}: ge, gt, le, lt and multiple_of bound "
                "numbers, min_length and max_length bound strings, arrays and objects, pattern bounds strings"
            )
        plan = bounded
    if metadata.predicates:
        plan = _with_predicates(plan, metadata.predicates)
    keywords = metadata.keywords
    if "examples" in keywords:
        keywords["examples"] = [_shown_example(plan, example) for example in metadata.examples]
    return evolve(plan, schema=extend(plan.schema, keywords)) if keywords else plan


def _shown_example(plan: shapes.TypePlan, example: Any) -> Any:
    """An example as the model would send it, given as a Python value or as JSON."""
    written = json_default(plan, example)
    if written is MISSING and not _is_json(example):
        raise RegistrationError(f"the example {example!r} cannot be written as JSON for this type")
    return example if written is MISSING else written


def json_default(plan: shapes.TypePlan, value: Any) -> Any:
    """A default as JSON-able data, or MISSING where it has no place in a schema.

    None is left out (a model that wants it leaves the member out), and so is what the type's plan cannot write.
    """
    if value is MISSING or value is None:
        return MISSING
    shape = plan.shape
    if isinstance(shape, shapes.Scalar) and shape.type is not object and not _is_instance(value, shape.type):
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


_NUMBER = {
    "ge": ("minimum", "{value} >= {limit}"),
    "gt": ("exclusiveMinimum", "{value} > {limit}"),
    "le": ("maximum", "{value} <= {limit}"),
    "lt": ("exclusiveMaximum", "{value} < {limit}"),
    "multiple_of": ("multipleOf", "{value} % {limit} == 0"),
}


def _lengths(noun: str) -> dict[str, tuple[str, str]]:
    return {
        "min_length": (f"min{noun}", "len({value}) >= {limit}"),
        "max_length": (f"max{noun}", "len({value}) <= {limit}"),
    }


_TEXT = {**_lengths("Length"), "pattern": ("pattern", "{limit}.search({value}) is not None")}
_ARRAY, _OBJECT = _lengths("Items"), _lengths("Properties")
# Bound -> schema keyword and condition, for each JSON type that can be bounded.
_BY_TYPE = {"integer": _NUMBER, "number": _NUMBER, "string": _TEXT, "array": _ARRAY, "object": _OBJECT}


def _bounded(plan: shapes.TypePlan, metadata: Metadata) -> shapes.TypePlan | None:
    """`plan` with the bounds in its schema and enforced, in alternatives where they fit; None if they fit nowhere."""
    shape = plan.shape
    if not isinstance(shape, (shapes.Nullable, shapes.Union)):
        return _bound_one(plan, metadata)
    found = [_bounded(part, metadata) for part in shape.parts()]
    if not any(found):
        return None
    parts = tuple(new or old for new, old in zip(found, shape.parts(), strict=True))
    schemas = [part.schema for part in parts]
    bounded: shapes.Shape = shapes.Union(parts)
    if isinstance(shape, shapes.Nullable):
        schemas.append({"type": "null"})
        bounded = shapes.Nullable(*parts)
    title = plan.schema.title if isinstance(plan.schema, SchemaNode) else None
    schema = SchemaNode(alternatives(schemas), lambda: title)
    return evolve(plan, schema=schema, structure=structurer(bounded), shape=bounded)


def alternatives(schemas: list[shapes.JsonSchema]) -> shapes.JsonSchema:
    """`anyOf`, flattened and without repetitions."""
    flat: list[shapes.JsonSchema] = []
    for schema in schemas:
        flat += schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    different = distinct(flat)
    return different[0] if len(different) == 1 else {"anyOf": different}


def _bound_one(plan: shapes.TypePlan, metadata: Metadata) -> shapes.TypePlan | None:
    fitting = _BY_TYPE.get(str(plan.schema.get("type")), {})
    if not all(name in fitting for name, _ in metadata.bounds) or _is_written_form(plan):
        return None
    shape = plan.shape
    if shape is not None and not isinstance(shape, (shapes.Scalar, shapes.Text, shapes.Items, shapes.Mapped)):
        return None
    checks = tuple(_check(*fitting[name], limit) for name, limit in metadata.bounds)
    schema = extend(plan.schema, {check.keyword: check.limit for check in checks})
    if shape is None:
        check, structure = structurer(shapes.Scalar(object, checks)), plan.structure
        return evolve(plan, schema=schema, structure=lambda value: structure(check(value)))
    shape = evolve(shape, checks=shape.checks + checks)
    return evolve(plan, schema=schema, structure=structurer(shape), shape=shape)


def _is_written_form(plan: shapes.TypePlan) -> bool:
    """Whether JSON text only spells the value (a date, base64): its length is not the value's length."""
    return isinstance(plan.shape, shapes.Text) and not plan.schema.keys().isdisjoint(
        {"format", "contentEncoding", "pattern"}
    )


def _check(keyword: str, expression: str, limit: Any) -> shapes.Check:
    if keyword == "pattern":
        try:
            re.compile(limit)
        except re.error as error:
            raise RegistrationError(f"the pattern {limit!r} is not a regular expression: {error}") from error
        return shapes.Check(keyword, limit, expression)
    number = limit if type(limit) in (int, float) else float(limit)
    if not math.isfinite(number):
        raise RegistrationError(f"the bound {keyword} is {limit!r}; JSON numbers are finite")
    if keyword == "multipleOf" and isinstance(number, float):
        # Division is how validators decide it for floats; the remainder only serves where division overflows.
        expression = "({value} / {limit}).is_integer() or {value} % {limit} == 0"
    return shapes.Check(keyword, number, expression)


def _with_predicates(plan: shapes.TypePlan, predicates: tuple[Callable[[Any], Any], ...]) -> shapes.TypePlan:
    """`plan` with functions of the author's that the structured value must pass; no schema can say them."""

    def passed(value: Any) -> Any:
        for predicate in predicates:
            if not predicate(value):
                raise BareMismatch(f"refused by {_called(predicate)}")
        return value

    shape: shapes.Shape
    match plan.shape:
        case shapes.Scalar() as scalar:
            # Not the value itself, which may be falsy.
            check = shapes.Check("predicate", lambda value: (passed(value),), "{limit}({value})")
            shape = evolve(scalar, checks=(*scalar.checks, check))
        case shapes.Text(parse=parse) as text:
            shape = evolve(text, parse=lambda value: passed(parse(value)))
        case shapes.Items() | shapes.FixedItems() | shapes.Mapped() as container:
            build: Any = container.build or shapes.identity
            shape = evolve(container, build=lambda inside: passed(build(inside)))
        case _:
            structure = plan.structure
            return evolve(plan, structure=lambda value: passed(structure(value)), shape=None)
    return evolve(plan, structure=structurer(shape), shape=shape)


def checked_class(plan: shapes.TypePlan, annotation: Any) -> shapes.TypePlan:
    """`plan` with its values refused that are no instances of the annotated class."""
    cls = runtime_class(annotation)
    if cls is None or hasattr(cls, "__total__"):  # of a TypedDict there are no instances
        return plan

    def is_instance(value: Any) -> bool:
        if not isinstance(value, cls):
            raise BareMismatch(f"its type handler makes a {type(value).__name__} of it, not a {cls.__name__}")
        return True

    return _with_predicates(plan, (is_instance,))


def _called(predicate: Callable[[Any], Any]) -> str:
    """The name of a check, if it has one that says something."""
    name = str(getattr(predicate, "__name__", "<"))
    return "a check of the tool's own" if name.startswith("<") else f"the check {name}"


# Third-party schemas that shapes can say -----------------------------------------------------------------------------


def plain_predicate(schema: shapes.JsonSchema) -> Callable[[Any], bool] | None:
    """A predicate that is true only for values that fit a plain third-party schema; None for one that says more.

    Jsonschema takes some thirty times as long for the arguments of a tool, and 30 ms to be imported.
    """
    from pegboard._schema.vet import DIALECTS  # with the first tool by hand, as below

    root = {word: value for word, value in schema.items() if word != "$schema" or value not in DIALECTS}
    try:
        structure = _plain_plan(root).structure
    except ValueError:
        return None

    def surely_fits(value: Any) -> bool:
        try:
            structure(value)
        except Exception:  # noqa: BLE001 - whatever it was, jsonschema decides
            return False
        return True

    return surely_fits


def _plain_plan(schema: shapes.JsonSchema) -> shapes.TypePlan:
    """A plan that accepts nothing but what fits. Raises ValueError for a schema that says more than its sketch."""
    from pegboard._schema.foreign import sketch

    kind, said = schema.get("type"), schema.keys() - ANNOTATIONS
    bounds = _PLAIN_BOUNDS.get(kind, {}) if isinstance(kind, str) else {}
    if "enum" in said or "const" in said:
        # Of its exact type: 1.5 among the choices of an integer is no choice.
        choices, types = schema.get("enum", [schema.get("const")]), schema_kinds(schema)
        is_plain = len(said - {"type"}) == 1 and all(types.get(type(choice)) for choice in choices)
    elif "anyOf" in said:
        # Several that may fit are a matter of work, which is bounded where jsonschema tries them.
        is_plain = len(said) == 1 and len(schema["anyOf"]) == 2 and {"type": "null"} in schema["anyOf"]
    elif kind == "object":
        members = schema.get("properties", {})
        is_plain = (
            said <= {"type", "properties", "required", "additionalProperties"}
            and isinstance(schema.get("additionalProperties", True), bool)
            and all(isinstance(member, dict) for member in members.values())
            and members.keys() >= {*schema.get("required", ())}
        )
    else:
        is_plain = not said or ("type" in said and said <= {"type", "items", *bounds})
        is_plain = is_plain and isinstance(schema.get("items", {}), dict)
    if not is_plain:
        raise ValueError("the schema says more")
    shape = sketch(schema, _plain_plan) or shapes.Scalar(object)
    checks = tuple(shapes.Check(word, schema[word], bounds[word]) for word in schema if word in bounds)
    if checks and isinstance(shape, (shapes.Items, shapes.Scalar)):
        shape = evolve(shape, checks=checks)
    return shaped(schema, shape)


_PLAIN_BOUNDS: Final = {
    "array": dict(_ARRAY.values()),
    "string": dict(_lengths("Length").values()),
    # Not those of a number, which may be rounded before it is compared.
    "integer": {word: condition for word, condition in _NUMBER.values() if word != "multipleOf"},
}
