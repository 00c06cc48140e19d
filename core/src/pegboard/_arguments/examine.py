"""Examining: one walk over a value that does not fit, which mends what may be mended and tells what stays wrong.

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

from pegboard._arguments.decode import DecodeError, parse
from pegboard._base.errors import BareMismatch, Mismatch
from pegboard._base.markers import MISSING
from pegboard._model.result import Note
from pegboard._model.shapes import (
    Choice,
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
    identity,
)
from pegboard._schema.foreign import SchemaMismatch, schema_problems, shape_of
from pegboard._schema.nodes import render
from pegboard._schema.problems import (
    MOST_PROBLEMS,
    Problem,
    expected,
    got,
    join,
    mismatch,
    missing,
    one_of,
    reason,
    settled,
    similar,
    spell,
    under,
    unknown,
)
from pegboard._types.codegen import structurer
from pegboard._types.json_kinds import JSON_TYPES, kinds

Redact: TypeAlias = Callable[[str], str]
Container: TypeAlias = Record | Items | FixedItems | Mapped | Tagged

_UNASKED: Final[BaseException] = BareMismatch()
"""Stands for what would refuse a value that is looked into before anybody asks: asking costs as much."""
_BARE: Final[BaseException] = BareMismatch()
"""What refuses a scalar of another type, and says nothing more."""
_NEVER: Final[Mapping[type, frozenset[type]]] = {
    kind: frozenset(JSON_TYPES) - kinds(TypePlan({}, identity, shape=Scalar(kind))).keys()
    for kind in (NoneType, bool, int, float, str, object)
}
"""The types of JSON that a scalar refuses whatever the value: raising an exception for each would take long."""
_NESTED: Final[Mapping[Any, Any]] = {FixedItems: list, Items: list, Mapped: dict, Record: dict, Tagged: dict}
_ANYTHING: Final = TypePlan({}, identity, shape=Scalar(object))
_UNTOLD: Final = Problem("", "does not fit")


def examine(
    plan: TypePlan, value: Any, path: str = "", *, mends: bool = True, redact: Redact | None = None
) -> tuple[Any, list[Problem], list[Note]]:
    """`value` with everything mended that can be mended, what keeps it from fitting then, and a note for each repair.

    There are problems exactly where the result does not fit; what stays wrong is left as it was sent. The input is
    never changed, and mending twice changes nothing more. `redact` goes over every text that is taken from the value
    or from an exception, before it is shortened. The walk stops after 1,000 problems.
    """
    walk = _Walk(redact, mends)
    return walk.visit(plan, value, path), walk.problems, walk.notes


def refusal(plan: TypePlan, value: Any) -> BaseException | None:
    """What `plan.structure(value)` raised; None if the value fits."""
    shape = plan.shape
    if type(shape) is Scalar:
        kind = type(value)
        if kind in _NEVER[shape.type]:
            return _BARE
        if kind is shape.type and kind is not float and not shape.checks:
            return None
    try:
        plan.structure(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - users' validators may raise anything, SystemExit included
        return error
    return None


@define
class _Walk:
    """One walk down a refused value."""

    redact: Redact | None
    mends: bool
    most: int = MOST_PROBLEMS
    """After so many problems nothing more is looked at."""
    quiet: bool = False
    """Whether problems are only counted: words for what is discarded would take long."""
    wrapping: tuple[tuple[str, TypePlan], ...] = ()
    """Where an array is being put around a value, and of what: a list of lists of lists has no end of its own."""
    problems: list[Problem] = field(factory=list)
    notes: list[Note] = field(factory=list)

    def attempt(self, most: int = 1) -> _Walk:
        """A walk that may lead nowhere."""
        return _Walk(self.redact, True, most, True, self.wrapping)

    def visit(self, plan: TypePlan, value: Any, path: str) -> Any:
        error = _UNASKED if _is_nested(plan, value) else refusal(plan, value)
        return value if error is None else self.refused(plan, value, path, error)

    def refused(self, plan: TypePlan, value: Any, path: str, error: BaseException, sketch: Shape | None = None) -> Any:
        """Go into a value that does not fit; one that nobody has asked may turn out to fit.

        `sketch` stands in for the shape that the plan has not: the plan has the last word.
        """
        known = len(self.problems)
        if known >= self.most:
            return value
        mended = value
        match sketch or settled(plan).shape:
            case Scalar() | Choice() as shape:
                mended = self.scalar(shape, plan, value, path)
            case Record() | Items() | FixedItems() | Mapped() | Tagged() as shape:
                mended = self.container(shape, plan, value, path)
            case Nullable(inner=inner):
                mended = self.nullable(inner, plan, value, path, error)
            case Union(members=members):
                mended = self.union(members, plan, value, path)
            case None if self.mends:
                mended = self.sketched(plan, value, path, error)
        if len(self.problems) == known:
            # Everything below fits, so it is the value as a whole: bounds, or the author's own checks.
            refused = refusal(plan, mended) if error is _UNASKED or mended is not value else error
            if refused is not None:
                self.whole(settled(plan), mended, path, refused)
        return mended

    def scalar(self, shape: Scalar | Choice, plan: TypePlan, value: Any, path: str) -> Any:
        for candidate in readings(shape, value) if self.mends else ():
            if refusal(plan, candidate) is None:
                self.note(path, value, got(candidate, self.redact))
                return candidate
        return value

    def sketched(self, plan: TypePlan, value: Any, path: str, error: BaseException) -> Any:
        """A type that comes without a shape: a sketch of one suggests repairs, the schema will say what is wrong."""
        sketch = shape_of(plan)
        if sketch is None:
            return value
        attempt = self.attempt(MOST_PROBLEMS)
        mended = attempt.refused(plan, value, path, error, sketch)
        self.notes.extend(attempt.notes)
        return mended

    def nullable(self, inner: TypePlan, plan: TypePlan, value: Any, path: str, error: BaseException) -> Any:
        if self.mends and is_null(value):
            self.note(path, value, "null")
            return None
        known = len(self.problems)
        mended = self.refused(inner, value, path, error)
        if len(self.problems) > known and _closest([inner], mended) is None:
            del self.problems[known:]
            self.mismatch(path, expected(plan), mended)
        return mended

    def union(self, members: Sequence[TypePlan], plan: TypePlan, value: Any, path: str) -> Any:
        """Mend by the alternative that needs the fewest repairs, else explain by the one that was probably meant."""
        best: tuple[Any, list[Note]] | None = None
        for member in members if self.mends else ():
            attempt = self.attempt()
            mended = attempt.visit(member, value, path)
            fits = attempt.notes and not attempt.problems and refusal(plan, mended) is None
            if fits and (best is None or len(attempt.notes) < len(best[1])):
                best = mended, attempt.notes
                if len(attempt.notes) == 1:
                    break
        if best is not None:
            self.notes.extend(best[1])
            return best[0]
        meant = None if self.quiet else _closest(members, value)
        if meant is None:
            self.mismatch(path, expected(plan), value)
        else:
            _Walk(self.redact, False, problems=self.problems).visit(meant, value, path)
        return value

    def container(self, shape: Container, plan: TypePlan, value: Any, path: str) -> Any:
        """Arrays and objects: out of JSON text first, then each thing inside."""
        kind = _NESTED[type(shape)]
        if self.mends and not isinstance(value, kind):
            value = self.opened(kind, value, path)
            if isinstance(shape, Items) and not isinstance(value, list):
                value = self.wrapped(shape.item, value, path)
        if not isinstance(value, kind) or (isinstance(shape, FixedItems) and len(value) != len(shape.items)):
            wanted = f"array of exactly {len(shape.items)} items" if isinstance(shape, FixedItems) else expected(plan)
            self.mismatch(path, wanted, value)
            return value
        match shape:
            case Record():
                return self.record(shape, value, path)
            case Tagged():
                return self.tagged(shape, value, path)
            case Mapped():
                return self.mapped(shape, plan, value, path)
            case Items() | FixedItems():
                return self.items(shape, plan, value, path)

    def opened(self, kind: type, value: Any, path: str) -> Any:
        """The array or object that is written in a string."""
        if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
            return value
        try:
            inner = parse(value)
        except DecodeError:
            return value
        if type(inner) is not kind:
            return value
        self.notes.append(_repair(path, f"JSON text read as {'array' if kind is list else 'object'}"))
        return inner

    def wrapped(self, item: TypePlan, value: Any, path: str) -> Any:
        """One value where a list of such was wanted.

        Text is wrapped only where it is one of some choices: any other may be several, written in a way of its own.
        """
        if value is None or (isinstance(value, str) and not isinstance(shape_of(settled(item)), Choice)):
            return value
        if (path, item) in self.wrapping:
            return value
        attempt = self.attempt()
        attempt.wrapping = (*self.wrapping, (path, item))
        mended = attempt.visit(item, value, path)
        if attempt.problems:
            return value
        self.notes.extend(attempt.notes)
        self.note(path, mended, "array of one item")
        return [mended]

    def items(self, shape: Items | FixedItems, plan: TypePlan, value: list[Any], path: str) -> Any:
        known = len(self.problems)
        plans = repeat(shape.item) if isinstance(shape, Items) else shape.items
        changed = self.parts(zip(count(), plans, value, strict=False), path)
        mended = [changed.get(index, item) for index, item in enumerate(value)] if changed else value
        if isinstance(shape, Items) and (shape.checks or shape.unique):
            self.size(evolve(shape, item=_ANYTHING, build=list), plan, mended, path, known)
        return mended

    def parts(self, parts: Iterable[tuple[Any, TypePlan, Any]], path: str) -> dict[Any, Any]:
        """What parts of an array or object are mended to, by their index or key."""
        changed: dict[Any, Any] = {}
        for key, plan, part in parts:
            error = refusal(plan, part)
            if error is None:
                continue
            if len(self.problems) >= self.most:
                break
            better = self.refused(plan, part, join(path, key), error)
            if better is not part:
                changed[key] = better
        return changed

    def size(self, bare: Items | Mapped, plan: TypePlan, value: Any, path: str, known: int) -> None:
        """The bounds of the whole, told before the problems of its parts; alone they are told like any other."""
        parts = self.problems[known:]
        if parts and refusal(TypePlan({}, structurer(bare)), value) is not None:
            del self.problems[known:]
            self.mismatch(path, expected(plan), value)
            self.problems.extend(parts)

    def mapped(self, shape: Mapped, plan: TypePlan, value: dict[str, Any], path: str) -> Any:
        known = len(self.problems)
        keys = self.keys(shape.key, value, path) if shape.key is not None and self.mends else {}

        def parts() -> Iterator[tuple[str, TypePlan, Any]]:
            for key, member in value.items():
                if shape.key is not None:
                    self.key(shape.key, keys.get(key, key), path)
                yield key, shape.value, member

        changed = self.parts(parts(), path)
        mended: Any = value
        if changed or keys:
            mended = {keys.get(key, key): changed.get(key, member) for key, member in value.items()}
        if shape.key is not None and len(self.problems) == known:
            self.twins(shape.key, mended, path)
        if shape.checks:
            self.size(evolve(shape, key=None, value=_ANYTHING, build=None), plan, mended, path, known)
        return mended

    def keys(self, plan: TypePlan, value: Iterable[str], path: str) -> dict[str, Any]:
        """What keys are mended to; nothing where a member would be lost by that."""
        attempt = self.attempt(MOST_PROBLEMS)
        mended = {key: attempt.visit(plan, key, join(path, key)) for key in value}
        if not attempt.notes or len(set(mended.values())) < len(mended):
            return {}
        self.notes.extend(attempt.notes)
        return mended

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

    def record(self, shape: Record, value: dict[str, Any], path: str) -> Any:
        wrong = _wrong_members(shape, value)
        changed: dict[str, Any] = {}
        notes: dict[str, list[Note]] = {}
        before = len(self.notes)
        for member in shape.members:
            key = member.key
            if key in wrong:
                first = len(self.notes)
                there, given = join(path, key), value[key]
                if self.mends and _means_omitted(member, given):
                    self.note(there, given, "omitted")
                    changed[key] = MISSING
                elif (better := self.refused(member.plan, given, there, wrong[key])) is not given:
                    changed[key] = better
                notes[key] = self.notes[first:]
            elif member.required and key not in value:
                self.problems.append(missing(join(path, key), expected(member.plan)))
        if not shape.open:
            self.surplus(shape, value, path)
        if not changed:
            return value
        self.notes[before:] = [note for key in value for note in notes.get(key, ())]
        mended = {**value, **changed}
        return {key: given for key, given in mended.items() if given is not MISSING}

    def surplus(self, shape: Record, value: dict[str, Any], path: str) -> None:
        known = {member.key: None for member in shape.members}
        offered = [key for key in known if key not in shape.unlisted]
        for key in value:
            if key not in known and len(self.problems) < self.most:
                self.problems.append(unknown(path, key, offered))

    def tagged(self, shape: Tagged, value: dict[str, Any], path: str) -> Any:
        there = join(path, shape.key)
        if shape.key not in value:
            self.problems.append(missing(there, one_of(shape.members)))
            return value
        given = value[shape.key]
        plan = _tagged_member(shape, given)
        if plan is None and self.mends and isinstance(given, str):
            tags = [tag for tag in shape.members if str(tag).casefold() == given.casefold()]
            if len(tags) == 1:
                self.note(there, given, got(tags[0]))
                plan, value = shape.members[tags[0]], {**value, shape.key: tags[0]}
        if plan is None:
            self.mismatch(there, one_of(shape.members), given, similar(given, shape.members))
            return value
        return self.visit(plan, value, path)

    def whole(self, plan: TypePlan, value: Any, path: str, error: BaseException) -> None:
        """Explain what cannot be looked into, or is wrong only as a whole."""
        if self.quiet:
            self.problems.append(_UNTOLD)
        elif isinstance(error, Mismatch) and error.located:
            # What a third party's judge found, part by part; its words may repeat the value.
            for keys, text in error.located[: MOST_PROBLEMS - len(self.problems)]:
                self.problems.append(Problem(reduce(join, keys, path), self.redact(text) if self.redact else text))
        elif plan.shape is not None or not self.by_schema(plan, value, path, error):
            hint = self.hint(plan, value, error)
            if hint and isinstance(value, list | dict):
                self.problems.append(Problem(path, hint.removeprefix(": ")))
            else:
                self.mismatch(path, expected(plan), value, hint)

    def by_schema(self, plan: TypePlan, value: Any, path: str, error: BaseException) -> bool:
        """Whether the schema of a type without a shape says what is wrong."""
        if isinstance(error, SchemaMismatch):
            found = [evolve(problem, path=under(path, problem.path)) for problem in error.problems(self.redact)]
        else:
            found = schema_problems(render(plan.schema), value, path, redact=self.redact)
        self.problems.extend(found)
        return bool(found)

    def hint(self, plan: TypePlan, value: Any, error: BaseException) -> str:
        """What follows a mismatch: the nearest choice, or what the exception says."""
        if isinstance(plan.shape, Choice):
            return similar(value, [spelling for spelling, _ in plan.shape.pairs])
        said = "" if error is _BARE else reason(error, self.redact)
        return f": {said}" if said else ""

    def mismatch(self, path: str, wanted: str, value: Any, detail: str = "") -> None:
        self.problems.append(_UNTOLD if self.quiet else mismatch(path, wanted, value, detail, self.redact))

    def note(self, path: str, value: Any, result: str) -> None:
        sent = got(value, self.redact)
        if isinstance(value, str):
            sent = sent.replace("string", "text", 1)
        self.notes.append(_repair(path, f"{sent} read as {result}"))


def _is_nested(plan: TypePlan, value: Any) -> bool:
    """Whether a value is an array or object of the right kind, whose parts say best what is wrong with it."""
    return type(value) is _NESTED.get(type(plan.shape))


def _wrong_members(shape: Record, values: Mapping[str, Any]) -> dict[str, BaseException]:
    """What refuses members; where nothing but the one nested member can be wrong, nobody need ask it."""
    wrong: dict[str, BaseException] = {}
    nested: list[Member] = []
    absent = present = 0
    for member in shape.members:
        if member.key not in values:
            absent += member.required
            continue
        present += 1
        if _is_nested(member.plan, values[member.key]):
            nested.append(member)
        elif (found := refusal(member.plan, values[member.key])) is not None:
            wrong[member.key] = found
    only = len(nested) == 1 and not wrong and not absent and (shape.open or present == len(values))
    for member in nested:
        error = _UNASKED if only else refusal(member.plan, values[member.key])
        if error is not None:
            wrong[member.key] = error
    return wrong


def _means_omitted(member: Member, given: Any) -> bool:
    """A null (or, where None is the default, a spelling of it) that does not fit a member that need not be there."""
    return not member.required and (given is None or (member.default is None and is_null(given)))


def _tagged_member(shape: Tagged, tag: Any) -> TypePlan | None:
    """The plan that a tag stands for; True is not the tag 1."""
    if not isinstance(tag, str | int):
        return None
    return next((plan for known, plan in shape.members.items() if known == tag and type(known) is type(tag)), None)


def _closest(members: Iterable[TypePlan], value: Any) -> TypePlan | None:
    """The one member of a union that the value was probably meant for: same JSON type, then most keys in common."""
    candidates = [plan for plan in map(settled, members) if type(value) in kinds(plan)]
    if len(candidates) > 1 and isinstance(value, dict):
        scores = [_common_keys(plan.shape, value) for plan in candidates]
        best = max(scores)
        candidates = [plan for plan, score in zip(candidates, scores, strict=True) if score == best]
        return candidates[0] if best > 0 or len(candidates) == 1 else None
    return candidates[0] if len(candidates) == 1 else None


def _common_keys(shape: Shape | None, value: Mapping[str, Any]) -> int:
    """How well a record's members match the keys of `value`; a constant member that agrees decides."""
    match shape:
        case Record(members=members):
            present = [member for member in members if member.key in value]
            tags = [member for member in present if isinstance(member.plan.shape, Choice)]
            agreed = sum(refusal(tag.plan, value[tag.key]) is None for tag in tags)
            return len(present) + 100 * agreed
        case Tagged(key=key):
            return int(key in value)
        case _:
            return 0


