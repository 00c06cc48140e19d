"""What pydantic says about a type: its own JSON Schema, closed where a model says nothing about surplus members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen
from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from pegboard import RegistrationError, qualified_name

__all__ = ["MARK", "Described", "describe"]

MARK = "x-pegboard-class"
"""A keyword that says which class a definition describes; never shown."""
KEYS: Mapping[str, dict[str, Any]] = {
    "bool": {"enum": ["true", "false"]},
    "float": {"pattern": r"^-?(0|[1-9][0-9]{0,299})(\.[0-9]+)?$"},
    "int": {"pattern": r"^(0|-?[1-9][0-9]*)$"},
}
DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?$"
"""One spelling for one value, as for the core's own integer keys and decimals."""


@frozen
class Described:
    """A schema of pydantic's, with the classes that its marks stand for."""

    schema: dict[str, Any]
    classes: dict[str, type]


def describe(adapter: TypeAdapter[Any], annotation: Any) -> Described:
    """The schema of what the adapter validates. Raises `RegistrationError` for a type that JSON cannot express."""
    generator = _Generator(by_alias=True)
    try:
        schema = generator.generate(adapter.core_schema, mode="validation")
    except PydanticInvalidForJsonSchema as error:
        name = qualified_name(annotation)
        raise RegistrationError(f"pydantic has no JSON Schema for {name}: {error.message}") from error
    return Described(schema, generator.classes)


class _Generator(GenerateJsonSchema):
    """Leaves out titles that only repeat names, marks classes, and says what pydantic enforces but does not write."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as the base declares it

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.classes: dict[str, type] = {}

    def sort(self, value: Any, parent_key: str | None = None) -> Any:
        return value

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        titled = schema["cls"].model_config.get("title") is not None
        return self._marked(super().model_schema(schema), schema["cls"], titled)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> dict[str, Any]:
        config = getattr(schema["cls"], "__pydantic_config__", None) or {}
        return self._marked(super().dataclass_schema(schema), schema["cls"], "title" in config)

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> dict[str, Any]:
        cls = schema.get("cls")
        found = super().typed_dict_schema(schema)
        return _closed(found) if cls is None else self._marked(found, cls, titled=False)

    def enum_schema(self, schema: core_schema.EnumSchema) -> dict[str, Any]:
        return self._marked(super().enum_schema(schema), schema["cls"], titled=False)

    def dict_schema(self, schema: core_schema.DictSchema) -> dict[str, Any]:
        found = super().dict_schema(schema)
        keys = schema.get("keys_schema", {})
        if keys.get("type") in KEYS:
            found["propertyNames"] = KEYS[keys["type"]]
        elif "propertyNames" not in found and "patternProperties" not in found and keys.get("type", "any") != "any":
            found["propertyNames"] = self.generate_inner(keys).copy()
        return found

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> dict[str, Any]:
        found = super().decimal_schema(schema)
        for alternative in found.get("anyOf", ()):
            if alternative.get("type") == "string":
                alternative["pattern"] = DECIMAL
        return found

    def _marked(self, schema: dict[str, Any], cls: type, titled: bool) -> dict[str, Any]:
        schema = _closed(schema)
        if not titled and schema.get("title") == cls.__name__:
            del schema["title"]
        # Of generic classes that are not models there is one class for all their arguments.
        if "$ref" not in schema and (hasattr(cls, "model_fields") or not getattr(cls, "__parameters__", ())):
            schema[MARK] = str(len(self.classes))
            self.classes[schema[MARK]] = cls
        return schema


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Surplus members are invalid unless the class asks for them: dropping them silently would be worse."""
    return {**schema, "additionalProperties": False} if _is_silent(schema) else schema


def _is_silent(schema: dict[str, Any]) -> bool:
    return "properties" in schema and "additionalProperties" not in schema
