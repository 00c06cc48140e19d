"""Examining: one walk over a refused value, which repairs what may be repaired and tells what stays wrong.

The ladder of repairs puts right what models commonly get wrong, without losing or guessing anything, and leaves a note
for each change. Nothing here runs for a value that fits as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import count, repeat
from types import NoneType
from typing import Any, Final, TypeAlias

from attrs import define, evolve, field

from pegboard._arguments.decode import parse, unfenced
from pegboard._base.effects import tried
from pegboard._base.errors import BareMismatch, Mismatch
from pegboard._base.markers import MISSING
from pegboard._model import shapes
from pegboard._model.result import Note
from pegboard._model.shapes import TypePlan, identity
from pegboard._model.subschemas import comparable, distinct
from pegboard._schema import problems
from pegboard._schema.foreign import ForeignPlan, ForeignSchema, shape_of
from pegboard._schema.problems import Problem, Redact, expected, got, join, mismatch, reason, settled, similar, spell
from pegboard._schema.vet import TooMuchWorkError, UncheckedMismatch, budget
from pegboard._types.codegen import structurer
from pegboard._types.json_kinds import JSON_TYPES, choice_table, choose, kinds, trials

# A number with the digits that it was sent with; None where that is not certain.
Digits: TypeAlias = Callable[[float], Any]
Container: TypeAlias = shapes.Record | shapes.Items | shapes.FixedItems | shapes.Mapped | shapes.Tagged

# ASCII digits only, of a length that Python converts in no time.
_INTEGER: Final = re.compile(r"\s*([+-]?[0-9]{1,400})(?:\.0+)?\s*", re.ASCII)
_NUMBER: Final = re.compile(r"\s*[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?\s*")
_BOOLEANS: Final = {"true": True, "false": False}
_NULLS: Final = frozenset({"", "null"})
_DIGITS: Final = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?")
# Stands for what refuses an array or object that is looked into first.
_UNASKED: Final[BaseException] = BareMismatch()
# What refuses a scalar of another type, and says nothing more.
_BARE: Final[BaseException] = BareMismatch()
# The types of JSON that a scalar refuses whatever the value.
_NEVER: Final[Mapping[type, frozenset[type]]] = {
    kind: frozenset(JSON_TYPES) - kinds(TypePlan({}, identity, shape=shapes.Scalar(kind))).keys()
    for kind in (NoneType, bool, int, float, str, object)
}
# Texts that stand for no value.
_NOTHING: Final = frozenset({"", "null", "none"})
# No caller reads more, and each takes its time: what has to be repaired as often was not meant for this type.
MOST_REPAIRS: Final = 10_000
_ANYTHING: Final = TypePlan({}, identity, shape=shapes.Scalar(object))


def examine(
    plan: TypePlan, value: Any, path: str = "", *, repair: bool = True, redact: Redact | None = None, sent: Any = None
) -> tuple[Any, list[Problem], list[Note]]:
    """`value` as far as it can be repaired, what keeps it from fitting then, and a note for each repair.

    There are problems exactly where the result does not fit; what stays wrong is left as it was sent. The input is
    never changed, and a second repair changes nothing more. `redact` goes over every text that is taken from the value
    or from an exception, before it is shortened. `sent` is the text that the value was read from, for the digits of its
    numbers. The walk stops after 1,000 problems.
    """
    walk = _Walk(redact, repair, own_digits(sent))
    with trials():
        return walk.visit(plan, value, path), walk.problems, walk.notes


def refusal(plan: TypePlan, value: Any) -> BaseException | None:
    """What `plan.structure(value)` raised; None if the value fits."""
    shape = plan.shape
    if type(shape) is shapes.Scalar:  # which is known without an exception, in a tenth of the time
        kind = type(value)
        if kind in _NEVER[shape.type]:
            return _BARE
        if kind is shape.type and kind is not float and not shape.checks:
            return None
    try:
        plan.structure(value)
    except (KeyboardInterrupt, TooMuchWorkError):
        raise
    except BaseException as error:  # noqa: BLE001 - users' validators may raise anything, SystemExit included
        return error
    return None


@define
class _Walk:
    """One walk down a refused value."""

    redact: Redact | None
    repair: bool
    digits: Digits
    # After so many problems nothing more is looked at.
    most: int = problems.MOST_PROBLEMS
    # Whether an array may be put around the value: once, outside, since around each item it would mean something else.
    wraps: bool = True
    problems: list[Problem] = field(factory=list)
    notes: list[Note] = field(factory=list)
    # Each attempt with what it came to and was made of: unions inside unions would make it many times.
    attempts: dict[Any, tuple[_Walk, Any, TypePlan, Any]] = field(factory=dict)

    def attempt(self, most: int = 1) -> _Walk:
        """A walk that may lead nowhere."""
        return _Walk(self.redact, True, self.digits, most, self.wraps, attempts=self.attempts)

    def visit(
        self,
        plan: TypePlan,
        value: Any,
        path: str,
        error: BaseException | None = None,
        sketch: shapes.Shape | None = None,
    ) -> Any:
        """`value` repaired, or as it is with what is wrong with it told. `error` is what refused it, if it was asked.

        Arrays and objects are looked into before they are asked: their parts say it. `sketch` stands in for the shape
        that a plan has not: the plan has the last word.
        """
        error = error or (_UNASKED if _is_nested(plan, value) else refusal(plan, value))
        known = len(self.problems)
        if error is None or known >= self.most:
            return value
        repaired = value
        plan = settled(plan) if type(plan.shape) is shapes.Deferred else plan
        match sketch or plan.shape:
            case shapes.Scalar() | shapes.Choice() | shapes.Text() as shape:
                repaired = self.scalar(shape, plan, value, path)
            case shapes.Record() | shapes.Items() | shapes.FixedItems() | shapes.Mapped() | shapes.Tagged() as shape:
                repaired = self.container(shape, plan, value, path)
            case shapes.Nullable(inner=inner):
                repaired = self.nullable(inner, plan, value, path)
            case shapes.Union(members=members):
                repaired = self.union(members, plan, value, path)
            case None if self.repair:
                repaired = self.sketched(plan, value, path, error)
        if len(self.problems) == known:
            # Everything below fits, so it is the value as a whole: bounds, or the author's own checks.
            refused = refusal(plan, repaired) if error is _UNASKED or repaired is not value else error
            if refused is not None:
                self.whole(plan, repaired, path, refused)
        return repaired

    def scalar(self, shape: shapes.Scalar | shapes.Choice | shapes.Text, plan: TypePlan, value: Any, path: str) -> Any:
        for candidate in readings(shape, value, self.digits) if self.repair else ():
            if refusal(plan, candidate) is None:
                self.note(path, value, got(candidate, self.redact))
                return candidate
        return value

    def sketched(self, plan: TypePlan, value: Any, path: str, error: BaseException) -> Any:
        """A type that comes without a shape: a sketch of one suggests repairs, the schema will say what is wrong."""
        sketch = shape_of(plan)
        if sketch is None or isinstance(error, UncheckedMismatch):
            return value
        attempt = self.attempt(problems.MOST_PROBLEMS)
        try:
            with budget(ForeignSchema.WORK):
                repaired = attempt.visit(plan, value, path, error, sketch)
        except UncheckedMismatch:
            return value  # to look for repairs would take too long
        self.notes.extend(attempt.notes)
        return repaired

    def nullable(self, inner: TypePlan, plan: TypePlan, value: Any, path: str) -> Any:
        if self.repair and is_null(value):
            self.note(path, value, "null")
            return None
        known = len(self.problems)
        repaired = self.visit(inner, value, path)
        if len(self.problems) > known and _closest([inner], repaired) is None:
            del self.problems[known:]
            self.mismatch(path, expected(plan), repaired)
        return repaired

    def union(self, members: Sequence[TypePlan], plan: TypePlan, value: Any, path: str) -> Any:
        """Repair by the alternative that needs the fewest repairs, else explain by the one that was probably meant."""
        found: list[tuple[int, Any, list[Note]]] = []
        for member in members if self.repair else ():
            key = id(member), id(value), path, self.wraps
            if key not in self.attempts:
                attempt = self.attempt()
                self.attempts[key] = attempt, attempt.visit(member, value, path), member, value
            attempt, repaired, *_ = self.attempts[key]
            if attempt.notes and not attempt.problems and refusal(plan, repaired) is None:
                found.append((len(attempt.notes), repaired, attempt.notes))
        best = sorted(found, key=lambda each: each[0])[:2]
        if len(best) == 1 or (best and (best[0][0] < best[1][0] or comparable(best[0][1]) == comparable(best[1][1]))):
            self.notes.extend(best[0][2])
            return best[0][1]
        meant = _closest(members, value)
        if meant is None:
            self.mismatch(path, expected(plan), value)
        else:
            _Walk(self.redact, False, self.digits, problems=self.problems).visit(meant, value, path)
        return value

    def container(self, shape: Container, plan: TypePlan, value: Any, path: str) -> Any:
        """Arrays and objects: out of JSON text first, then each thing inside."""
        kind: Any = shape.json
        if self.repair and not isinstance(value, kind):
            value = self.opened(kind, value, path)
            if isinstance(shape, shapes.Items) and not isinstance(value, list):
                value = self.wrapped(shape.item, value, path)
        if not isinstance(value, kind) or (isinstance(shape, shapes.FixedItems) and len(value) != len(shape.items)):
            fixed = f"array of exactly {len(shape.items)} items" if isinstance(shape, shapes.FixedItems) else ""
            form = ": write a JSON array, such as [..., ...]" if kind is list and isinstance(value, str) else ""
            self.mismatch(path, fixed or expected(plan), value, form)
            return value
        match shape:
            case shapes.Record():
                return self.record(shape, value, path)
            case shapes.Tagged():
                return self.tagged(shape, value, path)
            case shapes.Mapped():
                return self.mapped(shape, plan, value, path)
            case shapes.Items() | shapes.FixedItems():
                return self.items(shape, plan, value, path)

    def opened(self, kind: type, value: Any, path: str) -> Any:
        """The array or object that is written in a string."""
        inner = tried(parse, unfenced(value)) if isinstance(value, str) else None
        if type(inner) is not kind:
            return value
        self.notes.append(_repair(path, f"JSON text read as {'array' if kind is list else 'object'}"))
        return inner

    def wrapped(self, item: TypePlan, value: Any, path: str) -> Any:
        """One value where a list of such was wanted; not what stands for nothing, nor a text that may be several."""
        if not self.wraps or value in (None, {}) or (isinstance(value, str) and value.strip().lower() in _NOTHING):
            return value
        attempt = self.attempt()
        attempt.wraps = False
        repaired = attempt.visit(item, value, path)
        several = isinstance(repaired, str) and not set(",;\n[]{}").isdisjoint(repaired)  # which separate or enclose
        if attempt.problems or (several and not isinstance(shape_of(settled(item)), shapes.Choice)):
            return value
        self.notes.extend(attempt.notes)
        self.note(path, repaired, "array of one item")
        return [repaired]

    def items(self, shape: shapes.Items | shapes.FixedItems, plan: TypePlan, value: list[Any], path: str) -> Any:
        known = len(self.problems)
        plans = repeat(shape.item) if isinstance(shape, shapes.Items) else shape.items
        changed = self.parts(zip(count(), plans, value, strict=False), path, wraps=isinstance(shape, shapes.FixedItems))
        repaired = [changed.get(index, item) for index, item in enumerate(value)] if changed else value
        if isinstance(shape, shapes.Items) and shape.unique and self.repair and len(self.problems) == known:
            once = distinct(repaired)
            if len(once) < len(repaired):
                self.notes.append(_repair(path, "repeated items taken once"))
                repaired = once
        if isinstance(shape, shapes.Items) and (shape.checks or shape.unique):
            self.size(evolve(shape, item=_ANYTHING, build=list), plan, repaired, path, known)
        return repaired

    def parts(
        self, parts: Iterable[tuple[Any, TypePlan, Any]], path: str, *, wraps: bool = True, asks: bool = True
    ) -> dict[Any, Any]:
        """What parts of an array or object are repaired to, by their index or key.

        With `asks`, only those are looked into that do not fit: of many items, most do.
        """
        changed: dict[Any, Any] = {}
        for key, plan, part in parts:
            if len(self.notes) >= MOST_REPAIRS:
                self.problems.append(Problem(path, f"more than {MOST_REPAIRS} values do not fit as they are"))
            if len(self.problems) >= self.most:
                break
            error = refusal(plan, part) if asks else None
            if asks and error is None:
                continue
            self.wraps = wraps
            better = self.visit(plan, part, join(path, key), error)
            if better is not part:
                changed[key] = better
        return changed

    def size(self, bare: shapes.Items | shapes.Mapped, plan: TypePlan, value: Any, path: str, known: int) -> None:
        """The bounds of the whole, told before the problems of its parts; alone they are told like any other."""
        parts = self.problems[known:]
        if parts and refusal(TypePlan({}, structurer(bare)), value) is not None:
            del self.problems[known:]
            self.mismatch(path, expected(plan), value)
            self.problems.extend(parts)

    def mapped(self, shape: shapes.Mapped, plan: TypePlan, value: dict[str, Any], path: str) -> Any:
        known = len(self.problems)
        keys = self.keys(shape.key, value, path) if shape.key is not None and self.repair else {}

        def parts() -> Iterator[tuple[str, TypePlan, Any]]:
            for key, member in value.items():
                if shape.key is not None and len(self.problems) < self.most:
                    self.key(shape.key, keys.get(key, key), path)
                yield key, shape.value, member

        changed = self.parts(parts(), path)
        repaired: Any = value
        if changed or keys:
            repaired = {keys.get(key, key): changed.get(key, member) for key, member in value.items()}
        if shape.key is not None and len(self.problems) == known:
            self.twins(shape.key, repaired, path)
        if shape.checks:
            self.size(evolve(shape, key=None, value=_ANYTHING, build=None), plan, repaired, path, known)
        return repaired

    def keys(self, plan: TypePlan, value: Iterable[str], path: str) -> dict[str, Any]:
        """What keys are repaired to; nothing where a member would be lost by that."""
        attempt = self.attempt(problems.MOST_PROBLEMS)
        enough = attempt.most
        repaired = {key: attempt.visit(plan, key, join(path, key)) for key in value if len(attempt.problems) < enough}
        if not attempt.notes or len(set(repaired.values())) < len(repaired):
            return {}
        self.notes.extend(attempt.notes)
        return repaired

    def key(self, plan: TypePlan, key: str, path: str) -> None:
        error = refusal(plan, key)
        if error is not None:
            self.mismatch(join(path, key), f"a key that is {expected(plan)}", key, self.hint(plan, key, error))

    def twins(self, plan: TypePlan, value: Mapping[str, Any], path: str) -> None:
        """Keys that are spelled differently and mean the same, of which one would be lost."""
        spelled: dict[Any, str] = {}
        for key in value:
            first = spelled.setdefault(plan.structure(key), key)
            if first is not key:
                self.problems.append(Problem(join(path, key), f"means the same key as {spell(first)}; send it once"))

    def record(self, shape: shapes.Record, value: dict[str, Any], path: str) -> Any:
        members = {member.key: member for member in shape.members}
        omitted: set[str] = set()

        def given() -> Iterator[tuple[str, TypePlan, Any]]:
            for key, part in value.items():
                if key not in members:
                    continue
                if self.repair and _means_omitted(members[key], part):
                    self.note(join(path, key), part, "omitted")
                    omitted.add(key)
                else:
                    yield key, members[key].plan, part

        for key, member in members.items():
            if member.required and key not in value:
                self.problems.append(problems.missing(join(path, key), expected(member.plan)))
        changed = self.parts(given(), path, asks=False)
        offered = [key for key in members if key not in shape.unlisted]
        for key in value:
            if key not in members and not shape.open and len(self.problems) < self.most:
                self.problems.append(problems.unknown(path, key, offered))
        if not changed and not omitted:
            return value
        return {key: changed.get(key, part) for key, part in value.items() if key not in omitted}

    def tagged(self, shape: shapes.Tagged, value: dict[str, Any], path: str) -> Any:
        there = join(path, shape.key)
        if shape.key not in value:
            self.problems.append(problems.missing(there, problems.one_of(shape.members)))
            return value
        given = value[shape.key]
        plan = tried(choose, choice_table([*shape.members.items()]), given)
        tags = shapes.Choice(tuple((tag, tag) for tag in shape.members))
        for tag in readings(tags, given, self.digits) if plan is None and self.repair else ():
            self.note(there, given, got(tag))
            plan, value = shape.members[tag], {**value, shape.key: tag}
        if plan is None:
            self.mismatch(there, problems.one_of(shape.members), given, similar(given, shape.members))
            return value
        return self.visit(plan, value, path)

    def whole(self, plan: TypePlan, value: Any, path: str, error: BaseException) -> None:
        """Explain what cannot be looked into, or is wrong only as a whole."""
        if isinstance(error, Mismatch) and error.located:
            # What a third party's judge found, part by part; its words may repeat the value.
            for keys, text in error.located[: problems.MOST_PROBLEMS - len(self.problems)]:
                self.problems.append(Problem(reduce(join, keys, path), self.redact(text) if self.redact else text))
            return
        # The schema of a type without a shape says it best.
        found = isinstance(plan, ForeignPlan) and plan.whole.problems(value, path, redact=self.redact, part=plan.part)
        if found:
            self.problems.extend(found)
        else:
            hint = self.hint(plan, value, error)
            if hint and isinstance(value, list | dict):
                self.problems.append(Problem(path, hint.removeprefix(": ")))
            else:
                self.mismatch(path, expected(plan), value, hint)

    def hint(self, plan: TypePlan, value: Any, error: BaseException) -> str:
        """What follows a mismatch: the nearest choice, or what the exception says."""
        if isinstance(plan.shape, shapes.Choice):
            return similar(value, [spelling for spelling, _ in plan.shape.pairs])
        return f": {said}" if (said := reason(error, self.redact)) else problems.written(plan.schema)

    def mismatch(self, path: str, wanted: str, value: Any, detail: str = "") -> None:
        self.problems.append(mismatch(path, wanted, value, detail, self.redact))

    def note(self, path: str, value: Any, result: str) -> None:
        sent = got(value, self.redact)
        if isinstance(value, str):
            sent = sent.replace("string", "text", 1)
        self.notes.append(_repair(path, f"{sent} read as {result}"))


def _is_nested(plan: TypePlan, value: Any) -> bool:
    """Whether a value is an array or object of the right kind, whose parts say best what is wrong with it."""
    return type(value) in (list, dict) and plan.shape is not None and type(value) is plan.shape.json


def _means_omitted(member: shapes.Member, given: Any) -> bool:
    """A null, or a text for it where no text is the default, that does not fit a member that need not be there."""
    if member.required or not (given is None or is_null(given)) or refusal(member.plan, given) is None:
        return False
    is_text = member.default is not MISSING and isinstance(getattr(member.default, "value", member.default), str)
    return given is None or member.default is None or not (is_text or refusal(member.plan, None) is None)


def _closest(members: Iterable[TypePlan], value: Any) -> TypePlan | None:
    """The one member of a union that the value was probably meant for: same JSON type, then most keys in common."""
    candidates = [plan for plan in map(settled, members) if type(value) in kinds(plan)]
    if len(candidates) > 1 and isinstance(value, dict):
        scores = [_common_keys(plan.shape, value) for plan in candidates]
        best = max(scores)
        candidates = [plan for plan, score in zip(candidates, scores, strict=True) if score == best]
        return candidates[0] if best > 0 or len(candidates) == 1 else None
    return candidates[0] if len(candidates) == 1 else None


def _common_keys(shape: shapes.Shape | None, value: Mapping[str, Any]) -> int:
    """How well a record's members match the keys of `value`; a constant member that agrees decides."""
    match shape:
        case shapes.Record(members=members):
            present = [member for member in members if member.key in value]
            tags = [member for member in present if isinstance(member.plan.shape, shapes.Choice)]
            agreed = sum(refusal(tag.plan, value[tag.key]) is None for tag in tags)
            return len(present) + 100 * agreed
        case shapes.Tagged(key=key):
            return int(key in value)
        case _:
            return 0


