"""A plan is held to its own schema: what that refuses never reaches a tool, whatever `structure` would make of it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from pegboard import Text, Toolkit, TypeHandler, TypePlan, Types, shaped
from tests.support.schemas_of_all_kinds import values
from tests.types.table import type_table

NODE = {
    "type": "object",
    "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}, "next": {"$ref": "#/$defs/node"}},
    "required": ["name"],
    "additionalProperties": False,
}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 2},
    {"type": "integer", "minimum": 1},
    {"type": "number"},
    {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    {"anyOf": [{"type": "null"}, {"enum": ["a", 1]}]},
    {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
    {},
]


class Price:
    def __init__(self, sent: Any) -> None:
        self.sent = sent


def handler(schema: dict[str, Any], structure: Any = Price) -> TypeHandler:
    return TypeHandler(Price, lambda annotation, types: TypePlan(schema, structure))


@pytest.mark.parametrize("sent", [True, 1, 1.5, None, ["0", [1], 2]])
def test_what_structure_alone_would_take_reaches_no_tool(sent: Any) -> None:
    def pay(amount: Decimal) -> str:
        return f"{amount}"

    toolkit = Toolkit(plugins=())
    toolkit.register_type(TypeHandler(Decimal, lambda annotation, types: TypePlan({"type": "string"}, Decimal)))
    toolkit.register(pay)
    assert toolkit.call_sync("pay", {"amount": "1.50"}).text == "1.50"
    result = toolkit.call_sync("pay", {"amount": sent})
    assert result.status == "invalid"
    assert "amount: expected string" in result.text


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@given(value=values)
def test_accepted_is_what_the_schema_accepts(schema: dict[str, Any], value: Any) -> None:
    structure = type_table(handler(schema)).plan(Price).structure
    try:
        assert structure(value).sent is value
        accepted = True
    except ValueError:
        accepted = False
    assert accepted is Draft202012Validator(schema).is_valid(value)


def test_inside_of_others_too() -> None:
    table = type_table(handler({"type": "string"}))
    for annotation, wrong in ((list[Price], [1]), (dict[str, Price], {"a": 1}), (Price | None, 1), (int | Price, 1.5)):
        with pytest.raises(ValueError, match=r"^$|fit"):
            table.plan(annotation).structure(wrong)


def test_a_type_that_contains_itself() -> None:
    def build(annotation: Any, types: Types) -> TypePlan:
        inner = types.plan(list[Price])
        schema = {"type": "object", "properties": {"below": inner.schema}, "additionalProperties": False}
        return TypePlan(schema, Price)

    structure = type_table(TypeHandler(Price, build)).plan(Price).structure
    assert structure({"below": [{"below": []}, {}]}).sent == {"below": [{"below": []}, {}]}
    wrong: dict[str, Any]
    for wrong in ({"below": {}}, {"below": [{"below": [{"above": 1}]}]}):
        with pytest.raises(ValueError, match="fit"):
            structure(wrong)


class Moment(dt.datetime):
    """A class of its own, which a handler for datetime may not know."""


def text(build: Any) -> Any:
    return lambda annotation, types: shaped({"type": "string"}, Text(build(annotation)))


def opaque(build: Any) -> Any:
    return lambda annotation, types: TypePlan({"type": "string"}, build(annotation))


@pytest.mark.parametrize("annotation", [Moment, list[Moment], Moment | None])
@pytest.mark.parametrize(
    "plan", [text, lambda build: lambda annotation, types: TypePlan({"type": "string"}, build(annotation))]
)
def test_the_annotated_class_arrives_or_nothing(annotation: Any, plan: Any) -> None:
    """A handler for a class is asked about classes below it, too."""
    sent: Any = "2024-05-06T07:08:09"
    sent = [sent] if annotation == list[Moment] else sent
    base = type_table(TypeHandler(dt.datetime, plan(lambda annotation: dt.datetime.fromisoformat)))
    with pytest.raises(ValueError, match="makes a datetime of it, not a Moment"):
        base.plan(annotation).structure(sent)
    assert base.plan(dt.datetime).structure("2024-05-06T07:08:09") == dt.datetime(2024, 5, 6, 7, 8, 9)  # noqa: DTZ001
    own = type_table(TypeHandler(dt.datetime, plan(lambda annotation: annotation.fromisoformat)))
    arrived = own.plan(annotation).structure(sent)
    assert type(arrived[0] if isinstance(arrived, list) else arrived) is Moment
