"""Reading functions: which parameters each has, who provides them, and what it promises to return."""

from __future__ import annotations

import inspect
import threading
from collections import abc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar, Unpack, cast, get_args, get_origin

from attrs import evolve

from pegboard._base.effects import tried
from pegboard._base.errors import PegboardError, RegistrationError, suggestion
from pegboard._base.jsonable import carried_data
from pegboard._base.markers import MISSING, Param
from pegboard._base.names import check_name
from pegboard._injection.injectors import InjectorTable, Provider, unwrap
from pegboard._model.shapes import Convert, JsonSchema, Mapped, Member, Record, TypePlan
from pegboard._model.subschemas import copied
from pegboard._model.tool import ToolOptions, declared_namespace
from pegboard._results.converters import ConverterTable
from pegboard._types.annotations import is_union, read_metadata, runtime_class, split
from pegboard._types.hints import plain_function, read_hints, read_parameters
from pegboard._types.plans import optional_member
from pegboard._types.table import Remembered, TypeTable

if TYPE_CHECKING:
    from pegboard._schema.foreign import ForeignSchema
    from pegboard._schema.vet import Judge
    from pegboard.extension import TypeHandler

T = TypeVar("T")
U = TypeVar("U")

POSITIONAL: Final = inspect.Parameter.POSITIONAL_OR_KEYWORD
KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY
STAR: Final = inspect.Parameter.VAR_POSITIONAL
STARS: Final = inspect.Parameter.VAR_KEYWORD
# The kind of a parameter that an extended model adds, and that the function's own signature does not have.
ADDED: Final = "added"


class ParameterPlan(NamedTuple):
    """One parameter of a tool: its Python `name`, its `key` in JSON, and either a type plan or a provider.

    A tuple, for it is made as often as a parameter is read.
    """

    name: str
    key: str
    kind: Any
    annotation: Any
    default: Any
    # Whether the model has to send it.
    required: bool
    plan: TypePlan | None = None
    provider: Provider | None = None
    description: str = ""
    # Whether it travels as a keyword of its own, and not at all where it was not sent.
    omissible: bool = False


class TypeTables:
    """The tables that one toolkit assembles from the program, the plugins and the core's own built-ins."""

    def __init__(self, types: TypeTable, injectors: InjectorTable, converters: ConverterTable) -> None:
        self.types = types
        self.injectors = injectors
        self.converters = converters
        self.extra: Mapping[Any, TypeHandler] = {}  # what one registration maps itself
        self.changing = threading.RLock()
        self.edition = 0
        self._writers = Remembered()
        types.first_held = injectors.first_held

    def forget(self) -> None:
        """Keep nothing alive that no tool uses: what was found out about types is found out anew."""
        for each in (self.types, self.injectors, self.converters):
            each.forget()
        self._writers.clear()

    def as_of_now(self, read: Callable[[], T], put: Callable[[T], U]) -> U:
        """Read tools and put them on the board; anew where a handler came meanwhile, which did not know them."""
        while True:
            edition = self.edition
            found = read()
            with self.changing:
                if edition == self.edition:
                    return put(found)

    def extended(self, types: Mapping[Any, TypeHandler]) -> TypeTables:
        """The same for one registration, which maps some annotations itself."""
        if not types:
            return self
        own = copy(self)
        own.types, own.extra, own._writers = self.types.extended(types), types, Remembered()
        return own

    @property
    def problems(self) -> list[str]:
        """What is to be said of handlers, injectors and converters."""
        return [*self.types.problems, *self.injectors.problems, *self.converters.problems]

    def unstructure(self, cls: type) -> Convert | None:
        """The function that turns values of `cls` into JSON-able data, or None where no handler maps it."""
        if cls not in self._writers:
            plan = tried(self.types.passing_plan, cls)
            self._writers[cls] = plan and plan.unstructure
        return cast("Convert | None", self._writers[cls])

    def converts(self, annotation: Any) -> bool:
        """Whether a converter takes values of this type, or of one of its alternatives: they end as what it makes."""
        alternatives = get_args(annotation) if is_union(annotation) else (annotation,)
        classes = filter(None, map(runtime_class, alternatives))
        return any(map(self.converters.meet, classes))


class Reading(NamedTuple):
    """What the source of a tool says: `slots` are the parameters of its `function`, `annotation` what that returns.

    `text` is the description where it was written; the docstring counts where it is None. Tools whose schema was
    written have that one, `foreign`, and that of their results in `returns`.
    """

    function: Callable[..., Any] | None
    options: ToolOptions
    slots: tuple[ParameterPlan, ...]
    annotation: Any = MISSING
    text: str | None = None
    foreign: ForeignSchema | None = None
    returns: JsonSchema | None = None


