"""Vetting JSON Schemas that the library did not make: what would fetch, hang, loop or blow up is refused.

Python's regular expressions backtrack: the engine tries every way in which a pattern can match. So a pattern is read as
an automaton whose states are its characters, and two questions are asked of it. Is there a loop that can be gone
through in two ways with the same text? Then the ways double with each round, and matching is exponential. How many
loops can be left without the text deciding where? Each multiplies the time by the length of the text.
"""

from __future__ import annotations

import hashlib
import importlib
import marshal
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, reduce
from typing import Any, Final, NoReturn, TypeAlias
from urllib.parse import unquote

from attrs import define, field, frozen

from pegboard._base.errors import RegistrationError
from pegboard._model.subschemas import KEYWORDS, TYPE_NAMES, measured, subschemas
from pegboard._schema.problems import spell

_MOST_NODES: Final = 50_000
_DEEPEST: Final = 100
_MOST_WORK: Final = 10_000
"""How many subschemas may apply to one and the same value: two references to two references to ... double each time."""

_MOST_PASSED: Final = 20_000
_SAME_VALUE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
_DIALECTS: Final = frozenset(
    f"{scheme}://json-schema.org/{draft}{end}"
    for scheme in ("http", "https")
    for draft in ("draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema")
    for end in ("", "#")
)
_TYPES: Final = frozenset(TYPE_NAMES.values())
_PLAIN_REFERENCE: Final = re.compile(r"#(/[\w$.-]*)*", re.ASCII)


def vet(schema: Mapping[str, Any], where: str) -> None:
    """Raises `RegistrationError` naming `where`, the keyword and its path."""
    if not isinstance(schema, Mapping):
        raise RegistrationError(f"{where}: a JSON Schema is an object, got {spell(schema)}")
    fingerprint = _fingerprint(schema)
    if fingerprint in _passed:
        return
    parts, depth = measured(schema, _MOST_NODES, _DEEPEST)
    if depth > _DEEPEST:
        raise RegistrationError(f"{where}: the schema is nested more than {_DEEPEST} levels deep; use $defs and $ref")
    if parts > _MOST_NODES:
        raise RegistrationError(f"{where}: the schema has more than {_MOST_NODES} parts")
    _check_metaschema(schema, where)
    survey = _Survey(where)
    survey.look(schema, "#", schema)
    for part in survey.parts:  # which grows when a reference points at a new place
        survey.check(part)
        survey.measure(part.schema, part.path, 0)
    if len(_passed) >= _MOST_PASSED:
        _passed.clear()
    if fingerprint:
        _passed.add(fingerprint)


