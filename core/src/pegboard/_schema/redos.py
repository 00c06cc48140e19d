"""Regular expressions from strangers, and how long matching one of them may take.

Python's engine backtracks: it tries every way in which a pattern can match. So a pattern is read as an automaton
whose states are its characters, and two questions are asked of it. Is there a loop that can be gone through in two
ways with the same text? Then the ways double with each round, and matching is exponential. How many loops can be left
without the text deciding where? Each multiplies the time by the length of the text.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from functools import lru_cache, reduce
from typing import Any, Final, TypeAlias

from attrs import define, field, frozen

__all__ = ["Pattern", "read_pattern"]

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
    """The characters that a single-character node matches; None for any other node."""
    match kind:
        case "LITERAL":
            return frozenset({argument})
        case "NOT_LITERAL":
            return _ALPHABET - {argument}
        case "ANY":
            return _ALPHABET - {10}
        case "IN":
            found = frozenset[int]().union(*(_members(str(item), value) for item, value in argument))
            return _ALPHABET - found if str(argument[0][0]) == "NEGATE" else found
        case _:
            return None


def _both_cases(chars: Chars) -> Chars:
    spelled = [chr(char).swapcase() for char in chars]
    return chars | {ord(char) for char in spelled if len(char) == 1}


def _members(kind: str, value: Any) -> Chars:
    match kind:
        case "NEGATE":
            return frozenset()
        case "LITERAL":
            return frozenset({value})
        case "RANGE":
            return frozenset(char for char in _ALPHABET if value[0] <= char <= value[1]) | {value[0], value[1]}
        case _:
            name = str(value).removeprefix("CATEGORY_")
            matches = re.compile(_CATEGORIES[name.removeprefix("NOT_")]).fullmatch
            found = frozenset(char for char in _ALPHABET if matches(chr(char)))
            return _ALPHABET - found if name.startswith("NOT_") else found
