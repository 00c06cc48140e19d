"""How a type travels: its schema as a model sees it, a value in, a value out, what is wrong with a value."""

from typing import Any

from jsonschema import Draft202012Validator

from pegboard._schema.nodes import render
from pegboard._types.table import TypeTable
from tests.support.examining import explain


def schema(types: TypeTable, annotation: Any) -> dict[str, Any]:
    rendered = render(types.plan(annotation).schema)
    Draft202012Validator.check_schema(rendered)
    return rendered


def arrive(types: TypeTable, annotation: Any, value: Any) -> Any:
    """Structure a value; the schema must accept it too."""
    Draft202012Validator(schema(types, annotation)).validate(value)
    return types.plan(annotation).structure(value)


def leave(types: TypeTable, annotation: Any, value: Any) -> Any:
    """Write a value; the schema must accept what comes out."""
    written = types.plan(annotation).unstructure(value)
    Draft202012Validator(schema(types, annotation)).validate(written)
    return written


def wrong(types: TypeTable, annotation: Any, value: Any) -> list[str]:
    return [str(problem) for problem in explain(types.plan(annotation), value)]


def is_refused_by_both(types: TypeTable, annotation: Any, value: Any) -> bool:
    return bool(wrong(types, annotation, value)) and not Draft202012Validator(schema(types, annotation)).is_valid(value)
