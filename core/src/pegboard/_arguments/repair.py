"""The repair ladder: what models commonly get wrong, put right without losing or guessing anything.

Each rung leaves a note. Nothing here runs for a value that fits as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeAlias

from attrs import define, field

from pegboard._arguments.decode import DecodeError, parse
from pegboard._arguments.explain import settled, tagged_member
from pegboard._arguments.verdicts import Verdicts, is_nested, refusal
from pegboard._base.markers import MISSING
from pegboard._model.result import Note
from pegboard._model.shapes import (
    Choice,
    Deferred,
    FixedItems,
    Items,
    Mapped,
    Member,
    Nullable,
    Record,
    Scalar,
    Shape,
    Tagged,
    TypePlan,
    Union,
)
from pegboard._schema.problems import got, join, json_type, spell
from pegboard._schema.sketch import shape_of

__all__ = ["repair"]

RepairMode: TypeAlias = Literal["off", "safe", "max"]

# ASCII digits only, of a length that Python converts in no time.
_INTEGER: Final = re.compile(r"\s*([+-]?[0-9]{1,400})(?:\.0*)?\s*", re.ASCII)
_NUMBER: Final = re.compile(r"\s*[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?\s*")
_BOOLEANS: Final = {"true": True, "false": False}
_NULLS: Final = frozenset({"", "null"})


def repair(
    plan: TypePlan,
    value: Any,
    mode: RepairMode = "safe",
    path: str = "",
    *,
    redact: Callable[[str], str] | None = None,
    verdicts: Verdicts | None = None,
) -> tuple[Any, list[Note]]:
    """`value` with everything mended that can be mended, and a note (kind `repair`) for each change.

    The result need not fit: what stays wrong is left as it was sent, for `explain`. The input is never changed;
    mending twice changes nothing more. `max` differs from `safe` only in text that is not JSON (see `repair_text`).
    `redact` goes over every value that a note mentions; what is found to be wrong is left in `verdicts`.
    """
    ladder = _Ladder(redact, Verdicts() if verdicts is None else verdicts)
    return (value if mode == "off" else ladder.mend(plan, value, path)), ladder.notes


@define
class _Ladder:
    redact: Callable[[str], str] | None
    verdicts: Verdicts
    wrapping: tuple[tuple[str, TypePlan], ...] = ()
    """Where an array is being put around a value, and of what: a list of lists of lists has no end of its own."""
    notes: list[Note] = field(factory=list)

    def mend(self, plan: TypePlan, value: Any, path: str) -> Any:
        fits = not is_nested(plan, value) and refusal(plan, value) is None
        return value if fits else self.climb(plan, value, path)

    def climb(self, plan: TypePlan, value: Any, path: str) -> Any:
        """Mend a value that does not fit."""
        shape = plan.shape or shape_of(plan)
        match shape:
            case Scalar() | Choice():
                return self.leaf(plan, shape, value, path)
            case Record() | Items() | FixedItems() | Mapped() | Tagged():
                return self.container(shape, value, path)
            case Nullable(inner=inner):
                return self.nullable(inner, value, path)
            case Union(members=members):
                return self.union(members, plan, value, path)
            case Deferred():
                inner = settled(plan)
                return value if isinstance(inner.shape, Deferred) else self.mend(inner, value, path)
            case _:
                return value

    def leaf(self, plan: TypePlan, shape: Scalar | Choice, value: Any, path: str) -> Any:
        for candidate in _readings(shape, value):
            if refusal(plan, candidate) is None:
                self.note(path, value, got(candidate, self.redact))
                return candidate
        return value

    def nullable(self, inner: TypePlan, value: Any, path: str) -> Any:
        if isinstance(value, str) and value.strip().lower() in _NULLS:
            self.note(path, value, "null")
            return None
        return self.climb(inner, value, path)

    def union(self, members: Iterable[TypePlan], plan: TypePlan, value: Any, path: str) -> Any:
        """By the alternative that needs the fewest repairs, the first of these as written."""
        best: tuple[Any, list[Note]] | None = None
        for member in members:
            attempt = _Ladder(self.redact, self.verdicts, self.wrapping)
            mended = attempt.mend(member, value, path)
            fits = attempt.notes and refusal(member, mended) is None and refusal(plan, mended) is None
            if fits and (best is None or len(attempt.notes) < len(best[1])):
                best = mended, attempt.notes
                if len(attempt.notes) == 1:
                    break
        if best is None:
            return value
        self.notes.extend(best[1])
        return best[0]

    def container(self, shape: Shape, value: Any, path: str) -> Any:
        """Arrays and objects: out of JSON text first, then each thing inside."""
        wanted = "array" if isinstance(shape, (Items, FixedItems)) else "object"
        opened = self.opened(wanted, value, path) if isinstance(value, str) else value
        if json_type(opened) != wanted:
            return self.wrapped(shape.item, value, path) if isinstance(shape, Items) else value
        match shape:
            case Items():
                return self.items(shape, opened, path)
            case FixedItems(items=items) if len(items) == len(opened):
                return self.items(shape, opened, path)
            case Mapped():
                return self.mapped(shape, opened, path)
            case Record():
                return self.record(shape, opened, path)
            case Tagged():
                return self.tagged(shape, opened, path)
            case _:
                return opened

    def opened(self, wanted: str, value: str, path: str) -> Any:
        """The array or object that is written in a string."""
        if not value.lstrip().startswith(("[", "{")):
            return value
        try:
            inner = parse(value)
        except DecodeError:
            return value
        if json_type(inner) != wanted:
            return value
        self.notes.append(Note(f"{_at(path)}JSON text read as {wanted}", kind="repair", path=path))
        return inner

    def wrapped(self, item: TypePlan, value: Any, path: str) -> Any:
        """One value where a list of such was wanted.

        Text is wrapped only where it is one of some choices: any other may be several, written in a way of its own.
        """
        if value is None or (isinstance(value, str) and not isinstance(shape_of(settled(item)), Choice)):
            return value
        if (path, item) in self.wrapping:
            return value
        attempt = _Ladder(self.redact, self.verdicts, (*self.wrapping, (path, item)))
        mended = attempt.mend(item, value, path)
        if refusal(item, mended) is not None:
            return value
        self.notes.extend(attempt.notes)
        self.note(path, mended, "array of one item")
        return [mended]

    def items(self, shape: Items | FixedItems, values: list[Any], path: str) -> list[Any]:
        mended = values
        for index, _ in self.verdicts.wrong(shape, values):
            plan = shape.item if isinstance(shape, Items) else shape.items[index]
            item = self.climb(plan, values[index], join(path, index))
            if item is not values[index]:
                mended = list(values) if mended is values else mended
                mended[index] = item
        return mended

    def mapped(self, shape: Mapped, value: dict[str, Any], path: str) -> dict[str, Any]:
        keys = {} if shape.key is None else self.keys(shape.key, value, path)
        mended = value
        for key, _ in self.verdicts.wrong(shape, value):
            member = self.climb(shape.value, value[key], join(path, key))
            if member is not value[key]:
                mended = dict(value) if mended is value else mended
                mended[key] = member
        return {keys[key]: member for key, member in mended.items()} if keys else mended

    def keys(self, plan: TypePlan, value: Iterable[str], path: str) -> dict[str, Any]:
        """What keys are mended to; nothing where a member would be lost by that."""
        attempt = _Ladder(self.redact, self.verdicts)
        mended = {
            key: key if refusal(plan, key) is None else attempt.climb(plan, key, join(path, key)) for key in value
        }
        if len(set(mended.values())) < len(mended):
            return {}
        self.notes.extend(attempt.notes)
        return mended if attempt.notes else {}

    def record(self, shape: Record, value: dict[str, Any], path: str) -> dict[str, Any]:
        mended = value
        wrong = {member.key: member for member, _ in self.verdicts.wrong(shape, value)}
        for key in [key for key in value if key in wrong]:
            member, given, there = wrong[key], value[key], join(path, key)
            omitted = _means_omitted(member, given)
            better = MISSING if omitted else self.climb(member.plan, given, there)
            if better is given:
                continue
            mended = dict(value) if mended is value else mended
            if omitted:
                self.note(there, given, "omitted")
                del mended[key]
            else:
                mended[key] = better
        return mended

    def tagged(self, shape: Tagged, value: dict[str, Any], path: str) -> Any:
        given = value.get(shape.key)
        member = tagged_member(shape, given)
        if member is None and isinstance(given, str):
            tag = _only(tag for tag in shape.members if str(tag).casefold() == given.casefold())
            if tag is not None:
                self.note(join(path, shape.key), given, got(tag))
                member, value = shape.members[tag], {**value, shape.key: tag}
        return value if member is None else self.mend(member, value, path)

    def note(self, path: str, value: Any, result: str) -> None:
        sent = got(value, self.redact)
        if isinstance(value, str):
            sent = sent.replace("string", "text", 1)
        self.notes.append(Note(f"{_at(path)}{sent} read as {result}", kind="repair", path=path))


def _readings(shape: Any, value: Any) -> Iterable[Any]:
    """What a scalar may have been meant to be; the plan decides whether it fits."""
    if isinstance(shape, Choice):
        return _choices(shape, value)
    if isinstance(value, str):
        reading = _READERS.get(shape.type, _unread)(value)
        return () if reading is value else (reading,)
    if shape.type is str and type(value) is int and value.bit_length() < 4000:
        return (str(value),)
    return ()


def _read_integer(text: str) -> Any:
    match = _INTEGER.fullmatch(text)
    return int(match[1]) if match else text


def _read_number(text: str) -> Any:
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else text


def _read_boolean(text: str) -> Any:
    return _BOOLEANS.get(text.strip().lower(), text)


def _read_null(text: str) -> Any:
    return None if text.strip().lower() in _NULLS else text


def _unread(text: str) -> Any:
    return text


_READERS: Final = {int: _read_integer, float: _read_number, bool: _read_boolean, type(None): _read_null}


def _choices(shape: Choice, value: Any) -> Iterable[Any]:
    """The choices that are spelled like `value`: by name, else by case where that leaves only one, else as JSON."""
    if type(value) is int:
        return [spelling for spelling, _ in shape.pairs if spelling == str(value)]
    if not isinstance(value, str):
        return []
    if value in shape.names:
        return [_spelling(shape, shape.names[value])]
    spelled = {str(spelling): spelling for spelling, _ in shape.pairs if isinstance(spelling, str)}
    named = {name: _spelling(shape, chosen) for name, chosen in shape.names.items()}
    folded = value.strip().casefold()
    alike = {_key(chosen): chosen for text, chosen in [*named.items(), *spelled.items()] if text.casefold() == folded}
    if alike:
        return list(alike.values()) if len(alike) == 1 else []
    return [spelling for spelling, _ in shape.pairs if not isinstance(spelling, str) and spell(spelling) == folded]


def _spelling(shape: Choice, chosen: Any) -> Any:
    """The JSON scalar that stands for an enum member."""
    return next((spelling for spelling, stands_for in shape.pairs if stands_for is chosen), chosen)


def _key(chosen: Any) -> Any:
    return type(chosen), chosen


def _means_omitted(member: Member, given: Any) -> bool:
    """A null (or, where None is the default, a spelling of it) that does not fit a member that need not be there."""
    if member.required:
        return False
    return given is None or (member.default is None and isinstance(given, str) and given.strip().lower() in _NULLS)


def _only(found: Iterable[Any]) -> Any:
    several = list(found)
    return several[0] if len(several) == 1 else None


def _at(path: str) -> str:
    return f"{path}: " if path else ""