_passed: set[bytes | None] = set()
"""Fingerprints of schemas that passed: each is looked at several times on its way to a call."""


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

    return validator_for(schema, default=Draft202012Validator)


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
    parts: list[_Part] = field(factory=list)
    anchors: dict[tuple[int, str], _Part] = field(factory=dict)
    known: dict[int, _Part] = field(factory=dict)
    work: dict[int, int | None] = field(factory=dict)

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
            self.look(inner, _below(path, keyword, step), root)

    def check(self, part: _Part) -> None:
        if "$schema" in part.schema and part.path != "#":
            self.refuse(part, "$schema", "has a dialect of its own; only the root may name one")
        if "pattern" in part.schema:
            self.check_pattern(part, "pattern", part.schema["pattern"])
        for pattern in part.schema.get("patternProperties", ()):
            if self.check_pattern(part, "patternProperties", pattern) < 10**8:
                self.refuse(
                    part, "patternProperties", f"has {spell(pattern)}, which is slow on long names; begin it with ^"
                )

    def check_pattern(self, part: _Part, keyword: str, pattern: str) -> int:
        try:
            found = read_pattern(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            self.refuse(
                part, keyword, f"has {spell(pattern)}, which Python cannot read ({error}); rewrite or remove it"
            )
        if found.exponential:
            why = "one of its repeats can match the same text in several ways"
            self.refuse(part, keyword, f"has {spell(pattern)}, which may take forever: {why}; rewrite or remove it")
        return found.longest

    def measure(self, schema: Any, path: str, hops: int) -> int:
        """How many subschemas apply to one value. Refuses references that lead back to themselves, or nowhere."""
        if not isinstance(schema, Mapping):
            return 1
        part = self.known.get(id(schema))
        if part is None:
            raise RegistrationError(f"{self.where}: {path} refers to something that is no schema")
        if id(schema) in self.work:
            known = self.work[id(schema)]
            return self.refuse(part, "$ref", "leads back to itself without end") if known is None else known
        if hops > _DEEPEST:
            self.refuse(part, "$ref", f"is reached over more than {_DEEPEST} references")
        self.work[id(schema)] = None
        total = 1 + sum(self.measure(inner, below, hops + 1) for inner, below in self.applied(part))
        if total > _MOST_WORK:
            self.refuse(part, "anyOf", f"applies more than {_MOST_WORK} subschemas to one value")
        self.work[id(schema)] = total
        return total

    def applied(self, part: _Part) -> Iterator[tuple[Any, str]]:
        """The subschemas that apply to the same value as this one."""
        for keyword in part.schema:
            if KEYWORDS.get(keyword) == "reference":
                yield self.target(part, keyword), f"{part.path}/{keyword}"
        for keyword, step, inner in subschemas(part.schema):
            if keyword in _SAME_VALUE:
                yield inner, _below(part.path, keyword, step)

    def target(self, part: _Part, keyword: str) -> Any:
        reference = part.schema[keyword]
        if not reference.startswith("#"):
            self.refuse(
                part, keyword, f"refers to {spell(reference)}; only references within the schema (#/...) are followed"
            )
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


def _below(path: str, keyword: str, step: str | int | None) -> str:
    return f"{path}/{keyword}" if step is None else f"{path}/{keyword}/{step}"


def _check_metaschema(schema: Mapping[str, Any], where: str) -> None:
    if is_surely_valid(schema):
        return
    from jsonschema.exceptions import SchemaError

    try:
        dialect(schema).check_schema(schema)
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
    if kind is None:
        # What no dialect knows may be anything; what begins with a dollar, some dialect may know.
        return type(keyword) is str and keyword[:1] != "$" and keyword != "id"
    check = _CHECKS.get(kind)
    if check is None or keyword in _OTHERWISE or not check(value):
        return False
    return keyword != "patternProperties" or all(map(_is_pattern, value))


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _are_names(value: Any) -> bool:
    return type(value) is list and all(type(each) is str for each in value) and len(set(value)) == len(value)


def _are_types(value: Any) -> bool:
    return value in _TYPES if type(value) is str else _are_names(value) and len(value) > 0 and _TYPES.issuperset(value)


def _is_pattern(value: Any) -> bool:
    try:
        return type(value) is str and re.compile(value) is not None
    except (re.error, OverflowError, RecursionError):
        return False


def _are_named(value: Any) -> bool:
    return type(value) is dict and _are_names([*value]) and all(map(is_surely_valid, value.values()))


_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "anything": lambda value: True,
    "array": lambda value: type(value) is list,
    "count": lambda value: type(value) is int and value >= 0,
    "dialect": lambda value: type(value) is str and value in _DIALECTS,
    "factor": lambda value: _is_number(value) and value > 0,
    "flag": lambda value: type(value) is bool,
    "named schemas": _are_named,
    "names": _are_names,
    "number": _is_number,
    "pattern": _is_pattern,
    "reference": lambda value: type(value) is str and _PLAIN_REFERENCE.fullmatch(value) is not None,
    "schema": is_surely_valid,
    "schemas": lambda value: type(value) is list and len(value) > 0 and all(map(is_surely_valid, value)),
    "text": lambda value: type(value) is str,
    "types": _are_types,
}
_OTHERWISE: Final = frozenset({"$dynamicRef", "$recursiveRef", "contentSchema", "dependencies"})
"""Seldom used, or of another form in each dialect."""

Chars: TypeAlias = frozenset[int]
Ends: TypeAlias = tuple[frozenset[int], frozenset[int], bool]
"""A part of a pattern: the states that it may begin with, those that it may end with, and whether it may be empty."""

