"""Arguments that are secret by their schema or by their name.

The page shows `***` for them. A `***` that comes back is never taken as a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, final
from urllib.parse import unquote

from pegboard import PegboardError
from pegboard_inspector._json import dumps

__all__ = ["MASK", "PRIVATE_NAMES", "Secrecy", "unmasked", "withheld", "without"]

MASK: Final = "***"
PRIVATE_NAMES: Final = (
    r"(^|[\W_])(pass(word|wd|phrase|code)|pwd|secret|credentials?|((api|access|private|secret)[\W_]?key))$"
    r"|^((auth|access|refresh|bearer|api|session)[\W_]?)?token$"
)
"""How members are named that hold secrets, whatever their schema says; regardless of case, for Python and browsers."""
_NAMED: Final = re.compile(PRIVATE_NAMES, re.IGNORECASE | re.ASCII)
# Keywords whose schemas say something of the same value: whether they apply is not asked, since a value that is masked
# without need does no harm. As one schema, as a list, as a mapping of schemas.
_BESIDE: Final = ("if", "then", "else"), ("allOf", "anyOf", "oneOf"), ("dependentSchemas", "dependencies")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_REST_OF_OBJECT: Final = ("additionalProperties", "unevaluatedProperties")
_REST_OF_ARRAY: Final = ("items", "additionalItems", "unevaluatedItems", "contains")

Schema = Mapping[str, Any]


@final
class Secrecy:
    """Knows which values of arguments are secret, by the schema of a tool's arguments."""

    def __init__(self, schema: Any) -> None:
        self._root = schema
        self._anchors = dict(_anchors(schema))
        self._known: dict[frozenset[int], bool] = {}

    def values(self, arguments: Any) -> list[Any]:
        """What stands in `arguments` where the schema says `"format": "password"` or `"writeOnly": true`.

        Also what a member has that is named like a password, and text in place of an object or array with such members.
        """
        return list(self._found([self._root], arguments))

    @property
    def is_needed(self) -> bool:
        """Whether arguments may have such a value anywhere."""
        return self._may_hold(self._here([self._root]))

    def _found(self, schemas: Iterable[Any], value: Any) -> Iterator[Any]:
        here = self._here(schemas)
        if any(map(_is_marked, here)):
            yield value
        elif isinstance(value, Mapping):
            for name, inner in value.items():
                if _NAMED.search(name):
                    yield inner
                else:
                    yield from self._found(_members(here, name), inner)
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                yield from self._found(_items(here, number), inner)
        elif isinstance(value, str) and self._may_hold(here):
            yield value

    def _here(self, schemas: Iterable[Any]) -> list[Schema]:
        """These schemas and all others that say something of the same value, each once."""
        found: dict[int, Schema] = {}
        pending = list(schemas)
        while pending:
            schema = pending.pop()
            if isinstance(schema, Mapping) and id(schema) not in found:
                found[id(schema)] = schema
                pending += self._beside(schema)
        return list(found.values())

    def _beside(self, schema: Schema) -> Iterator[Any]:
        single, several, named = _BESIDE
        yield from map(schema.get, single)
        yield from _each(schema, several, list)
        yield from _each(schema, named, Mapping)
        for keyword in _REFERENCES:
            if isinstance(reference := schema.get(keyword), str):
                yield self._target(reference.partition("#")[2])

    def _target(self, fragment: str) -> Any:
        """What a reference within the document leads to: a JSON pointer (RFC 6901), or an anchor."""
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment)
        found = self._root
        for part in fragment.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping):
                found = found.get(key)
            else:
                found = (
                    found[int(key)] if isinstance(found, list) and key.isdecimal() and int(key) < len(found) else None
                )
        return found

    def _may_hold(self, schemas: Iterable[Schema]) -> bool:
        """Whether there is a secret in these schemas, or deeper in."""
        key = frozenset(map(id, schemas))
        if key not in self._known:
            found, pending = set(key), list(schemas)
            self._known[key] = False
            while pending:
                schema = pending.pop()
                if _is_marked(schema) or any(map(_NAMED.search, schema.get("properties", ()))):
                    self._known[key] = True
                    break
                inside = self._here([*_members([schema]), *_items([schema])])
                pending += [each for each in inside if id(each) not in found]
                found.update(map(id, inside))
        return self._known[key]


