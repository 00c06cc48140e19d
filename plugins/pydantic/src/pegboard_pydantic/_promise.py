"""A JSON Schema of pydantic's as a plan: what it refuses is refused before pydantic is asked, and values stay JSON.

Pydantic reads more than its schemas say (`"3"` for an integer, a number for a date), and its errors name branches
that no model knows. The plan made here accepts what the schema accepts, explains, and lets repairs be tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve

from pegboard import (
    MISSING,
    Deferred,
    FixedItems,
    Items,
    Mapped,
    Member,
    Mismatch,
    Nullable,
    Record,
    Scalar,
    SchemaRef,
    Tagged,
    TypePlan,
    Types,
    Union,
    qualified_name,
    shaped,
)
from pegboard_pydantic._generate import MARK, Described
from pegboard_pydantic._leaves import as_is, bounds, kept, leaf
from pegboard_pydantic._marks import writes_otherwise
from pegboard_pydantic._tidy import tidy_items, tidy_members, tidy_one_of, tidy_record, tidy_tagged

__all__ = ["Classes", "promise"]

Classes = dict[type, TypePlan]
"""The plans of classes that were met before: the same class is the same definition wherever it is used."""

_PREFIX = "#/$defs/"


def promise(described: Described, types: Types, known: Classes) -> TypePlan:
    """The plan of a schema; the classes that it meets are added to `known`."""
    return _Reader(described, types, known).plan(described.schema)


class _Reader:
    """One reading of one document."""

    def __init__(self, described: Described, types: Types, known: Classes) -> None:
        self._definitions: Mapping[str, Any] = described.schema.get("$defs", {})
        self._classes = described.classes
        self._types = types
        self._known = known
        self._named: dict[str, TypePlan] = {}

    def plan(self, node: Any) -> TypePlan:
        """The plan of a schema, which may be a boolean."""
        if not isinstance(node, Mapping):
            return kept({} if node else {"not": {}}, Scalar(object) if node else Union(()))
        node = {word: value for word, value in node.items() if word not in _STRAY}
        if "$ref" in node:
            return self._reference(node)
        return self._class(node, node[MARK]) if MARK in node else self._body(node)

    def _reference(self, node: dict[str, Any]) -> TypePlan:
        name = node.pop("$ref").removeprefix(_PREFIX)
        body = self._definitions[name]
        plan = self._named.get(name)
        if plan is None:
            plan = self._class(body, body[MARK]) if MARK in body else self._definition(name, name, body)
        return _beside(plan, node)

    def _class(self, node: Mapping[str, Any], mark: str) -> TypePlan:
        cls = self._classes[mark]
        plan = self._known.get(cls)
        if plan is None:
            body = {word: value for word, value in node.items() if word not in (MARK, "$defs")}
            plan = self._definition(f"{MARK}:{mark}", qualified_name(cls), body)
            if isinstance(plan.shape, Record) and writes_otherwise(cls):
                plan = evolve(plan, one_way=True)
            self._known[cls] = plan
        return plan

    def _definition(self, key: str, name: str, body: Mapping[str, Any]) -> TypePlan:
        """A schema of its own name, which may refer to itself."""
        if key in self._named:
            return self._named[key]
        found: list[TypePlan] = []
        # While it is being read it stands for itself.
        standing = shaped(
            SchemaRef(name, lambda: found[0].schema),
            Deferred(lambda: found[0]),
            lambda value: found[0].unstructure(value),  # noqa: PLW0108 - it is not there yet
        )
        self._named[key] = standing
        found.append(self._body(dict(body)))
        plan = self._named[key] = evolve(found[0], schema=standing.schema)
        return plan

    def _body(self, node: dict[str, Any]) -> TypePlan:
        node = {word: value for word, value in node.items() if word != MARK}
        if "allOf" in node and len(node["allOf"]) == 1:
            (only,) = node.pop("allOf")
            return _beside(self.plan(only), node)
        if "oneOf" in node and "propertyName" in node.get("discriminator", {}):
            return self._tagged(node)
        if "anyOf" in node or "oneOf" in node:
            return self._union(node)
        if node.get("type") == "array":
            return self._array(node)
        if node.get("type") == "object":
            return self._record(node) if "properties" in node else self._mapping(node)
        return leaf(node, self._types)

    def _tagged(self, node: dict[str, Any]) -> TypePlan:
        key = node["discriminator"]["propertyName"]
        mapping = node["discriminator"].get("mapping", {})
        tags = {tag: self.plan({"$ref": reference}) for tag, reference in mapping.items()}
        members = tuple(map(self.plan, node["oneOf"]))
        # A tag with a default may be left out of its model, but then nothing tells the models apart.
        schema = {**node, "oneOf": [member.schema for member in members], "discriminator": {"propertyName": key}}
        schema["required"] = [key]
        return shaped(schema, Tagged(key, tags), tidy_tagged(key, tags))

    def _union(self, node: dict[str, Any]) -> TypePlan:
        nodes = node.pop("oneOf", None) or node.pop("anyOf")
        plans = [self.plan(inner) for inner in nodes if inner != _NULL]
        if not plans:
            return leaf({**node, **_NULL}, self._types)
        inner = plans[0] if len(plans) == 1 else _one_of(plans)
        if len(plans) == len(nodes):
            return _beside(inner, node)
        alternatives = [*inner.schema["anyOf"], _NULL] if inner.schema.keys() == {"anyOf"} else [inner.schema, _NULL]
        tidy = inner.unstructure
        write = tidy if tidy is as_is else (lambda value: None if value is None else tidy(value))
        return shaped({**node, "anyOf": alternatives}, Nullable(inner), write)

    def _array(self, node: dict[str, Any]) -> TypePlan:
        if "prefixItems" in node:
            return self._positions(node)
        item = self.plan(node.get("items", True))
        schema = {**node, "items": item.schema}
        unique = bool(node.get("uniqueItems"))
        return shaped(schema, Items(item, checks=bounds(node), unique=unique), tidy_items(item))

    def _positions(self, node: dict[str, Any]) -> TypePlan:
        items = tuple(map(self.plan, node["prefixItems"]))
        schema = {**node, "prefixItems": [item.schema for item in items]}
        if node.get("minItems") == node.get("maxItems") == len(items):
            return kept(schema, FixedItems(items, list))
        surplus = self.plan(node.get("items", True))
        if "items" in node:
            schema["items"] = surplus.schema
        return TypePlan(schema, _positional(items, surplus, Items(surplus, checks=bounds(node))), as_is)

    def _mapping(self, node: dict[str, Any]) -> TypePlan:
        patterns = node.pop("patternProperties", None)
        if patterns and len(patterns) == 1:
            # Pydantic refuses keys that do not match.
            ((pattern, value),) = patterns.items()
            node |= {"propertyNames": {"pattern": pattern}, "additionalProperties": value}
        value = self.plan(node.get("additionalProperties", True))
        schema: dict[str, Any] = {**node, "additionalProperties": value.schema or True}
        key = None
        if "propertyNames" in node:
            key = self.plan({"type": "string", **node["propertyNames"]})
            schema["propertyNames"] = key.schema
        return shaped(schema, Mapped(key, value, checks=bounds(node)), tidy_members(value))

    def _record(self, node: dict[str, Any]) -> TypePlan:
        required = node.get("required", [])
        members = tuple(self._member(key, inner, key in required) for key, inner in node["properties"].items())
        words = {word: value for word, value in node.items() if word not in _RECORD}
        schema: dict[str, Any] = {"type": "object", **words}
        schema["properties"] = {member.key: member.plan.schema for member in members}
        schema["required"] = [member.key for member in members if member.required]
        surplus = node.get("additionalProperties", True)
        closed = shaped({**schema, "additionalProperties": False}, Record(dict, members), tidy_record(members))
        return closed if surplus is False else self._open_record(schema, members, surplus)

    def _open_record(self, schema: dict[str, Any], members: tuple[Member, ...], surplus: Any) -> TypePlan:
        """A model that keeps surplus members, which a record's shape would leave out."""
        extra = self.plan(surplus)
        known = frozenset(member.key for member in members)
        fixed = kept(schema, Record(dict, members))

        def structure(value: Any) -> Any:
            if not isinstance(value, Mapping):
                raise Mismatch
            given = {key: member for key, member in value.items() if key in known}
            surplus = {key: extra.structure(member) for key, member in value.items() if key not in known}
            return {**fixed.structure(given), **surplus}

        if extra.schema:
            schema["additionalProperties"] = extra.schema
        return TypePlan(schema, structure, tidy_record(members))

    def _member(self, key: str, node: Any, required: bool) -> Member:
        default = MISSING
        if isinstance(node, Mapping) and not required and "default" in node:
            default = node["default"]
            if default is None:
                # As everywhere in Pegboard: `T | None = None` is plain T, left out rather than null.
                node = _without_null({word: value for word, value in node.items() if word != "default"})
        return Member(key, key, self.plan(node), required, default)


