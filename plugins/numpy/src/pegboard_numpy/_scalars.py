"""NumPy scalars: JSON scalars in the range of their dtype."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np

from pegboard import Text, TypePlan, Types, shaped
from pegboard_numpy._elements import concrete, element

__all__ = ["scalar"]


def scalar(annotation: Any, types: Types) -> TypePlan:
    """The plan of a scalar class. Raises `RegistrationError` for one that JSON has no form for."""
    cls = concrete(annotation)
    if issubclass(cls, np.datetime64):
        return _moment(types.plan(dt.datetime))
    inner = types.plan(element(cls))
    return TypePlan(dict(inner.schema), _then(inner.structure, cls), _plain)


def _then(structure: Callable[[Any], Any], build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: build(structure(value))


def _plain(value: Any) -> Any:
    """The Python value of a scalar; a function may return a plain one as well."""
    return value.item() if isinstance(value, np.generic) else value


def _moment(moment: TypePlan) -> TypePlan:
    """datetime64 has no zone: it counts as UTC, in microseconds."""

    def parse(text: str) -> np.datetime64:
        local: dt.datetime = moment.structure(text)
        offset = local.utcoffset() or dt.timedelta()
        # NumPy's years go on where those of datetime end, so that no offset leads out of the range.
        return np.datetime64(local.replace(tzinfo=None), "us") - np.timedelta64(offset, "us")

    def write(value: Any) -> Any:
        naive = np.datetime64(value, "us").item()
        if naive is None:  # not a time
            return None
        if not isinstance(naive, dt.datetime):
            raise ValueError(f"{value} is outside of the years 1 to 9999")
        return moment.unstructure(naive.replace(tzinfo=dt.UTC))

    return shaped(dict(moment.schema), Text(parse), write)
