"""Explaining failures: every problem of a JSON value at once, found by walking down with the compiled checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import islice
from typing import Any, TypeAlias

from attrs import define, evolve, field

from pegboard._arguments.verdicts import BARE, UNASKED, Part, Verdicts, is_nested, refusal
from pegboard._base.errors import Mismatch, describe_exception
from pegboard._model.shapes import (
    Choice,
    Deferred,
    FixedItems,
    Items,
    Mapped,
    Nullable,
    Record,
    Scalar,
    Shape,
    Tagged,
    Text,
    TypePlan,
    Union,
    identity,
)
from pegboard._schema.foreign import SchemaMismatch, schema_problems
from pegboard._schema.nodes import SchemaRef, render
from pegboard._schema.problems import (
    MOST_PROBLEMS,
    Problem,
    expectation,
    got,
    join,
    message,
    one_of,
    similar,
    spell,
    under,
)
from pegboard._types.codegen import structurer
from pegboard._types.json_kinds import kinds

__all__ = ["Problem", "closest", "expected", "explain", "message", "settled", "tagged_member"]

Redact: TypeAlias = Callable[[str], str]

_PLAIN = BaseException.__str__
_ANYTHING = TypePlan({}, identity, shape=Scalar(object))


def explain(
    plan: TypePlan,
    value: Any,
    path: str = "",
    *,
    redact: Redact | None = None,
    verdicts: Verdicts | None = None,
) -> list[Problem]:
    """Everything that keeps `value` from fitting `plan`; empty if it fits.

    `redact` goes over every text taken from the value or from an exception, before it is shortened. Stops after 1,000
    problems. `verdicts` are what a walk over the same value has found out already.
    """
    walk = _Explanation(redact, Verdicts() if verdicts is None else verdicts)
    walk.visit(plan, value, path)
    return walk.problems


def closest(members: Iterable[TypePlan], value: Any) -> TypePlan | None:
    """The one member of a union that the value was probably meant for: same JSON type, then most keys in common."""
    candidates = [plan for plan in map(settled, members) if type(value) in kinds(plan)]
    if len(candidates) > 1 and isinstance(value, Mapping):
        scores = [_common_keys(plan.shape, value) for plan in candidates]
        best = max(scores)
        candidates = [plan for plan, score in zip(candidates, scores, strict=True) if score == best]
        return candidates[0] if best > 0 or len(candidates) == 1 else None
    return candidates[0] if len(candidates) == 1 else None


def settled(plan: TypePlan) -> TypePlan:
    """The plan behind a deferred one."""
    seen = 0
    while isinstance(plan.shape, Deferred) and seen < 100:  # a type that is nothing but itself has no end
        plan = plan.shape.resolve()
        seen += 1
    return plan


@define
class _Explanation:
    """One walk down a refused value."""

    redact: Redact | None
    verdicts: Verdicts
    problems: list[Problem] = field(factory=list)

    def visit(self, plan: TypePlan, value: Any, path: str) -> None:
        error = UNASKED if is_nested(plan, value) else refusal(plan, value)
        if error is not None:
            self.refused(plan, value, path, error)

    def refused(self, plan: TypePlan, value: Any, path: str, error: BaseException) -> None:
        """Explain a value that does not fit; one that nobody has asked may turn out to fit."""
        known = len(self.problems)
        if known >= MOST_PROBLEMS:
            return
        self.descend(plan, value, path, error)
        if len(self.problems) == known:
            # Everything below fits, so it is the value as a whole: bounds, or the author's own checks.
            reason = refusal(plan, value) if error is UNASKED else error
            if reason is not None:
                self.whole(plan, value, path, reason)

    def wrong(self, shape: Record | Items | FixedItems | Mapped, value: Any) -> Iterable[Part]:
        """The parts that do not fit, as many as may be told of."""
        return islice(self.verdicts.wrong(shape, value), MOST_PROBLEMS)

    def descend(self, plan: TypePlan, value: Any, path: str, error: BaseException) -> None:
        match plan.shape:
            case Scalar():
                detail = "" if error is BARE else _after_colon(self.reason(error))
                self.mismatch(path, _in_words(plan), value, detail)
            case Record() as shape:
                self.record(shape, value, path)
            case Items() as shape:
                self.items(shape, plan, value, path)
            case FixedItems() as shape:
                self.fixed(shape, value, path)
            case Mapped() as shape:
                self.mapped(shape, plan, value, path)
            case Nullable(inner=inner):
                self.one([inner], plan, value, path, error)
            case Union(members=members):
                self.one(members, plan, value, path)
            case Tagged() as shape:
                self.tagged(shape, value, path)
            case Deferred():
                self.one([plan], plan, value, path)
            case _:
                self.leaf(plan, value, path, error)

    def leaf(self, plan: TypePlan, value: Any, path: str, error: BaseException) -> None:
        match plan.shape:
            case Choice(pairs=pairs):
                choices = [spelling for spelling, _ in pairs]
                self.mismatch(path, one_of(choices), value, similar(value, choices))
            case Text() if isinstance(value, str):
                self.whole(plan, value, path, error)
            case Text():
                self.mismatch(path, expected(plan), value)
            case _:
                self.problems.extend(self.opaque(plan, value, path, error))

    def opaque(self, plan: TypePlan, value: Any, path: str, error: BaseException) -> list[Problem]:
        """A type that comes without a shape: its schema says what is wrong, if it can."""
        if isinstance(error, SchemaMismatch):
            return [evolve(problem, path=under(path, problem.path)) for problem in error.problems(self.redact)]
        if isinstance(error, Mismatch) and error.located:
            return []
        return schema_problems(render(plan.schema), value, path, redact=self.redact)

    def record(self, shape: Record, value: Any, path: str) -> None:
        if not isinstance(value, (dict, Mapping)):  # the first is what it is, and quickly told
            return self.mismatch(path, "object", value)
        wrong = dict(self.wrong(shape, value))
        known = 0
        for member in shape.members:
            if member.key in value:
                known += 1
                if member in wrong:
                    self.refused(member.plan, value[member.key], join(path, member.key), wrong[member])
            elif member.required:
                there = join(path, member.key)
                self.problems.append(Problem(there, f"missing (required {expected(member.plan)})"))
        if not shape.open and known < len(value):
            self.surplus([member.key for member in shape.members], shape.unlisted, value, path)
        return None

    def surplus(self, known: Sequence[str], unlisted: frozenset[str], value: Mapping[str, Any], path: str) -> None:
        noun = "member" if path else "argument"
        offered = [key for key in known if key not in unlisted]
        for key in value:
            if key in known or len(self.problems) >= MOST_PROBLEMS:
                continue
            names = f" (known: {', '.join(offered[:12])})" if offered else ""
            self.problems.append(Problem(join(path, key), f"unknown {noun}{similar(key, offered, repr) or names}"))

    def items(self, shape: Items, plan: TypePlan, value: Any, path: str) -> None:
        if not isinstance(value, (list, tuple)):
            return self.mismatch(path, expected(plan), value)
        known = len(self.problems)
        for index, error in self.wrong(shape, value):
            self.refused(shape.item, value[index], join(path, index), error)
        if shape.checks or shape.unique:
            self.size(evolve(shape, item=_ANYTHING, build=list), plan, value, path, known)
        return None

    def size(self, shape: Items | Mapped, plan: TypePlan, value: Any, path: str, known: int) -> None:
        """The bounds of the whole, told before the problems of its parts; alone they are told like any other."""
        if len(self.problems) > known and refusal(TypePlan({}, structurer(shape)), value) is not None:
            self.problems.insert(known, self.mismatched(path, expected(plan), value))

    def fixed(self, shape: FixedItems, value: Any, path: str) -> None:
        if not isinstance(value, (list, tuple)) or len(value) != len(shape.items):
            return self.mismatch(path, f"array of exactly {len(shape.items)} items", value)
        for index, error in self.wrong(shape, value):
            self.refused(shape.items[index], value[index], join(path, index), error)
        return None

    def mapped(self, shape: Mapped, plan: TypePlan, value: Any, path: str) -> None:
        if not isinstance(value, (dict, Mapping)):
            return self.mismatch(path, expected(plan), value)
        known = len(self.problems)
        wrong = dict(self.wrong(shape, value))
        for key in wrong if shape.key is None else value:
            if shape.key is not None:
                self.key(shape.key, key, path)
            if key in wrong:
                self.refused(shape.value, value[key], join(path, key), wrong[key])
        if shape.key is not None and len(self.problems) == known:
            self.twins(shape.key, value, path)
        if shape.checks:
            self.size(evolve(shape, key=None, value=_ANYTHING, build=None), plan, value, path, known)
        return None

    def key(self, plan: TypePlan, key: str, path: str) -> None:
        error = refusal(plan, key)
        if error is not None:
            choices = [spelling for spelling, _ in plan.shape.pairs] if isinstance(plan.shape, Choice) else []
            detail = similar(key, choices) or _after_colon(self.reason(error))
            self.mismatch(join(path, key), f"a key that is {expected(plan)}", key, detail)

    def twins(self, plan: TypePlan, value: Mapping[str, Any], path: str) -> None:
        """Keys that are spelled differently and mean the same, of which one would be lost."""
        spelled: dict[Any, str] = {}
        for key in value:
            first = spelled.setdefault(plan.structure(key), key)
            if first is not key:
                self.problems.append(Problem(join(path, key), f"means the same key as {spell(first)}; send it once"))

    def one(
        self, members: Iterable[TypePlan], plan: TypePlan, value: Any, path: str, error: BaseException = UNASKED
    ) -> None:
        """Explain by the member that was probably meant; where none is near, name them all.

        `error` is what the only member raised, if it was that.
        """
        member = closest(members, value)
        if member is None or member is plan:
            self.mismatch(path, expected(plan), value)
        elif error is UNASKED:
            self.visit(member, value, path)
        else:
            self.refused(member, value, path, error)

    def tagged(self, shape: Tagged, value: Any, path: str) -> None:
        if not isinstance(value, (dict, Mapping)):
            return self.mismatch(path, "object", value)
        there = join(path, shape.key)
        if shape.key not in value:
            self.problems.append(Problem(there, f"missing (required {one_of(shape.members)})"))
            return None
        member = tagged_member(shape, value[shape.key])
        if member is None:
            return self.mismatch(
                there, one_of(shape.members), value[shape.key], similar(value[shape.key], shape.members)
            )
        return self.visit(member, value, path)

    def mismatch(self, path: str, wanted: str, value: Any, detail: str = "") -> None:
        self.problems.append(self.mismatched(path, wanted, value, detail))

    def mismatched(self, path: str, wanted: str, value: Any, detail: str = "") -> Problem:
        received = got(value, self.redact)
        return Problem(path, f"expected {wanted}, got {received}{detail}", expected=wanted, got=received)

    def whole(self, plan: TypePlan, value: Any, path: str, error: BaseException) -> None:
        if isinstance(error, Mismatch) and error.located:
            return self.located(error, path)
        reason = self.reason(error)
        if reason and isinstance(value, (list, Mapping)):
            self.problems.append(Problem(path, reason))
        else:
            self.mismatch(path, expected(plan), value, _after_colon(reason))
        return None

    def located(self, error: Mismatch, path: str) -> None:
        """What a third party's judge found, part by part; its words may repeat the value."""
        for keys, text in error.located[: MOST_PROBLEMS - len(self.problems)]:
            there = reduce(join, keys, path)
            self.problems.append(Problem(there, self.redact(text) if self.redact else text))

    def reason(self, error: BaseException) -> str:
        """What the exception says; nothing for a bare mismatch, which only repeats ours."""
        if isinstance(error, BaseExceptionGroup):
            text = "; ".join(dict.fromkeys(map(_said, _leaves(error))))
        else:
            text = "" if isinstance(error, Mismatch) and not error.args else _said(error)
        return self.redact(text) if self.redact else text


