"""Type plans and shapes: what a type accepts, as data.

A shape is the single description from which strict structuring is compiled, failures are explained and
repairs are tried. A type handler that returns a shape gets all three; one that returns only a `structure`
function is called as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

from attrs import field, frozen

from pegboard._base.markers import MISSING
from pegboard._base.records import Compared, Shown

JsonSchema: TypeAlias = dict[str, Any]
# Reads a value, or writes one: of a type, or of one part of it.
Convert: TypeAlias = Callable[[Any], Any]


def identity(value: Any) -> Any:
    """The value as it is."""
    return value


@frozen(eq=False, repr=False)
class TypePlan(Shown):
    """How one type travels: its JSON Schema, JSON -> Python and Python -> JSON.

    `structure` takes a decoded JSON value and returns the Python value, or raises any exception when the
    value does not fit. It is held to `schema`: what that refuses is refused, by code made from the shape, or by
    the schema itself where there is none. `unstructure` takes the Python value and returns JSON-able data.
    `shape` is optional: it lets Pegboard inline, explain and repair. It is `one_way` if values are written
    otherwise than they are read, so that no schema of results can be promised.
    """

    schema: JsonSchema
    structure: Convert = field(repr=False)
    unstructure: Convert = field(default=identity, repr=False)
    shape: Shape | None = field(default=None, repr=False)
    one_way: bool = field(default=False, repr=False, kw_only=True)


@frozen(eq=False, repr=False)
class Shape(Shown):
    """The base of all shapes; `parts()` are the plans directly inside.

    `json` is the Python type of the JSON that it takes, if that is always the same: list for an array, dict for an
    object.
    """

    json: ClassVar[type | None] = None

    def parts(self) -> tuple[TypePlan, ...]:
        """The plans directly inside."""
        return ()


@frozen(eq=False, repr=False)
class Check(Compared):
    """One bound: its schema keyword, its limit, and a Python expression over `{value}` and `{limit}`."""

    keyword: str
    limit: Any
    expression: str


@frozen(eq=False, repr=False)
class Scalar(Shape):
    """A JSON scalar that arrives as `type`: str, int, float, bool, NoneType, or object for any JSON value at all."""

    type: type
    checks: tuple[Check, ...] = ()


@frozen(eq=False, repr=False)
class Text(Shape):
    """A JSON string that `parse` turns into a value; `parse` raises for text that the schema refuses.

    `example` is what messages show. `repair` gives the text that a value of another spelling stands for (a
    number with a fraction comes as a `Decimal` with its own digits); it raises for what it does not read, and gives a
    `RepairedText` where the schema would refuse the text all the same.
    """

    json = str
    parse: Callable[[str], Any]
    checks: tuple[Check, ...] = ()
    example: str = ""
    repair: Callable[[Any], str] | None = None


class RepairedText(str):
    """A text that only a repair may hand to `parse`: what it means is certain, but the schema asks for more."""

    __slots__ = ()


@frozen(eq=False, repr=False)
class Choice(Shape):
    """One of some JSON scalars, each with the Python value that it stands for (Literal, Enum).

    `names` are other spellings that repair may accept, such as an enum's member names.
    """

    pairs: tuple[tuple[str | int | float | bool | None, Any], ...]
    names: Mapping[str, Any] = field(factory=dict)


@frozen(eq=False, repr=False)
class Items(Shape):
    """A JSON array of one item type, built into `build` (list, tuple, set, frozenset ...)."""

    json = list
    item: TypePlan
    build: Callable[[list[Any]], Any] = list
    checks: tuple[Check, ...] = ()
    unique: bool = False

    def parts(self) -> tuple[TypePlan, ...]:
        return (self.item,)


@frozen(eq=False, repr=False)
class FixedItems(Shape):
    """A JSON array of a fixed length with a type for each position."""

    json = list
    items: tuple[TypePlan, ...]
    build: Callable[[list[Any]], Any] = tuple

    def parts(self) -> tuple[TypePlan, ...]:
        return self.items


@frozen(eq=False, repr=False)
class Mapped(Shape):
    """A JSON object with free keys; `key` takes the key's text."""

    json = dict
    key: TypePlan | None
    value: TypePlan
    build: Callable[[dict[Any, Any]], Any] | None = None
    checks: tuple[Check, ...] = ()

    def parts(self) -> tuple[TypePlan, ...]:
        return (self.value,) if self.key is None else (self.key, self.value)


@frozen(eq=False, repr=False)
class Member(Shown):
    """One member of a record: `key` in JSON, `name` as the keyword of the record's `build`.

    `default` is for the explainer and repair: an absent optional member is simply not passed to `build`.
    """

    name: str
    key: str
    plan: TypePlan
    required: bool = True
    default: Any = MISSING


@frozen(eq=False, repr=False)
class Record(Shape):
    """A JSON object with named members, built by `build(**members)`; surplus keys are refused unless `open`.

    `unlisted` keys are accepted, but no message offers them: the model does not know of them.
    """

    json = dict
    build: Callable[..., Any]
    members: tuple[Member, ...]
    name: str = "object"
    open: bool = False
    unlisted: frozenset[str] = frozenset()

    def parts(self) -> tuple[TypePlan, ...]:
        return tuple(member.plan for member in self.members)


@frozen(eq=False, repr=False)
class Nullable(Shape):
    """JSON null, which arrives as None, or `inner`."""

    inner: TypePlan

    def parts(self) -> tuple[TypePlan, ...]:
        return (self.inner,)


@frozen(eq=False, repr=False)
class Union(Shape):
    """One of several types: exact JSON type first (1 is an int before it is a float), then the members as written."""

    members: tuple[TypePlan, ...]

    def parts(self) -> tuple[TypePlan, ...]:
        return self.members


@frozen(eq=False, repr=False)
class Tagged(Shape):
    """A union of records told apart by the value of one member."""

    json = dict
    key: str
    members: Mapping[str | int | bool, TypePlan]

    def parts(self) -> tuple[TypePlan, ...]:
        return tuple(self.members.values())


@frozen(eq=False, repr=False)
class Deferred(Shape):
    """A plan that is known only later: what makes recursive types possible."""

    resolve: Callable[[], TypePlan]

    def parts(self) -> tuple[TypePlan, ...]:
        return (self.resolve(),)
