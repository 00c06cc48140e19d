"""Schemas of third parties: vetted at registration, then used without ever fetching, blocking or raising."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, final

from attrs import field, frozen

from pegboard._base.errors import Mismatch
from pegboard._base.markers import MISSING
from pegboard._model.shapes import Choice, Items, JsonSchema, Member, Nullable, Record, Scalar, Shape, TypePlan, Union
from pegboard._model.subschemas import TYPE_NAMES, measured
from pegboard._schema import problems
from pegboard._schema.nodes import render
from pegboard._schema.problems import Problem, Redact, expectation, got, join, mismatch, missing, one_of, similar, spell
from pegboard._schema.vet import Judge, UncheckedMismatch, bounded, budget, dialect, follow, spend, vet

T = TypeVar("T")
Predicate: TypeAlias = Callable[[Any], bool]
Quick: TypeAlias = Callable[[JsonSchema], Predicate | None]


@final
class ForeignSchema:
    """A JSON Schema that the library did not make.

    Raises `RegistrationError` naming the keyword and its path for a schema that is invalid, too large or too deep, or
    refers to other documents or to a missing part.

    Args:
        schema: The schema.
        where: Whose it is, for messages.
        quick: Function that may find, for the schema, a predicate that is true only for values that fit. None for none.
        judge: What decides about a third party's schema, as `pegboard_schemas` gives it. None trusts the schema as the
            code that brings it.
    """

    # How many steps one check may take, beside 32 for each part of the value.
    WORK: ClassVar = 5_000
    # How many a third party's schema may ask for, whatever the value.
    MOST_WORK: ClassVar = 30_000

    def __init__(
        self,
        schema: Mapping[str, Any],
        where: str = "the schema",
        *,
        quick: Quick | None = None,
        judge: Judge | None = None,
    ) -> None:
        vet(schema, where, judge)
        self._root, self._quick, self._judge = dict(schema), quick, judge
        self.is_plans_own = False

    @classmethod
    def of_plan(cls, schema: JsonSchema, quick: Quick) -> ForeignSchema:
        """The schema of a plan: as trusted as the code that made it."""
        made = cls.__new__(cls)
        made._root, made._quick, made._judge, made.is_plans_own = schema, quick, None, True
        return made

    def like(self, schema: JsonSchema, quick: Quick) -> ForeignSchema:
        """Less of the same schema, which need not be vetted again."""
        made = self.of_plan(schema, quick)
        made._judge, made.is_plans_own = self._judge, False
        return made

    @cached_property
    def schema(self) -> JsonSchema:
        """The schema on its own, in plain dicts; that of a plan is rendered when a value is first held to it."""
        return render(self._root) if self.is_plans_own else self._root

    def problems(
        self, value: Any, path: str = "", *, redact: Redact | None = None, part: JsonSchema | None = None
    ) -> list[Problem]:
        """Find everything that keeps a value from fitting; never raises for what a schema or a value can contain.

        Args:
            value: The value, as JSON-able data.
            path: Where the value is, for the paths of the problems.
            redact: Takes secrets out of the messages. None for none.
            part: Part of the schema to check against. None for the whole.
        """
        if part is None and self._surely_fits(value):
            return []
        try:
            return self._checked(value, part, lambda errors: _told(errors, path, redact))
        except UncheckedMismatch as error:
            return [Problem(path, error.located[0][1], unchecked=True)]

    def plan(self, part: JsonSchema | None = None) -> ForeignPlan:
        """The schema (or a part of it, whose references lead into the whole) as a type plan: values pass unchanged."""
        spend(1)
        schema = self.schema if part is None else part
        return ForeignPlan(schema, lambda value: self.fitting(value, part), whole=self, part=part)

    def fitting(self, value: Any, part: JsonSchema | None = None) -> Any:
        """`value` as it is. Raises `Mismatch` where it does not fit."""
        if part is None and self._surely_fits(value):
            return value
        if self._checked(value, part, lambda errors: next(errors, None)) is not None:
            raise Mismatch("the value does not fit its schema")
        return value

    def _checked(self, value: Any, part: JsonSchema | None, read: Callable[[Iterator[Any]], T]) -> T:
        """What `read` makes of the errors. Raises `UncheckedMismatch`."""
        validator = self._validator if part is None else self._validator.evolve(schema=part)
        steps = self.WORK + 32 * measured(value, _MOST_PARTS, _MOST_PARTS)[0]
        with budget(steps if self._judge is None else min(steps, self.MOST_WORK)):
            return read(validator.iter_errors(value))

    @cached_property
    def _surely_fits(self) -> Predicate:
        # To compile code takes long for what is large, and a third party's schema may be so on purpose.
        is_fit = self._judge is None or measured(self.schema, _MOST_COMPILED, 100)[0] <= _MOST_COMPILED
        return (is_fit and self._quick and self._quick(self.schema)) or (lambda value: False)

    @cached_property
    def _validator(self) -> Any:
        # Comes with jsonschema, whose validators take it.
        from referencing import Registry

        cls = bounded(dialect(self.schema), self._judge)
        # An empty registry fetches nothing.
        return cls(self.schema, registry=Registry(), format_checker=cls.FORMAT_CHECKER)


@final
@frozen(eq=False)
class ForeignPlan(TypePlan):
    """A plan that stands on a third-party schema, or on a part of one."""

    whole: ForeignSchema = field(kw_only=True)
    part: JsonSchema | None = field(default=None, kw_only=True)


def held(plan: TypePlan, quick: Quick) -> TypePlan:
    """A plan that comes without a shape, held to its own schema: what that refuses is refused."""
    if isinstance(plan, ForeignPlan):
        return plan
    whole = ForeignSchema.of_plan(plan.schema, quick)
    read = plan.structure

    def structure(value: Any) -> Any:
        return read(whole.fitting(value))

    return ForeignPlan(plan.schema, structure, plan.unstructure, one_way=plan.one_way, whole=whole)


def _told(errors: Iterator[Any], path: str, redact: Redact | None) -> list[Problem]:
    found = (problem for each in islice(errors, problems.MOST_PROBLEMS) for problem in _translated(each, path, redact))
    return list(dict.fromkeys(islice(found, problems.MOST_PROBLEMS)))


def _translated(error: Any, path: str, redact: Redact | None) -> Iterator[Problem]:
    spend(4)  # words take time too
    for step in error.absolute_path:
        path = join(path, step)
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    if error.validator == "required":
        for name in error.validator_value:
            if name not in error.instance:
                spend(4)
                wanted = expectation(schema.get("properties", {}).get(name, True))
                yield missing(join(path, name), wanted)
    elif error.validator == "additionalProperties" and error.validator_value is False:
        yield from _surplus(schema, error.instance, path)
    elif error.validator in ("anyOf", "oneOf"):
        yield from _alternatives(error, schema, path, redact)
    else:
        yield _mismatch(error, schema, path, redact)


def _surplus(schema: Mapping[str, Any], value: Mapping[str, Any], path: str) -> Iterator[Problem]:
    members = schema.get("properties", {})
    known = list(islice(members, _MOST_COMPARED))
    patterns = list(schema.get("patternProperties", {}))
    for key in value:
        if key not in members and not any(re.search(pattern, key) for pattern in patterns):
            spend(4 + 2 * len(known))
            yield problems.unknown(path, key, known)


def _alternatives(error: Any, schema: Mapping[str, Any], path: str, redact: Redact | None) -> Iterator[Problem]:
    """The errors of the one alternative that has the value's own type; else what all of them expect."""
    branches: dict[Any, list[Any]] = {}
    for inner in error.context:
        if inner.relative_schema_path:  # the alternative `false` has none: it says nothing that could help
            branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    if not error.context:
        yield Problem(path, f"fits more than one of the alternatives {expectation(schema)}; exactly one is allowed")
        return
    typed = [found for found in branches.values() if not any(_is_wrong_type(each) for each in found)]
    tags = list(map(_tags, typed))
    meant = [found for found, wanted in zip(typed, tags, strict=True) if not wanted] if len(typed) > 1 else typed
    if len(meant) == 1:
        for inner in meant[0]:
            inner.parent = None  # whose path is already known
            yield from _translated(inner, path, redact)
        return
    for name in sorted(set.intersection(*map(set, tags)) if tags else ())[:1]:
        choices = [choice for wanted in tags for choice in wanted[name]]
        if name not in error.instance:
            yield missing(join(path, name), one_of(choices))
        else:
            value = error.instance[name]
            yield mismatch(join(path, name), one_of(choices), value, similar(value, choices), redact)
        return
    yield _mismatch(error, schema, path, redact)


