"""Vetting JSON Schemas that the library did not make, and checking values against them in bounded steps.

What would fetch, loop or blow up is refused. What passes may still be dear, so the steps of a check are counted.
"""

from __future__ import annotations

import hashlib
import importlib
import marshal
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NoReturn, TypeAlias
from urllib.parse import unquote

from attrs import define, evolve, field, frozen

from pegboard._base.errors import Mismatch, RegistrationError, describe_exception
from pegboard._model.subschemas import KEYWORDS, TYPE_NAMES, distinct, measured, subschemas
from pegboard._schema.problems import spell

_MOST_NODES: Final = 50_000
_MOST_STRANGE: Final = 20_000
_DEEPEST: Final = 100
# About so many parts of a stranger's schema the meta-schema is asked.
_MOST_JUDGED: Final = 1_000
_MOST_PASSED: Final = 20_000
# How many subschemas may apply to one and the same value: two references to two references to ... double each time.
_MOST_WORK: Final = 10_000
_SAME_VALUE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
DIALECTS: Final = frozenset(
    f"{scheme}://json-schema.org/{draft}{end}"
    for scheme in ("http", "https")
    for draft in ("draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema")
    for end in ("", "#")
)
_TYPES: Final = frozenset(TYPE_NAMES.values())
_PLAIN_IDENTIFIER: Final = re.compile(r"https?://[\w.-]+[\w./-]*", re.ASCII)
_PLAIN_REFERENCE: Final = re.compile(r"#(/[\w$.-]*)*", re.ASCII)


def vet(schema: Mapping[str, Any], where: str, *, strange: bool = False) -> None:
    """Raises `RegistrationError` naming `where`, the keyword and its path.

    The patterns of a `strange` schema are not looked at: they are not for Python to read.
    """
    if not isinstance(schema, Mapping):
        raise RegistrationError(f"{where}: a JSON Schema is an object, got {spell(schema)}")
    fingerprint = _fingerprint(schema), strange
    if fingerprint in _passed:
        return
    most = _MOST_STRANGE if strange else _MOST_NODES
    parts, depth = measured(schema, most, _DEEPEST)
    if depth > _DEEPEST:
        raise RegistrationError(f"{where}: the schema is nested more than {_DEEPEST} levels deep; use $defs and $ref")
    if parts > most:
        raise RegistrationError(f"{where}: the schema has more than {most} parts")
    if not is_surely_valid(schema):
        if strange and parts > _MOST_JUDGED:
            raise RegistrationError(f"{where}: with so many parts the schema may only have keywords in plain form")
        _check_metaschema(schema, where)
    survey = _Survey(where, strange)
    survey.look(schema, "#", schema)
    survey.check_all()
    if len(_passed) >= _MOST_PASSED:
        _passed.clear()
    if fingerprint[0]:
        _passed.add(fingerprint)


# Fingerprints of schemas that passed: each is looked at several times on its way to a call.
_passed: set[tuple[bytes | None, bool]] = set()


def _fingerprint(schema: Any) -> bytes | None:
    """A digest of all that a schema says, types included; None for one that is not made of plain values."""
    try:
        return hashlib.blake2b(marshal.dumps(schema, 2), digest_size=20).digest()
    except ValueError:
        return None


