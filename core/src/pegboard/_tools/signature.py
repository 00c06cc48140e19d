"""Reading functions: which parameters each has, who provides them, and what it promises to return."""

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
    Sequence,
)
from typing import Any, Final, NamedTuple, Unpack, final, get_args, get_origin

from attrs import evolve

from pegboard._arguments.decode import Accelerators
from pegboard._base.errors import ConflictError, PegboardError, RegistrationError, suggestion
from pegboard._base.markers import MISSING, Param
from pegboard._base.names import check_name
from pegboard._injection.injectors import InjectorTable, Provider
from pegboard._model.declare import declared_namespace
from pegboard._model.shapes import JsonSchema, Member, Record, TypePlan
from pegboard._model.tool import ToolOptions
from pegboard._results.converters import ConverterTable
from pegboard._types.annotations import is_union, read_metadata, runtime_class, split
from pegboard._types.hints import plain_function, read_hints, read_parameters
from pegboard._types.plans import optional_member
from pegboard._types.table import TypeTable

POSITIONAL: Final = inspect.Parameter.POSITIONAL_OR_KEYWORD
KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY
STAR: Final = inspect.Parameter.VAR_POSITIONAL
STARS: Final = inspect.Parameter.VAR_KEYWORD
ADDED: Final = "added"
"""The kind of a parameter that an extended model adds, and that the function's own signature does not have."""


class ParameterPlan(NamedTuple):
    """One parameter of a tool: its Python `name`, its `key` in JSON, and either a type plan or a provider.

    A tuple, for it is made as often as a parameter is read.
    """

    name: str
    key: str
    kind: Any
    annotation: Any
    default: Any
    required: bool
    """Whether the model has to send it."""
    plan: TypePlan | None = None
    provider: Provider | None = None
    description: str = ""
    omissible: bool = False
    """Whether it travels as a keyword of its own, and not at all where nobody sent it."""


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
class Reading:
    """What the source of a tool says: `slots` are the parameters of its `function`, `promise` plans what that returns.

    `text` is the description where it was written; the docstring counts where it is None. Tools whose `schema` was
    written have that one, and `returns`.
    """

    __slots__ = ("annotation", "function", "options", "promise", "returns", "schema", "slots", "text")

    def __init__(
        self,
        function: Callable[..., Any] | None,
        options: ToolOptions,
        slots: tuple[ParameterPlan, ...],
        *,
        annotation: Any = MISSING,
        promise: TypePlan | None = None,
        text: str | None = None,
        schema: JsonSchema | None = None,
        returns: JsonSchema | None = None,
    ) -> None:
        self.function = function
        self.options = options
        self.slots = slots
        self.annotation = annotation
        self.promise = promise
        self.text = text
        self.schema = schema
        self.returns = returns


def read_function(function: Callable[..., Any], name: str, options: ToolOptions | None, tables: TypeTables) -> Reading:
    """Read a typed function. Raises `RegistrationError` naming tool, parameter, annotation and remedy."""
    options = options or ToolOptions()
    label = f"tool {name!r}"
    slots, returned = _read_signature(function, tables.types, tables.injectors, label)
    if options.extended_model is not None:
        slots += _added(options.extended_model, slots, tables.types, name)
    annotation = streamed(returned)
    return Reading(function, options, slots, annotation=annotation, promise=_promise(annotation, tables.types, label))


def _read_signature(
    function: Callable[..., Any], types: TypeTable, injectors: InjectorTable, label: str
) -> tuple[tuple[ParameterPlan, ...], Any]:
    """Every parameter, and the return annotation."""
    try:
        parameters = read_parameters(function)
    except (TypeError, ValueError) as error:
        raise RegistrationError(
            f"{label}: {function!r} has no readable signature; wrap it in a Python function with annotated parameters"
        ) from error
    hints = read_hints(function, declared_namespace(function), label=label)
    bound = bound_keywords(function)
    slots: list[ParameterPlan] = []
    for name, kind, default in parameters:
        if name in bound:
            continue
        annotation = hints.get(name, Any)
        try:
            slots.extend(_read(name, kind, default, annotation, types, injectors))
        except (PegboardError, TypeError, ValueError) as error:
            category = ConflictError if isinstance(error, ConflictError) else RegistrationError
            raise category(f"{label}: parameter {name!r}: {error}") from error
    _refuse_twins(label, slots)
    return tuple(slots), hints.get("return", MISSING)


def _read(
    name: str, kind: Any, default: Any, annotation: Any, types: TypeTable, injectors: InjectorTable
) -> list[ParameterPlan]:
    if default is not MISSING:
        _refuse_marker(default)
    provider = injectors.provider_for(annotation, default)
    if provider is not None:
        if kind in (STAR, STARS):
            raise RegistrationError(
                "a value from the program cannot fill *args or **kwargs; give it a parameter of its own"
            )
        return [ParameterPlan(name, name, kind, annotation, default, default is MISSING, provider=provider)]
    if type(annotation) is type and kind not in (STAR, STARS) and default is not None:
        # A bare class: there is nothing to take apart.
        return [ParameterPlan(name, name, kind, annotation, default, default is MISSING, types.plan(annotation))]
    if kind is STARS and get_origin(annotation) is Unpack:
        return _spread(name, get_args(annotation)[0], types)
    notes = read_metadata(split(annotation)[1])
    if kind is STAR:
        plan = types.plan(list[annotation])
    elif kind is STARS:
        plan = types.plan(annotation)
    else:
        plan = optional_member(types, annotation, default)
    required = default is MISSING and kind not in (STAR, STARS)
    key, description = notes.name or name, notes.description or ""
    return [ParameterPlan(name, key, kind, annotation, default, required, plan, description=description)]


