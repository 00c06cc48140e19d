from typing import Any

import pytest

from pegboard import RegistrationError, Toolkit
from pegboard._types.table import TypeTable
from tests.plugins.numpy.promise import arrive, keeps_promise, leave, refused, schema

pd = pytest.importorskip("pandas")

CELL = {"anyOf": [{"type": name} for name in ("string", "integer", "number", "boolean", "null")]}


class TestFrame:
    def test_schema_is_an_array_of_records(self, types: TypeTable) -> None:
        record = {"type": "object", "additionalProperties": CELL}
        assert schema(types, pd.DataFrame) == {"type": "array", "items": record}

    def test_rows_arrive_in_order(self, types: TypeTable) -> None:
        found = arrive(types, pd.DataFrame, [{"b": 1, "a": "x"}, {"b": 2, "a": "y"}])
        assert type(found) is pd.DataFrame
        assert list(found.columns) == ["b", "a"]
        assert found["b"].tolist() == [1, 2]
        assert found["a"].tolist() == ["x", "y"]
        assert found.index.tolist() == [0, 1]

    def test_integers_with_gaps_stay_integers(self, types: TypeTable) -> None:
        found = arrive(types, pd.DataFrame, [{"a": 2**53 + 1}, {"a": None}, {}])
        assert found["a"].tolist() == [2**53 + 1, pd.NA, pd.NA]

    def test_integers_beyond_64_bits_stay_exact(self, types: TypeTable) -> None:
        assert arrive(types, pd.DataFrame, [{"a": 2**70}, {"a": None}])["a"][0] == 2**70

    def test_rows_without_columns_are_rows(self, types: TypeTable) -> None:
        assert arrive(types, pd.DataFrame, [{}, {}]).shape == (2, 0)
        assert leave(types, pd.DataFrame, pd.DataFrame(index=[0, 1])) == [{}, {}]
        assert arrive(types, pd.DataFrame, []).shape == (0, 0)

    @pytest.mark.parametrize("value", [{"a": [1]}, [1], [[1]], [{"a": [1]}], "a", None])
    def test_other_forms_are_refused(self, types: TypeTable, value: Any) -> None:
        assert refused(types, pd.DataFrame, value)

    def test_keeps_its_promise(self, types: TypeTable) -> None:
        keeps_promise(types, pd.DataFrame, lambda found: type(found) is pd.DataFrame)

    def test_leaves_as_records_without_its_index(self, types: TypeTable) -> None:
        table = pd.DataFrame({"a": [1, 2], 3: ["x", None], "c": [0.5, float("nan")]}, index=["p", "q"])
        written = leave(types, pd.DataFrame, table)
        assert written == [{"a": 1, "3": "x", "c": 0.5}, {"a": 2, "3": None, "c": None}]
        assert type(written[0]["a"]) is int

    def test_moments_and_missing_ones(self, toolkit: Toolkit) -> None:
        def log() -> pd.DataFrame:  # type: ignore[name-defined]  # may be missing
            return pd.DataFrame({"at": pd.to_datetime(["2024-05-06", None])})

        toolkit.register(log)
        assert toolkit.call_sync("log").data == [{"at": "2024-05-06T00:00:00"}, {"at": None}]

    def test_columns_of_one_name_are_never_lost(self, toolkit: Toolkit) -> None:
        def twice() -> pd.DataFrame:  # type: ignore[name-defined]  # may be missing
            return pd.DataFrame([[1, 2]], columns=["a", "a"])

        toolkit.register(twice)
        result = toolkit.call_sync("twice")
        assert result.is_error
        assert "'a' are there twice" in result.text


class TestSeries:
    def test_schema_is_an_array_of_scalars(self, types: TypeTable) -> None:
        assert schema(types, pd.Series) == {"type": "array", "items": CELL}

    @pytest.mark.parametrize("values", [[1, 2], [0.5, 1.5], ["a", None], [True, False], [], [1, None]])
    def test_travels_back_and_forth(self, types: TypeTable, values: list[Any]) -> None:
        found = arrive(types, pd.Series, values)
        assert type(found) is pd.Series
        assert leave(types, pd.Series, found) == values

    def test_keeps_its_promise(self, types: TypeTable) -> None:
        keeps_promise(types, pd.Series, lambda found: type(found) is pd.Series)


def test_results_without_annotation(toolkit: Toolkit) -> None:
    def tables():  # type: ignore[no-untyped-def]
        return {"frame": pd.DataFrame({"a": [1]}), "series": pd.Series([True])}

    toolkit.register(tables)
    assert toolkit.call_sync("tables").data == {"frame": [{"a": 1}], "series": [True]}


def test_derived_tables_are_refused(types: TypeTable) -> None:
    class Derived(pd.DataFrame):  # type: ignore[misc,name-defined]  # may be missing
        pass

    with pytest.raises(RegistrationError, match=r"Derived would arrive as a pandas\.DataFrame"):
        types.plan(Derived)
