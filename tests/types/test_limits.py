"""The edges of structuring: each of these is the only test that notices one check (found by `nox -s mutants`)."""

import dataclasses
import datetime as dt
import functools
import json
import math
import traceback
from collections import abc
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict, Unpack

import pytest
from annotated_types import Ge, Le, Len, MaxLen, MultipleOf, Predicate

import pegboard_dataclasses
from pegboard import Toolkit
from pegboard._base.errors import Mismatch, RegistrationError
from pegboard._model.shapes import (
    FixedItems,
    Record,
    Scalar,
    TypePlan,
)
from pegboard._model.tool import Origin, SchemaRequest
from pegboard._schema.nodes import render
from pegboard._types.codegen import Writer, structurer
from pegboard._types.json_kinds import candidates
from pegboard._types.plans import record_member, shaped
from tests.types.battery import Color
from tests.types.table import plan, refused, same, schema, type_table


class TestBounds:
    def test_members_are_counted(self) -> None:
        structure = plan(Annotated[dict[str, int], MaxLen(1)]).structure
        assert structure({"a": 1}) == {"a": 1}
        assert refused(structure, {"a": 1, "b": 2})

    def test_a_limit_is_a_json_number(self) -> None:
        found = schema(Annotated[float, Le(Decimal("0.5"))])
        assert same(json.loads(json.dumps(found)), {"type": "number", "maximum": 0.5})

    @pytest.mark.parametrize(("step", "value"), [(0.1, 0.5), (0.2, 1.0), (0.01, 0.03), (0.5, 1e308)])
    def test_a_multiple_of_a_fraction_is_one_as_validators_see_it(self, step: float, value: float) -> None:
        assert plan(Annotated[float, MultipleOf(step)]).structure(value) == value

    def test_a_large_integer_is_divided_exactly(self) -> None:
        structure = plan(Annotated[int, MultipleOf(2)]).structure
        assert structure(10**17) == 10**17
        assert refused(structure, 10**17 + 1)

    def test_a_predicate_alone_fits_any_type(self) -> None:
        structure = plan(Annotated[dt.date, Predicate(lambda day: day.day == 1)]).structure
        assert structure("2024-05-01") == dt.date(2024, 5, 1)
        assert refused(structure, "2024-05-02")

    @pytest.mark.parametrize("annotation", [Color, list[Color]])
    def test_a_predicate_is_asked_about_what_arrives(self, annotation: Any) -> None:
        sent, wanted = ("red", Color.RED) if annotation is Color else (["red"], [Color.RED])
        assert plan(Annotated[annotation, Predicate(lambda value: value == wanted)]).structure(sent) == wanted
        assert refused(plan(Annotated[annotation, Predicate(lambda value: value == sent)]).structure, sent)

    def test_an_optional_union_is_bounded_and_named_as_before(self) -> None:
        member = record_member(type_table(), "x", Annotated[int | str | None, Ge(1)], default=None)
        assert render(member.plan.schema) == {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}
        assert "title" not in render(member.plan.schema, SchemaRequest(titles="qualified"))

    def test_alternatives_that_look_alike_are_one(self) -> None:
        assert schema(list[int] | abc.Sequence[int]) == {"type": "array", "items": {"type": "integer"}}


class TestCompiled:
    def test_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        structure = structurer(Scalar(int))
        assert structure(1) == 1
        monkeypatch.setattr(Writer, "build", lambda *_: pytest.fail("compiled again"))
        assert structure(2) == 2

    def test_a_record_is_named_in_tracebacks(self) -> None:
        found = shaped({}, Record(functools.partial(int, base="x"), (), "Ticket"))
        with pytest.raises(TypeError) as caught:
            found.structure({})
        assert "structure_Ticket" in "".join(traceback.format_exception(caught.value))

    def test_fixed_items_are_built_by_any_class(self) -> None:
        found = shaped({}, FixedItems((plan(int), plan(str)), build=list))
        assert found.structure([1.0, "a"]) == [1, "a"]

    @pytest.mark.parametrize("value", [None, 1.5, [], (), object()])
    def test_a_value_of_no_alternative_is_a_mismatch(self, value: Any) -> None:
        with pytest.raises(Mismatch):
            plan(int | str).structure(value)


