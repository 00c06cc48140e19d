"""A type table with the built-in handlers and the pack's."""

import pytest

import pegboard_dataclasses
from pegboard._model.tool import Origin
from pegboard._types.table import TypeTable
from pegboard.builtin import types as builtin


@pytest.fixture
def types() -> TypeTable:
    table = TypeTable()
    for handler in builtin.provide_types():
        table.add(handler, Origin(), "builtin")
    for handler in pegboard_dataclasses.provide_types():
        table.add(handler, Origin("dataclasses", "pegboard-dataclasses", "0.1.0"), "plugin")
    return table
