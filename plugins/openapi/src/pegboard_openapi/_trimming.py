"""Trimming: a large schema as a smaller one for the model, which admits whatever the whole one admits."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, final

from attrs import define, field, frozen

__all__ = ["Trimmed", "size_of", "trimmed"]

JsonSchema: TypeAlias = dict[str, Any]

_LONGEST_TEXTS: Final = (400, 200, 100)
"""Characters that descriptions and examples may have, tried in this order."""
_SMALL: Final = 80
"""Characters of a member that has to be there and keeps its schema, for little is gained."""
_DATA: Final = frozenset({"const", "default", "enum"})
_ROUNDS: Final = 4
"""How many times a member is found that has to go, so that of those before it more may stay."""
_MOST_HOPS: Final = 5
_SIGNS: Final[Mapping[str, str]] = {"items": "[]", "additionalProperties": ".*"}


@final
@frozen
class Trimmed:
    """A schema, and the paths of the members that it has not or not in full, such as `tools[].filters`."""

    schema: JsonSchema = field(repr=False)
    left_out: tuple[str, ...] = ()


@final
@define(eq=False)
class _Member:
    """A property of one object in the schema. `depth` counts the members that lead there, the shortest way.

    `size` is about how many characters it has, with the definitions that are first used there. One that `stays` keeps
    its type when its schema goes. `home` is the definition that it is written in, empty for the root.
    """

    owner: JsonSchema = field(repr=False)
    name: str
    path: str
    depth: int
    size: int
    stays: bool
    home: str
    above: _Member | None = field(repr=False)

    @property
    def rank(self) -> tuple[bool, bool, int, int, str]:
        """The lowest goes first: deep ones, optional ones before, and large ones of one depth."""
        return self.depth == 1, self.stays, -self.depth, -self.size, self.path

    def add(self, size: int) -> None:
        """Count a definition, here and in the members that this one is a part of."""
        member: _Member | None = self
        while member is not None:
            member.size += size
            member = member.above


def trimmed(schema: JsonSchema, most: float) -> Trimmed:
    """A schema of at most `most` characters of JSON, if that can be had.

    Long descriptions and examples go first, then optional members, the deepest before the others; then members that
    have to be there keep no more than their type.
    """
    if size_of(schema) <= most:
        return Trimmed(schema)
    shorter = schema
    for longest in _LONGEST_TEXTS:
        shorter = _shortened(schema, longest)
        if size_of(shorter) <= most:
            return Trimmed(shorter)
    knife = _Knife(shorter)
    members = sorted(_members(knife.parts), key=lambda each: each.rank)
    going: list[_Member] = []
    end = len(members)
    for _ in range(_ROUNDS):
        if end:
            end = bisect_left(range(end), True, key=lambda count: knife.size([*members[:count], *going]) <= most)
            # Without this one it is too large. Without it from the start, others may stay.
            going += members[end - 1 : end]
            end = max(end - 1, 0)
    return knife.cut([*members[:end], *going])


def size_of(schema: Any) -> int:
    """How many characters of JSON a schema has."""
    return len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")))


def _shortened(part: Any, longest: int) -> Any:
    """A copy with shorter descriptions, and without long examples."""
    if isinstance(part, list):
        return [_shortened(each, longest) for each in part]
    if not isinstance(part, dict):
        return part
    found = {}
    for key, value in part.items():
        if key == "description" and isinstance(value, str):
            found[key] = value if len(value) <= longest else f"{value[:longest].rpartition(' ')[0]}..."
        elif key != "examples" or not isinstance(value, list) or len(json.dumps(value)) <= longest:
            found[key] = value if key in _DATA else _shortened(value, longest)
    return found


# Members -------------------------------------------------------------------------------------------------------------


def _members(parts: Mapping[str, Any]) -> list[_Member]:
    """The members of all objects, each definition where it is used first: what is nearer to the root comes before.

    Only those in parts that admit more when they say less.
    """
    sizes, needed = _sizes(parts), _Needed(parts)
    waiting: deque[tuple[Any, str, str, _Member | None]] = deque([(parts[""], "", "", None)])
    found: list[_Member] = []
    known: set[int] = set()
    while waiting:
        part, home, path, above = waiting.popleft()
        if not isinstance(part, dict) or id(part) in known:
            continue
        known.add(id(part))
        needed.read(part)
        if (name := _target(part)) is not None and name in parts:
            target = parts[name]
            if above is not None and id(target) in sizes and id(target) not in known:
                above.add(sizes[id(target)])
            waiting.appendleft((target, name, path, above))
        waiting.extendleft((each, home, f"{path}{sign}", above) for each, sign in _inner(part))
        depth = 1 if above is None else above.depth + 1
        for name, each in part.get("properties", {}).items():
            own, stays = f"{path}.{name}" if path else name, depth == 1 or name in needed.of(part)
            member = _Member(part, name, own, depth, sizes.get(id(each), 0), stays, home, above)
            found.append(member)
            waiting.append((each, home, own, member))
    return [each for each in found if not each.stays or each.size > _SMALL]


def _inner(part: JsonSchema) -> Iterator[tuple[Any, str]]:
    """The parts of one that are no members, with what a path gets for them."""
    yield from ((part[key], sign) for key, sign in _SIGNS.items() if key in part)
    yield from ((each, "[]") for each in part.get("prefixItems", ()))
    yield from ((each, "") for each in _branches(part))


def _branches(part: JsonSchema) -> Iterator[Any]:
    return (each for key in ("allOf", "anyOf") for each in part.get(key, ()))


def _target(part: Any) -> str | None:
    """The name of the definition that a reference leads to, None for what is no reference."""
    reference = part.get("$ref") if isinstance(part, dict) else None
    return reference.removeprefix("#/$defs/") if isinstance(reference, str) else None


def _sizes(parts: Mapping[str, Any]) -> dict[int, int]:
    """About how many characters each object has, by its identity."""
    found: dict[int, int] = {}

    def measured(part: Any) -> int:
        if isinstance(part, dict):
            found[id(part)] = size = sum(len(key) + 4 + measured(each) for key, each in part.items())
            return size
        return sum(map(measured, part)) if isinstance(part, list) else len(str(part))

    for each in parts.values():
        measured(each)
    return found


@final
class _Needed:
    """The members that an object has to have, also where another branch of the same object says so."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._parts = parts
        self._names: dict[int, frozenset[str]] = {}

    def read(self, part: JsonSchema) -> None:
        """Read what a part and its branches need, which holds for all of them."""
        targets = (found for each in _branches(part) for found in (each, self._parts.get(_target(each) or "")))
        group = [part, *(each for each in targets if isinstance(each, dict))]
        names = frozenset(name for each in group for name in (*each.get("required", ()), *self.of(each)))
        self._names |= {id(each): names for each in group}

    def of(self, part: JsonSchema) -> Collection[str]:
        """The names of a part's members that have to be there."""
        return self._names.get(id(part), ())