def _is_marked(schema: Schema) -> bool:
    return schema.get("format") == "password" or schema.get("writeOnly") is True


def _each(schema: Schema, keywords: Iterable[str], kind: type[Any]) -> Iterator[Any]:
    for keyword in keywords:
        found: Any = schema.get(keyword)
        if isinstance(found, Mapping) and kind is Mapping:
            yield from found.values()
        elif isinstance(found, list) and kind is list:
            yield from found


def _members(schemas: Iterable[Schema], name: str | None = None) -> Iterator[Any]:
    """The schemas of the member of that name; of all members without one."""
    for schema in schemas:
        named = schema.get("properties")
        named = named if isinstance(named, Mapping) else {}
        yield from named.values() if name is None else [named.get(name)]
        yield from _each(schema, ["patternProperties"], Mapping)  # third-party patterns, not worth a match
        if name is None or name not in named:
            yield from map(schema.get, _REST_OF_OBJECT)


def _items(schemas: Iterable[Schema], number: int | None = None) -> Iterator[Any]:
    """The schemas of the item at that place; of all items without one."""
    for schema in schemas:
        # A list of schemas under `items` is how older drafts write it.
        first = schema.get("prefixItems", schema.get("items"))
        first = first if isinstance(first, list) else []
        yield from first if number is None else first[number : number + 1]
        if number is None or number >= len(first):
            yield from map(schema.get, _REST_OF_ARRAY)


def _anchors(schema: Any) -> Iterator[tuple[str, Any]]:
    pending = [schema]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            yield from ((each[key], each) for key in ("$anchor", "$dynamicAnchor") if isinstance(each.get(key), str))
            pending += each.values()
        elif isinstance(each, list):
            pending += each


def withheld(value: Any, shown: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where `shown`, which is `value` without its secrets, is not the same."""
    if isinstance(value, dict) and value.keys() == shown.keys():
        for name, each in value.items():
            yield from withheld(each, shown[name], (*path, name))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from withheld(each, shown[number], (*path, number))
    elif value != shown:
        yield path


def without(value: Any, paths: Iterable[tuple[str | int, ...]]) -> Any:
    """A copy without what stands there: members are left out, items are empty text: the others keep their place."""
    removed: dict[str | int, list[tuple[str | int, ...]]] = {}
    for first, *rest in paths:
        removed.setdefault(first, []).append(tuple(rest))
    if isinstance(value, list):
        return [
            "" if () in removed.get(at, ()) else without(each, removed[at]) if at in removed else each
            for at, each in enumerate(value)
        ]
    return {
        name: without(each, removed[name]) if name in removed else each
        for name, each in value.items()
        if () not in removed.get(name, ())
    }


def unmasked(sent: Any, shown: Any, value: Any) -> Any:
    """What came back from the page, with the secrets of `value` where it says no more than `shown` did.

    Raises `PegboardError` for a mask that cannot be matched with a secret.
    """
    if sent == shown:
        return value
    if isinstance(sent, dict) and isinstance(shown, dict) and isinstance(value, dict):
        return {name: unmasked(each, shown.get(name), value.get(name)) for name, each in sent.items()}
    if isinstance(sent, list) and isinstance(shown, list) and len(sent) == len(shown):
        return [unmasked(*each) for each in zip(sent, shown, value, strict=True)]
    if sent != value and MASK in dumps(sent):
        raise PegboardError(f"{MASK} stands for a secret, and it is not known here for which; enter the value")
    return sent
