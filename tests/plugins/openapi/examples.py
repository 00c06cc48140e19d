"""Values that fit a schema, of OpenAPI 3.0 or JSON Schema 2020-12: everything that it names, or what it needs alone."""

from collections.abc import Mapping
from typing import Any

_TEXTS = {
    "date": "2026-11-22",
    "date-time": "2026-11-22T10:00:00Z",
    "email": "ada@example.com",
    "ipv4": "192.0.2.1",
    "uri": "https://example.com/a",
    "uuid": "0f8fad5b-d9cb-469f-a165-70867728950e",
}
DEEPEST = 12


class Examples:
    """Makes examples for the schemas of one document; `full` ones have what is optional too."""

    def __init__(self, document: Mapping[str, Any], *, full: bool) -> None:
        self._document = document
        self._full = full

    def of(self, schema: Any, depth: int = 0) -> Any:
        if not isinstance(schema, Mapping):
            return "anything"
        if "$ref" in schema:
            return self.of(self.at(schema["$ref"]), depth + 1)
        if "const" in schema or "enum" in schema:
            return schema.get("const", schema.get("enum", [None])[0])
        for keyword in ("oneOf", "anyOf"):
            if keyword in schema:
                rest = {key: value for key, value in schema.items() if key not in (keyword, "title", "description")}
                chosen = schema[keyword][0]
                return self.of({**rest, "allOf": [*rest.get("allOf", []), chosen]} if rest else chosen, depth + 1)
        if "allOf" in schema:
            return self.of(self._merged(schema), depth + 1)
        kind = schema.get("type", "object" if "properties" in schema else "string")
        return self._of_type(kind[0] if isinstance(kind, list) else kind, schema, depth)

    def at(self, reference: str) -> Any:
        target: Any = self._document
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
        return target

    def _merged(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        merged: dict[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
        for part in schema["allOf"]:
            whole = self.at(part["$ref"]) if "$ref" in part else part
            whole = self._merged(whole) if "allOf" in whole else whole
            for key, value in whole.items():
                if key == "properties":
                    merged[key] = {**value, **merged.get(key, {})}
                elif key == "required":
                    merged[key] = [*merged.get(key, []), *value]
                else:
                    merged.setdefault(key, value)
        return merged

    def _of_type(self, kind: str, schema: Mapping[str, Any], depth: int) -> Any:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            least = schema.get("minItems", 0)
            wanted = least if least or depth > DEEPEST else 1
            return [self.of(schema.get("items", {}), depth + 1) for _ in range(wanted)]
        if kind == "boolean":
            return True
        if kind in ("integer", "number"):
            return schema.get("minimum", min(schema.get("maximum", 7), 7))
        if kind == "null":
            return None
        text = _TEXTS.get(schema.get("format", ""), "ssh-rsa " if "pattern" in schema else "a text, & more")
        return (text * (1 + schema.get("minLength", 0) // len(text)))[: schema.get("maxLength")]

    def _object(self, schema: Mapping[str, Any], depth: int) -> Any:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        wanted = [*properties, *required] if self._full and depth <= DEEPEST else required
        found = {name: self.of(properties.get(name, {}), depth + 1) for name in wanted}
        more = schema.get("additionalProperties")
        for number in range(schema.get("minProperties", 0) - len(found)):
            found[f"key{number}"] = self.of(more, depth + 1)
        return found
