"""Two schemas compared: what the later one refuses that the earlier accepted, and the other way round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

from attrs import field, frozen

from pegboard_schemas._containment import Proof, member_of
from pegboard_schemas._side import Side, asserted
from pegboard_schemas._witness import Search

__all__ = ["Comparison", "compared_schemas", "members_of"]

_MOST_CHECKS: Final = 4_000
"""Checks of values in one direction: a second or less."""
_PLAIN: Final = {"type", "properties", "required", "additionalProperties"}


@final
@frozen
class Comparison:
    """What became of the values that a schema accepts.

    Both schemas have confirmed the values, and `keeps_all` and `adds_nothing` are proven. Where there is neither value
    nor proof, it is not known.

    Args:
        lost: At most one value that was accepted and is refused now.
        gained: At most one value that was refused and is accepted now.
        keeps_all: Whether nothing was lost.
        adds_nothing: Whether nothing was gained.
    """

    lost: tuple[Any, ...] = field(default=(), repr=False)
    gained: tuple[Any, ...] = field(default=(), repr=False)
    keeps_all: bool = False
    adds_nothing: bool = False


def compared_schemas(
    before: Mapping[str, Any] | bool, after: Mapping[str, Any] | bool, *, member: str | None = None
) -> Comparison:
    """Compare two JSON Schemas, in bounded steps.

    Raises `RegistrationError` for a schema that cannot be used.

    Args:
        before: The earlier schema.
        after: The later schema.
        member: One of `members_of(before, after)`: only what the two say of that member counts; the values are whole
            objects. None compares all.
    """
    sides = _side(before, "the earlier schema"), _side(after, "the later schema")
    keeps_all, adds_nothing = _is_within(*sides, member), _is_within(*sides[::-1], member)
    return Comparison(
        lost=() if keeps_all else _witness(*sides, member),
        gained=() if adds_nothing else _witness(*sides[::-1], member),
        keeps_all=keeps_all,
        adds_nothing=adds_nothing,
    )


def members_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The members of two object schemas that say nothing else but what each member may be; empty for any others.

    Args:
        before: The earlier schema.
        after: The later schema.
    """
    parts = [asserted(each) for each in (before, after)]
    shapes = [(each.get("type"), each.get("additionalProperties", True)) for each in parts]
    if any(set(each) - _PLAIN for each in parts) or shapes[0] != shapes[1] or shapes[0][0] != "object":
        return []
    if shapes[0][1] not in (True, False):
        return []
    return list(
        dict.fromkeys(name for each in parts for name in (*each.get("properties", ()), *each.get("required", ())))
    )


def _side(schema: Mapping[str, Any] | bool, where: str) -> Side:
    whole = asserted(schema) if isinstance(schema, bool) else schema
    return Side(whole, where)


def _witness(good: Side, bad: Side, member: str | None) -> tuple[Any, ...]:
    good.left = bad.left = _MOST_CHECKS
    for value in Search(good, bad, member).values(good.root, bad.root).refused:
        if good.accepts(value, good.root) and bad.refuses(value, bad.root) and _is_blamed(bad, member, value):
            return (value,)
    return ()


def _is_blamed(bad: Side, member: str | None, value: Any) -> bool:
    """Whether it is the member that the schema refuses."""
    if member is None:
        return True
    if member not in value:
        return member in bad.root.get("required", ())
    part = member_of(bad.root, member)
    return part is False or bad.refuses(value[member], part)


def _is_within(small: Side, big: Side, member: str | None) -> bool:
    small.left = big.left = _MOST_CHECKS
    proof = Proof(small, big)
    if member is None:
        return proof.holds(small.root, big.root)
    is_required = member in big.root.get("required", ()) and member not in small.root.get("required", ())
    return not is_required and proof.holds(member_of(small.root, member), member_of(big.root, member))