def _repair(path: str, text: str) -> Note:
    return Note(f"{path}: {text}" if path else text, kind="repair", path=path)


# What a scalar that does not fit was probably meant to be: the one reading that loses nothing ------------------------


def is_null(value: Any) -> bool:
    """Whether a value is a text that stands for null."""
    return isinstance(value, str) and value.strip().lower() in _NULLS


def own_digits(sent: Any) -> Digits:
    """What numbers of the text `sent` were before they became floats; a number that is not in there is its shortest."""
    seen: dict[float, set[Any]] = {}

    def digits(number: float) -> Any:
        from decimal import Decimal

        if not seen:
            for each in _DIGITS.findall(str(sent)):  # that of bytes and mappings has them too
                seen.setdefault(float(each), set()).add(Decimal(each))
        found = seen.setdefault(number, {Decimal(repr(number))})
        return next(iter(found)) if len(found) == 1 and math.isfinite(number) else None

    return digits


def readings(shape: shapes.Scalar | shapes.Choice | shapes.Text, value: Any, digits: Digits) -> Iterable[Any]:
    """What a scalar may have been meant to be; the plan decides whether it fits."""
    if isinstance(shape, shapes.Choice):
        return _choices(shape, value)
    if isinstance(shape, shapes.Text):
        text = shape.repair and tried(shape.repair, digits(value) if type(value) is float else value)
        return () if text is None else (text,)
    if isinstance(value, str):
        reading = _read(shape.type, value)
        return () if reading is value else (reading,)
    if type(value) is not int:
        return ()
    if shape.type is bool:
        return (value == 1,) if value in (0, 1) else ()
    return (str(value),) if shape.type is str and value.bit_length() < 4000 else ()