def _tags(errors: list[Any]) -> dict[str, list[Any]]:
    """What an alternative wants of the members that tell it from others, where the value says something else."""
    found: dict[str, list[Any]] = {}
    for error in errors:
        if error.validator in ("const", "enum") and [*map(type, error.relative_path)] == [str]:
            found[error.relative_path[0]] = _choices(error.schema)
        elif error.validator == "required" and not error.relative_path:
            members = error.schema.get("properties", {})
            absent = [name for name in error.validator_value if name not in error.instance]
            found |= {name: _choices(members.get(name)) for name in absent}
    return {name: choices for name, choices in found.items() if choices}


def _choices(part: Any) -> list[Any]:
    return [part["const"]] if "const" in (part or ()) else (part or {}).get("enum", [])


def _is_wrong_type(error: Any) -> bool:
    return error.validator in ("type", "const", "enum") and not error.relative_path


def _mismatch(error: Any, schema: Mapping[str, Any], path: str, redact: Redact | None) -> Problem:
    if error.validator is None:
        return Problem(path, f"a value that the schema forbids: {got(error.instance, redact)}")
    wanted = expectation(schema)
    if error.validator not in _WORDED:
        wanted = f"a value that satisfies {error.validator} {spell(error.validator_value)}"
    hint = problems.written(schema)
    if error.validator == "enum":
        compared = schema["enum"][:_MOST_COMPARED]
        spend(2 * len(compared))
        hint = similar(error.instance, compared)
    return mismatch(path, wanted, error.instance, hint, redact)


