"""A type table as a toolkit without packs has it."""

from typing import Any

from pegboard._model.shapes import TypePlan
from pegboard._model.tool import Origin, SchemaRequest
from pegboard._schema.nodes import render
from pegboard._types.table import TypeTable
from pegboard.builtin.types import provide_types
from pegboard.extension import TypeHandler

BUILTIN = Origin("builtin", "pegboard", "1.0")


def type_table(*handlers: TypeHandler) -> TypeTable:
    """The built-in handlers, and `handlers` as the program's own."""
    table = TypeTable()
    for handler in provide_types():
        table.add(handler, BUILTIN, "builtin")
    for handler in handlers:
        table.add(handler, Origin(), "program")
    return table


def plan(annotation: Any) -> TypePlan:
    """The plan of a core type."""
    return type_table().plan(annotation)


def schema(annotation: Any, **options: Any) -> dict[str, Any]:
    """The rendered schema of a core type."""
    return render(plan(annotation).schema, SchemaRequest(**options))


def refused(structure: Any, value: Any) -> bool:
    """Whether a structuring function refuses a value, by whatever exception."""
    try:
        structure(value)
    except Exception:  # noqa: BLE001 - handlers may raise anything
        return True
    return False


def same(left: Any, right: Any) -> bool:
    """Equality that also asks for the same types, all the way down: 1 is not 1.0, and a list is not a tuple."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return same(list(left.items()), list(right.items()))
    if isinstance(left, (list, tuple)) or type(left).__name__ == "deque":
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, (set, frozenset)):
        return same(sorted(left, key=repr), sorted(right, key=repr))
    return bool(left == right)
