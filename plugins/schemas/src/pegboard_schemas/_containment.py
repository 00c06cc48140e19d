"""Whether one schema accepts everything that another accepts: proven keyword by keyword, or not known."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, TypeAlias

from attrs import define, field

from pegboard_schemas._side import Side, asserted

__all__ = ["Proof", "is_closed", "member_of"]

Part: TypeAlias = Mapping[str, Any]

_STEPS: Final = 20_000
_DEEPEST: Final = 40
_MOST_VALUES: Final = 200
"""Of a finite set, so many values are tried one by one."""
# Keywords whose meaning depends on their neighbours: they are compared together, and are the same or are not proven.
_OPAQUE: Final = (
    *(("not",), ("if", "then", "else"), ("contains", "minContains", "maxContains")),
    *(("dependentRequired",), ("dependentSchemas",), ("patternProperties",)),
)
_NEVER: Final = ("$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties")
"""What is never proven: it depends on what other keywords have looked at."""
_APPLIED: Final = ("$ref", "allOf", "anyOf", "oneOf")
# Keywords that may not be taken out of their schema, for they say what their neighbours leave over.
_TOGETHER: Final = frozenset(
    (
        *("properties", "patternProperties", "additionalProperties"),
        *("prefixItems", "items", "unevaluatedItems", "unevaluatedProperties"),
    )
) | {word for group in _OPAQUE[1:3] for word in group}


@define
class Proof:
    """Proves that `big` accepts whatever `small` accepts. What is not proven may be so all the same."""

    small: Side
    big: Side
    _left: int = _STEPS
    _assumed: dict[tuple[int, int], int] = field(factory=dict)

    def holds(self, small: Any, big: Any, depth: int = 0) -> bool:
        """Whether the one part surely contains the other."""
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST or not (self.small.is_known and self.big.is_known):
            return False
        if small is False or not asserted(big):
            return True
        followed = (self.small.resolved(small), self.big.resolved(big))
        if followed[0] is not small or followed[1] is not big or "$ref" in asserted(small):
            # A recursive schema is proven by induction on the value: its parts are smaller.
            key = (id(followed[0]), id(followed[1]))
            if key in self._assumed:
                return depth > self._assumed[key]
            self._assumed[key] = depth
            found = self._holds(*followed, depth)
            del self._assumed[key]
            return found
        return self._holds(small, big, depth)

    def _holds(self, small: Any, big: Any, depth: int) -> bool:
        s, b = asserted(small), asserted(big)
        if small is False or not b:
            return True
        if big is False or (values := self._finite(s)) is not None:
            return big is not False and all(self.big.accepts(value, big) for value in values or ())
        for several in ("anyOf", "oneOf"):
            if several in s:
                rest = _without(s, several)
                return all(self._both(rest, each, big, depth) for each in s[several])
        for single in ("allOf", "$ref"):
            if single in s:
                parts = s[single] if single == "allOf" else [self.small.target(s[single])]
                rest = _without(s, single)
                return any(self.holds(each, big, depth) for each in (rest, *parts)) or (
                    len(parts) == 1 and self._both(rest, parts[0], big, depth, alone=False)
                )
        if isinstance(s.get("type"), list):
            return all(self._holds({**s, "type": each}, big, depth) for each in s["type"])
        return self._keywords(s, b, depth)

    def _both(self, rest: Part, member: Any, big: Any, depth: int, *, alone: bool = True) -> bool:
        """Whether `big` contains what two parts accept together."""
        if not rest:
            return self.holds(member, big, depth)
        inner = asserted(self.small.resolved(member))
        if not (rest.keys() & inner.keys()) and not (_TOGETHER & rest.keys() and _TOGETHER & inner.keys()):
            return self._holds({**rest, **inner}, big, depth)
        return alone and (self.holds(member, big, depth) or self.holds(rest, big, depth))

    def _finite(self, s: Part) -> list[Any] | None:
        """All values of a part, where they are few; those that it refuses are left out."""
        if "const" in s:
            found = [s["const"]]
        elif "enum" in s:
            found = s["enum"]
        elif s.get("type") in ("null", "boolean"):
            found = [None] if s["type"] == "null" else [True, False]
        elif s.get("type") == "integer":
            low, high = _bounds(s)
            if low is None or high is None:
                return None
            found = list(range(low[0], high[0] + 1)[: _MOST_VALUES + 1])
        else:
            return None
        return None if len(found) > _MOST_VALUES else [each for each in found if not self.small.refuses(each, dict(s))]

    def _keywords(self, s: Part, b: Part, depth: int) -> bool:
        """Whether each keyword of `b` follows from those of `s`."""
        if any(word in b for word in _NEVER) or "enum" in b or "const" in b:
            return False
        for group in _OPAQUE:
            if any(word in b for word in group) and not self._same(group, s, b):
                return False
        return self._applied(s, b, depth) and all(check(self, s, b, depth) for check in _CHECKS)

    def _same(self, words: tuple[str, ...], s: Part, b: Part) -> bool:
        texts = [json.dumps({word: each.get(word) for word in words}, sort_keys=True) for each in (s, b)]
        return texts[0] == texts[1] and ('"$ref"' not in texts[0] or self.small.root == self.big.root)

    def _applied(self, s: Part, b: Part, depth: int) -> bool:
        if "$ref" in b and not self.holds(s, {"$ref": b["$ref"]}, depth):
            return False
        if not all(self.holds(s, each, depth) for each in b.get("allOf", ())):
            return False
        if "anyOf" in b and not any(self.holds(s, each, depth) for each in b["anyOf"]):
            return False
        if "oneOf" in b:
            inside = [number for number, each in enumerate(b["oneOf"]) if self.holds(s, each, depth)]
            others = [each for number, each in enumerate(b["oneOf"]) if number not in inside]
            return len(inside) == 1 and all(self._is_apart(s, each) for each in others)
        return True

    def _is_apart(self, s: Part, other: Any) -> bool:
        """Whether no value fits both: by their types, or by a required member with different constants."""
        other = asserted(self.big.resolved(other))
        types = [_types(s), _types(other)]
        if None not in types and not (types[0] & types[1]):  # type: ignore[operator]
            return True
        shared = {*s.get("required", ())} & {*other.get("required", ())}
        if s.get("type") != "object":
            return False
        parts = [
            (self.small.resolved(member_of(s, name)), self.big.resolved(member_of(other, name))) for name in shared
        ]
        return any(_is_apart(*map(asserted, pair)) for pair in parts)


def _without(s: Part, word: str) -> dict[str, Any]:
    return {keyword: value for keyword, value in s.items() if keyword != word}


def _is_apart(one: Part, other: Part) -> bool:
    choices = [*_choices(one), *_choices(other)]
    return bool(_choices(one) and _choices(other)) and len(set(choices)) == len(choices)


def _choices(part: Part) -> list[str]:
    """The texts that a part can be; empty if it may be anything else."""
    found = [part["const"]] if "const" in part else part.get("enum", [])
    return [*dict.fromkeys(found)] if all(isinstance(each, str) for each in found) else []


def _types(s: Part) -> frozenset[str] | None:
    kind = s.get("type")
    if kind is None:
        return None
    found = frozenset([kind] if isinstance(kind, str) else kind)
    return found | {"integer"} if "number" in found else found


def _may_be(s: Part, *types: str) -> bool:
    found = _types(s)
    return found is None or bool(found & {*types})


# One keyword at a time. Each says whether what `b` asks for follows from `s` -----------------------------------------


def _type(proof: Proof, s: Part, b: Part, depth: int) -> bool:
    wanted, found = _types(b), _types(s)
    return wanted is None or (found is not None and found <= wanted)


def _number(proof: Proof, s: Part, b: Part, depth: int) -> bool:
    if not _may_be(s, "integer", "number"):
        return True
    (low, high), (least, most) = _bounds(s), _bounds(b)
    is_integer = s.get("type") == "integer"
    if "multipleOf" in b and not _is_multiple(s.get("multipleOf", 1 if is_integer else None), b["multipleOf"]):
        return False
    return (least is None or (low is not None and low >= least)) and (
        most is None or (high is not None and high <= most)
    )


def _is_multiple(of: Any, wanted: Any) -> bool:
    # With fractions, jsonschema and arithmetic may disagree.
    is_plain = all(isinstance(each, int) and not isinstance(each, bool) for each in (of, wanted))
    return of == wanted or (is_plain and of % wanted == 0)


_Bound: TypeAlias = tuple[Any, int] | None


def _bounds(s: Part) -> tuple[_Bound, _Bound]:
    """The lowest and the highest number; the second item is 1 or -1 where the bound itself is outside."""
    lows = [(s[word], shift) for word, shift in (("minimum", 0), ("exclusiveMinimum", 1)) if word in s]
    highs = [(s[word], shift) for word, shift in (("maximum", 0), ("exclusiveMaximum", -1)) if word in s]
    low, high = max(lows, default=None), min(highs, default=None)
    if s.get("type") == "integer":
        low = None if low is None else (_ceiling(low), 0)
        high = None if high is None else (-_ceiling((-high[0], -high[1])), 0)
    return low, high


def _ceiling(bound: tuple[Any, int]) -> int:
    value = Fraction(bound[0])
    whole = -(-value.numerator // value.denominator)
    return whole + 1 if bound[1] == 1 and whole == value else whole


def _counts(kind: str, least: str, most: str, floor: Callable[[Part], int], roof: Callable[[Part], Any]) -> Any:
    def check(proof: Proof, s: Part, b: Part, depth: int) -> bool:
        if not _may_be(s, kind):
            return True
        high = min((each for each in (s.get(most), roof(s)) if each is not None), default=None)
        return max(s.get(least, 0), floor(s)) >= b.get(least, 0) and (
            most not in b or (high is not None and high <= b[most])
        )

    return check


def _fewest(s: Part) -> int:
    return len({*s.get("required", ())})


def _most(s: Part) -> int | None:
    return len(s.get("properties", {})) if is_closed(s) else None


def _longest(s: Part) -> int | None:
    return len(s.get("prefixItems", [])) if s.get("items") is False else None


def _text(proof: Proof, s: Part, b: Part, depth: int) -> bool:
    return not _may_be(s, "string") or all(s.get(word) == b[word] for word in ("pattern", "format") if word in b)


def _items(proof: Proof, s: Part, b: Part, depth: int) -> bool:
    if not _may_be(s, "array"):
        return True
    if b.get("uniqueItems") is True and not (s.get("uniqueItems") is True or s.get("maxItems", 2) < 2):
        return False
    firsts, wanted = s.get("prefixItems", []), b.get("prefixItems", [])
    count = max(len(firsts), len(wanted))
    most = s.get("maxItems", count + 1)
    for number in range(min(count, int(most))):
        own = firsts[number] if number < len(firsts) else s.get("items", True)
        its = wanted[number] if number < len(wanted) else b.get("items", True)
        if not proof.holds(own, its, depth + 1):
            return False
    return most <= count or proof.holds(s.get("items", True), b.get("items", True), depth + 1)


def is_closed(s: Part) -> bool:
    """Whether an object can have no members but those that the schema names."""
    return s.get("additionalProperties") is False and not s.get("patternProperties")


def member_of(s: Part, name: str) -> Any:
    """What a schema asks of a member, as far as that is surely asked for."""
    properties = s.get("properties", {})
    if name in properties:
        return properties[name]
    return True if s.get("patternProperties") else s.get("additionalProperties", True)


def _members(proof: Proof, s: Part, b: Part, depth: int) -> bool:
    if not _may_be(s, "object"):
        return True
    if not {*b.get("required", ())} <= {*s.get("required", ())}:
        return False
    # What the big one asks of a member that only its patterns name is the same in both, or nothing was proven.
    names = [*dict.fromkeys([*s.get("properties", ()), *b.get("properties", ())])]
    others = b.get("additionalProperties", True)
    wanted = {name: b.get("properties", {}).get(name, others) for name in names}
    surplus = [s.get("additionalProperties", True)]
    if "patternProperties" not in b:
        surplus += s.get("patternProperties", {}).values()
    return all(proof.holds(member_of(s, name), wanted[name], depth + 1) for name in names) and all(
        proof.holds(each, others, depth + 1) for each in surplus
    )


def _names(proof: Proof, s: Part, b: Part, depth: int) -> bool:
    if "propertyNames" not in b or not _may_be(s, "object"):
        return True
    own = {"type": "string"}
    return proof.holds({"allOf": [own, s.get("propertyNames", True)]}, b["propertyNames"], depth) or proof.holds(
        {**own, **asserted(s.get("propertyNames", True))}, b["propertyNames"], depth
    )


_CHECKS: Final[tuple[Callable[[Proof, Part, Part, int], bool], ...]] = (
    _type,
    _number,
    _counts("string", "minLength", "maxLength", lambda s: 0, lambda s: None),
    _text,
    _counts("array", "minItems", "maxItems", lambda s: 0, _longest),
    _items,
    _counts("object", "minProperties", "maxProperties", _fewest, _most),
    _members,
    _names,
)
