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
    """How one type is converted: its JSON Schema, JSON to Python and Python to JSON.

    Args:
        schema: JSON Schema of the values. What it refuses is refused, by code made from the shape, or by the schema
            itself where there is no shape.
        structure: Takes a decoded JSON value and returns the Python value, or raises any exception when the value does
            not fit.
        unstructure: Takes the Python value and returns JSON-able data.
        shape: What the values look like, so that Pegboard can inline, explain and repair. None for none.
        one_way: Whether values are written in another form than they are read, so that no schema of results can be
            promised.
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
    """One bound.

    Args:
        keyword: Its schema keyword.
        limit: Its limit.
        expression: Python expression over `{value}` and `{limit}` that is true for values that fit.
    """

    keyword: str
    limit: Any
    expression: str


@frozen(eq=False, repr=False)
class Scalar(Shape):
    """A JSON scalar.

    Args:
        type: Type that it arrives as: str, int, float, bool, NoneType, or object for any JSON value at all.
        checks: Bounds.
    """

    type: type
    checks: tuple[Check, ...] = ()


@frozen(eq=False, repr=False)
class Text(Shape):
    """A JSON string that `parse` turns into a value.

    Args:
        parse: Makes the value; raises for text that the schema refuses.
        checks: Bounds of the text.
        example: Text that messages show.
        repair: Gives the text that a value of another spelling stands for (a number with a fraction comes as a
            `Decimal` with its own digits). It raises for what it does not read, and gives a `RepairedText` where the
            schema would refuse the text all the same. None repairs nothing.
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
    """One of some JSON scalars (Literal, Enum).

    Args:
        pairs: Each JSON scalar with the Python value that it stands for.
        names: Other spellings that repair may accept, such as an enum's member names, each with its value.
    """

    pairs: tuple[tuple[str | int | float | bool | None, Any], ...]
    names: Mapping[str, Any] = field(factory=dict)


@frozen(eq=False, repr=False)
class Items(Shape):
    """A JSON array of one item type.

    Args:
        item: Plan of the items.
        build: Makes the value of the list: list, tuple, set, frozenset ...
        checks: Bounds of the length.
        unique: Whether items must differ.
    """

    json = list
    item: TypePlan
    build: Callable[[list[Any]], Any] = list
    checks: tuple[Check, ...] = ()
    unique: bool = False

    def parts(self) -> tuple[TypePlan, ...]:
        return (self.item,)


@frozen(eq=False, repr=False)
class FixedItems(Shape):
    """A JSON array of a fixed length with a type for each position.

    Args:
        items: Plan of each position.
        build: Makes the value of the list.
    """

    json = list
    items: tuple[TypePlan, ...]
    build: Callable[[list[Any]], Any] = tuple

    def parts(self) -> tuple[TypePlan, ...]:
        return self.items


@frozen(eq=False, repr=False)
class Mapped(Shape):
    """A JSON object with free keys.

    Args:
        key: Plan of the keys' text. None for plain text.
        value: Plan of the values.
        build: Makes the value of the dict. None keeps the dict.
        checks: Bounds of the number of members.
    """

    json = dict
    key: TypePlan | None
    value: TypePlan
    build: Callable[[dict[Any, Any]], Any] | None = None
    checks: tuple[Check, ...] = ()

    def parts(self) -> tuple[TypePlan, ...]:
        return (self.value,) if self.key is None else (self.key, self.value)


@frozen(eq=False, repr=False)
class Member(Shown):
    """One member of a record.

    Args:
        name: Keyword of the record's `build`.
        key: Name in JSON.
        plan: Plan of its values.
        required: Whether it must be there.
        default: Value for messages and repair: an absent optional member is simply not passed to `build`.
    """

    name: str
    key: str
    plan: TypePlan
    required: bool = True
    default: Any = MISSING


@frozen(eq=False, repr=False)
class Record(Shape):
    """A JSON object with named members.

    Args:
        build: Makes the value: `build(**members)`.
        members: The members.
        name: Name of the type, for messages.
        open: Whether other keys are accepted.
        unlisted: Other keys that are accepted, though no message offers them: the model does not know of them.
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
    """JSON null, which arrives as None, or `inner`.

    Args:
        inner: Plan of values that are not null.
    """

    inner: TypePlan

    def parts(self) -> tuple[TypePlan, ...]:
        return (self.inner,)


@frozen(eq=False, repr=False)
class Union(Shape):
    """One of several types: exact JSON type first (1 is an int before it is a float), then the members as written.

    Args:
        members: Plans of the types.
    """

    members: tuple[TypePlan, ...]

    def parts(self) -> tuple[TypePlan, ...]:
        return self.members


@frozen(eq=False, repr=False)
class Tagged(Shape):
    """A union of records told apart by the value of one member.

    Args:
        key: Name of that member.
        members: Plans of the records, by its value.
    """

    json = dict
    key: str
    members: Mapping[str | int | bool, TypePlan]

    def parts(self) -> tuple[TypePlan, ...]:
        return tuple(self.members.values())


@frozen(eq=False, repr=False)
class Deferred(Shape):
    """A plan that is known only later: what makes recursive types possible.

    Args:
        resolve: Gives the plan, on first use.
    """

    resolve: Callable[[], TypePlan]

    def parts(self) -> tuple[TypePlan, ...]:
        return (self.resolve(),)
