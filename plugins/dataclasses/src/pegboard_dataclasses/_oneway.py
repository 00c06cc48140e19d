"""Records whose instances are written otherwise than they are read: their schema says nothing of results."""

from __future__ import annotations

from attrs import evolve

from pegboard import Record, TypePlan

__all__ = ["one_way"]


def one_way(plan: TypePlan) -> TypePlan:
    """The plan of a record, marked so that no schema of results is made from it."""
    assert isinstance(plan.shape, Record)  # noqa: S101 - what `record_plan` gives
    return evolve(plan, shape=evolve(plan.shape, one_way=True))
