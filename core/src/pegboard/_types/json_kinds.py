"""JSON's types: which one a value is of, how strictly each is read, and which ones a plan accepts.

Generated code checks the exact type in line and calls the readings here only when that fails: for an integral float
where an integer is wanted, for a subclass of `str`, or to refuse.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import NoneType
from typing import Any, Final

from pegboard._base.errors import BareMismatch
from pegboard._model.shapes import Choice, Convert, Deferred, Nullable, RepairedText, Scalar, Shape, TypePlan, Union
from pegboard._model.subschemas import TYPE_NAMES, comparable
from pegboard._schema.nodes import SchemaRef

# The Python types of decoded JSON values.
JSON_TYPES: tuple[type, ...] = tuple(TYPE_NAMES)
_LEAVES = frozenset(JSON_TYPES) - {list, dict}


def plain(value: Any) -> Any:
    """A value of a subclass of a JSON type as that JSON type itself. Raises `Mismatch` for anything else."""
    kind = next((kind for kind in JSON_TYPES if isinstance(value, kind)), None)
    if kind is None or kind is type(value):
        raise BareMismatch
    convert: Convert = {str: str.__str__, int: int.__int__, float: float.__float__}.get(kind, kind)
    return convert(value)


def to_text(value: Any) -> str:
    """A string; a subclass of `str` arrives as a plain one, but for what a repair has read."""
    if isinstance(value, str):
        return value if type(value) is RepairedText else str.__str__(value)
    raise BareMismatch


def to_integer(value: Any) -> int:
    """An integer; a float without a fraction is one, a boolean is not."""
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__int__(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise BareMismatch


def to_number(value: Any) -> float:
    """A finite float; integers are numbers, unless they are beyond the range of floats."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BareMismatch
    try:
        number = float(value)
    except OverflowError:
        raise BareMismatch from None
    if number - number != 0.0:  # only infinities and NaN
        raise BareMismatch
    return number


def count_members(value: Any) -> int:
    """How many members all JSON objects inside `value` have together."""
    members = 0
    inside = [value]
    for each in inside:  # which grows meanwhile
        if isinstance(each, dict):
            members += len(each)
            inside += [member for member in each.values() if type(member) not in _LEAVES]
        elif isinstance(each, list):
            inside += [item for item in each if type(item) not in _LEAVES]
    return members


def choice_table(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """A table for `choose`. The first of two equal values counts."""
    table: dict[Any, Any] = {}
    for value, meaning in pairs:
        table.setdefault(comparable(value), meaning)
    return table


def choose(table: Mapping[Any, Any], value: Any) -> Any:
    """What a JSON scalar stands for. Raises `Mismatch` for a value that is not in the table."""
    try:
        return table[comparable(value)]
    except KeyError:
        raise BareMismatch from None


# In each thread, what became of arrays and objects inside unions: `(result, error, function, value)` of each, by the
# identities of function and value, which are kept so that nothing else can have them meanwhile.
_trials: Final = threading.local()


@contextmanager
def trials() -> Iterator[None]:
    """Within it each alternative of a union is asked once about an array or object, however often it is come to.

    Otherwise unions inside unions would take twice as long for each level.
    """
    before = getattr(_trials, "known", None)
    _trials.known = known = {} if before is None else before
    try:
        yield
    finally:
        _trials.known = before
        if before is None:
            known.clear()  # of errors, whose frames hold it


def first_of(structures: Sequence[Convert], value: Any) -> Any:
    """The answer of the first function that accepts `value`; what the last one raises if none does."""
    with trials():
        for structure in structures[:-1]:
            try:
                return _tried(structure, value)
            except Exception:  # noqa: BLE001, S112 - any exception of a handler means that the value does not fit
                continue
        return _tried(structures[-1], value)


def _tried(structure: Convert, value: Any) -> Any:
    if type(value) not in (list, dict):
        return structure(value)
    known, key = _trials.known, (id(structure), id(value))
    if key not in known:
        try:
            known[key] = structure(value), None, structure, value
        except Exception as error:  # noqa: BLE001 - as above
            known[key] = None, error, structure, value
    if known[key][1] is not None:
        raise known[key][1].with_traceback(None)
    return known[key][0]


def is_one_way(plan: TypePlan) -> bool:
    """Whether there is something inside whose instances are written otherwise than they are read."""
    waiting, known = [plan], set()
    for each in waiting:  # which grows meanwhile
        if each.one_way:
            return True
        if each.shape is not None and id(each) not in known:
            known.add(id(each))
            waiting.extend(each.shape.parts())
    return False


# What each type of a scalar, an array or an object accepts, as `kinds` has it.
_KINDS: Mapping[type, Mapping[type, bool]] = {
    **{kind: {kind: True} for kind in JSON_TYPES},
    int: {int: True, float: False},
    float: {float: True, int: False},
    object: dict.fromkeys(JSON_TYPES, True),
}
_BY_NAME = {name: _KINDS[kind] for kind, name in TYPE_NAMES.items()}


def kinds(plan: TypePlan) -> Mapping[type, bool]:
    """The JSON types (of `JSON_TYPES`) that a plan may accept; True where it is the exact type.

    An integer is also a number and an integral float also an integer: accepted, but not exact.
    """
    match plan.shape:
        case Scalar(type=kind):
            return _KINDS[kind]
        case Choice(pairs=pairs):
            return _merged([_KINDS[type(value)] for value, _ in pairs])
        case Nullable(inner=inner):
            return _merged([_KINDS[NoneType], kinds(inner)])
        case Union(members=members):
            return _merged([kinds(member) for member in members])
        case Deferred(resolve=resolve):
            plan = resolve()
            # A type that is still being planned may turn out to be anything.
            return _KINDS[object] if isinstance(plan.shape, Deferred) else kinds(plan)
        case Shape(json=type() as kind):
            return _KINDS[kind]
    return schema_kinds(plan.schema)


def candidates(members: Sequence[TypePlan], kind: type) -> tuple[TypePlan, ...]:
    """The alternatives to try for a value of a JSON type: exact ones first, then the others, each as written.

    What stands behind an alternative that accepts every value of the type is never reached and left out.
    """
    found = [(member, kinds(member).get(kind)) for member in members]
    ordered = [member for member, exact in found if exact] + [member for member, exact in found if exact is False]
    for number, member in enumerate(ordered, start=1):
        if accepts_all(member, kind):
            return tuple(ordered[:number])
    return tuple(ordered)


def accepts_all(plan: TypePlan, kind: type) -> bool:
    """Whether a plan surely accepts every value of a JSON type; of every one, for `object`."""
    shape = plan.shape
    return isinstance(shape, Scalar) and not shape.checks and shape.type in (kind, object)


def schema_kinds(schema: Any) -> Mapping[type, bool]:
    """The types that a third-party schema allows; all of them where it does not say."""
    if isinstance(schema, SchemaRef):
        return schema_kinds(schema.target)
    named = schema.get("type")
    if named is not None:
        return _merged([_BY_NAME.get(name, {}) for name in ([named] if isinstance(named, str) else named)])
    if "enum" in schema or "const" in schema:
        return _merged([_KINDS.get(type(value), {}) for value in schema.get("enum", [schema.get("const")])])
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return _merged([schema_kinds(member) for member in schema[keyword]])
    return _KINDS[object]


def _merged(found: Sequence[Mapping[type, bool]]) -> Mapping[type, bool]:
    merged: dict[type, bool] = {}
    for exactness in found:
        for kind, exact in exactness.items():
            merged[kind] = exact or merged.get(kind, False)
    return merged
