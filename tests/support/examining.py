"""The two halves of what an examination finds, for tests that ask for one of them."""

from typing import Any

from pegboard._arguments.examine import examine
from pegboard._model.result import Note
from pegboard._model.shapes import TypePlan
from pegboard._schema.problems import Problem, Redact


def explain(plan: TypePlan, value: Any, path: str = "", *, redact: Redact | None = None) -> list[Problem]:
    """Everything that keeps the value from fitting as it was sent."""
    same, problems, notes = examine(plan, value, path, repair=False, redact=redact)
    assert same is value
    assert not notes
    return problems


def repair(plan: TypePlan, value: Any, *, redact: Redact | None = None) -> tuple[Any, list[Note]]:
    """The value with everything repaired that can be repaired, and the notes."""
    repaired, _, notes = examine(plan, value, redact=redact)
    return repaired, notes
