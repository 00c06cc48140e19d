import datetime as dt
from typing import Annotated, Any

import numpy as np
import pytest

from pegboard import Param, RegistrationError, Status, Toolkit
from pegboard._types.table import TypeTable
from tests.plugins.numpy.promise import arrive, keeps_promise, leave, refused, schema
from tests.support.thinning import one_in

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]
SCALARS: list[Any] = [*INTEGERS, *FLOATS, np.bool_, np.str_, np.datetime64]


@pytest.mark.parametrize(
    ("cls", "least", "most"),
    [
        (np.int8, -128, 127),
        (np.uint8, 0, 255),
        (np.int16, -32768, 32767),
        (np.int64, -(2**63), 2**63 - 1),
        (np.uint64, 0, 2**64 - 1),
    ],
)
def test_integers_have_the_range_of_their_dtype(types: TypeTable, cls: Any, least: int, most: int) -> None:
    assert schema(types, cls) == {"type": "integer", "minimum": least, "maximum": most}
    for value in (least, most):
        found = arrive(types, cls, value)
        assert type(found) is cls
        assert int(found) == value
    for value in (least - 1, most + 1):
        assert refused(types, cls, value)


@pytest.mark.parametrize(("cls", "most"), [(np.float16, 65504.0), (np.float32, 3.4028234663852886e38)])
def test_small_floats_do_not_overflow(types: TypeTable, cls: Any, most: float) -> None:
    assert schema(types, cls) == {"type": "number", "minimum": -most, "maximum": most}
    assert arrive(types, cls, most) == np.finfo(cls).max
    assert refused(types, cls, most * 1.01)


@pytest.mark.parametrize("cls", FLOATS)
def test_floats_take_integers(types: TypeTable, cls: Any) -> None:
    found = arrive(types, cls, 3)
    assert type(found) is cls
    assert found == 3.0


@pytest.mark.parametrize(
    ("cls", "value"),
    [
        (np.int8, "1"),
        (np.int8, 1.5),
        (np.int8, True),
        (np.float64, "1.5"),
        (np.float64, False),
        (np.bool_, 1),
        (np.bool_, "true"),
        (np.str_, 1),
        (np.datetime64, "2024-05-06"),
        (np.int64, None),
        (np.int64, [1]),
    ],
)
def test_other_json_is_refused(types: TypeTable, cls: Any, value: Any) -> None:
    assert refused(types, cls, value)


@pytest.mark.parametrize("cls", one_in(4, SCALARS))
def test_keeps_its_promise(types: TypeTable, cls: Any) -> None:
    keeps_promise(types, cls, lambda found: type(found) is cls)


@pytest.mark.parametrize(
    ("cls", "value", "written"),
    [
        (np.int8, np.int8(-5), -5),
        (np.uint64, np.uint64(2**64 - 1), 2**64 - 1),
        (np.float32, np.float32(0.5), 0.5),
        (np.bool_, np.bool_(True), True),
        (np.str_, np.str_("ä"), "ä"),
        (np.float64, 1.5, 1.5),
    ],
)
def test_results_are_plain_json(types: TypeTable, cls: Any, value: Any, written: Any) -> None:
    found = leave(types, cls, value)
    assert type(found) is type(written)
    assert found == written


def test_family_stands_for_the_dtype_that_numpy_picks(types: TypeTable) -> None:
    assert type(arrive(types, np.floating, 1)) is np.float64
    assert type(arrive(types, np.integer, 1)) is np.int64
    assert type(arrive(types, np.floating[Any], 1)) is np.float64


def test_bounds_apply(types: TypeTable) -> None:
    small = Annotated[np.int32, Param("a few", ge=1, le=3)]
    assert schema(types, small) == {"type": "integer", "minimum": 1, "maximum": 3, "description": "a few"}
    assert arrive(types, small, 3) == 3
    assert refused(types, small, 4)


def test_defaults_are_shown(toolkit: Toolkit) -> None:
    def move(by: np.int8 = np.int8(3)) -> np.int8:  # noqa: B008 - scalars are immutable
        return by

    toolkit.register(move)
    assert toolkit["move"].parameters["properties"]["by"]["default"] == 3
    assert toolkit.call_sync("move").data == 3


