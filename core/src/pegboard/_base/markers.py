"""Markers that a tool author writes in annotations and presets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Annotated, Any, Final, Generic, TypeVar, final

from attrs import field, frozen

from pegboard._base.records import Compared, Shown, as_tuple

T = TypeVar("T")
C = TypeVar("C", bound=type)


@final
class Missing(Enum):
    """The type of `MISSING`: no value was given, which is not the same as None."""

    MISSING = "MISSING"

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing.MISSING


@frozen(kw_only=True, eq=False, repr=False)
class Param(Compared):
    """Describes one parameter: `Annotated[int, Param("Forecast days", ge=1, le=14)]`.

    The bounds become schema keywords and are enforced (JSON Schema 2020-12 validation). None sets no bound.

    Args:
        description: Text for the model, before that of the docstring.
        name: Name of the parameter for the model. None: its own.
        title: Title in the schema.
        examples: Example values, for the schema.
        ge: Least number (`minimum`).
        gt: Number that the value must be above (`exclusiveMinimum`).
        le: Largest number (`maximum`).
        lt: Number that the value must be below (`exclusiveMaximum`).
        multiple_of: Number that the value must be a multiple of.
        min_length: Fewest characters of a text, items of a list or members of a mapping.
        max_length: Most of them.
        pattern: Regular expression that a text must contain a match of.
        deprecated: Whether the schema marks the parameter as deprecated.
        schema_extra: Further keywords of the schema.
    """

    description: str | None = field(default=None, kw_only=False)
    name: str | None = None
    title: str | None = None
    # What may hold lists stays out of the hash, which `Annotated[int, Param(...)] | None` needs.
    examples: tuple[Any, ...] = field(default=(), converter=as_tuple, hash=False)
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    deprecated: bool = False
    schema_extra: Mapping[str, Any] = field(factory=dict, hash=False)


@frozen(eq=False, repr=False)
class Inject(Compared):
    """Marks a parameter as provided by the program: `Annotated[Db, Inject("replica")]`.

    Args:
        name: Name in a context that is a mapping. None takes the object by its type.
    """

    name: str | None = None


Injected = Annotated[T, Inject()]
"""`Injected[T]`: a value of type T from the execution context, absent from the schema."""


def injectable(cls: C) -> C:
    """Class decorator: parameters annotated with this class always come from the context, never from the model.

    Args:
        cls: The class, which is returned.
    """
    cls.__pegboard_injectable__ = True  # type: ignore[attr-defined]  # a mark on the user's own class
    return cls


@final
@frozen(repr=False, eq=False)
class Secret(Generic[T]):
    """A preset that the model can neither see nor override, and that no repr, message, note or log shows.

    Args:
        value: The value, which `.value` gives back.
    """

    value: T

    def __repr__(self) -> str:
        return "Secret(***)"


@final
@frozen(eq=False, repr=False)
class Locked(Shown, Generic[T]):
    """A preset that the model cannot override.

    Args:
        value: The value.
    """

    value: T


@final
@frozen(eq=False, repr=False)
class Computed(Shown, Generic[T]):
    """A preset computed for each call: `Computed(lambda call: call.id)`.

    Args:
        function: Takes the `ToolCall` and returns the value.
    """

    function: Callable[[Any], T]


def reveal(preset: Any) -> Any:
    """The value inside `Secret` and `Locked` markers, which may be nested; anything else as it is."""
    while isinstance(preset, (Secret, Locked)):
        preset = preset.value
    return preset