_STEPS: Final = 10**8
"""About as many steps as the engine takes in a second."""
_ROUNDS: Final = 4
"""Of a counted repeat, so many rounds are told apart."""
_MOST_STATES: Final = 2_000
_MOST_PAIRS: Final = 200_000
_EMPTY: Final[Ends] = (frozenset(), frozenset(), True)
# Sets of characters are compared on Latin-1 and one each of what \w, \d and \s know beyond it.
_ALPHABET: Final[Chars] = frozenset([*range(256), 0x4E2D, 0x0663, 0x2003, 0x1F600])
_CATEGORIES: Final = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}
_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_GROUPS: Final = ("SUBPATTERN", "ATOMIC_GROUP")


@frozen
class Pattern:
    """What is known of a pattern: whether it is `exponential`, and the `longest` text that it may be matched with."""

    exponential: bool
    longest: int


@lru_cache(maxsize=1024)
def read_pattern(pattern: str) -> Pattern:
    """Raises `re.error` for a pattern that Python cannot read."""
    # The standard library's own parser, which has no public name; a second one would not agree with it.
    parsed = importlib.import_module("re._parser").parse(pattern)
    automaton = _Automaton()
    automaton.folding = "(?" in pattern and re.search(r"\(\?[a-zA-Z]*i", pattern) is not None
    nodes = list(parsed)
    _, _, empty = automaton.sequence(nodes)
    loops = sorted(automaton.loops, key=min)
    exponential = automaton.too_large or any(automaton.is_ambiguous(loop) for loop in loops)
    anchored = bool(nodes) and str(nodes[0][0]) == "AT"
    # Without anchors and assertions, a pattern that may be empty matches where the search begins.
    searching = bool(loops) and not anchored and not (empty and not automaton.conditions)
    degree = 1 + sum(automaton.is_open(loop) for loop in loops[:-1]) + searching
    return Pattern(exponential, int(_STEPS ** (1 / degree)))


