"""Regular expressions from a model: matched in time that grows with the text alone, whatever the pattern.

Python's own engine tries every way in which a pattern can match, and some patterns have more ways than the universe
has atoms. Here all ways are followed at once: the pattern becomes an automaton, and what is known after a character is
the set of its states. Each set is worked out once and remembered. Back references and lookaround cannot be matched
like that, and are refused.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from pegboard_files._errors import UnsuitableError, shown

__all__ = ["Pattern"]

State: TypeAlias = tuple[str, Any, Sequence[int]]
"""What it is (`char`, `at`, `split`, `end`), its test, and the states that follow."""
Test: TypeAlias = Callable[[str], bool]

_MAX_PATTERN: Final = 500  # characters
_MAX_STATES: Final = 400
_MAX_REMEMBERED: Final = 20_000
_START, _OTHER, _WORD, _END = range(4)  # what stands before or behind a position
_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT")
_CLASSES: Final = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


class Pattern:
    """A regular expression in Python's syntax. Raises UnsuitableError for one that cannot be read or matched."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        if len(pattern) > _MAX_PATTERN:
            raise UnsuitableError(f"The pattern is too long: it may have {_MAX_PATTERN} characters.")
        parser = importlib.import_module("re._parser")  # the standard library's own, which has no public name
        self._states: list[State] = [("end", None, ())]
        try:
            parsed = parser.parse(pattern, re.IGNORECASE if ignore_case else 0)
            self._ignore_case = bool(parsed.state.flags & re.IGNORECASE)
            self._first = self._sequence(parsed, 0)
        except (re.error, RecursionError, OverflowError, Warning) as error:
            raise UnsuitableError(f"The pattern {shown(pattern)} cannot be read: {error}.") from None
        self.literal = "" if self._ignore_case else _literal(parsed)
        self._sets: dict[tuple[frozenset[int], int], dict[str, Any]] = {}
        self._remembered = 0

    def found_in(self, line: str) -> bool:
        """Whether the pattern is found anywhere in a line."""
        table = self._table(frozenset(), _START)
        for character in line:
            after = table.get(character)
            if after is None:
                after = self._step(table, character)
            if after is True:
                return True
            table = after
        states, before = table[""]
        return self._closure(states, before, _END) is None

    def _table(self, states: frozenset[int], before: int) -> dict[str, Any]:
        """What is known at one place: what follows each character so far met, and under "" the place itself."""
        return self._sets.setdefault((states, before), {"": (states, before)})

    def _step(self, table: dict[str, Any], character: str) -> Any:
        if self._remembered > _MAX_REMEMBERED:
            self._sets, self._remembered = {}, 0
        kind = _WORD if character.isalnum() or character == "_" else _OTHER
        states, before = table[""]
        reached = self._closure(states, before, kind)
        after: Any = True
        if reached is not None:
            steps = (self._states[at] for at in reached)
            following = frozenset(then[0] for what, test, then in steps if what == "char" and test(character))
            after = self._table(following, kind)
        table[character] = after
        self._remembered += 1
        return after

    def _closure(self, states: frozenset[int], before: int, behind: int) -> set[int] | None:
        """All states that are reached without a character; None if one of them is the end."""
        reached: set[int] = set()
        waiting = [self._first, *states]
        while waiting:
            at = waiting.pop()
            if at in reached:
                continue
            reached.add(at)
            what, test, then = self._states[at]
            if what == "end":
                return None
            if what == "split" or (what == "at" and test(before, behind)):
                waiting.extend(then)
        return reached

    def _state(self, what: str, test: Any, *then: int) -> int:
        if len(self._states) >= _MAX_STATES:
            raise UnsuitableError("The pattern is too large. Use smaller counts, or search for a literal text.")
        self._states.append((what, test, then))
        return len(self._states) - 1

    def _sequence(self, nodes: Any, then: int) -> int:
        for kind, argument in reversed(list(nodes)):
            then = self._part(str(kind), argument, then)
        return then

    def _part(self, kind: str, argument: Any, then: int) -> int:
        test = _test(kind, argument, _any_case if self._ignore_case else lambda test: test)
        if test is not None:
            return self._state("char", test, then)
        if kind in _REPEATS:
            least, most, body = argument
            return self._repeat(least, most, body, then)
        if kind == "SUBPATTERN" and not argument[1] and not argument[2]:
            return self._sequence(argument[-1], then)
        if kind == "BRANCH":
            return self._state("split", None, *(self._sequence(branch, then) for branch in argument[1]))
        if kind == "AT" and str(argument) in _PLACES:
            return self._state("at", _PLACES[str(argument)], then)
        raise UnsuitableError(
            "The pattern uses what is not supported: look-ahead, look-behind, back references, atomic groups or flags "
            "for a part. Use a simpler pattern."
        )

    def _repeat(self, least: int, most: Any, body: Any, then: int) -> int:
        if str(most) == "MAXREPEAT":
            loop = self._state("split", None, then)
            self._states[loop] = ("split", None, (self._sequence(body, loop), then))
            then = loop
        else:
            end = then
            for _ in range(most - least):
                then = self._state("split", None, self._sequence(body, then), end)
        for _ in range(least):
            before, then = then, self._sequence(body, then)
            if then == before:
                break  # nothing, any number of times
        return then


_PLACES: Final[dict[str, Callable[[int, int], bool]]] = {
    "AT_BEGINNING": lambda before, _: before == _START,
    "AT_BEGINNING_STRING": lambda before, _: before == _START,
    "AT_END": lambda _, behind: behind == _END,
    "AT_END_STRING": lambda _, behind: behind == _END,
    "AT_BOUNDARY": lambda before, behind: (before == _WORD) != (behind == _WORD),
    "AT_NON_BOUNDARY": lambda before, behind: (before == _WORD) == (behind == _WORD),
}


def _literal(nodes: Any) -> str:
    """The longest text that is in every line that matches."""
    runs = [""]
    for kind, argument in nodes:
        if str(kind) == "LITERAL":
            runs[-1] += chr(argument)
        else:
            runs.append("")
    return max(runs, key=len)


def _test(kind: str, argument: Any, cases: Callable[[Test], Test]) -> Test | None:
    """Which characters a node of one character takes, in these cases; None for any other node."""
    if kind == "LITERAL":
        return cases(chr(argument).__eq__)
    if kind == "NOT_LITERAL":
        other = cases(chr(argument).__eq__)
        return lambda character: not other(character)
    if kind == "ANY":
        return lambda _: True
    if kind != "IN":
        return None
    members = [cases(_member(str(item), value)) for item, value in argument if str(item) != "NEGATE"]
    negated = str(argument[0][0]) == "NEGATE"
    return lambda character: any(member(character) for member in members) != negated


def _member(kind: str, value: Any) -> Test:
    if kind == "LITERAL":
        return chr(value).__eq__
    if kind == "RANGE":
        return lambda character: bool(value[0] <= ord(character) <= value[1])
    name = str(value).removeprefix("CATEGORY_")
    matches = re.compile(_CLASSES[name.removeprefix("NOT_")]).match
    negated = name.startswith("NOT_")
    return lambda character: (matches(character) is None) == negated


def _any_case(test: Test) -> Test:
    return lambda character: any(map(test, _cases(character)))


def _cases(character: str) -> list[str]:
    """A character in upper and lower case; what becomes two characters (ß) has no other case here, nor in Python."""
    lower, upper = character.lower(), character.upper()
    return [case for case in (character, lower, upper, lower.upper(), upper.lower()) if len(case) == 1]
