"""Schemas: what OpenAPI 3.0 and 3.1 say of data, as the JSON Schema 2020-12 of one tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, final

from pegboard_openapi._document import Document, DocumentError
from pegboard_openapi._names import Names

__all__ = ["Direction", "JsonSchema", "Schemas"]

JsonSchema: TypeAlias = dict[str, Any]
Direction: TypeAlias = Literal["request", "response"]

MOST_PARTS: Final = 20_000

# What is kept of a schema, by what its value is; anything else says nothing about data.
_ONE: Final = frozenset(("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"))
_SEVERAL: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"dependentSchemas", "properties"})
# What takes work without bounds, or would have names matched: it is for the server to check.
_UNCHECKED: Final = frozenset({"patternProperties", "unevaluatedItems", "unevaluatedProperties"})
_PLAIN: Final = frozenset((
    "const", "contentEncoding", "contentMediaType", "dependentRequired", "description", "enum", "exclusiveMaximum",
    "exclusiveMinimum", "maxContains", "maxItems", "maxLength", "maxProperties", "maximum", "minContains",
    "minItems", "minLength", "minProperties", "minimum", "multipleOf", "pattern", "type", "uniqueItems",
))  # fmt: skip
# Help for who asks. In answers formats are not promised: servers do not keep them, and validators differ in them.
_FOR_REQUESTS: Final = frozenset({"default", "deprecated", "examples", "format"})
_ANNOTATIONS: Final[tuple[str, ...]] = ("description", "default", "deprecated", "examples")
_HIDDEN: Final[Mapping[Direction, str]] = {"request": "readOnly", "response": "writeOnly"}


@final
class Schemas:
    """The schemas of one tool in one direction; `defs` are those that they refer to, `is_whole`: they are complete."""

    def __init__(self, document: Document, direction: Direction) -> None:
        self.defs: dict[str, Any] = {}
        self.is_whole = True
        self._document = document
        self._direction: Direction = direction
        self._plain = _PLAIN | _FOR_REQUESTS if direction == "request" else _PLAIN
        self._names: dict[str, str] = {}
        self._free = Names()
        self._budget = MOST_PARTS

    def convert(self, schema: Any) -> Any:
        """A schema of the document as JSON Schema. Raises `DocumentError` for what is none, or refers elsewhere."""
        self._budget -= 1
        if self._budget < 0:
            raise DocumentError(f"its schemas have more than {MOST_PARTS:,} parts")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise DocumentError(f"it has {str(schema)[:50]!r} where a schema belongs")
        found = dict(self._keywords(schema))
        if self._direction == "request" and "example" in schema and "examples" not in found:
            found["examples"] = [schema["example"]]
        if not _UNCHECKED.isdisjoint(schema):
            self.is_whole = False
            found.pop("additionalProperties", None)
        if "oneOf" in found:
            # Alternatives of real documents overlap, and who fits two of them is not wrong.
            one = {"anyOf": found.pop("oneOf")}
            found |= {"allOf": [*found.get("allOf", []), one]} if "anyOf" in found else one
        if "required" in schema:
            self._require(schema, found)
        if "$ref" in schema:
            kept = _ANNOTATIONS if self._document.is_3_0 else found  # beside a reference 3.0 knows nothing
            found = {"$ref": self._named(schema["$ref"]), **{key: found[key] for key in kept if key in found}}
        found = _bounded(found)
        return _nullable(found) if self._document.is_3_0 and _is_nullable(schema) else found

    def joined(self, schemas: Iterable[Any]) -> Any:
        """One schema for what may be any of these."""
        different = [*{json.dumps(each, sort_keys=True): each for each in schemas}.values()]
        return different[0] if len(different) == 1 else {"anyOf": different}

    def whole(self, schema: JsonSchema) -> JsonSchema:
        """A schema with its definitions; one that is nothing but a reference is what that leads to."""
        name = schema["$ref"].removeprefix("#/$defs/") if schema.keys() == {"$ref"} else ""
        if isinstance(self.defs.get(name), dict):
            schema = self.defs.pop(name)
            if json.dumps(f"#/$defs/{name}") in json.dumps([schema, self.defs]):
                self.defs[name] = schema
        return {**schema, "$defs": self.defs} if self.defs else schema

    def shows(self, schema: Any) -> bool:
        """Whether a property goes in this direction: what is read only is not sent."""
        try:
            return self._document.follow(schema).get(_HIDDEN[self._direction]) is not True
        except DocumentError:
            return True

    def _keywords(self, schema: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        for keyword, value in schema.items():
            if keyword in _ONE:
                yield keyword, self.convert(value)
            elif keyword in _SEVERAL and isinstance(value, list):
                yield keyword, [self.convert(each) for each in value]
            elif keyword in _NAMED and isinstance(value, Mapping):
                shown = {name: each for name, each in value.items() if self._keeps(keyword, each)}
                yield keyword, {name: self.convert(each) for name, each in shown.items()}
            elif keyword in self._plain:
                yield keyword, value

    def _keeps(self, keyword: str, schema: Any) -> bool:
        # What a server must not send it may send all the same.
        return keyword != "properties" or self._direction == "response" or self.shows(schema)

    def _require(self, schema: Mapping[str, Any], found: JsonSchema) -> None:
        properties = schema.get("properties")
        known = properties if isinstance(properties, Mapping) else {}
        required = schema["required"] if isinstance(schema["required"], list) else []
        names = [name for name in dict.fromkeys(required) if self.shows(known.get(name, {}))]
        if names:
            found["required"] = names

    def _named(self, reference: Any) -> str:
        """The reference of the tool for one of the document; what it leads to is among `defs`."""
        target = self._document.at(reference)
        if reference not in self._names:
            base = re.sub(r"[^\w.-]", "_", reference.rpartition("/")[2], flags=re.ASCII) or "schema"
            self._names[reference] = name = self._free.free(base)
            self.defs[name] = {}  # taken, for it may refer to itself
            self.defs[name] = self.convert(target)
        return f"#/$defs/{self._names[reference]}"


def _bounded(schema: JsonSchema) -> JsonSchema:
    """Exclusive bounds of 3.0, which documents that call themselves 3.1 have too, as those of JSON Schema."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)
    return schema


def _is_nullable(schema: Mapping[str, Any]) -> bool:
    # What Swagger 2.0 has no keyword for is written as an extension, there and after a conversion to 3.0.
    return schema.get("nullable", schema.get("x-nullable")) is True


def _nullable(schema: JsonSchema) -> JsonSchema:
    if isinstance(schema.get("type"), str) and not schema.keys() & {"allOf", "anyOf", "oneOf", "not", "$ref"}:
        nullable = {**schema, "type": [schema["type"], "null"]}
        # By the letter of 3.0 the enum would have to name null too; who writes nullable means it.
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            nullable["enum"] = [*schema["enum"], None]
        return nullable
    outside = {key: schema.pop(key) for key in _ANNOTATIONS if key in schema}
    return {"anyOf": [schema, {"type": "null"}], **outside} if schema else outside
