"""A type table with the built-in handlers and the pack's, and a toolkit with nothing but the pack."""

from collections.abc import Iterator

import pytest

import pegboard_numpy
from pegboard import Origin, Toolkit
from pegboard._types.table import TypeTable
from pegboard.builtin import types as builtin


@pytest.fixture
def types() -> TypeTable:
    table = TypeTable()
    for handler in builtin.provide_types():
        table.add(handler, Origin(), "builtin")
    for handler in pegboard_numpy.provide_types():
        table.add(handler, Origin("numpy", "pegboard-numpy", "0.1.0"), "plugin")
    return table


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=[pegboard_numpy]) as toolkit:
        yield toolkit