# Without them --------------------------------------------------------------------------------------------------------


@final
@frozen
class _Part:
    """A definition, or the root, without some members; `found` are the objects that these were a part of."""

    schema: Any = field(repr=False)
    size: int
    references: tuple[str, ...]
    found: frozenset[int]


@final
class _Knife:
    """Makes a schema without members. A definition is made once for all that it is without the same ones for."""

    def __init__(self, schema: JsonSchema) -> None:
        root = {key: each for key, each in schema.items() if key != "$defs"}
        self.parts: Mapping[str, Any] = {"": root, **schema.get("$defs", {})}
        """The definitions by name, and the root by an empty text."""
        self._made: dict[tuple[str, tuple[int, ...]], _Part] = {}

    def size(self, members: Sequence[_Member]) -> int:
        """How many characters there are at most without these members."""
        return sum(part.size + len(json.dumps(name)) + len(':,"$defs"') for name, part in self._used(members).items())

    def cut(self, members: Sequence[_Member]) -> Trimmed:
        """The schema without these members, those that stay with their type alone, and without what only they use."""
        used = self._used(members)
        found = {**used.pop("").schema}
        kept = frozenset().union(*(part.found for part in self._used(members).values()))
        if used:
            found["$defs"] = {name: used[name].schema for name in self.parts if name in used}
        paths = sorted((each.depth, each.path) for each in members if id(each.owner) in kept)
        return Trimmed(found, tuple(dict.fromkeys(path for _, path in paths)))

    def _used(self, members: Sequence[_Member]) -> dict[str, _Part]:
        """The parts that are used without these members."""
        by_home: dict[str, list[_Member]] = {}
        for each in members:
            by_home.setdefault(each.home, []).append(each)
        used: dict[str, _Part] = {}
        waiting = [""]
        while waiting:
            name = waiting.pop()
            if name in self.parts and name not in used:
                used[name] = part = self._part(name, by_home.get(name, ()))
                waiting += part.references
        return used

    def _part(self, name: str, members: Sequence[_Member]) -> _Part:
        key = name, tuple(map(id, members))
        if key not in self._made:
            cut = _Cut(self.parts, members)
            schema = cut.copied(self.parts[name])
            self._made[key] = _Part(schema, size_of(schema), tuple(_references(schema)), frozenset(cut.found))
        return self._made[key]


@final
class _Cut:
    def __init__(self, parts: Mapping[str, Any], members: Sequence[_Member]) -> None:
        self.found: set[int] = set()
        """The objects without some of their members that the copy has."""
        self._parts = parts
        self._members: dict[int, dict[str, bool]] = {}
        for each in members:
            self._members.setdefault(id(each.owner), {})[each.name] = each.stays

    def copied(self, part: Any) -> Any:
        """A copy without the members."""
        if isinstance(part, list):
            return [self.copied(each) for each in part]
        if not isinstance(part, dict):
            return part
        stays = self._members.get(id(part))
        if stays is None:
            return {key: self.copied(each) for key, each in part.items()}
        self.found.add(id(part))
        kept = {key: each for key, each in part.items() if key != "properties"}
        shown = {name: each for name, each in part["properties"].items() if stays.get(name) is not False}
        properties = {name: self._bare(each) if name in stays else self.copied(each) for name, each in shown.items()}
        if len(shown) < len(part["properties"]):
            kept.pop("additionalProperties", None)  # which would refuse those that are left out
        return {"properties": properties, **{key: self.copied(each) for key, each in kept.items()}}

    def _bare(self, part: Any) -> JsonSchema:
        """A member that stays: of which type, and what it is."""
        types = self._types(part, _MOST_HOPS)
        shown: JsonSchema = {"type": types[0] if len(types) == 1 else types} if types else {}
        text = part.get("description") if isinstance(part, dict) else None
        return {**shown, "description": text} if text else shown

    def _types(self, part: Any, hops: int) -> list[str]:
        """The types that a value may have; none if a part of the schema does not say it."""
        if not isinstance(part, dict) or not hops:
            return []
        name = _target(part)
        if name is not None and name in self._parts:
            return self._types(self._parts[name], hops - 1)
        own = part.get("type")
        if own is not None:
            return own if isinstance(own, list) else [own]
        each = [self._types(alternative, hops - 1) for alternative in part.get("anyOf", ())]
        return [*dict.fromkeys(name for names in each for name in names)] if all(each) else []


def _references(part: Any) -> Iterator[str]:
    name = _target(part)
    if name is not None:
        yield name
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for each in inner:
        yield from _references(each)
