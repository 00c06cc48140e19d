"""The promise of a schema, with jsonschema as the oracle: it accepts a value if and only if structuring does."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pegboard._schema.nodes import render
from pegboard._types.table import TypeTable
from tests.types.generate import values

SCALARS = st.none() | st.booleans() | st.integers(-300, 300) | st.integers() | st.text(max_size=3)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    SCALARS | NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def schema(types: TypeTable, annotation: Any) -> dict[str, Any]:
    rendered = render(types.plan(annotation).schema)
    Draft202012Validator.check_schema(rendered)
    return rendered


def accepts(types: TypeTable, annotation: Any, value: Any) -> bool:
    """What the schema says, as a validator other than ours reads it."""
    checker, found = Draft202012Validator.FORMAT_CHECKER, schema(types, annotation)
    if "date-time" in str(found) and "date-time" not in checker.checkers:
        pytest.skip("needs rfc3339-validator")
    return Draft202012Validator(found, format_checker=checker).is_valid(value)


def structures(types: TypeTable, annotation: Any, value: Any) -> bool:
    try:
        types.plan(annotation).structure(value)
    except Exception:  # noqa: BLE001 - handlers may raise anything
        return False
    return True


def arrive(types: TypeTable, annotation: Any, value: Any) -> Any:
    assert accepts(types, annotation, value)
    return types.plan(annotation).structure(value)


def leave(types: TypeTable, annotation: Any, value: Any) -> Any:
    written = types.plan(annotation).unstructure(value)
    assert accepts(types, annotation, written)
    return written


def refused(types: TypeTable, annotation: Any, value: Any) -> bool:
    return not accepts(types, annotation, value) and not structures(types, annotation, value)


def is_rectangular(value: Any) -> bool:
    """Whether all rows of a dimension are equally long: the one thing about arrays that JSON Schema cannot say."""
    return len(list(extents(value))) == 1


def extents(value: Any) -> set[tuple[int, ...]]:
    """Every shape that the parts of an array show; a rectangular one shows one."""
    if not isinstance(value, list):
        return {()}
    inner = {shape for row in value for shape in extents(row)} if value else {()}
    return {(len(value), *shape) for shape in inner}


def keeps_promise(types: TypeTable, annotation: Any, fits: Any, examples: int = 15) -> None:
    """For random JSON and for values made from the schema: both accept, with a value that fits, or both refuse."""

    @given(st.one_of(JSON, values(schema(types, annotation))))
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    def check(value: Any) -> None:
        if not is_rectangular(value):
            assert not structures(types, annotation, value)
        elif accepts(types, annotation, value):
            assert fits(types.plan(annotation).structure(value))
        else:
            assert not structures(types, annotation, value), value

    check()