def read_function(function: Callable[..., Any], name: str, options: ToolOptions | None, tables: TypeTables) -> Reading:
    """Read a typed function. Raises `RegistrationError` naming tool, parameter, annotation and remedy."""
    options = options or ToolOptions()
    label = f"tool {name!r}"
    slots, returned = _read_signature(function, tables.types, tables.injectors, label)
    if options.extended_model is not None:
        slots += added(options.extended_model, slots, tables.types, name)
    annotation = returned if type(returned) is type else streamed(returned)
    return Reading(function, options, slots, annotation)


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
        try:
            slots.extend(_read(name, kind, default, hints.get(name, Any), types, injectors))
        except (PegboardError, TypeError, ValueError) as error:
            raise RegistrationError(f"{label}: parameter {name!r}: {error}") from error
    _refuse_twins(label, slots)
    return tuple(slots), hints.get("return", MISSING)


def _read(
    name: str, kind: Any, default: Any, annotation: Any, types: TypeTable, injectors: InjectorTable
) -> list[ParameterPlan]:
    if default is not MISSING or type(annotation) is not type:
        annotation, default = _described(annotation, default)
    provider = injectors.provider_for(annotation, default)
    if provider is not None:
        if kind in (STAR, STARS):
            raise RegistrationError("no value of the program fills *args or **kwargs; give it a parameter of its own")
        return [ParameterPlan(name, name, kind, annotation, default, default is MISSING, provider=provider)]
    if injectors.in_context and (problem := shown_context(annotation, injectors.in_context, types)):
        raise RegistrationError(problem)
    if type(annotation) is type and kind not in (STAR, STARS) and default is not None:
        # A bare class: there is nothing to take apart.
        return [ParameterPlan(name, name, kind, annotation, default, default is MISSING, types.model_plan(annotation))]
    if kind is STARS and get_origin(annotation) is Unpack:
        record = get_args(annotation)[0]
        return [_spread(each, record) for each in _members(record, types, f"**{name}: Unpack[...] takes a TypedDict")]
    notes = read_metadata(split(annotation)[1])
    plan = types.model_plan(list[annotation] if kind is STAR else annotation)
    if default is None:
        plan = optional_member(types, annotation, default)
    required = default is MISSING and kind not in (STAR, STARS)
    key, description = notes.name or name, notes.description or ""
    return [ParameterPlan(name, key, kind, annotation, default, required, plan, description=description)]


def shown_context(annotation: Any, classes: Collection[Any], types: TypeTable) -> str:
    """What is wrong with asking a model for a record or a plain class that is among the program's; empty if nothing is.

    Values such as text and numbers may be in a context by name, and are a model's to send all the same.
    """
    cls = unwrap(annotation)[0]
    if not isinstance(cls, type) or cls not in classes:
        return ""
    plan = tried(types.model_plan, cls)
    is_object = plan is None or (plan.schema.get("type") == "object" and not isinstance(plan.shape, Mapped))
    if not is_object and not isinstance(getattr(plan, "shape", None), Record):
        return ""
    name = cls.__qualname__
    remedy = f"annotate Injected[{name}], or leave that object out if the model sends one"
    return f"the program's context holds an object of class {name}: {remedy}"


class Made(NamedTuple):
    """A default that is made anew for each call."""

    make: Callable[[], Any]


def _described(annotation: Any, default: Any) -> tuple[Any, Any]:
    """Annotation and default where `Param(...)` or pydantic's `Field(...)` stands as the default, or has one."""
    if isinstance(default, Param) or _is_field(default):
        annotation, default = Annotated[annotation, default], MISSING
    field = next(filter(_is_field, reversed(split(annotation)[1])), None) if default is MISSING else None
    if field is None:
        return annotation, default
    if field.default_factory is not None:
        return annotation, Made(field.default_factory)
    is_missing = field.default is ... or type(field.default).__name__ == "PydanticUndefinedType"
    return annotation, MISSING if is_missing else field.default


def _is_field(item: Any) -> bool:
    return type(item).__name__ == "FieldInfo" and type(item).__module__.startswith("pydantic")


def _members(model: Any, types: TypeTable, wanted: str) -> tuple[Member, ...]:
    """The members of a record type. Raises `RegistrationError`, saying what is wanted, for any other type."""
    shape = types.model_plan(model).shape
    if not isinstance(shape, Record):
        raise RegistrationError(f"{wanted}, got {model!r}")
    return shape.members


def _spread(member: Member, record: Any) -> ParameterPlan:
    required, default = member.required, MISSING if member.required else None
    slot = ParameterPlan(member.name, member.key, KEYWORD, record, default, required, member.plan)
    return slot._replace(description=str(member.plan.schema.get("description", "")), omissible=not required)