def _repair(path: str, text: str) -> Note:
    return Note(f"{path}: {text}" if path else text, kind="repair", path=path)


# What a scalar that does not fit was probably meant to be: one reading only, with nothing lost ----------------------

# ASCII digits only, of a length that Python converts in no time.
_INTEGER: Final = re.compile(r"\s*([+-]?[0-9]{1,400})(?:\.0*)?\s*", re.ASCII)
_NUMBER: Final = re.compile(r"\s*[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?\s*")
_BOOLEANS: Final = {"true": True, "false": False}
_NULLS: Final = frozenset({"", "null"})


def is_null(value: Any) -> bool:
    """Whether a value is a text that stands for null."""
    return isinstance(value, str) and value.strip().lower() in _NULLS


def readings(shape: Scalar | Choice, value: Any) -> Iterable[Any]:
    """What a scalar may have been meant to be; the plan decides whether it fits."""
    if isinstance(shape, Choice):
        return _choices(shape, value)
    if isinstance(value, str):
        reading = _read(shape.type, value)
        return () if reading is value else (reading,)
    if shape.type is str and type(value) is int and value.bit_length() < 4000:
        return (str(value),)
    return ()


def _read(kind: type, text: str) -> Any:
    if kind is int and (match := _INTEGER.fullmatch(text)):
        return int(match[1])
    if kind is float and _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    if kind is bool:
        return _BOOLEANS.get(text.strip().lower(), text)
    return None if kind is NoneType and is_null(text) else text


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
