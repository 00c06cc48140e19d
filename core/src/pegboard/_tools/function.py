"""Definitions: what a tool is made from, read lazily and compiled once for each view."""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
)
from typing import TYPE_CHECKING, Any, final, get_args, get_origin

from attrs import evolve

from pegboard._arguments.accelerators import Accelerators
from pegboard._base.errors import ConflictError, PegboardError, RegistrationError
from pegboard._base.markers import MISSING
from pegboard._injection.injectors import InjectorTable
from pegboard._model.declare import declared_namespace
from pegboard._model.shapes import JsonSchema, Member, Record, TypePlan
from pegboard._model.subschemas import copied
from pegboard._model.tool import SchemaRequest, ToolOptions
from pegboard._results.converters import ConverterTable, Renderers, is_content
from pegboard._schema.nodes import Described, embed, object_schema, render
from pegboard._tools.plan import FunctionPlan, View, compile_plan, extension_member
from pegboard._tools.signature import STARS, ParameterPlan, read_signature, unknown_parameter
from pegboard._types.annotations import is_union, qualified_name, runtime_class
from pegboard._types.hints import plain_function
from pegboard._types.json_kinds import is_one_way
from pegboard._types.plans import json_default
from pegboard._types.table import TypeTable

if TYPE_CHECKING:
    from pegboard._model.facts import Parameter
    from pegboard._tools.docstrings import Docstring

__all__ = ["FunctionDefinition", "TypeTables"]


@final
class TypeTables:
    """The tables that one toolkit assembles from the program, the plugins and the core's own built-ins."""

    __slots__ = ("accelerators", "converters", "injectors", "types")

    def __init__(self, types: TypeTable, injectors: InjectorTable, converters: ConverterTable) -> None:
        self.types = types
        self.injectors = injectors
        self.converters = converters
        self.accelerators = Accelerators()

    def unstructure(self, cls: type) -> Callable[[Any], Any] | None:
        """The function that turns values of `cls` into JSON-able data, or None where no handler maps it.

        Raises `ConflictError` for a tie of plugins.
        """
        try:
            return self.types.plan(cls).unstructure
        except ConflictError:
            raise
        except PegboardError:
            return None

    def converts(self, annotation: Any) -> bool:
        """Whether a converter takes values of this type, or of one of its alternatives: they end as what it makes."""
        if type(annotation) is type:
            return self.converters.find(annotation) is not None
        alternatives = get_args(annotation) if is_union(annotation) else (annotation,)
        classes = filter(None, map(runtime_class, alternatives))
        return any(self.converters.find(cls) is not None for cls in classes)