def bound_keywords(function: Any) -> frozenset[str]:
    """The keywords that a partial has already: the program's business, not the model's."""
    bound: set[str] = set()
    while hasattr(function, "func") and hasattr(function, "keywords"):
        bound.update(function.keywords)
        function = function.func
    return frozenset(bound)


def _refuse_twins(label: str, slots: list[ParameterPlan]) -> None:
    names: dict[str, str] = {}
    for slot in slots:
        if slot.plan is None or slot.kind is STARS:
            continue
        other = names.setdefault(slot.key, slot.name)
        if other != slot.name:
            both = f"parameters {other!r} and {slot.name!r} are both called {slot.key!r} in the schema"
            raise RegistrationError(f"{label}: {both}; give one of them another Param(name=...)")


def streamed(annotation: Any) -> Any:
    """What a generator's annotation promises as the result: nothing that a schema could say."""
    origin = get_origin(annotation) or annotation
    if origin in (abc.Generator, Iterator, abc.AsyncGenerator, abc.AsyncIterator):
        return MISSING
    if origin in (abc.Awaitable, abc.Coroutine):
        return next(reversed(get_args(annotation)), MISSING)
    return annotation


def added(model: Any, slots: tuple[ParameterPlan, ...], types: TypeTable, name: str) -> tuple[ParameterPlan, ...]:
    """The parameters that an extended model adds. Raises `RegistrationError` where the function has one of them."""
    members = tuple(_foreign_members(model, name) if isinstance(model, Mapping) else _own_members(model, types, name))
    # A name too: `**kwargs` cannot carry that of another parameter.
    taken = {name for slot in slots for name in (slot.key, slot.name)}
    if clash := sorted(member.key for member in members if member.key in taken):
        both = ", ".join(map(repr, clash))
        raise RegistrationError(f"tool {name!r}: the extended model and the function both have {both}; rename one side")
    return members


def _own_members(model: Any, types: TypeTable, name: str) -> Iterator[ParameterPlan]:
    try:
        members = _members(model, types, "it takes an object schema or a record type")
    except PegboardError as error:
        raise RegistrationError(f"tool {name!r}: extended_model: {error}") from error
    for member in members:
        yield _added_slot(member.key, member.plan, member.required)


def _foreign_members(model: Mapping[str, Any], name: str) -> Iterator[ParameterPlan]:
    from pegboard._schema.nodes import embed

    foreign = foreign_object(model, f"tool {name!r}: the extended model")
    # What its own references mean has to travel with each property, for the tool's schema has another root.
    shown = embed(foreign.schema, f"{name}_extended").get("properties", {})
    for key, schema in model.get("properties", {}).items():
        yield _added_slot(key, evolve(foreign.plan(schema), schema=shown[key]), key in model.get("required", ()))


_WANTED: Final = 'such as {"type": "object", "properties": {...}} or {} for any object'


def foreign_object(schema: Mapping[str, Any], where: str, judge: Judge | None = None) -> ForeignSchema:
    """The schema that others wrote of an object. Raises `RegistrationError` for one that is not or cannot be used."""
    from pegboard._schema.foreign import ForeignSchema

    if not isinstance(schema, Mapping):
        raise RegistrationError(f"{where} must be the schema of an object, as a mapping {_WANTED}; got {schema!r}")
    if schema.get("type", "object") != "object":
        raise RegistrationError(f"{where} must be the schema of an object, got type {schema['type']!r}")
    return ForeignSchema(carried_data(copied(schema)), where, judge=judge)


def _added_slot(key: str, plan: TypePlan, required: bool) -> ParameterPlan:
    return ParameterPlan(key, key, ADDED, Any, MISSING, required, plan, omissible=True)


def tool_name(function: Any, name: str | None) -> str:
    """The name of a tool made from `function`. Raises `RegistrationError` where neither has one."""
    own = getattr(function, "__name__", None) or getattr(plain_function(function), "__name__", None)
    found = own if name is None else name
    if found in (None, "<lambda>", "__call__"):
        raise RegistrationError(f'{function!r} has no name of its own; register it with register(..., name="...")')
    return check_name(found)


def unknown_parameter(label: str, name: str, slots: Sequence[ParameterPlan]) -> RegistrationError:
    """The error for a preset of a parameter that is not there."""
    known = [slot.name for slot in slots if slot.kind is not STARS]
    if any(slot.name == name for slot in slots):
        return RegistrationError(f"{label}: **{name} cannot be preset; give the value a parameter of its own")
    return RegistrationError(f"{label} has no parameter {name!r}. {suggestion(name, known, noun='parameters')}")