class TestKinds:
    ANYTHING, WHOLE, TEXT = plan(Any), plan(int), plan(str)

    def test_an_alternative_that_takes_only_some_values_hides_none(self) -> None:
        opaque = TypePlan({"type": "integer"}, lambda value: value)
        assert candidates([self.WHOLE, opaque], float) == (self.WHOLE, opaque)
        assert candidates([self.WHOLE, opaque], int) == (self.WHOLE,)


class Half(Enum):
    WHOLE = 1
    PART = 0.5


class Few(Enum):
    ONE = 1
    TWO = 2


class TestNeverWins:
    """Whether an alternative is hidden is asked of the values, inside arrays and objects too."""

    def test_an_enum_that_is_partly_hidden_can_win(self) -> None:
        assert plan(int | Half).structure(0.5) is Half.PART
        with pytest.raises(RegistrationError, match="Few can never win: int"):
            plan(int | Few)

    def test_numbers_hide_integers_inside_a_container(self) -> None:
        with pytest.raises(RegistrationError, match="can never win"):
            plan(dict[str, float] | dict[str, Few])
        with pytest.raises(RegistrationError, match="can never win"):
            plan(list[float] | tuple[int, ...])
        assert plan(float | Few).structure(1) is Few.ONE

    def test_integers_do_not_hide_numbers(self) -> None:
        assert plan(list[int] | tuple[float, ...]).structure([1.5]) == (1.5,)
        assert plan(list[Annotated[float, Ge(0)]] | tuple[int, ...]).structure([-1]) == (-1,)


def test_generated_names_are_told_apart_as_python_does() -> None:
    writer = Writer()
    assert [writer.fresh(name) for name in ("fi", "\ufb01", "\uff46\uff49")] == ["fi", "fi_2", "fi_3"]


def test_lengths_are_those_of_what_arrives() -> None:
    assert refused(plan(Annotated[list[int], Len(0, 2)]).structure, [1, 2, 3])
    assert math.isclose(plan(Annotated[float, Le(1)]).structure(1), 1.0)


@dataclasses.dataclass
class Plain:
    kind: Literal["plain"] = "plain"


@dataclasses.dataclass
class Fancy:
    kind: Literal["fancy"] = "fancy"


@dataclasses.dataclass
class Numbered:
    kind: Literal["first", 1]


@dataclasses.dataclass
class Spelled:
    kind: Literal["second"]


class TestTags:
    """Records are told apart by a member only if it is always there and always text."""

    def structure(self, annotation: Any) -> Any:
        table = type_table()
        for handler in pegboard_dataclasses.provide_types():
            table.add(handler, Origin("dataclasses", "pegboard-dataclasses", "1.0"), "plugin")
        found = table.plan(annotation)
        assert "discriminator" not in render(found.schema)
        return found.structure

    def test_a_tag_that_may_be_left_out_is_none(self) -> None:
        structure = self.structure(Plain | Fancy)
        assert [structure({}), structure({"kind": "fancy"})] == [Plain(), Fancy()]

    def test_a_tag_that_may_be_a_number_is_none(self) -> None:
        structure = self.structure(Numbered | Spelled)
        assert [structure({"kind": 1}), structure({"kind": "second"})] == [Numbered(1), Spelled("second")]


@pytest.mark.parametrize("name", ["class", "\ufb01", "two words", "plain"])
def test_a_preset_keyword_may_be_called_anything(name: str) -> None:
    # Python would read the ligature of "fi" as two letters.
    keys: Any = TypedDict("keys", {name: int})  # type: ignore[misc]  # made at run time

    def keep(**given: Any) -> str:
        return json.dumps(given)

    keep.__annotations__["given"] = Unpack[keys]
    with Toolkit(plugins=[pegboard_dataclasses]) as toolkit:
        toolkit.register(keep, presets={name: 5})
        assert json.loads(toolkit.call_sync("keep", {}).text) == {name: 5}
        assert json.loads(toolkit.call_sync("keep", {name: 6}).text) == {name: 6}
