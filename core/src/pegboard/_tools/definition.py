"""Definitions: what a tool is made from, of every origin. Schema, docstring and code are compiled on first use."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast, get_origin

from pegboard._base.errors import PegboardError, RegistrationError
from pegboard._base.markers import MISSING
from pegboard._injection.context import is_instance
from pegboard._injection.injectors import unwrap
from pegboard._model.shapes import JsonSchema, TypePlan
from pegboard._model.subschemas import copied
from pegboard._model.tool import Parameter, SchemaRequest, Tool, ToolOptions
from pegboard._results.converters import Renderers, is_content
from pegboard._schema.nodes import Described, embed, object_schema, render
from pegboard._tools.plan import CompiledPlan, ParameterView, compile_plan, schema_plan, without
from pegboard._tools.signature import ADDED, STARS, ParameterPlan, Reading, TypeTables, unknown_parameter
from pegboard._types.annotations import qualified_name
from pegboard._types.hints import plain_function
from pegboard._types.json_kinds import is_one_way
from pegboard._types.plans import json_default

if TYPE_CHECKING:
    from pegboard._tools.docstrings import Docstring

# Reads a source for a tool of this name; options of None are what the source declares. Raises `RegistrationError`.
Read = Callable[[Any, str, ToolOptions | None, TypeTables], Reading]


class ToolDefinition:
    """What a tool is made from: a `source`, and how to `read` it.

    It is read at once, so that what cannot be a tool is refused at registration; `lazy` ones are read on first use.
    Raises what `read` raises.
    """

    def __init__(
        self, read: Read, source: Any, name: str, options: ToolOptions | None, tables: TypeTables, *, lazy: bool = False
    ) -> None:
        self._read = read
        self._source = source
        self.name = name
        self._options = options
        self._tables = tables
        self._lock = threading.RLock() if lazy else None
        self._reading = None if lazy else read(source, name, options, tables)
        self._docstring: Docstring | None = None
        self._promise: Any = MISSING
        self._plans: dict[ParameterView, CompiledPlan] = {}
        self._renderers: Renderers | None = None

    def read(self, name: str, options: ToolOptions | None, tables: TypeTables) -> Reading:
        """What the source says to a tool of another name, other options or another toolkit."""
        return self._read(self._source, name, options, tables)

    @property
    def reading(self) -> Reading:
        """What the source says. Raises `PegboardError` where a lazy one cannot be loaded."""
        if self._reading is not None:
            return self._reading
        with cast("threading.RLock", self._lock):  # a lazy one has it
            if self._reading is None:
                self._reading = self.read(self.name, self._options, self._tables)
            return self._reading

    @property
    def is_loaded(self) -> bool:
        """Whether the source was read."""
        return self._reading is not None

    def within(self, name: str, options: ToolOptions, tables: TypeTables) -> ToolDefinition:
        """The same tool under other options or in another toolkit, read at once."""
        return ToolDefinition(self._read, self._source, name, options, tables)

    def rebuilt(self, tables: TypeTables) -> ToolDefinition:
        """The same tool read anew, with what its registration maps itself; a lazy one on its next use."""
        lazy, own = self._lock is not None, tables.extended(self._tables.extra)
        return ToolDefinition(self._read, self._source, self.name, self._options, own, lazy=lazy)

    # What it shows ---------------------------------------------------------------------------------------------

    @property
    def options(self) -> ToolOptions:
        """What the tool declares; nothing where it cannot be loaded, for then it cannot be called either."""
        try:
            return self.reading.options
        except PegboardError:
            return ToolOptions()

    @property
    def function(self) -> Callable[..., Any] | None:
        """What is called; None for a tool that runs elsewhere."""
        return self.reading.function

    @property
    def description(self) -> str:
        """The text for the model: the option, else what was written, else the docstring without its parameters."""
        reading = self.reading
        if reading.options.description is not None:
            return reading.options.description
        return self._documentation().description if reading.text is None else reading.text

    def _documentation(self) -> Docstring:
        # Not a cached property: making one costs as much as rendering a small schema.
        if self._docstring is None:
            from pegboard._tools.docstrings import parse_docstring

            function = plain_function(self.reading.function)
            # The parser takes margins off itself; `getdoc` is for methods that inherit their docstring.
            self._docstring = parse_docstring(function.__doc__ or inspect.getdoc(function))
        return self._docstring

    def _describe(self, slot: ParameterPlan) -> str:
        if slot.description or slot.kind is ADDED or self.reading.text is not None:
            return slot.description
        return self._documentation().params.get(slot.name, "")

    def parameters(self, hidden: frozenset[str]) -> tuple[Parameter, ...]:
        """Every parameter, with its source."""
        return tuple(
            Parameter(
                slot.name,
                self._describe(slot),
                slot.annotation,
                slot.required,
                slot.default,
                "preset" if slot.name in hidden else slot.provider.source if slot.provider else "model",
            )
            for slot in self.reading.slots
            if slot.kind is not ADDED
        )

    def schema(self, request: SchemaRequest, hidden: frozenset[str]) -> JsonSchema | None:
        """The rendered schema of the arguments, or of the return value.

        One that was written by hand is rendered anew only where another form is asked.
        """
        root = self._returns() if request.of == "returns" else self._root(hidden)
        if root is None:
            return None
        if self.reading.foreign is None:
            return render(root, request)
        if request == SchemaRequest(of=request.of):
            return cast("JsonSchema", copied(root))
        return render(embed(root, self.name), request)

    def _promised(self) -> TypePlan | None:
        """How the data of a result travels; None where nothing or content is promised, or no handler maps it."""
        if self._promise is MISSING:
            annotation, plan = self.reading.annotation, None
            if annotation is not MISSING and annotation is not Any:
                with suppress(PegboardError, TypeError):
                    plan = self._tables.types.plan(annotation)
            self._promise = None if plan is None or is_content(plan) else plan
        return cast("TypePlan | None", self._promise)

    def _returns(self) -> JsonSchema | None:
        """The schema of the data; None where none is promised, or where data is written otherwise than it is read."""
        reading, plan = self.reading, self._promised()
        if reading.foreign is not None or plan is None:
            return reading.returns
        if is_one_way(plan) or reading.options.converter is not None or self._tables.converts(reading.annotation):
            return None
        return plan.schema

    def _root(self, hidden: frozenset[str]) -> JsonSchema:
        foreign, slots = self.reading.foreign, self.reading.slots
        if foreign is not None:
            return without(foreign.schema, hidden, hidden)
        visible = [slot for slot in slots if slot.plan is not None and slot.name not in hidden]
        properties = {slot.key: self._property(slot) for slot in visible if slot.kind is not STARS}
        required = [slot.key for slot in visible if slot.required]
        extra = next((slot.plan.schema for slot in visible if slot.kind is STARS and slot.plan is not None), False)
        # A schema of {} allows anything, which is what `true` says more plainly.
        surplus: Any = extra or extra is not False
        return {**object_schema(properties, required, surplus=True), "additionalProperties": surplus}

    def _property(self, slot: ParameterPlan) -> Any:
        assert slot.plan is not None  # noqa: S101 - only the model's slots have properties
        if slot.kind is ADDED:
            return slot.plan.schema
        beside: dict[str, Any] = {}
        if description := self._describe(slot):
            beside["description"] = description
        default = json_default(slot.plan, slot.default)
        # A null default says only that the parameter may be left out, which `required` says already.
        if default is not MISSING and default is not None:
            beside["default"] = copied(default)
        return Described(slot.plan.schema, beside)

    # What calls are made with ----------------------------------------------------------------------------------

    def plan(self, presets: frozenset[str], locked: frozenset[str]) -> CompiledPlan:
        """The compiled call under a view of the parameters."""
        view = ParameterView(presets - locked, locked)
        if view not in self._plans:
            reading = self.reading
            self._plans[view] = (
                compile_plan(reading.slots, reading.function, self.name, view)
                if reading.foreign is None
                else schema_plan(reading.foreign, reading.function, view)
            )
        return self._plans[view]

    def renderers(self) -> Renderers:
        """How returned values become content."""
        if self._renderers is None:
            tables, plan = self._tables, self._promised()
            promised = plan.unstructure if plan and plan.schema else None
            self._renderers = Renderers(tables.converters, tables.unstructure, self.reading.options.converter, promised)
        return self._renderers

    def structure_preset(self, name: str, value: Any) -> Any:
        """A preset value as the parameter's annotated type. Raises `RegistrationError` saying what does not fit.

        Instances of the annotated type pass as they are.
        """
        slots = [slot for slot in self.reading.slots if slot.kind is not ADDED]
        slot = next((slot for slot in slots if slot.name == name), None)
        if slot is None or slot.kind is STARS:
            raise unknown_parameter(f"tool {self.name!r}", name, slots)
        if slot.plan is None or value is None:
            return value
        try:
            return slot.plan.structure(value)
        except Exception:  # noqa: BLE001 - whatever a handler raises, an instance may still pass
            inner = unwrap(slot.annotation)[0]
            if is_instance(value, get_origin(inner) or inner):
                return value
        got = f"{qualified_name(slot.annotation)}; got an object of class {type(value).__name__}"
        raise RegistrationError(f"tool {self.name!r}: the preset of {name!r} is no {got}")


def unread(read: Read, source: Any, name: str, options: ToolOptions) -> Tool:
    """A tool for `tools_from` to answer with: the toolkit that takes it reads it, with tables of its own."""
    return Tool(name, ToolDefinition(read, source, name, options, cast("TypeTables", None), lazy=True), options)


def definition_of(tool: Tool) -> ToolDefinition:
    """What a tool is made from: there is no other kind, but the record of a tool stands below this room."""
    return cast("ToolDefinition", tool.definition)
