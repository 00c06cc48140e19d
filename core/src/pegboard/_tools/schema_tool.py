"""Tools by hand: a JSON Schema and a `call`, or a schema alone for tools that run elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pegboard._arguments.decode import exact_keys
from pegboard._base.errors import Mismatch, RegistrationError, Suspend
from pegboard._base.markers import MISSING
from pegboard._injection.injectors import Provider
from pegboard._model.call import ToolCall
from pegboard._model.shapes import JsonSchema, TypePlan, identity
from pegboard._model.tool import ToolOptions
from pegboard._schema.foreign import ForeignSchema
from pegboard._tools.plan import Bound, CompiledPlan, View
from pegboard._tools.signature import KEYWORD, ParameterPlan, Reading, TypeTables
from pegboard._types.exact import count_members
from pegboard._types.hints import function_kind

__all__ = ["Written", "read_schema", "schema_plan", "without"]

EMPTY_SCHEMA: Final[JsonSchema] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
_ANYTHING: Final = TypePlan({}, identity)
_INVOCATION: Final = ""
"""The one thing that is provided, beside the presets; no parameter has such a name."""


class Written(NamedTuple):
    """A tool as it was written by hand; `call` is None for one that runs elsewhere, `returns` the schema of results."""

    description: str
    parameters: Mapping[str, Any] | None
    call: Callable[[ToolCall], Any] | None = None
    returns: Mapping[str, Any] | None = None


def read_schema(source: Written, name: str, options: ToolOptions | None, tables: TypeTables) -> Reading:
    """Read a tool by hand; there is no Python type that its parameters could have.

    Raises `RegistrationError` for a schema that is not one, is not an object's, or could hang a validator.
    """
    schema: JsonSchema = dict(source.parameters or EMPTY_SCHEMA)
    if schema.get("type", "object") != "object":
        raise RegistrationError(
            f"tool {name!r}: parameters must be the schema of an object, got type {schema['type']!r}"
        )
    try:
        ForeignSchema(schema)
    except RegistrationError as error:
        raise RegistrationError(f"tool {name!r}: {error}") from error
    required = schema.get("required", ())
    slots = tuple(_slot(key, member, key in required) for key, member in schema.get("properties", {}).items())
    returns = None if source.returns is None else dict(source.returns)
    options = options or ToolOptions()
    return Reading(source.call, options, slots, text=source.description, schema=schema, returns=returns)


def _slot(name: str, schema: Any, required: bool) -> ParameterPlan:
    said = schema if isinstance(schema, Mapping) else {}
    default, description = said.get("default", MISSING), str(said.get("description", ""))
    return ParameterPlan(name, name, KEYWORD, Any, default, required, _ANYTHING, description=description)


def schema_plan(
    schema: JsonSchema,
    call: Callable[[ToolCall], Any] | None,
    view: View,
    quick: Callable[[JsonSchema], Callable[[Any], bool] | None],
) -> CompiledPlan:
    """The call of a tool by hand: validates with jsonschema, merges presets, hands `call` a `ToolCall` of its own."""
    filled = view.presets | view.locked
    record = ForeignSchema(without(schema, view.locked, filled), quick=quick).plan()
    # What stood in an earlier version of the schema is not sent to a tool that no longer knows it.
    known = filled.intersection(schema.get("properties", ()))

    def accept(arguments: dict[str, Any], keys: int, text: str | None) -> tuple[Any, ...]:
        if not view.locked.isdisjoint(arguments):
            raise Mismatch("an argument that only the program sets")
        if text is not None and keys != count_members(arguments) and exact_keys(text) != count_members(arguments):
            raise Mismatch("a key came twice")
        return (record.structure(arguments),)

    def bind(values: tuple[Any, ...], provided: Mapping[str, Any]) -> Bound:
        invocation = provided[_INVOCATION]
        sent = invocation.call
        presets = {name: value for name, value in provided.items() if name in known}
        merged = ToolCall(sent.id, sent.name, {**presets, **values[0]}, sent.provider_meta)
        merged.typed = merged.arguments
        merged.surround(invocation)
        # What the tool logs and attaches belongs to the call that the engine settles.
        merged.logs, merged.attachments = sent.logs, sent.attachments
        return (merged,), {}

    def invoke(values: tuple[Any, ...], provided: Mapping[str, Any]) -> Any:
        if call is None:
            raise Suspend(f"{provided[_INVOCATION].name} runs outside; its answer comes later")
        (merged,), _ = bind(values, provided)
        return call(merged)

    kind = "sync" if call is None else function_kind(call)
    providers = {_INVOCATION: Provider("injected", identity)}
    return CompiledPlan(kind, record, accept, invoke, lambda: bind, providers, view.locked)


def without(schema: JsonSchema, properties: frozenset[str], required: frozenset[str]) -> JsonSchema:
    """A copy of an object schema without some `properties`, and without some names in `required`."""
    if not properties and not required:
        return schema
    kept = {name: member for name, member in schema.get("properties", {}).items() if name not in properties}
    trimmed = {**schema, "properties": kept}
    if "required" in schema:
        trimmed["required"] = [name for name in schema["required"] if name not in required]
    return trimmed