def _refuse_marker(default: Any) -> None:
    """Other frameworks take descriptions as defaults; here the function itself would get the description."""
    kind = type(default).__name__
    if isinstance(default, Param) or (kind == "FieldInfo" and type(default).__module__.startswith("pydantic")):
        written = "Param" if isinstance(default, Param) else "Field"
        raise RegistrationError(
            f"its default is a {written}(...), which belongs into the annotation: "
            f"write `Annotated[T, {written}(...)]`, and the default itself behind `=`"
        )


def _spread(name: str, record: Any, types: TypeTable) -> list[ParameterPlan]:
    shape = types.plan(record).shape
    if not isinstance(shape, Record):
        raise RegistrationError(f"**{name}: Unpack[...] takes a TypedDict, got {record!r}")
    return [_spread_slot(member, record) for member in shape.members]


def _spread_slot(member: Member, record: Any) -> ParameterPlan:
    default = MISSING if member.required else None
    return ParameterPlan(
        member.name,
        member.key,
        KEYWORD,
        record,
        default,
        member.required,
        member.plan,
        description=str(member.plan.schema.get("description", "")),
        omissible=not member.required,
    )


def bound_keywords(function: Any) -> frozenset[str]:
    """The keywords that a partial has already: the program's business, not the model's."""
    bound: set[str] = set()
    while hasattr(function, "func") and hasattr(function, "keywords"):
        bound.update(function.keywords)
        function = function.func
    return frozenset(bound)


def _refuse_twins(label: str, slots: list[ParameterPlan]) -> None:
    seen: dict[str, str] = {}
    for slot in slots:
        if slot.plan is None or slot.kind is STARS:
            continue
        if slot.key in seen:
            raise RegistrationError(
                f"{label}: parameters {seen[slot.key]!r} and {slot.name!r} are both called {slot.key!r} in the schema; "
                "give one of them another Param(name=...)"
            )
        seen[slot.key] = slot.name


def _promise(annotation: Any, types: TypeTable, label: str) -> TypePlan | None:
    """The plan of the return annotation; None where nothing is said or nobody maps it: results need none."""
    if type(annotation) is not type and annotation in (MISSING, Any):
        return None
    try:
        return types.plan(annotation)
    except ConflictError as error:
        raise ConflictError(f"{label}: return annotation: {error}") from error
    except (PegboardError, TypeError):
        return None


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


def _added(model: Any, slots: tuple[ParameterPlan, ...], types: TypeTable, name: str) -> tuple[ParameterPlan, ...]:
    """The parameters that an extended model adds. Raises `RegistrationError` where the function has one of them."""
    members = tuple(_foreign_members(model, name) if isinstance(model, Mapping) else _members(model, types, name))
    # A name too: `**kwargs` cannot carry that of another parameter.
    taken = {name for slot in slots for name in (slot.key, slot.name)}
    clash = sorted(member.key for member in members if member.key in taken)
    if clash:
        raise RegistrationError(
            f"tool {name!r}: the extended model and the function both have {', '.join(map(repr, clash))}; "
            "rename one side"
        )
    return members


def _members(model: Any, types: TypeTable, name: str) -> Iterator[ParameterPlan]:
    try:
        shape = types.plan(model).shape
    except PegboardError as error:
        raise RegistrationError(f"tool {name!r}: extended_model: {error}") from error
    if not isinstance(shape, Record):
        raise RegistrationError(
            f"tool {name!r}: extended_model takes a JSON Schema object or a record type, got {model!r}"
        )
    for member in shape.members:
        yield _added_slot(member.key, member.plan, member.required)


def _foreign_members(model: Mapping[str, Any], name: str) -> Iterator[ParameterPlan]:
    from pegboard._schema.foreign import ForeignSchema
    from pegboard._schema.nodes import embed

    where = f"tool {name!r}: the extended model"
    if model.get("type", "object") != "object":
        raise RegistrationError(f"{where} must be the schema of an object, got type {model['type']!r}")
    foreign = ForeignSchema(model, where)
    # What its own references mean has to travel with each property, for the tool's schema has another root.
    shown = embed(foreign.schema, f"{name}_extended").get("properties", {})
    required = model.get("required", ())
    for key, schema in model.get("properties", {}).items():
        yield _added_slot(key, evolve(foreign.plan(schema), schema=shown[key]), key in required)


def _added_slot(key: str, plan: TypePlan, required: bool) -> ParameterPlan:
    return ParameterPlan(key, key, ADDED, Any, MISSING, required, plan, omissible=True)


def tool_name(function: Any, name: str | None) -> str:
    """The name of a tool made from `function`. Raises `RegistrationError` where neither has one."""
    found = name or getattr(function, "__name__", None) or getattr(plain_function(function), "__name__", None)
    if not found or found in ("<lambda>", "__call__"):
        raise RegistrationError(f'{function!r} has no name of its own; register it with register(..., name="...")')
    return check_name(found)


def unknown_parameter(label: str, name: str, slots: Sequence[ParameterPlan]) -> RegistrationError:
    """The error for a preset of a parameter that is not there."""
    known = [slot.name for slot in slots if slot.kind is not STARS]
    if any(slot.name == name for slot in slots):
        return RegistrationError(f"{label}: **{name} cannot be preset; give the value a parameter of its own")
    return RegistrationError(f"{label} has no parameter {name!r}. {suggestion(name, known, noun='parameters')}")
