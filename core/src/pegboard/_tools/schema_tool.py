"""Tools by hand: a JSON Schema and a `call`, or a schema alone for tools that run elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast, final

from pegboard._arguments.decode import exact_keys
from pegboard._base.errors import Mismatch, RegistrationError, Suspend, suggestion
from pegboard._base.markers import MISSING
from pegboard._injection.invocation import Invocation
from pegboard._model.call import ToolCall
from pegboard._model.facts import Parameter
from pegboard._model.shapes import JsonSchema, TypePlan
from pegboard._model.subschemas import copied
from pegboard._model.tool import SchemaRequest, ToolOptions
from pegboard._results.converters import Renderers
from pegboard._schema.nodes import embed, render
from pegboard._tools.function import TypeTables
from pegboard._types.exact import count_members
from pegboard._types.hints import Kind, function_kind

__all__ = ["HandwrittenDefinition", "HandwrittenPlan"]

EMPTY_SCHEMA: Final[JsonSchema] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@final
class HandwrittenDefinition:
    """A tool whose schema was written by hand; `call` is None for one that runs elsewhere.

    `returns` is the schema of its results, `source_name` the name that its source knows it by. Raises
    `RegistrationError` for a schema that is not one, is not an object's, or could hang a validator.
    """

    def __init__(
        self,
        name: str,
        description: str,
        parameters: Mapping[str, Any] | None,
        call: Callable[[ToolCall], Any] | None,
        options: ToolOptions,
        assembly: TypeTables,
        *,
        returns: Mapping[str, Any] | None = None,
        source_name: str | None = None,
    ) -> None:
        self._name = name
        self.source_name = source_name
        self._returns: JsonSchema | None = None if returns is None else dict(returns)
        self._description = description
        self._schema: JsonSchema = dict(parameters or EMPTY_SCHEMA)
        if self._schema.get("type", "object") != "object":
            raise RegistrationError(
                f"tool {name!r}: parameters must be the schema of an object, got type {self._schema['type']!r}"
            )
        from pegboard._schema.foreign import ForeignSchema

        try:
            ForeignSchema(self._schema)
        except RegistrationError as error:
            raise RegistrationError(f"tool {name!r}: {error}") from error
        self._call = call
        self._options = options
        self._assembly = assembly
        self._plans: dict[tuple[frozenset[str], frozenset[str]], HandwrittenPlan] = {}
        self._renderers: Renderers | None = None

    @property
    def function(self) -> Callable[..., Any] | None:
        """The `call` method."""
        return self._call

    @property
    def options(self) -> ToolOptions:
        """The options of the registration."""
        return self._options

    @property
    def description(self) -> str:
        """The text for the model."""
        return self._description if self._options.description is None else self._options.description

    def rebuilt(self, name: str, options: ToolOptions, assembly: TypeTables) -> HandwrittenDefinition:
        """The same tool under other options or in another toolkit."""
        return HandwrittenDefinition(
            name,
            self._description,
            self._schema,
            self._call,
            options,
            assembly,
            returns=self._returns,
            source_name=self.source_name,
        )

    def parameters(self, hidden: frozenset[str]) -> tuple[Parameter, ...]:
        """The schema's properties as parameters; their annotations are unknown."""
        required = self._schema.get("required", ())
        return tuple(
            Parameter(
                name,
                str(schema.get("description", "")) if isinstance(schema, Mapping) else "",
                Any,
                name in required,
                schema.get("default", MISSING) if isinstance(schema, Mapping) else MISSING,
                "preset" if name in hidden else "model",
            )
            for name, schema in self._schema.get("properties", {}).items()
        )

    def schema(self, request: SchemaRequest, hidden: frozenset[str]) -> JsonSchema | None:
        """The schema as it was written, without hidden properties; rendered anew only where another form is asked."""
        visible = self._returns if request.of == "returns" else without(self._schema, hidden, hidden)
        if visible is None:
            return None
        if request == SchemaRequest(of=request.of):
            return cast("JsonSchema", copied(visible))
        return render(embed(visible, self._name), titles=request.titles, dialect=request.dialect, refs=request.refs)

    def plan(self, presets: frozenset[str], locked: frozenset[str]) -> HandwrittenPlan:
        """The validating plan under a view of the parameters."""
        key = (presets, locked)
        if key not in self._plans:
            self._plans[key] = HandwrittenPlan(
                self._schema, self._call, presets, locked, self._assembly.accelerators.quick
            )
        return self._plans[key]

    def renderers(self) -> Renderers:
        """How returned values become content."""
        if self._renderers is None:
            tables = self._assembly
            self._renderers = tables.converters.renderers(tables.unstructure, self._options.converter, None)
        return self._renderers

    def structure_preset(self, name: str, value: Any) -> Any:
        """A preset of a property; there is no Python type that it could be checked against."""
        properties = self._schema.get("properties", {})
        if name not in properties:
            raise RegistrationError(
                f"tool {self._name!r} has no parameter {name!r}. {suggestion(name, properties, noun='parameters')}"
            )
        return value


