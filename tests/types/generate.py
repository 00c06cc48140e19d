"""Values made from a JSON Schema.

`hypothesis-jsonschema` makes the leaves; objects it cannot make with today's Hypothesis (0.23.1 calls an internal
function that is gone), so containers are put together here.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema

LEAVES: dict[str, Any] = {"type": ["null", "boolean", "integer", "number", "string"]}


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """A strategy for values that a rendered schema accepts."""
    return Maker(schema.get("$defs", {})).make(schema)


class Maker:
    """One schema's definitions, each with the one strategy that stands for it."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self.named = {f"#/$defs/{name}": self.later(inner) for name, inner in definitions.items()}

    def later(self, schema: Any) -> st.SearchStrategy[Any]:
        return st.deferred(lambda: self.make(schema))

    def make(self, schema: Any) -> st.SearchStrategy[Any]:
        if schema is True or schema == {}:
            return from_schema(LEAVES)
        if "$ref" in schema:
            return self.named[schema["$ref"]]
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return st.one_of(*map(self.make, schema[keyword]))
        if schema.get("type") == "array":
            return self.array(schema)
        if schema.get("type") == "object":
            return self.object(schema)
        return from_schema(schema)

    def array(self, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
        if "prefixItems" in schema:
            return st.tuples(*map(self.make, schema["prefixItems"])).map(list)
        least, most = schema.get("minItems", 0), schema.get("maxItems", 5)
        unique = repr if schema.get("uniqueItems") else None
        item = self.make(schema.get("items", True)) if most else st.nothing()
        return st.lists(item, min_size=least, max_size=most, unique_by=unique)

    def object(self, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
        named = {key: self.make(inner) for key, inner in schema.get("properties", {}).items()}
        required = {key: named[key] for key in schema.get("required", [])}
        optional = {key: inner for key, inner in named.items() if key not in required}
        surplus = schema.get("additionalProperties", True)
        if named or surplus is False:
            return st.fixed_dictionaries(required, optional=optional)
        keys = from_schema({"type": "string", **schema.get("propertyNames", {})})
        return st.dictionaries(keys, self.make(surplus), min_size=schema.get("minProperties", 0), max_size=4)
