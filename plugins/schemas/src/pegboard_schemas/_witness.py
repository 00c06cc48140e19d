"""Values that one schema accepts and another refuses, made from what the two say: bounds, choices, members."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any, Final, TypeAlias

from attrs import define, frozen

from pegboard_schemas._containment import member_of
from pegboard_schemas._side import SAMPLES, Side, asserted

__all__ = ["Pool", "Search"]

Part: TypeAlias = Mapping[str, Any]

_TYPES: Final = ("string", "integer", "number", "boolean", "null", "array", "object")
_TEXTS: Final = ("a", "", "1", "-1", "1.5", "A", "ab", "a b", "true", "null", "YQ==", "!")
_NUMBERS: Final = (1, 0, -1, 2, 3, 10, 100, 2**31, -(2**31), 2**53 + 1)
_FRACTIONS: Final = (1.5, -0.5, 0.1)
_DEEPEST: Final = 5
_MOST_TRIED: Final = 150
_ENOUGH: Final = 3
_KEPT: Final = 12
_MOST_MEMBERS: Final = 60
_LONGEST: Final = 5_000
_MOST_BRANCHES: Final = 6
_SURPLUS: Final = ("other", "x", "a", "A", "1", "_", "other_2", "other_3", "other_4")


@frozen
class Pool:
    """Values that a part accepts: those that its counterpart surely refuses, and others."""

    refused: Sequence[Any]
    others: Sequence[Any]

    @property
    def every(self) -> list[Any]:
        """All of them, the refused ones first."""
        return [*self.refused, *self.others]

    @property
    def usual(self) -> list[Any]:
        """All of them, the refused ones last."""
        return [*self.others, *self.refused]


@define
class Search:
    """Looks for values that `good` accepts and `bad` refuses, at any depth. `focus` is the one member to vary."""

    good: Side
    bad: Side
    focus: str | None = None

    def values(self, good: Any, bad: Any, depth: int = 0) -> Pool:
        """Values that a part accepts, sorted by whether its counterpart refuses them."""
        refused: list[Any] = []
        others: list[Any] = []
        for value in islice(_distinct(self._tried(good, bad, depth)), _MOST_TRIED):
            if self.good.accepts(value, good):
                (refused if self.bad.refuses(value, bad) else others).append(value)
            if len(refused) >= _ENOUGH or self.good.left < 0:
                break
        return Pool(sorted(refused, key=_size), others[:_KEPT])

    def _tried(self, good: Any, bad: Any, depth: int) -> Iterator[Any]:
        """Values about as a part describes them; not all fit."""
        good, bad = self.good.resolved(good), self.bad.resolved(bad)
        if good is False or depth > _DEEPEST:
            return
        g, b = asserted(good), asserted(bad)
        for each in (good, bad):
            yield from _given(each)
        branches = [{**_plain(g), **asserted(self.good.resolved(each))} for each in _branches(self.good, g)]
        others = [{**_plain(b), **asserted(self.bad.resolved(each))} for each in _branches(self.bad, b)]
        if branches:
            for branch in branches[:_MOST_BRANCHES]:
                for other in others[:_MOST_BRANCHES] or [b]:
                    yield from islice(self._tried(branch, other, depth), _MOST_TRIED // 3)
            return
        for other in others[:_MOST_BRANCHES]:
            yield from islice(self._typed(g, other, depth), _MOST_TRIED // 3)
        yield from self._typed(g, b, depth)

    def _typed(self, g: Part, b: Part, depth: int) -> Iterator[Any]:
        kinds = g.get("type", _TYPES)
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            if kind in ("integer", "number"):
                yield from _numbers(kind, g, b)
            elif kind == "string":
                yield from _texts(g, b)
            elif kind == "array":
                yield from self._arrays(g, b, depth)
            elif kind == "object":
                yield from self._objects(g, b, depth)
            else:
                yield from (True, False) if kind == "boolean" else (None,)

    def _arrays(self, g: Part, b: Part, depth: int) -> Iterator[Any]:
        firsts, wanted = g.get("prefixItems", []), b.get("prefixItems", [])
        lengths = sorted({*_sizes("Items", g, b), len(firsts), len(wanted)})
        pools = [
            self.values(_item(g, number), _item(b, number), depth + 1)
            for number in range(max(len(firsts), len(wanted)) + 1)
        ]
        base, own = [pool.usual[0] for pool in pools[:-1] if pool.every], pools[-1].usual
        for length in lengths:
            made = base[:length]
            # Each of its own where there are several, for arrays that take no value twice; else the first again.
            rest = [own[number % len(own)] for number in range(length - len(made))] if own else []
            if len(made) + len(rest) == length:
                yield [*made, *rest]
                yield [*made, *own[:1] * len(rest)]
        long = [*base, *own[: max(1, lengths[0] - len(base))]]
        for number, pool in enumerate(pools):
            yield from ([*long[:number], value, *long[number + 1 :]] for value in pool.every)

    def _objects(self, g: Part, b: Part, depth: int) -> Iterator[Any]:
        required = g.get("required", [])
        names = [*islice(dict.fromkeys([*required, *g.get("properties", ()), *b.get("properties", ())]), _MOST_MEMBERS)]
        focus = self.focus if depth == 0 else None
        if focus is not None:
            names = [*dict.fromkeys([*required, focus])]
        pools = {name: self.values(member_of(g, name), member_of(b, name), depth + 1) for name in names}
        if not all(name in pools and pools[name].every for name in required):
            return
        base = {name: pools[name].usual[0] for name in required}
        yield base
        varied = {name: pool.every for name, pool in pools.items() if focus in (None, name)}
        for number in range(_KEPT + _ENOUGH):
            yield from ({**base, name: pool[number]} for name, pool in varied.items() if number < len(pool))
        if focus is None:
            yield {name: pool.usual[0] for name, pool in pools.items() if pool.every}
            yield from self._surplus(base, g, b, depth)

    def _surplus(self, base: Mapping[str, Any], g: Part, b: Part, depth: int) -> Iterator[Any]:
        """With members that no schema names."""
        others = [each.get("additionalProperties", True) for each in (g, b)]
        pool = self.values(others[0], others[1], depth + 1).every
        patterns = [*g.get("patternProperties", {}), *b.get("patternProperties", {})]
        limits = [{"type": "string", **asserted(each.get("propertyNames", True))} for each in (g, b)]
        names = [text for pattern in patterns for text in islice(_matching(pattern), 3)]
        names += self.values(limits[0], limits[1], depth + 1).every
        for name in [*names, *_SURPLUS[:2]]:
            yield from ({**base, name: value} for value in pool[:_ENOUGH])
            for pattern in patterns:
                inner = [each.get("patternProperties", {}).get(pattern, True) for each in (g, b)]
                found = self.values(inner[0], inner[1], depth + 1).every
                yield from ({**base, name: value} for value in found[:_ENOUGH])
        for size in _sizes("Properties", g, b):
            more = islice((name for name in (*names, *_SURPLUS) if name not in base), max(0, size - len(base)))
            yield {**base, **dict(zip(more, pool[:1] * size, strict=False))}


def _plain(part: Mapping[str, Any]) -> dict[str, Any]:
    return {word: value for word, value in part.items() if word not in ("anyOf", "oneOf", "allOf", "$ref")}


def _branches(side: Side, part: Mapping[str, Any]) -> list[Any]:
    several = [*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())]
    return [*several, *([side.target(part["$ref"])] if "$ref" in part else [])]


def _given(part: Any) -> Iterator[Any]:
    """Values that a part names."""
    if isinstance(part, Mapping):
        yield from (part[word] for word in ("const", "default") if word in part)
        for word in ("enum", "examples"):
            yield from islice(part[word], _MOST_TRIED // 3) if isinstance(part.get(word), list) else ()


def _item(part: Mapping[str, Any], number: int) -> Any:
    firsts = part.get("prefixItems", [])
    return firsts[number] if number < len(firsts) else part.get("items", True)


def _sizes(what: str, *parts: Mapping[str, Any]) -> list[int]:
    """Sizes near the limits, those within reason."""
    limits = {int(part[word]) for part in parts for word in (f"min{what}", f"max{what}") if word in part}
    near = {limit + step for limit in limits for step in (-1, 0, 1)} | {0, 1, 2}
    return sorted(size for size in near if 0 <= size <= _LONGEST)


def _numbers(kind: str, *parts: Mapping[str, Any]) -> Iterator[Any]:
    words = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    limits = [part[word] for part in parts for word in words if word in part]
    steps = [part["multipleOf"] for part in parts if "multipleOf" in part]
    for limit in limits:
        yield from (limit, limit + 1, limit - 1)
        yield from (limit + 0.5, limit - 0.5) if kind == "number" else ()
        yield from (limit // step * step + more for step in steps for more in (0, step, -step))
    yield from (step * times for step in steps for times in (1, 0, -1, 2, 3))
    yield from _NUMBERS
    yield from _FRACTIONS if kind == "number" else ()


def _texts(*parts: Mapping[str, Any]) -> Iterator[str]:
    for part in parts:
        yield from SAMPLES.get(str(part.get("format")), ())
        if "pattern" in part:
            yield from islice(_matching(part["pattern"]), 12)
    yield from _TEXTS
    for size in _sizes("Length", *parts):
        yield "x" * size
        yield "1" * size
    for samples in SAMPLES.values():
        yield from samples


def _size(value: Any) -> int:
    return len(repr(value))


def _distinct(values: Iterator[Any]) -> Iterator[Any]:
    known = set()
    for value in values:
        key = repr(value)
        if key not in known:
            known.add(key)
            yield value


# Texts that match a pattern -----------------------------------------------------------------------------------------


def _matching(pattern: str) -> Iterator[str]:
    """Texts that a simple pattern finds something in: its shortest form, with each choice and repeat varied."""
    try:
        parsed = import_module("re._parser").parse(pattern)  # that which `re` itself compiles from
    except (re.error, OverflowError, RecursionError):
        return
    for variant in range(12):
        try:
            yield "".join(_spelled(parsed, variant))
        except (LookupError, TypeError, ValueError, RecursionError):
            return


def _spelled(parsed: Any, variant: int) -> Iterator[str]:
    """The text of a parsed pattern; `variant` picks alternatives, characters and how often something is repeated."""
    for operation, argument in parsed:
        name = str(operation)
        if name == "BRANCH":
            yield from _spelled(argument[1][variant % len(argument[1])], variant // 2)
        elif name == "SUBPATTERN":
            yield from _spelled(argument[-1], variant)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = argument
            for _ in range(min(least + variant % 3, most, _LONGEST)):
                yield from _spelled(inner, variant)
        elif name != "AT":
            yield _character(name, argument, variant)


def _character(name: str, argument: Any, variant: int) -> str:
    if name == "NOT_LITERAL":
        return "a" if argument != ord("a") else "b"
    return _one_of(argument, variant) if name == "IN" else "a" if name == "ANY" else chr(argument)


_CATEGORIES: Final = {"DIGIT": "0", "SPACE": " ", "WORD": "a", "NOT_DIGIT": "a", "NOT_SPACE": "a", "NOT_WORD": "-"}


def _one_of(items: Sequence[Any], variant: int) -> str:
    name, argument = items[variant % len(items)]
    if str(name) == "NEGATE":
        refused = {chr(one) for kind, one in items if str(kind) == "LITERAL"}
        return next(each for each in "a0-_ ." if each not in refused)
    if str(name) == "LITERAL":
        return chr(argument)
    if str(name) == "RANGE":
        return chr(min(argument[0] + variant // 2, argument[1]))
    return _CATEGORIES[str(argument).removeprefix("CATEGORY_")]