_NULL = {"type": "null"}
_STRAY = frozenset({"$defs", "ge", "gt", "le", "lt", "multiple_of"})
"""Pydantic leaves the bounds of what a validator returns under their Python names: they bound no input."""
_RECORD = frozenset({"type", "properties", "required", "additionalProperties"})


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    alternatives = [inner for inner in node.get("anyOf", ()) if inner != _NULL]
    if not alternatives or len(alternatives) == len(node["anyOf"]):
        return node
    beside = {word: value for word, value in node.items() if word != "anyOf"}
    return {**alternatives[0], **beside} if len(alternatives) == 1 else {"anyOf": alternatives, **beside}


def _beside(plan: TypePlan, keywords: Mapping[str, Any]) -> TypePlan:
    """The plan with keywords that describe this one use of it."""
    if not keywords:
        return plan
    schema = plan.schema.copy()
    schema.update(keywords)
    return evolve(plan, schema=schema)


def _one_of(plans: list[TypePlan]) -> TypePlan:
    schema = {"anyOf": [plan.schema for plan in plans]}
    return shaped(schema, Union(tuple(plans)), tidy_one_of(plans))


def _positional(items: tuple[TypePlan, ...], surplus: TypePlan, whole: Items) -> Callable[[Any], Any]:
    size = kept({}, evolve(whole, item=kept({}, Scalar(object)))).structure

    def structure(value: Any) -> Any:
        given = size(value)
        plans = (*items, *[surplus] * (len(given) - len(items)))
        return [plan.structure(item) for plan, item in zip(plans, given, strict=False)]

    return structure
