"""Fitting what pydantic wrote to the schema that was promised: members that may not be null are left out instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pegboard import Member, TypePlan
from pegboard_pydantic._leaves import as_is

__all__ = ["tidy_items", "tidy_members", "tidy_one_of", "tidy_record", "tidy_tagged"]

Tidy: TypeAlias = Callable[[Any], Any]


def tidy_items(item: TypePlan) -> Tidy:
    """For arrays of one item type."""
    tidy = item.unstructure
    return as_is if tidy is as_is else (lambda data: [tidy(each) for each in data])


def tidy_members(value: TypePlan) -> Tidy:
    """For objects with free keys."""
    tidy = value.unstructure
    return as_is if tidy is as_is else (lambda data: {key: tidy(each) for key, each in data.items()})


def tidy_record(members: Sequence[Member]) -> Tidy:
    """For objects with named members."""
    known = {member.key: member for member in members}

    def tidy(data: Any) -> Any:
        found = {key: (known.get(key), value) for key, value in data.items()}
        return {
            key: value if member is None else member.plan.unstructure(value)
            for key, (member, value) in found.items()
            if member is None or value is not None or member.default is not None
        }

    return tidy


def tidy_tagged(key: str, tags: Mapping[Any, TypePlan]) -> Tidy:
    """For records that a member tells apart."""

    def tidy(data: Any) -> Any:
        return tags[data[key]].unstructure(data) if data.get(key) in tags else data

    return tidy


def tidy_one_of(plans: Sequence[TypePlan]) -> Tidy:
    """For alternatives: the first that the data then fits."""
    if all(plan.unstructure is as_is for plan in plans):
        return as_is

    def tidy(data: Any) -> Any:
        for plan in plans:
            try:
                tidied = plan.unstructure(data)
                plan.structure(tidied)
            except Exception:  # noqa: BLE001, S112 - any exception means that this is not the one
                continue
            return tidied
        return data

    return tidy
