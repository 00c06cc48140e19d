"""Reading signatures: which parameters a function has, and who provides each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Unpack, final, get_args, get_origin

from pegboard._base.errors import ConflictError, PegboardError, RegistrationError, suggestion
from pegboard._base.markers import MISSING, Param
from pegboard._base.names import check_name
from pegboard._injection.injectors import InjectorTable, Provider
from pegboard._model.shapes import Member, Record, TypePlan
from pegboard._types.annotations import read_metadata, split
from pegboard._types.hints import plain_function, read_hints, read_parameters
from pegboard._types.table import TypeTable

__all__ = ["ParameterPlan", "Reading", "bound_keywords", "read_signature", "tool_name", "unknown_parameter"]

KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY
STAR: Final = inspect.Parameter.VAR_POSITIONAL
STARS: Final = inspect.Parameter.VAR_KEYWORD


class ParameterPlan(NamedTuple):
    """One parameter of a function: its Python `name`, its `key` in JSON, and either a type plan or a provider.

    A tuple, for it is made as often as a parameter is read.
    """

    name: str
    key: str
    kind: Any
    annotation: Any
    default: Any
    plan: TypePlan | None = None
    provider: Provider | None = None
    description: str = ""
    spread: bool = False
    """The members of an `Unpack[TypedDict]`: they travel as keywords of their own."""

    @property
    def required(self) -> bool:
        """Whether the model has to send it."""
        return self.default is MISSING and self.kind not in (STAR, STARS) and not self.spread


@final
class Reading:
    """What a function's signature says."""

    __slots__ = ("returns", "slots")

    def __init__(self, slots: tuple[ParameterPlan, ...], returns: Any) -> None:
        self.slots = slots
        self.returns = returns


def read_signature(
    function: Callable[..., Any],
    types: TypeTable,
    injectors: InjectorTable,
    *,
    label: str,
    namespace: Mapping[str, Any] | None = None,
) -> Reading:
    """Read every parameter. Raises `RegistrationError` naming tool, parameter, annotation and remedy."""
    try:
        parameters = read_parameters(function)
    except (TypeError, ValueError) as error:
        raise RegistrationError(
            f"{label}: {function!r} has no readable signature; wrap it in a Python function with annotated parameters"
        ) from error
    hints = read_hints(function, namespace, label=label)
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
    return Reading(tuple(slots), hints.get("return", MISSING))


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
        return [ParameterPlan(name, name, kind, annotation, default, provider=provider)]
    if type(annotation) is type and kind not in (STAR, STARS) and default is not None:
        # A bare class: there is nothing to take apart.
        return [ParameterPlan(name, name, kind, annotation, default, types.plan(annotation))]
    if kind is STARS and get_origin(annotation) is Unpack:
        return _spread(name, get_args(annotation)[0], types)
    notes = read_metadata(split(annotation)[1])
    if kind is STAR:
        plan = types.plan(list[annotation])
    elif kind is STARS:
        plan = types.plan(annotation)
    else:
        plan = types.optional_member(annotation, default)[0]
    return [
        ParameterPlan(
            name,
            notes.name or name,
            kind,
            annotation,
            default,
            plan,
            description=notes.description or "",
        )
    ]


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
    description = str(member.plan.schema.get("description", ""))
    return ParameterPlan(
        member.name,
        member.key,
        KEYWORD,
        record,
        default,
        member.plan,
        description=description,
        spread=not member.required,
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


def tool_name(function: Any, name: str | None) -> str:
    """The name of a tool made from `function`. Raises `RegistrationError` where neither has one."""
    found = name or getattr(function, "__name__", None) or getattr(plain_function(function), "__name__", None)
    if not found or found in ("<lambda>", "__call__"):
        raise RegistrationError(f'{function!r} has no name of its own; register it with register(..., name="...")')
    return check_name(found)


def unknown_parameter(label: str, name: str, slots: tuple[ParameterPlan, ...]) -> RegistrationError:
    """The error for a preset of a parameter that is not there."""
    known = [slot.name for slot in slots if slot.kind is not STARS]
    if any(slot.name == name for slot in slots):
        return RegistrationError(f"{label}: **{name} cannot be preset; give the value a parameter of its own")
    return RegistrationError(f"{label} has no parameter {name!r}. {suggestion(name, known, noun='parameters')}")
