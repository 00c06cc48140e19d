"""Arguments that nobody should read over somebody's shoulder: those that their schema calls passwords.

The page is shown `***` for them, and what it shows may come back: never as a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pegboard import PegboardError
from pegboard_inspector._json import dumps

__all__ = ["secret_values", "unmasked", "withheld", "without"]

MASK: Final = "***"


def secret_values(schema: Any, value: Any) -> list[Any]:
    """What stands in `value` where the schema says `"format": "password"` or `"writeOnly": true`."""
    return list(_found(schema, value, schema))


def _found(schema: Any, value: Any, root: Any) -> Iterator[Any]:
    if not isinstance(schema, Mapping):
        return
    if schema.get("format") == "password" or schema.get("writeOnly") is True:
        yield value
        return
    for each in _beside(schema, root):
        yield from _found(each, value, root)
    if isinstance(value, Mapping):
        members, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, inner in value.items():
            yield from _found(members.get(name, others), inner, root)
    elif isinstance(value, list):
        first = schema.get("prefixItems", ())
        for number, inner in enumerate(value):
            yield from _found(first[number] if number < len(first) else schema.get("items"), inner, root)


def _beside(schema: Mapping[str, Any], root: Any) -> Iterator[Any]:
    """The schemas that say something of the same value."""
    for several in ("anyOf", "oneOf", "allOf"):
        yield from schema.get(several, ())
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        yield root.get("$defs", {}).get(reference.removeprefix("#/$defs/"))


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
    gone: dict[str | int, list[tuple[str | int, ...]]] = {}
    for first, *rest in paths:
        gone.setdefault(first, []).append(tuple(rest))
    if isinstance(value, list):
        return [
            "" if () in gone.get(at, ()) else without(each, gone[at]) if at in gone else each
            for at, each in enumerate(value)
        ]
    return {
        name: without(each, gone[name]) if name in gone else each
        for name, each in value.items()
        if () not in gone.get(name, ())
    }


def unmasked(sent: Any, shown: Any, value: Any) -> Any:
    """What came back from the page, with the secrets of `value` where it says no more than `shown` did.

    Raises `PegboardError` for a mask of which nobody can say what stands behind it.
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