@define
class _Automaton:
    """States are the pattern's characters; `edges[a][b]` counts the ways in which b may follow a."""

    chars: list[Chars] = field(factory=list)
    edges: list[dict[int, int]] = field(factory=list)
    loops: list[frozenset[int]] = field(factory=list)
    """The states of each outermost repeat: from every one of them all others are reached."""
    aside: set[int] = field(factory=set)
    """The states of assertions, to which nothing leads from outside."""
    conditions: bool = False
    folding: bool = False
    """Whether case is ignored."""

    @property
    def too_large(self) -> bool:
        return len(self.chars) > _MOST_STATES

    def state(self, chars: Chars) -> Ends:
        self.chars.append(chars)
        self.edges.append({})
        only = frozenset({len(self.chars) - 1})
        return only, only, False

    def connect(self, ends: frozenset[int], begins: frozenset[int]) -> None:
        for end in ends:
            for begin in begins:
                self.edges[end][begin] = self.edges[end].get(begin, 0) + 1

    def sequence(self, nodes: Iterable[Any]) -> Ends:
        return reduce(self.then, (self.part(str(kind), argument) for kind, argument in nodes), _EMPTY)

    def then(self, one: Ends, other: Ends) -> Ends:
        self.connect(one[1], other[0])
        begins = one[0] | other[0] if one[2] else one[0]
        ends = one[1] | other[1] if other[2] else other[1]
        return begins, ends, one[2] and other[2]

    def part(self, kind: str, argument: Any) -> Ends:
        if self.too_large:
            return _EMPTY
        chars = _chars(kind, argument)
        if chars is not None:
            return self.state(_both_cases(chars) if self.folding else chars)
        if kind in _REPEATS:
            return self.repeat(*argument)
        if kind in _GROUPS:
            return self.sequence(argument if kind == "ATOMIC_GROUP" else argument[-1])
        if kind == "BRANCH":
            return self.branch(argument[1])
        if kind == "GROUPREF_EXISTS":
            return self.branch([argument[1], argument[2] or []])
        if kind == "GROUPREF":
            return self.repeat(0, 1_000, [("ANY", None)])  # may be any text
        self.conditions = True
        if kind in ("ASSERT", "ASSERT_NOT"):
            first = len(self.chars)
            self.sequence(argument[1])  # its loops are walked too
            self.aside.update(range(first, len(self.chars)))
        return _EMPTY

    def repeat(self, least: int, most: int, body: Iterable[Any]) -> Ends:
        nodes = list(body)
        parts = [self.sequence(nodes) for _ in range(min(least, _ROUNDS))]
        one_character = len(nodes) == 1 and _chars(str(nodes[0][0]), nodes[0][1]) is not None
        counted = least > _ROUNDS and not one_character  # its rounds may differ: as good as a loop
        if most != least or counted:
            first = len(self.chars)
            begins, ends, empty = self.sequence(nodes)
            if most - least > 1 or counted:
                self.connect(ends, begins)
                self.close(first)
            if counted and empty:
                self.connect(ends, begins)  # a round that takes nothing counts too, so there are many ways to count
            parts.append((begins, ends, True))
        return reduce(self.then, parts, _EMPTY)

    def branch(self, branches: Iterable[Iterable[Any]]) -> Ends:
        parts = [self.sequence(branch) for branch in branches]
        begins = frozenset[int]().union(*(part[0] for part in parts))
        ends = frozenset[int]().union(*(part[1] for part in parts))
        return begins, ends, any(part[2] for part in parts)

    def close(self, first: int) -> None:
        """The states since `first` are a loop, which takes in the loops inside."""
        loop = frozenset(range(first, len(self.chars))) - self.aside
        self.loops = [each for each in self.loops if not each <= loop] + ([loop] if loop else [])

    def is_ambiguous(self, loop: frozenset[int]) -> bool:
        """Whether two different ways through the loop read the same text and meet again."""
        inner = {state: [after for after in self.edges[state] if after in loop] for state in loop}
        if any(self.edges[state][after] > 1 for state in loop for after in inner[state]):
            return True
        before = self.pairs(inner)
        if before is None:
            return True  # too large to tell
        # Backwards from where the walkers meet: whoever was apart there went two ways.
        waiting = [pair for pair in before if pair[0] == pair[1]]
        seen = set(waiting)
        for pair in waiting:  # which grows meanwhile
            fresh = before[pair] - seen
            if any(one != other for one, other in fresh):
                return True
            seen |= fresh
            waiting.extend(fresh)
        return False

    def pairs(self, inner: dict[int, list[int]]) -> dict[tuple[int, int], set[tuple[int, int]]] | None:
        """Where two walkers that read the same text can be, begun at the same state, and where they came from."""
        found: dict[tuple[int, int], set[tuple[int, int]]] = {(state, state): set() for state in inner}
        waiting = list(found)
        steps = 0
        for pair in waiting:  # which grows meanwhile
            for one in inner[pair[0]]:
                for other in inner[pair[1]]:
                    if self.chars[one] & self.chars[other]:
                        if (one, other) not in found:
                            found[one, other] = set()
                            waiting.append((one, other))
                        found[one, other].add(pair)
            steps += len(inner[pair[0]]) * len(inner[pair[1]])
            if steps > _MOST_PAIRS:
                return None
        return found

    def is_open(self, loop: frozenset[int]) -> bool:
        """Whether the next character does not tell if the loop goes on or has ended."""
        for state in loop:
            going_on = frozenset[int]().union(*(self.chars[after] for after in self.edges[state] if after in loop))
            if any(self.chars[after] & going_on for after in self.edges[state] if after not in loop):
                return True
        return False


def _chars(kind: str, argument: Any) -> Chars | None:
    """The characters that a single-character node matches, or a part of such a node; None for any other node."""
    match kind:
        case "LITERAL":
            return frozenset({argument})
        case "NOT_LITERAL":
            return _ALPHABET - {argument}
        case "ANY":
            return _ALPHABET - {10}
        case "RANGE":
            return frozenset(char for char in _ALPHABET if argument[0] <= char <= argument[1]) | {*argument}
        case "CATEGORY":
            name = str(argument).removeprefix("CATEGORY_")
            matches = re.compile(_CATEGORIES[name.removeprefix("NOT_")]).fullmatch
            found = frozenset(char for char in _ALPHABET if matches(chr(char)))
            return _ALPHABET - found if name.startswith("NOT_") else found
        case "IN":
            found = frozenset[int]().union(*(_chars(str(item), value) or () for item, value in argument))
            return _ALPHABET - found if str(argument[0][0]) == "NEGATE" else found
    return None


def _both_cases(chars: Chars) -> Chars:
    spelled = [chr(char).swapcase() for char in chars]
    return chars | {ord(char) for char in spelled if len(char) == 1}