def dialect(schema: Mapping[str, Any]) -> Any:
    """The jsonschema validator class of the schema's `$schema`, 2020-12 where it names none that is known."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    named = isinstance(schema.get("$schema"), str)
    return validator_for(schema if named else {}, default=Draft202012Validator)


@frozen(eq=False)
class _Part:
    """A subschema: where it is, and the resource that its references start from."""

    schema: Mapping[str, Any]
    path: str
    root: Mapping[str, Any]


@define
class _Survey:
    """All subschemas of one schema."""

    where: str
    strange: bool
    parts: list[_Part] = field(factory=list)
    anchors: dict[tuple[int, str], _Part] = field(factory=dict)
    known: dict[int, _Part] = field(factory=dict)

    def look(self, schema: Any, path: str, root: Mapping[str, Any]) -> None:
        if not isinstance(schema, Mapping) or id(schema) in self.known:
            return
        if isinstance(schema.get("$id"), str) and not schema["$id"].startswith("#"):
            root = schema
        part = _Part(schema, path, root)
        self.parts.append(part)
        self.known[id(schema)] = part
        for keyword in ("$anchor", "$dynamicAnchor"):
            if keyword in schema:
                self.anchors[id(root), schema[keyword]] = part
        for keyword, step, inner in subschemas(schema):
            self.look(inner, "/".join([path, keyword, *([] if step is None else [str(step)])]), root)

    def check_all(self) -> None:
        applied: dict[int, list[int]] = {}
        for part in self.parts:  # which grows when a reference points at a new place
            self.check(part)
            applied[id(part.schema)] = [id(inner) for inner in self.applied(part)]
        work: dict[int, int] = {}
        try:
            for each in TopologicalSorter(applied).static_order():  # from the inside out
                work[each] = 1 + sum(work[inner] for inner in applied.get(each, ()))
                if work[each] > _MOST_WORK:
                    self.refuse(self.known[each], "anyOf", f"applies more than {_MOST_WORK} subschemas to one value")
        except CycleError as error:
            self.refuse(self.known[error.args[1][0]], "$ref", "leads back to itself without end")

    def check(self, part: _Part) -> None:
        named, root = part.schema.get("$schema"), self.parts[0].schema
        if named not in (None, root.get("$schema")) and dialect(part.schema) is not dialect(root):
            self.refuse(part, "$schema", "has a dialect of its own; only the root may name one")
        if self.strange:
            if isinstance(part.schema.get("$id"), str) and part.path != "#":
                self.refuse(part, "$id", "changes what references mean; only the root may have one")
            return
        own = [("pattern", part.schema["pattern"])] if "pattern" in part.schema else []
        own += [("patternProperties", name) for name in part.schema.get("patternProperties", ())]
        for keyword, pattern in own:
            try:
                re.compile(pattern)
                # The standard library's own parser, which has no public name; a second one would not agree with it.
                parsed = importlib.import_module("re._parser").parse(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                self.refuse(part, keyword, f"has {spell(pattern)}, which Python cannot read ({error}); rewrite it")
            if _is_endless(parsed):
                why = "one of its repeats is repeated"
                self.refuse(part, keyword, f"has {spell(pattern)}, which may take forever: {why}; rewrite or remove it")

    def applied(self, part: _Part) -> Iterator[Any]:
        """The subschemas that apply to the same value as this one."""
        for keyword in part.schema:
            if KEYWORDS.get(keyword) == "reference":
                yield self.target(part, keyword)
        for keyword, _, inner in subschemas(part.schema):
            if keyword in _SAME_VALUE:
                yield inner

    def target(self, part: _Part, keyword: str) -> Any:
        reference = part.schema[keyword]
        if not reference.startswith("#") or (self.strange and reference[1:2] not in ("", "/")):
            self.refuse(part, keyword, f"refers to {spell(reference)}; only references within it (#/...) are followed")
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            named = self.anchors.get((id(part.root), pointer))
            target = named and named.schema
        else:
            target = _at(part.root, pointer)
        if target is None:
            self.refuse(part, keyword, f"refers to {spell(reference)}, which is not there")
        if isinstance(target, Mapping) and id(target) not in self.known:
            # A reference may point at any place, also at one that no keyword calls a schema.
            self.look(target, reference, part.root)
        return target

    def refuse(self, part: _Part, keyword: str, what: str) -> NoReturn:
        raise RegistrationError(f"{self.where}: {keyword} at {part.path} {what}")


def _is_endless(nodes: Iterable[Any], repeated: bool = False) -> bool:
    """Whether a pattern has `(a+)+`, or the like with something optional beside; others may be as slow."""
    parts = [(str(kind), argument) for kind, argument in nodes]
    needed = [part for part in parts if part[0] not in _REPEATS or part[1][0] > 0]
    for kind, argument in parts:
        alone = repeated and needed in ([], [(kind, argument)])
        match kind:
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, body = argument
                if (alone and least < most > 1) or _is_endless(body, most > _MANY):
                    return True
            case "BRANCH":
                if any(_is_endless(branch, alone) for branch in argument[1]):
                    return True
            case "SUBPATTERN" | "ASSERT" | "ASSERT_NOT":
                if _is_endless(argument[-1], alone and kind == "SUBPATTERN"):
                    return True
    return False


_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT")
_MANY: Final = 10


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


# What is done for a keyword, as jsonschema has it: `check(validator, limit, value, schema)` gives errors. It may have a
# `weight(limit, value, schema)` in steps.
Keywords: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class TooMuchWorkError(Exception):
    """A check that would not end in time, for whoever counts its steps."""


class UncheckedMismatch(Mismatch):
    """Nobody can tell whether a value fits: integers too large to divide, values too deep, too much work."""

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
    except Exception as error:
        raise UncheckedMismatch(describe_exception(error)) from error
    finally:
        _left.reset(token)


def spend(steps: int) -> None:
    """Count work: a step is a few microseconds. Raises `TooMuchWorkError` where the budget is gone."""
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise TooMuchWorkError("the value is too large for so much schema; send less, or simpler data")


@lru_cache(maxsize=32)
def bounded(cls: Any, keywords: Keywords | None) -> Any:
    """A validator class that counts its work; `keywords` may change what is done for each keyword."""
    from jsonschema.validators import create

    checks: Mapping[str, Any] = {**cls.VALIDATORS, "required": _required, "uniqueItems": _unique_items}
    if keywords is not None:
        checks = keywords(checks)
    weights: dict[str, Any] = {**_WEIGHTS, "format": partial(_format_weight, cls.FORMAT_CHECKER.checkers)}
    is_old = cls.VALIDATORS.keys().isdisjoint(("$dynamicRef", "$recursiveRef"))
    found: Any = create(
        meta_schema=cls.META_SCHEMA,
        validators={
            word: partial(_counted, check, getattr(check, "weight", None) or weights.get(word, _weight))
            for word, check in checks.items()
            if word in cls.VALIDATORS
        },
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


def _counted(check: Callable[..., Any], weight: Callable[..., int], validator: Any, *seen: Any) -> Iterator[Any]:
    spend(weight(*seen))
    for error in check(validator, *seen) or ():
        spend(1 + len(error.message) // _CHARACTERS)  # which has the value in it
        yield error


def _weight(limit: Any, value: Any, schema: Any) -> int:
    """What one keyword takes, beside what it hands on to others."""
    return 1 + (_length(limit) + _length(value)) // 8


def _length(value: Any) -> int:
    return len(value) if isinstance(value, (list, dict)) else 0


def parts(value: Any) -> int:
    """How many values a value is made of."""
    return measured(value, _MOST_PARTS, _MOST_PARTS)[0] if isinstance(value, (list, dict)) else 1


def _format_weight(known: Container[str], limit: Any, value: Any, schema: Any) -> int:
    """Some formats are patterns of their own, or compile one."""
    return 1 + len(value) // 2 if isinstance(value, str) and limit in known else 1


_WEIGHTS: Final[Mapping[str, Callable[[Any, Any, Any], int]]] = {
    "$ref": lambda limit, value, schema: 2 + limit.count("/"),
    "const": lambda limit, value, schema: 1 + parts(value),
    "enum": lambda limit, value, schema: 1 + len(limit) * parts(value) // 4,
    "uniqueItems": lambda limit, value, schema: 1 + parts(value),
}


def _required(validator: Any, names: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(value, dict) and any(name not in value for name in names):
        yield ValidationError("lacks members")  # one for all


def _unique_items(validator: Any, unique: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if unique and isinstance(value, list) and len(distinct(value)) < len(value):
        yield ValidationError("has non-unique elements")


# A step is as long as it takes to write so many characters.
_CHARACTERS: Final = 512
_MOST_PARTS: Final = 10**7