def tagged_member(shape: Tagged, tag: Any) -> TypePlan | None:
    """The plan that a tag stands for; True is not the tag 1."""
    if not isinstance(tag, str | int):
        return None
    return next((plan for known, plan in shape.members.items() if known == tag and type(known) is type(tag)), None)


def _said(error: BaseException) -> str:
    """The message; without what validators of attrs raise beside it, objects for programs."""
    match error:
        case TypeError(args=(str(text), _, *_)) | ValueError(args=(str(text), _, *_)) if type(error).__str__ is _PLAIN:
            return text
    return describe_exception(error)


def _leaves(group: BaseExceptionGroup[Any]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return found


def _after_colon(reason: str) -> str:
    return f": {reason}" if reason else ""


def expected(plan: TypePlan) -> str:
    """What a plan expects, in words."""
    match plan.shape:
        case Scalar() | Text():  # most are
            return _in_words(plan)
        case Choice(pairs=pairs):
            return one_of(spelling for spelling, _ in pairs)
        case Nullable(inner=inner):
            return f"{expected(inner)} or null"
        case Union(members=members):
            return " or ".join(dict.fromkeys(_alternatives(members)))
        case Record() | Tagged():
            return "object"
        case Deferred():
            inner = settled(plan)
            return "any value" if isinstance(inner.shape, Deferred) else expected(inner)
        case _:
            return _in_words(plan)


def _alternatives(members: Iterable[TypePlan]) -> list[str]:
    """What each alternative expects; objects by what they must have, where there are several."""
    plans = list(map(settled, members))
    words = list(map(expected, plans))
    return [
        _object_with(plan.shape) if word == "object" and words.count(word) > 1 else word
        for plan, word in zip(plans, words, strict=True)
    ]


def _object_with(shape: Shape | None) -> str:
    keys = [member.key for member in shape.members if member.required] if isinstance(shape, Record) else []
    return f"object with {', '.join(keys)}" if keys else "object"


def _in_words(plan: TypePlan) -> str:
    schema = plan.schema
    return expectation(schema.target if isinstance(schema, SchemaRef) else schema)


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