# Of a third party's schema, so many parts are compiled.
_MOST_COMPILED: Final = 1_000
_MOST_PARTS: Final = 10**7
# Of many names, so many are looked at for the one that was meant.
_MOST_COMPARED: Final = 500
_WORDED: Final = frozenset({"anyOf", "const", "enum", "format", "oneOf", "type", *problems.BOUNDS})


_SCALARS: Final[Mapping[Any, type]] = {name: kind for kind, name in TYPE_NAMES.items() if kind not in (list, dict)}


def shape_of(plan: TypePlan) -> Shape | None:
    """The plan's shape; of a third party's a sketch, so that arguments are repaired where a type comes without a shape.

    A sketch only suggests repairs: whether a repaired value fits is always for the schema itself to say.
    """
    if not isinstance(plan, ForeignPlan):
        return plan.shape
    whole = plan.whole
    shape = sketch(follow(whole.schema, whole.schema if plan.part is None else plan.part), whole.plan)
    # What a handler without a shape makes of text is for it to say, as it is where there is a shape.
    return None if whole.is_plans_own and isinstance(shape, Scalar) and shape.type is str else shape


def sketch(schema: Mapping[str, Any], inner: Callable[[JsonSchema], TypePlan]) -> Shape | None:
    """The shape nearest to a schema; `inner` plans what is inside."""
    spend(sum(len(said) for said in schema.values() if isinstance(said, (list, dict))) // 2)
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list):
        scalars = [choice for choice in choices if choice is None or isinstance(choice, str | int | float)]
        return Choice(tuple((choice, choice) for choice in scalars))
    several = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(several, list):
        return _union([inner(member) for member in several if isinstance(member, dict)])
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        return _union([inner({**schema, "type": each}) for each in kind])
    if kind == "array":
        items = schema.get("items", True)
        return Items(inner(items if isinstance(items, dict) else {}), unique=schema.get("uniqueItems") is True)
    return _record(schema, inner) if kind == "object" else Scalar(_SCALARS[kind]) if kind in _SCALARS else None


def _union(members: list[TypePlan]) -> Shape:
    rest = [member for member in members if member.schema.get("type") != "null"]
    if len(rest) == 1 and len(members) == 2:
        return Nullable(rest[0])
    return Union(tuple(members))


def _record(schema: Mapping[str, Any], inner: Callable[[JsonSchema], TypePlan]) -> Record:
    required = schema.get("required", ())
    members = (
        Member(key, key, inner(part), key in required, part.get("default", MISSING))
        for key, part in schema.get("properties", {}).items()
        if isinstance(part, dict)
    )
    return Record(dict, tuple(members), open=schema.get("additionalProperties") is not False)
