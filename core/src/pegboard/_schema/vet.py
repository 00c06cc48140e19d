"""Vetting JSON Schemas that the library did not make, and checking values against them in bounded steps.

A schema is as trusted as the code that brings it: it is held to what it has to be. One of a third party has a `Judge`,
which refuses what would take long, and counts the steps of each keyword.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final, NoReturn
from urllib.parse import unquote

from attrs import define, evolve, field, frozen

from pegboard._base.errors import Mismatch, RegistrationError, describe_exception
from pegboard._model.subschemas import KEYWORDS, TYPE_NAMES, distinct, measured, subschemas
from pegboard._schema.problems import spell

_MOST_NODES: Final = 50_000
_MOST_OF_THIRD_PARTIES: Final = 20_000
_DEEPEST: Final = 100
# About so many parts of a third party's schema the meta-schema is asked.
_MOST_JUDGED: Final = 1_000
DIALECTS: Final = frozenset(
    f"{scheme}://json-schema.org/{draft}{end}"
    for scheme in ("http", "https")
    for draft in ("draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema")
    for end in ("", "#")
)
_TYPES: Final = frozenset(TYPE_NAMES.values())
_PLAIN_IDENTIFIER: Final = re.compile(r"https?://[\w.-]+[\w./-]*", re.ASCII)
_PLAIN_REFERENCE: Final = re.compile(r"#(/[\w$.-]*)*", re.ASCII)


@frozen(eq=False)
class SchemaPart:
    """A schema inside another one.

    Args:
        schema: The schema.
        path: Its path in the whole.
        root: The whole.
        targets: What each of its references leads to, by the reference.
    """

    schema: Mapping[str, Any]
    path: str
    # The resource that its references start from.
    root: Mapping[str, Any]
    targets: dict[str, Any] = field(factory=dict)


@frozen(eq=False)
class Judge:
    """Decides about the schemas of third parties: those of `pegboard-schemas`.

    Patterns are checked by the judge alone, not by Python.

    Args:
        survey: `survey(parts, where)` raises `RegistrationError` for a schema that cannot be used; `where` says whose
            it is.
        keywords: Makes the check of each keyword, from those of jsonschema (`check(validator, limit, value, schema)`
            gives errors) and from the formats that are known. Each check counts its steps with `pegboard.spend`.
    """

    survey: Callable[[Sequence[SchemaPart], str], None]
    keywords: Callable[[Mapping[str, Any], Container[str]], Mapping[str, Any]]


def vet(schema: Mapping[str, Any], where: str, judge: Judge | None = None) -> None:
    """Raises `RegistrationError` naming `where`, the keyword and its path."""
    if not isinstance(schema, Mapping):
        raise RegistrationError(f"{where}: a JSON Schema is an object, got {spell(schema)}")
    most = _MOST_NODES if judge is None else _MOST_OF_THIRD_PARTIES
    parts, depth = measured(schema, most, _DEEPEST)
    if depth > _DEEPEST:
        raise RegistrationError(f"{where}: the schema is nested more than {_DEEPEST} levels deep; use $defs and $ref")
    if parts > most:
        raise RegistrationError(f"{where}: the schema has more than {most} parts")
    if not is_surely_valid(schema):
        if judge is not None and parts > _MOST_JUDGED:
            raise RegistrationError(f"{where}: with so many parts the schema may only have keywords in plain form")
        _check_metaschema(schema, where)
    survey = _Survey(where)
    survey.look(schema, "#", schema)
    for part in survey.parts:  # which grows when a reference leads to a new place
        survey.check(part)
        if judge is None:
            survey.check_patterns(part)
    if judge is not None:
        judge.survey(survey.parts, where)


def dialect(schema: Mapping[str, Any]) -> Any:
    """The jsonschema validator class of the schema's `$schema`, 2020-12 where it names none that is known."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    named = isinstance(schema.get("$schema"), str)
    return validator_for(schema if named else {}, default=Draft202012Validator)


