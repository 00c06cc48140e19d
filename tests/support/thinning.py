"""Matrices of which the test line takes a part: CI runs the rest, once, in the slow session."""

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["first", "one_in"]


def first(number: int, cases: Iterable[Any]) -> list[Any]:
    """The cases, all but the first ones marked as slow."""
    return [_marked(case, index >= number) for index, case in enumerate(cases)]


def one_in(number: int, cases: Iterable[Any]) -> list[Any]:
    """The cases, all but each so many-th one marked as slow."""
    return [_marked(case, index % number != 0) for index, case in enumerate(cases)]


def _marked(case: Any, is_slow: bool) -> Any:
    if is_slow and isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow], id=case.id)
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow) if is_slow else case
