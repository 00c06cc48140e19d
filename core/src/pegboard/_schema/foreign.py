"""Schemas written by others: vetted at registration, then used without ever fetching, hanging or raising."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar, Final, TypeAlias, final

from attrs import field, frozen

from pegboard._base.errors import Mismatch, describe_exception
from pegboard._base.markers import MISSING
from pegboard._model.shapes import Choice, Items, JsonSchema, Member, Nullable, Record, Scalar, Shape, TypePlan, Union
from pegboard._model.subschemas import TYPE_NAMES, distinct, measured
from pegboard._schema.problems import (
    BOUNDS,
    MOST_PROBLEMS,
    Problem,
    expectation,
    got,
    join,
    mismatch,
    missing,
    similar,
    spell,
    unknown,
)
from pegboard._schema.vet import dialect, follow, read_pattern, vet

Redact: TypeAlias = Callable[[str], str]
Predicate: TypeAlias = Callable[[Any], bool]


class SchemaMismatch(Mismatch):
    """A value that a foreign schema refuses, with all the reasons."""

    def __init__(self, problems: Callable[[Redact | None], list[Problem]]) -> None:
        super().__init__("the value does not fit its schema")
        self.problems = problems


@final
class ForeignSchema:
    """A JSON Schema that a stranger wrote: `where` says in errors whose it is.

    Raises `RegistrationError` naming the keyword and its path for a schema that is invalid, too large or too deep,
    refers to other documents or to itself without end, or has a pattern that may never finish. `quick` may find, for
    the schema, a predicate that is true only for values that fit.
    """

    WORK: ClassVar = 10_000
    """How many references and combinations one validation may follow, beside four for each part of the value."""
    COUNTED: ClassVar = ("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "contains")
    """The keywords that count as one."""

    def __init__(
        self,
        schema: Mapping[str, Any],
        where: str = "the schema",
        *,
        quick: Callable[[JsonSchema], Predicate | None] | None = None,
    ) -> None:
        vet(schema, where)
        self.schema: JsonSchema = dict(schema)
        self._validator: Any = None
        self._quick = quick
        self._surely_fits: Predicate = self._first_check if quick else _unsure

    def problems(self, value: Any, path: str = "", *, redact: Redact | None = None) -> list[Problem]:
        """Everything that keeps `value` from fitting; never raises for what a schema or a value can contain."""
        return [] if self._surely_fits(value) else self._check(None, value, path, redact)

    def plan(self, part: JsonSchema | None = None) -> ForeignPlan:
        """The schema (or a part of it, whose references lead into the whole) as a type plan: values pass unchanged."""
        schema = self.schema if part is None else part

        def structure(value: Any) -> Any:
            if part is None and self._surely_fits(value):
                return value
            if self._check(part, value, "", None):
                raise SchemaMismatch(lambda redact: self._check(part, value, "", redact))
            return value

        return ForeignPlan(schema, structure, whole=self, part=schema)

    def _first_check(self, value: Any) -> bool:
        self._surely_fits = (self._quick(self.schema) if self._quick else None) or _unsure
        return self._surely_fits(value)

    def _check(self, part: JsonSchema | None, value: Any, path: str, redact: Redact | None) -> list[Problem]:
        try:
            if self._validator is None:
                self._validator = _validator(self.schema)
            validator = self._validator if part is None else self._validator.evolve(schema=part)
            return _problems(validator, value, path, redact)
        except (RecursionError, _TooMuchWorkError, ArithmeticError, ValueError, re.error) as error:
            # Integers too large to divide or to spell, values too deep, text too long for a pattern.
            return [Problem(path, f"cannot be checked against its schema: {describe_exception(error)}")]


@final
@frozen(eq=False)
class ForeignPlan(TypePlan):
    """A plan that stands on a foreign schema, or on a part of one."""

    whole: ForeignSchema = field(kw_only=True)
    part: JsonSchema = field(kw_only=True)
    one_way: bool = field(default=False, kw_only=True)
    """As `Record.one_way`."""


def _unsure(value: Any) -> bool:
    return False


def schema_problems(schema: JsonSchema, value: Any, path: str, *, redact: Redact | None = None) -> list[Problem]:
    """What a trusted schema says against a value; nothing where it cannot be used alone."""
    try:
        return _problems(_validator(schema), value, path, redact)
    except Exception:  # noqa: BLE001 - the caller knows of another reason why the value was refused
        return []


class _TooMuchWorkError(Exception):
    """A validation that would not end in time."""


_work: ContextVar[list[int]] = ContextVar("_work")


def _problems(validator: Any, value: Any, path: str, redact: Redact | None) -> list[Problem]:
    token = _work.set([ForeignSchema.WORK + 4 * measured(value, 10**7, 10**7)[0]])
    try:
        errors = list(islice(validator.iter_errors(value), MOST_PROBLEMS))
    finally:
        _work.reset(token)
    return list(dict.fromkeys(problem for error in errors for problem in _translated(error, path, redact)))


def _validator(schema: JsonSchema) -> Any:
    from referencing import Registry

    # Without `$schema`, or jsonschema would go back to its own class for it; an empty registry fetches nothing.
    plain = {keyword: value for keyword, value in schema.items() if keyword != "$schema"}
    bounded = _bounded(dialect(schema))
    return bounded(plain, registry=Registry(), format_checker=bounded.FORMAT_CHECKER)


@lru_cache(maxsize=16)
def _bounded(cls: Any) -> Any:
    """A validator class that counts its work and never backtracks for long."""
    from jsonschema.validators import extend

    counted = {word: _counted(cls.VALIDATORS[word]) for word in ForeignSchema.COUNTED if word in cls.VALIDATORS}
    return extend(  # type: ignore[no-untyped-call]  # jsonschema has no hints of its own
        cls, {**counted, "pattern": _pattern, "uniqueItems": _unique_items}
    )


def _counted(check: Callable[..., Any]) -> Callable[..., Any]:
    def counting(validator: Any, limit: Any, value: Any, schema: Any) -> Any:
        left = _work.get()
        left[0] -= 1
        if left[0] < 0:
            raise _TooMuchWorkError("the value is too large for a schema with so many alternatives")
        return check(validator, limit, value, schema)

    return counting


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not isinstance(value, str):
        return
    longest = read_pattern(pattern).longest
    if len(value) > longest:
        raise _TooMuchWorkError(f"text that must match a pattern may have at most {longest} characters here")
    if not re.search(pattern, value):
        yield ValidationError("does not match")


def _unique_items(validator: Any, unique: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if unique and isinstance(value, list) and len(distinct(value)) < len(value):
        yield ValidationError("has non-unique elements")


def _translated(error: Any, path: str, redact: Redact | None) -> Iterator[Problem]:
    for step in error.absolute_path:
        path = join(path, step)
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    if error.validator == "required":
        for name in error.validator_value:
            if name not in error.instance:
                wanted = expectation(schema.get("properties", {}).get(name, True))
                yield missing(join(path, name), wanted)
    elif error.validator == "additionalProperties" and error.validator_value is False:
        yield from _surplus(schema, error.instance, path)
    elif error.validator in ("anyOf", "oneOf"):
        yield from _alternatives(error, schema, path, redact)
    else:
        yield _mismatch(error, schema, path, redact)


def _surplus(schema: Mapping[str, Any], value: Mapping[str, Any], path: str) -> Iterator[Problem]:
    known = list(schema.get("properties", {}))
    patterns = list(schema.get("patternProperties", {}))
    for key in value:
        if key not in known and not any(re.search(pattern, key) for pattern in patterns):
            yield unknown(path, key, known)


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
    if len(typed) == 1:
        for inner in typed[0]:
            inner.parent = None  # whose path is already known
            yield from _translated(inner, path, redact)
        return
    yield _mismatch(error, schema, path, redact)


def _is_wrong_type(error: Any) -> bool:
    return error.validator in ("type", "const", "enum") and not error.relative_path


def _mismatch(error: Any, schema: Mapping[str, Any], path: str, redact: Redact | None) -> Problem:
    if error.validator is None:
        received = got(error.instance, redact)
        return Problem(path, f"a value that the schema forbids: {received}", got=received)
    wanted = expectation(schema)
    if error.validator not in _WORDED:
        wanted = f"a value that satisfies {error.validator} {spell(error.validator_value)}"
    hint = similar(error.instance, schema["enum"]) if error.validator == "enum" else ""
    return mismatch(path, wanted, error.instance, hint, redact)


_WORDED: Final = frozenset({"anyOf", "const", "enum", "format", "oneOf", "type", *BOUNDS})


_SCALARS: Final[Mapping[Any, type]] = {name: kind for kind, name in TYPE_NAMES.items() if kind not in (list, dict)}


def shape_of(plan: TypePlan) -> Shape | None:
    """The plan's shape; of a foreign one a sketch, so that arguments are mended where a type comes without a shape.

    A sketch only suggests repairs: whether a mended value fits is always for the schema itself to say.
    """
    if not isinstance(plan, ForeignPlan):
        return plan.shape or _scalar(plan.schema)
    schema = follow(plan.whole.schema, plan.part)
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list):
        scalars = [choice for choice in choices if choice is None or isinstance(choice, str | int | float)]
        return Choice(tuple((choice, choice) for choice in scalars))
    several = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(several, list):
        return _union([plan.whole.plan(member) for member in several if isinstance(member, dict)])
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        return _union([plan.whole.plan({**schema, "type": each}) for each in kind])
    if kind == "array":
        items = schema.get("items", True)
        return Items(plan.whole.plan(items if isinstance(items, dict) else {}))
    return _record(plan, schema) if kind == "object" else Scalar(_SCALARS[kind]) if kind in _SCALARS else None


def _scalar(schema: Mapping[str, Any]) -> Shape | None:
    """What a handler that gives no shape reads; text is its own affair, as it is where there is a shape."""
    kind = schema.get("type")
    return Scalar(_SCALARS[kind]) if kind in ("boolean", "integer", "null", "number") else None


def _union(members: list[TypePlan]) -> Shape:
    rest = [member for member in members if member.schema.get("type") != "null"]
    if len(rest) == 1 and len(members) == 2:
        return Nullable(rest[0])
    return Union(tuple(members))


def _record(plan: ForeignPlan, schema: Mapping[str, Any]) -> Record:
    required = schema.get("required", ())
    members = (
        Member(key, key, plan.whole.plan(part), key in required, part.get("default", MISSING))
        for key, part in schema.get("properties", {}).items()
        if isinstance(part, dict)
    )
    return Record(dict, tuple(members), open=True)