@define
class _Survey:
    """All subschemas of one schema."""

    where: str
    parts: list[SchemaPart] = field(factory=list)
    anchors: dict[tuple[int, str], SchemaPart] = field(factory=dict)
    known: set[int] = field(factory=set)

    def look(self, schema: Any, path: str, root: Mapping[str, Any]) -> None:
        if not isinstance(schema, Mapping) or id(schema) in self.known:
            return
        if isinstance(schema.get("$id"), str) and not schema["$id"].startswith("#"):
            root = schema
        part = SchemaPart(schema, path, root)
        self.parts.append(part)
        self.known.add(id(schema))
        for keyword in ("$anchor", "$dynamicAnchor"):
            if keyword in schema:
                self.anchors[id(root), schema[keyword]] = part
        for keyword, step, inner in subschemas(schema):
            self.look(inner, "/".join([path, keyword, *([] if step is None else [str(step)])]), root)

    def check(self, part: SchemaPart) -> None:
        named, root = part.schema.get("$schema"), self.parts[0].schema
        if named not in (None, root.get("$schema")) and dialect(part.schema) is not dialect(root):
            self.refuse(part, "$schema", "has a dialect of its own; only the root may name one")
        for keyword in part.schema:
            if KEYWORDS.get(keyword) == "reference":
                target = part.targets[keyword] = self.target(part, keyword, part.schema[keyword])
                self.check_end(part, keyword, target)
                # A reference may lead to any place, also to one that no keyword calls a schema.
                self.look(target, part.schema[keyword], part.root)

    def check_patterns(self, part: SchemaPart) -> None:
        own = [("pattern", part.schema["pattern"])] if "pattern" in part.schema else []
        own += [("patternProperties", name) for name in part.schema.get("patternProperties", ())]
        for keyword, pattern in own:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                self.refuse(part, keyword, f"has {spell(pattern)}, which Python cannot read ({error}); rewrite it")

    def target(self, part: SchemaPart, keyword: str, reference: str) -> Any:
        if not reference.startswith("#"):
            what = f"refers to {spell(reference)}; only references within it (#/...) are followed"
            self.refuse(part, keyword, what)
        found = self._at(part.root, unquote(reference[1:]))
        if found is None:
            self.refuse(part, keyword, f"refers to {spell(reference)}, which is not there")
        return found

    def check_end(self, part: SchemaPart, keyword: str, target: Any) -> None:
        """What leads to another reference has to lead to a schema."""
        for _ in range(_DEEPEST):
            if not isinstance(target, Mapping) or not isinstance(target.get(keyword), str):
                return
            target = self.target(part, keyword, target[keyword])
        self.refuse(part, keyword, f"leads back to itself without end, or through more than {_DEEPEST} references")

    def _at(self, root: Mapping[str, Any], pointer: str) -> Any:
        if not pointer or pointer.startswith("/"):
            return _at(root, pointer)
        named = self.anchors.get((id(root), pointer))
        return named and named.schema

    def refuse(self, part: SchemaPart, keyword: str, what: str) -> NoReturn:
        raise RegistrationError(f"{self.where}: {keyword} at {part.path} {what}")


def follow(root: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
    """The schema behind references of the form `#/...`; an empty one where they lead elsewhere."""
    for _ in range(_DEEPEST):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str):
            break
        schema = _at(root, unquote(reference[1:])) if reference.startswith("#/") else None
    return schema if isinstance(schema, Mapping) else {}


def _at(root: Any, pointer: str) -> Any:
    """What a JSON pointer leads to; None for nothing."""
    target = root
    for step in pointer.split("/")[1:]:
        if isinstance(target, list):
            target = dict(enumerate(target)).get(int(step)) if step.isdecimal() and len(step) < 10 else None
        else:
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, Mapping) else None
    return target


def _check_metaschema(schema: Mapping[str, Any], where: str) -> None:
    from jsonschema.exceptions import SchemaError

    try:
        # Whether patterns can be read is for those to say who match them.
        dialect(schema).check_schema(schema, format_checker=None)
    except SchemaError as error:
        path = "/".join(["#", *map(str, error.absolute_path)])
        raise RegistrationError(f"{where}: {path} is not valid JSON Schema: {error.message[:200]}") from error


def is_surely_valid(schema: Any) -> bool:
    """Whether a schema of draft 7 to 2020-12 is surely what its meta-schema asks for; False where that is not plain.

    To ask jsonschema takes 3 ms for the schema of a tool, this 10 us. What nests endlessly was refused before.
    """
    if type(schema) is not dict:
        return schema is True or schema is False
    return all(_is_surely_fit(keyword, value) for keyword, value in schema.items())


def _is_surely_fit(keyword: Any, value: Any) -> bool:
    kind = KEYWORDS.get(keyword)
    if keyword == "$id":
        return type(value) is str and _PLAIN_IDENTIFIER.fullmatch(value) is not None
    if kind is None:
        # What no dialect knows may be anything; what begins with a dollar, some dialect may know.
        return type(keyword) is str and keyword[:1] != "$" and keyword != "id"
    check = _CHECKS.get(kind)
    return check is not None and keyword not in _OTHERWISE and check(value)


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _are_names(value: Any) -> bool:
    return type(value) is list and all(type(each) is str for each in value) and len(set(value)) == len(value)