@final
class FunctionDefinition:
    """A tool made from a typed function. The signature is read at once; schema, docstring and code on first use."""

    __slots__ = (
        "_annotation",
        "_assembly",
        "_docstring",
        "_extension",
        "_function",
        "_name",
        "_options",
        "_plans",
        "_promise",
        "_renderers",
        "slots",
    )

    def __init__(self, function: Callable[..., Any], name: str, options: ToolOptions, assembly: TypeTables) -> None:
        self._function = function
        self._name = name
        self._options = options
        self._assembly = assembly
        namespace = declared_namespace(function)
        reading = read_signature(
            function, assembly.types, assembly.injectors, label=f"tool {name!r}", namespace=namespace
        )
        self.slots = reading.slots
        self._annotation = streamed(reading.returns)
        self._promise = self._return_plan()
        self._extension = self._read_extension(options.extended_model)
        self._docstring: Docstring | None = None
        self._plans: dict[View, FunctionPlan] = {}
        self._renderers: Renderers | None = None

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself."""
        return self._function

    @property
    def options(self) -> ToolOptions:
        """What `@tool` said."""
        return self._options

    def rebuilt(self, name: str, options: ToolOptions, assembly: TypeTables) -> FunctionDefinition:
        """The same function under other options or in another toolkit."""
        return FunctionDefinition(self._function, name, options, assembly)

    @property
    def description(self) -> str:
        """The option, else the docstring without its parameter sections."""
        if self._options.description is not None:
            return self._options.description
        return self._documentation().description

    def _documentation(self) -> Docstring:
        if self._docstring is None:
            from pegboard._tools.docstrings import parse_docstring

            function = plain_function(self._function)
            # The parser takes margins off itself; `getdoc` is for methods that inherit their docstring.
            self._docstring = parse_docstring(function.__doc__ or inspect.getdoc(function))
        return self._docstring

    def parameters(self, hidden: frozenset[str]) -> tuple[Parameter, ...]:
        """Every parameter, with its source."""
        from pegboard._model.facts import Parameter

        return tuple(
            Parameter(
                slot.name,
                self._describe(slot),
                slot.annotation,
                slot.required,
                slot.default,
                "preset" if slot.name in hidden else slot.provider.source if slot.provider else "model",
            )
            for slot in self.slots
        )

    def _describe(self, slot: ParameterPlan) -> str:
        return slot.description or self._documentation().params.get(slot.name, "")

    def schema(self, request: SchemaRequest, hidden: frozenset[str]) -> JsonSchema | None:
        """The rendered schema of the arguments, or of the return value."""
        root = self._returns() if request.of == "returns" else self._root(hidden)
        if root is None:
            return None
        return render(root, titles=request.titles, dialect=request.dialect, refs=request.refs)

    def _returns(self) -> JsonSchema | None:
        """The schema of the data; None where none is promised, or where data is written otherwise than it is read."""
        plan = self._promise
        if plan is None or is_one_way(plan) or self._options.converter is not None:
            return None
        return None if self._assembly.converts(self._annotation) else plan.schema

    def _return_plan(self) -> TypePlan | None:
        """The plan of the return annotation; None where no data is promised or nobody maps it: results need none."""
        annotation = self._annotation
        if type(annotation) is not type and annotation in (MISSING, Any):
            return None
        try:
            plan = self._assembly.types.plan(annotation)
        except ConflictError as error:
            raise ConflictError(f"tool {self._name!r}: return annotation: {error}") from error
        except (PegboardError, TypeError):
            return None
        return None if is_content(plan) else plan

    def _root(self, hidden: frozenset[str]) -> JsonSchema:
        visible = [slot for slot in self.slots if slot.plan is not None and slot.name not in hidden]
        properties = {slot.key: self._property(slot) for slot in visible if slot.kind is not STARS}
        required = [slot.key for slot in visible if slot.required]
        for member in self._extension:
            properties[member.key] = member.plan.schema
            required.extend([member.key] if member.required else [])
        extra = next((slot.plan.schema for slot in visible if slot.kind is STARS and slot.plan is not None), False)
        # A schema of {} allows anything, which is what `true` says more plainly.
        surplus: Any = extra or extra is not False
        return {**object_schema(properties, required), "additionalProperties": surplus}

    def _property(self, slot: ParameterPlan) -> Any:
        assert slot.plan is not None  # noqa: S101 - only the model's slots have properties
        beside: dict[str, Any] = {}
        if description := self._describe(slot):
            beside["description"] = description
        default = json_default(slot.plan, slot.default)
        # A null default says only that the parameter may be left out, which `required` says already.
        if default is not MISSING and default is not None:
            beside["default"] = copied(default)
        return Described(slot.plan.schema, beside)

    def _read_extension(self, model: Any) -> tuple[Member, ...]:
        if model is None:
            return ()
        members = tuple(_extension_members(model, self._assembly.types, self._name))
        taken = {slot.key for slot in self.slots}
        clash = sorted(member.key for member in members if member.key in taken)
        if clash:
            raise RegistrationError(
                f"tool {self._name!r}: the extended model and the function both have {', '.join(map(repr, clash))}; "
                "rename one side"
            )
        return members

    def plan(self, presets: frozenset[str], locked: frozenset[str]) -> FunctionPlan:
        """The compiled call under a view of the parameters."""
        view = View(presets - locked, locked)
        if view not in self._plans:
            self._plans[view] = compile_plan(self.slots, self._extension, self._function, self._name, view)
        return self._plans[view]

    def renderers(self) -> Renderers:
        """How returned values become content."""
        if self._renderers is None:
            plan = self._promise
            promised = None if plan is None or _says_nothing(plan) else plan.unstructure
            tables = self._assembly
            self._renderers = tables.converters.renderers(tables.unstructure, self._options.converter, promised)
        return self._renderers

    def structure_preset(self, name: str, value: Any) -> Any:
        """A preset value as the parameter's annotated type. Raises `RegistrationError` saying what does not fit.

        Instances of the annotated type pass as they are.
        """
        slot = next((slot for slot in self.slots if slot.name == name), None)
        if slot is None or slot.kind is STARS:
            raise unknown_parameter(f"tool {self._name!r}", name, self.slots)
        if slot.plan is None or value is None:
            return value
        try:
            return slot.plan.structure(value)
        except Exception:  # noqa: BLE001 - whatever a handler raises, an instance may still pass
            if _is_instance(value, slot.annotation):
                return value
        raise RegistrationError(
            f"tool {self._name!r}: the preset of {name!r} is no {qualified_name(slot.annotation)}; "
            f"got an object of class {type(value).__name__}"
        )


def streamed(annotation: Any) -> Any:
    """What a generator's annotation promises as the result: nothing that a schema could say."""
    if type(annotation) is type:
        return annotation
    origin = get_origin(annotation) or annotation
    if origin in (Generator, Iterator, AsyncGenerator, AsyncIterator):
        return MISSING
    if origin in (Awaitable, Coroutine):
        arguments = get_args(annotation)
        return arguments[-1] if arguments else MISSING
    return annotation


def _extension_members(model: Any, types: TypeTable, name: str) -> list[Member]:
    if isinstance(model, Mapping):
        return _foreign_members(model, name)
    try:
        shape = types.plan(model).shape
    except PegboardError as error:
        raise RegistrationError(f"tool {name!r}: extended_model: {error}") from error
    if not isinstance(shape, Record):
        raise RegistrationError(
            f"tool {name!r}: extended_model takes a JSON Schema object or a record type, got {model!r}"
        )
    return [extension_member(member.key, member.plan, required=member.required) for member in shape.members]


def _foreign_members(model: Mapping[str, Any], name: str) -> list[Member]:
    from pegboard._schema.foreign import ForeignSchema

    where = f"tool {name!r}: the extended model"
    if model.get("type", "object") != "object":
        raise RegistrationError(f"{where} must be the schema of an object, got type {model['type']!r}")
    foreign = ForeignSchema(model, where)
    # What its own references mean has to travel with each property, for the tool's schema has another root.
    shown = embed(foreign.schema, f"{name}_extended").get("properties", {})
    required = model.get("required", ())
    return [
        extension_member(key, evolve(foreign.plan(schema), schema=shown[key]), required=key in required)
        for key, schema in model.get("properties", {}).items()
    ]


def _says_nothing(plan: TypePlan) -> bool:
    return not plan.schema


def _is_instance(value: Any, annotation: Any) -> bool:
    from pegboard._injection.injectors import unwrap

    inner = unwrap(annotation)[0]
    cls = get_origin(inner) or inner
    try:
        return isinstance(value, cls)
    except TypeError:
        return False