class TestMoments:
    def test_count_in_utc(self, types: TypeTable) -> None:
        assert arrive(types, np.datetime64, "2024-05-06T07:08:09+02:00") == np.datetime64("2024-05-06T05:08:09")

    def test_offset_leads_out_of_no_range(self, types: TypeTable) -> None:
        found = arrive(types, np.datetime64, "0001-01-01T00:00:00+23:59")
        assert found == np.datetime64("0001-01-01", "us") - np.timedelta64(23 * 60 + 59, "m")

    @pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
    def test_leave_with_their_zone(self, types: TypeTable, unit: Any) -> None:
        moment = np.datetime64("2024-05-06", unit)
        written = leave(types, np.datetime64, moment)
        assert dt.datetime.fromisoformat(written) == dt.datetime(2024, 5, 6, tzinfo=dt.UTC)
        assert arrive(types, np.datetime64, written) == moment

    def test_not_a_time_is_null(self, types: TypeTable) -> None:
        assert types.plan(np.datetime64).unstructure(np.datetime64("NaT", "us")) is None

    def test_years_that_text_cannot_say_are_an_error(self, types: TypeTable) -> None:
        with pytest.raises(ValueError, match="1 to 9999"):
            types.plan(np.datetime64).unstructure(np.datetime64("12000-01-01"))


@pytest.mark.parametrize(
    ("cls", "remedy"),
    [
        (np.complex128, "two arrays"),
        (np.longdouble, "numpy.float64"),
        (np.timedelta64, "datetime.timedelta"),
        (np.bytes_, "use bytes"),
        (np.object_, "a dtype of"),
        (np.void, "a dtype of"),
    ],
)
def test_what_json_cannot_keep_is_refused_with_a_remedy(types: TypeTable, cls: Any, remedy: str) -> None:
    with pytest.raises(RegistrationError, match=f"numpy.{cls.__name__}.*{remedy}"):
        types.plan(cls)


def test_mistakes_are_explained(toolkit: Toolkit) -> None:
    def level(to: np.uint8) -> None:
        """Set a level."""

    toolkit.register(level)
    assert "to: expected integer >= 0 and <= 255, got integer 256" in toolkit.call_sync("level", {"to": 256}).text


class TestRepairs:
    """Scalars climb the same ladder as int, float and bool."""

    @pytest.fixture
    def toolkit(self, toolkit: Toolkit) -> Toolkit:
        def mix(count: np.int64, share: np.float32, on: np.bool_, more: list[np.uint8] | None = None) -> list[str]:
            return [type(each).__name__ for each in (count, share, on, *(more or ()))]

        toolkit.register(mix)
        return toolkit

    def test_texts_that_spell_a_value(self, toolkit: Toolkit) -> None:
        sent = {"count": "5", "share": "2.5", "on": "true", "more": ["1", 2.0]}
        result = toolkit.call_sync("mix", sent)
        assert result.data == [np.int64.__name__, np.float32.__name__, np.bool_.__name__] + [np.uint8.__name__] * 2
        assert [note.path for note in result.notes] == ["count", "share", "on", "more[0]"]
        assert toolkit.call_sync("mix", sent | {"more": 7}).notes[-1] == "more: integer 7 read as array of one item"

    @pytest.mark.parametrize("wrong", [{"count": "5.5"}, {"count": "9e9"}, {"on": 2}, {"on": "yes"}, {"share": "nan"}])
    def test_no_guesses(self, toolkit: Toolkit, wrong: dict[str, Any]) -> None:
        result = toolkit.call_sync("mix", {"count": 1, "share": 1, "on": True} | wrong)
        assert result.status is Status.INVALID

    def test_none_out_of_range(self, toolkit: Toolkit) -> None:
        result = toolkit.call_sync("mix", {"count": str(2**63), "share": 1, "on": True, "more": "256"})
        assert [line.partition(":")[0] for line in result.text.splitlines()[1:]] == ["count", "more"]