def _read(kind: type, text: str) -> Any:
    if kind is int and (match := _INTEGER.fullmatch(text)):
        return int(match[1])
    if kind is float and _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    if kind is bool:
        return _BOOLEANS.get(text.strip().lower(), text)
    return None if kind is NoneType and is_null(text) else text


def _choices(shape: shapes.Choice, value: Any) -> Iterable[Any]:
    """The choices that are spelled like `value`: by name, else by case where that leaves only one, else as JSON."""
    if type(value) is int:
        return [spelling for spelling, _ in shape.pairs if spelling == str(value)]
    if not isinstance(value, str):
        return []
    text = value.strip()
    spelled = {str(spelling): spelling for spelling, _ in shape.pairs if isinstance(spelling, str)}
    if text in spelled:
        return [spelled[text]]
    if text in shape.names:
        return [_spelling(shape, shape.names[text])]
    named = {name: _spelling(shape, chosen) for name, chosen in shape.names.items()}
    folded = text.casefold()
    alike = distinct([chosen for name, chosen in [*named.items(), *spelled.items()] if name.casefold() == folded])
    if alike:
        return alike if len(alike) == 1 else []
    return [spelling for spelling, _ in shape.pairs if not isinstance(spelling, str) and spell(spelling) == folded]


def _spelling(shape: shapes.Choice, chosen: Any) -> Any:
    """The JSON scalar that stands for an enum member."""
    return next((spelling for spelling, stands_for in shape.pairs if stands_for is chosen), chosen)