@final
class HandwrittenPlan:
    """Validates with jsonschema, merges presets, hands the function a `ToolCall`."""

    source = ""
    names: tuple[str, ...] = ()  # the one parameter is the call, which the model does not know
    managed = ()
    extra: TypePlan | None = None
    fetches = True
    standing = False
    passes_anything = True
    opens_call = False  # it gets a call of its own, merged with the presets

    def __init__(
        self,
        schema: JsonSchema,
        call: Callable[[ToolCall], Any] | None,
        presets: frozenset[str],
        locked: frozenset[str],
        quick: Callable[[JsonSchema], Callable[[Any], bool] | None],
    ) -> None:
        from pegboard._schema.foreign import ForeignSchema

        self._call = call
        # What stood in an earlier version of the schema is not sent to a tool that no longer knows it.
        self._presets = (presets | locked).intersection(schema.get("properties", ()))
        self.hidden = locked
        self.kind: Kind = "sync" if call is None else function_kind(call)
        self.record = ForeignSchema(without(schema, locked, presets | locked), quick=quick).plan()

    def accept(self, arguments: dict[str, Any], keys: int, text: str | None) -> tuple[Any, ...]:
        """The arguments as they are, if the schema accepts them and no key of the text came twice."""
        if not self.hidden.isdisjoint(arguments):
            raise Mismatch("an argument that only the program sets")
        if text is not None and keys != count_members(arguments) and exact_keys(text) != count_members(arguments):
            raise Mismatch("a key came twice")
        return (self.record.structure(arguments),)

    def typed(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """The arguments: there is no other type than JSON's."""
        return dict(values[0])

    def provide(self, invocation: Invocation) -> Invocation:
        """The call itself is all that the tool is given."""
        return invocation

    def invoke(self, values: tuple[Any, ...], invocation: Invocation) -> Any:
        """Call the tool with everything merged; suspend if it runs elsewhere."""
        if self._call is None:
            raise Suspend(f"{invocation.name} runs outside; its answer comes later")
        (merged,), _ = self.bind(values, invocation)
        return self._call(merged)

    def bind(self, values: tuple[Any, ...], invocation: Invocation) -> tuple[tuple[ToolCall], dict[str, Any]]:
        """What `invoke` calls the tool with."""
        presets = {name: value for name, value in invocation.presets.items() if name in self._presets}
        sent = invocation.call
        merged = ToolCall(sent.id, sent.name, {**presets, **values[0]}, sent.provider_meta)
        merged.typed = merged.arguments
        merged.surround(invocation)
        # What the tool logs and attaches belongs to the call that the engine settles.
        merged.logs, merged.attachments = sent.logs, sent.attachments
        return (merged,), {}


def without(schema: JsonSchema, properties: frozenset[str], required: frozenset[str]) -> JsonSchema:
    """A copy of an object schema without some `properties`, and without some names in `required`."""
    if not properties and not required:
        return schema
    kept = {name: member for name, member in schema.get("properties", {}).items() if name not in properties}
    trimmed = {**schema, "properties": kept}
    if "required" in schema:
        trimmed["required"] = [name for name in schema["required"] if name not in required]
    return trimmed
