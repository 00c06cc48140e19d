"""What the schema accepts is what arrives, with jsonschema as the judge of the schema."""

import datetime as dt
import enum
from collections.abc import Mapping, Sequence
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import UUID4, Base64Bytes, Field, create_model

from pegboard._types.table import TypeTable
from tests.plugins.dataclasses.travel import schema
from tests.plugins.pydantic.models import Cat, Dog, Home, Item, Money, Node, Open
from tests.types.generate import values


class Color(enum.Enum):
    RED = "r"
    GREEN = "g"


SCALARS: list[Any] = [
    *(int, float, str, bool, bytes, Any, UUID, UUID4, Base64Bytes, IPv4Address, Path, Color, Decimal, dt.date),
    Annotated[int, Field(multiple_of=3, gt=4)],
    Annotated[float, Field(le=3)],
    Annotated[str, Field(pattern="^a.*b$", max_length=5)],
    Literal[1, "a", True],
    Literal["x"],
]
CONTAINERS: list[Any] = [
    *(list, dict, set[int], frozenset[str], tuple[int, str], tuple[int, ...], Sequence[int], Mapping[str, int]),
    *(dict[int, str], dict[bool, int], dict[float, int], dict[UUID, int], dict[Color, int], dict[str, Item]),
    Annotated[list[int], Field(min_length=1, max_length=2)],
    dict[Annotated[str, Field(pattern="^[ab]+$")], int],
]
UNIONS: list[Any] = [
    *(int | str, str | int, float | int, bool | int, list[int] | list[str], dt.date | int, Cat | Dog, Item | None),
]
MODELS: list[Any] = [Item, Node, Open, Home, Money]
FORMATS: list[Any] = [dt.datetime, dt.time, dt.timedelta, dt.datetime | None]

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["1", "true", "null", "2024-01-02", "a", "r"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


examples = pytest.mark.parametrize("examples", [10, pytest.param(300, marks=pytest.mark.slow)])


def agree(types: TypeTable, annotation: Any, examples: int) -> None:
    """Schema and structuring accept the same values, as a parameter would be sent."""
    model = create_model("Holder", value=(annotation, ...))
    described = schema(types, model)
    validator = Draft202012Validator(described, format_checker=Draft202012Validator.FORMAT_CHECKER)
    structure = types.plan(model).structure

    @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
    @given(values(described) | st.builds(lambda value: {"value": value}, anything))
    def check(value: Any) -> None:
        promised = validator.is_valid(value)
        try:
            arrived = isinstance(structure(value), model)
        except ValueError:
            arrived = False
        assert arrived is promised

    check()


@examples
@pytest.mark.parametrize("annotation", SCALARS + UNIONS, ids=str)
def test_scalars_and_unions(types: TypeTable, annotation: Any, examples: int) -> None:
    agree(types, annotation, examples)


@examples
@pytest.mark.parametrize("annotation", CONTAINERS + MODELS, ids=str)
def test_containers_and_models(types: TypeTable, annotation: Any, examples: int) -> None:
    agree(types, annotation, examples)


@examples
@pytest.mark.parametrize("annotation", FORMATS, ids=str)
def test_moments(types: TypeTable, annotation: Any, examples: int) -> None:
    pytest.importorskip("rfc3339_validator", reason="jsonschema checks these formats with its extra alone")
    pytest.importorskip("isoduration")
    agree(types, annotation, examples)


@pytest.mark.parametrize("span", [dt.timedelta(400, 5, 7), -dt.timedelta(40, 5), dt.timedelta(0)])
def test_durations_come_back_as_they_went(types: TypeTable, span: dt.timedelta) -> None:
    model = create_model("Holder", value=(dt.timedelta, ...))
    written = types.plan(model).unstructure(model(value=span))
    assert types.plan(model).structure(written) == model(value=span)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Annotated[Decimal, Field(ge=1)], "0"),
        (Annotated[Decimal, Field(max_digits=2)], 123),
    ],
)
def test_known_disagreements(types: TypeTable, annotation: Any, value: Any) -> None:
    """Rules that no schema can say: what fits the schema is still refused, and never arrives wrong."""
    model = create_model("Holder", value=(annotation, ...))
    assert Draft202012Validator(schema(types, model)).is_valid({"value": value})
    with pytest.raises(ValueError, match="pydantic refuses"):
        types.plan(model).structure({"value": value})
