"""The survey of a schema: it refuses schemas that loop, double, or change the meaning of references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NoReturn

from pegboard import RegistrationError, SchemaPart

__all__ = ["survey"]

MOST_WORK: Final = 10_000
"""How many subschemas may apply to one value: pairs of references to pairs of references double with each level."""
_SEVERAL: Final = ("allOf", "anyOf", "oneOf")
_ONE: Final = ("not", "if", "then", "else")
_NAMED: Final = ("dependentSchemas", "dependencies")


def survey(parts: Sequence[SchemaPart], where: str) -> None:
    """Refuse such schemas. Raises `RegistrationError`, which names `where`, the keyword and its path."""

    def refuse(part: SchemaPart, keyword: str, what: str) -> NoReturn:
        raise RegistrationError(f"{where}: {keyword} at {part.path} {what}")

    for part in parts:
        if isinstance(part.schema.get("$id"), str) and part.path != "#":
            refuse(part, "$id", "changes what references mean; only the root may have one")
        for keyword in part.targets:
            reference = part.schema[keyword]
            if reference[1:2] not in ("", "/"):
                refuse(part, keyword, f'refers to "{reference}"; only references within it (#/...) are followed')
    known = {id(part.schema): part for part in parts}
    applied = {each: [id(inner) for inner in _applied(part)] for each, part in known.items()}
    work: dict[int, int] = {}
    try:
        for each in TopologicalSorter(applied).static_order():  # from the inside out
            work[each] = 1 + sum(work[inner] for inner in applied.get(each, ()))
            if work[each] > MOST_WORK:
                refuse(known[each], "anyOf", f"applies more than {MOST_WORK} subschemas to one value")
    except CycleError as error:
        refuse(known[error.args[1][0]], "$ref", "leads back to itself without end")


def _applied(part: SchemaPart) -> Iterator[Any]:
    """The subschemas that apply to the same value as this one."""
    yield from part.targets.values()
    for keyword, value in part.schema.items():
        if keyword in _SEVERAL and isinstance(value, list):
            yield from value
        elif keyword in _ONE:
            yield value
        elif keyword in _NAMED and isinstance(value, Mapping):
            yield from value.values()