def _are_types(value: Any) -> bool:
    return value in _TYPES if type(value) is str else _are_names(value) and len(value) > 0 and _TYPES.issuperset(value)


def _are_named(value: Any) -> bool:
    return type(value) is dict and _are_names([*value]) and all(map(is_surely_valid, value.values()))


_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "anything": lambda value: True,
    "array": lambda value: type(value) is list,
    "count": lambda value: type(value) is int and value >= 0,
    "dialect": lambda value: type(value) is str and value in DIALECTS,
    "factor": lambda value: _is_number(value) and value > 0,
    "flag": lambda value: type(value) is bool,
    "named schemas": _are_named,
    "names": _are_names,
    "names by name": lambda value: type(value) is dict and all(map(_are_names, value.values())),
    "number": _is_number,
    "pattern": lambda value: type(value) is str,
    "reference": lambda value: type(value) is str and _PLAIN_REFERENCE.fullmatch(value) is not None,
    "schema": is_surely_valid,
    "schemas": lambda value: type(value) is list and len(value) > 0 and all(map(is_surely_valid, value)),
    "text": lambda value: type(value) is str,
    "types": _are_types,
}
# Seldom used, or of another form in each dialect.
_OTHERWISE: Final = frozenset({"$dynamicRef", "$recursiveRef", "contentSchema", "dependencies"})


# Checking in bounded steps ---------------------------------------------------------------------------------------


class TooMuchWorkError(Exception):
    """A check that would not end in time, for the code that counts its steps."""


class UncheckedMismatch(Mismatch):
    """It cannot be told whether a value fits: integers too large to divide, values too deep, too much work."""

    def __init__(self, why: str) -> None:
        super().__init__(why, located=[((), f"cannot be checked against its schema: {why}")])


_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)


@contextmanager
def budget(steps: int) -> Iterator[None]:
    """A check that may take so many steps; inside of another it takes them from that one's.

    Raises `UncheckedMismatch` where they are gone, or whatever goes wrong; inside of another it lets that pass.
    """
    if _left.get() is not None:
        yield
        return
    token = _left.set([steps])
    try:
        yield
    except BaseException as error:
        # Where the stack ends in rpds, which jsonschema looks references up in, it panics: that is no `Exception`.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UncheckedMismatch(describe_exception(error)) from error
    finally:
        _left.reset(token)


def spend(steps: int) -> None:
    """Count work in a check by a schema. Raises where the budget of the check is used up.

    Args:
        steps: Number of steps, each a few microseconds.
    """
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise TooMuchWorkError("the value is too large for so much schema; send less, or simpler data")


@lru_cache(maxsize=32)
def bounded(cls: Any, judge: Judge | None) -> Any:
    """A validator class that counts how often a schema is held against a value; a judge may count the keywords too."""
    from jsonschema.validators import create

    checks: Mapping[str, Any] = {**cls.VALIDATORS, "required": _required, "uniqueItems": _unique_items}
    if judge is not None:
        checks = judge.keywords(checks, cls.FORMAT_CHECKER.checkers)
    is_old = cls.VALIDATORS.keys().isdisjoint(("$dynamicRef", "$recursiveRef"))
    found: Any = create(
        meta_schema=cls.META_SCHEMA,
        validators={word: check for word, check in checks.items() if word in cls.VALIDATORS},
        type_checker=cls.TYPE_CHECKER,
        format_checker=cls.FORMAT_CHECKER,
        id_of=cls.ID_OF,
        applicable_validators=_alone if is_old else _visited,
    )
    found.evolve = evolve  # jsonschema's own goes back to another class wherever a schema names its dialect
    return found


def _visited(schema: Any) -> Any:
    spend(1 + len(schema) // 4)
    return schema.items()


def _alone(schema: Any) -> Any:
    """In old dialects nothing counts beside a reference."""
    return [("$ref", schema["$ref"])] if schema.get("$ref") is not None else _visited(schema)


def _required(validator: Any, names: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(value, dict) and any(name not in value for name in names):
        yield ValidationError("lacks members")  # one for all


def _unique_items(validator: Any, unique: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if unique and isinstance(value, list) and len(distinct(value)) < len(value):
        yield ValidationError("has non-unique elements")
