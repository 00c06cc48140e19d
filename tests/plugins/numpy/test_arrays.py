from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

from pegboard import Param, RegistrationError, Toolkit
from pegboard._types.table import TypeTable
from tests.plugins.numpy.promise import accepts, arrive, keeps_promise, leave, refused, schema, structures
from tests.support.examining import explain
from tests.support.thinning import one_in

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
Matrix = np.ndarray[tuple[int, int], np.dtype[np.int32]]
Rotation = np.ndarray[tuple[Literal[3], Literal[3]], np.dtype[np.float64]]
Points = np.ndarray[tuple[int, Literal[2]], np.dtype[np.float32]]
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]

KINDS: list[tuple[Any, str]] = [
    (np.ndarray, "f8"),
    (npt.NDArray[np.float64], "f8"),
    (npt.NDArray[np.float32], "f4"),
    (npt.NDArray[np.int8], "i1"),
    (npt.NDArray[np.bool_], "b1"),
    (npt.NDArray[np.str_], "U"),
    (npt.NDArray[np.datetime64], "M8"),
    (Vector, "f8"),
    (Matrix, "i4"),
    (Points, "f4"),
    (Bytes, "u1"),
    (np.ndarray[tuple[Literal[2], Literal[1]], np.dtype[np.bool_]], "b1"),
]
"""Annotations, and how the code of the dtype begins that arrays arrive with."""


def problems(types: TypeTable, annotation: Any, value: Any) -> list[str]:
    return [str(problem) for problem in explain(types.plan(annotation), value, "m")]


class TestSchema:
    def test_of_a_matrix(self, types: TypeTable) -> None:
        integers = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
        assert schema(types, Matrix) == {"type": "array", "items": {"type": "array", "items": integers}}

    def test_says_lengths_that_are_fixed(self, types: TypeTable) -> None:
        three = {"minItems": 3, "maxItems": 3}
        row = {"type": "array", "items": {"type": "number"}, **three}
        assert schema(types, Rotation) == {"type": "array", "items": row, **three}

    def test_refers_to_itself_where_the_number_of_dimensions_is_free(self, types: TypeTable) -> None:
        body = {"type": "array", "items": {"anyOf": [{"type": "number"}, {"$ref": "#/$defs/Nested_float"}]}}
        assert schema(types, npt.NDArray[np.float64]) == {**body, "$defs": {"Nested_float": body}}

    def test_says_the_range_of_the_dtype(self, types: TypeTable) -> None:
        assert schema(types, Bytes) == {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}}


class TestArriving:
    @pytest.mark.parametrize(
        ("annotation", "value", "wanted"),
        [
            (np.ndarray, [1, 2.5], np.array([1.0, 2.5])),
            (npt.NDArray[Any], [1], np.array([1.0])),
            (npt.NDArray[np.floating], [[1]], np.array([[1.0]])),
            (npt.NDArray[np.integer], [1], np.array([1])),
            (npt.NDArray[np.float32], [[[1, 2.5]]], np.array([[[1, 2.5]]], np.float32)),
            (npt.NDArray[np.int8], [-128, 127.0], np.array([-128, 127], np.int8)),
            (npt.NDArray[np.uint64], [2**64 - 1], np.array([2**64 - 1], np.uint64)),
            (npt.NDArray[np.bool_], [[True], [False]], np.array([[True], [False]])),
            (npt.NDArray[np.str_], ["a", "longer"], np.array(["a", "longer"])),
            (npt.NDArray[np.datetime64], ["2024-05-06T01:00:00+01:00"], np.array(["2024-05-06"], "M8[us]")),
            (Matrix, [[1, 2, 3], [4, 5, 6]], np.array([[1, 2, 3], [4, 5, 6]], np.int32)),
            (Rotation, np.eye(3).tolist(), np.eye(3)),
        ],
    )
    def test_dtype_and_shape_are_those_annotated(
        self, types: TypeTable, annotation: Any, value: Any, wanted: npt.NDArray[Any]
    ) -> None:
        found = arrive(types, annotation, value)
        assert type(found) is np.ndarray
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert (found == wanted).all()

    @pytest.mark.parametrize(
        ("annotation", "value", "shape"),
        [
            (Vector, [], (0,)),
            (Matrix, [], (0, 0)),
            (Matrix, [[], []], (2, 0)),
            (Points, [], (0, 2)),
            (np.ndarray[tuple[int, int, Literal[4]], np.dtype[np.str_]], [[]], (1, 0, 4)),
            (np.ndarray, [], (0,)),
            (np.ndarray, [[], []], (2, 0)),
        ],
    )
    def test_empty_arrays_have_the_dimensions_annotated(
        self, types: TypeTable, annotation: Any, value: Any, shape: tuple[int, ...]
    ) -> None:
        assert arrive(types, annotation, value).shape == shape

    @pytest.mark.parametrize(
        ("annotation", "value"),
        [
            (Vector, 1.5),
            (Vector, "[1, 2]"),
            (Vector, ["1"]),
            (Vector, [True]),
            (Vector, [None]),
            (Vector, [[1]]),
            (Vector, {"0": 1}),
            (Bytes, [256]),
            (Bytes, [-1]),
            (Bytes, [0.5]),
            (Matrix, [1]),
            (Matrix, [[[1]]]),
            (Rotation, [[1, 0, 0], [0, 1, 0]]),
            (Rotation, [[1, 0], [0, 1], [0, 0]]),
            (npt.NDArray[np.bool_], [0]),
            (npt.NDArray[np.str_], [1]),
            (npt.NDArray[np.str_], ["a\0"]),
            (npt.NDArray[np.float16], [1e6]),
            (npt.NDArray[np.float64], 1.5),
            (npt.NDArray[np.float64], [[[[["1"]]]]]),
        ],
    )
    def test_what_would_be_changed_is_refused(self, types: TypeTable, annotation: Any, value: Any) -> None:
        assert refused(types, annotation, value)

    @pytest.mark.parametrize(("annotation", "code"), one_in(4, KINDS), ids=str)
    def test_keeps_its_promise(self, types: TypeTable, annotation: Any, code: str) -> None:
        keeps_promise(
            types, annotation, lambda found: type(found) is np.ndarray and found.dtype.str[1:].startswith(code)
        )


class TestUnevenRows:
    """What 2020-12 cannot say: that the rows of a dimension are equally long."""

    @pytest.mark.parametrize(
        ("annotation", "value", "said"),
        [
            (
                Matrix,
                [[1, 2], [3], [4, 5], [6]],
                [
                    "m[1]: expected array of exactly 2 items as in the first row, got array of exactly 1 items",
                    "m[3]: expected array of exactly 2 items as in the first row, got array of exactly 1 items",
                ],
            ),
            (
                np.ndarray,
                [[[1], [2]], [[3, 4], [5]]],
                ["m[1][0]: expected array of exactly 1 items as in the first row, got array of exactly 2 items"],
            ),
            (np.ndarray, [1, [2]], ["m[1]: expected a single value as in the first row, got array of exactly 1 items"]),
            (np.ndarray, [[1], 2], ["m[1]: expected array of exactly 1 items as in the first row, got a single value"]),
        ],
    )
    def test_are_refused_with_their_paths(self, types: TypeTable, annotation: Any, value: Any, said: list[str]) -> None:
        assert accepts(types, annotation, value)
        assert problems(types, annotation, value) == said

    def test_more_dimensions_than_numpy_has_are_refused(self, types: TypeTable) -> None:
        deep: Any = 1
        for _ in range(65):
            deep = [deep]
        assert accepts(types, np.ndarray, deep)
        assert not structures(types, np.ndarray, deep)
        assert structures(types, np.ndarray, deep[0])


class TestLeaving:
    @pytest.mark.parametrize(
        ("annotation", "value", "written"),
        [
            (Matrix, np.array([[1, 2]], np.int32), [[1, 2]]),
            (np.ndarray, np.array([0.5]), [0.5]),
            (npt.NDArray[np.bool_], np.array([True]), [True]),
            (npt.NDArray[np.str_], np.array(["a"]), ["a"]),
            (Matrix, np.arange(6, dtype=np.int32).reshape(2, 3).T, [[0, 3], [1, 4], [2, 5]]),
        ],
    )
    def test_arrays_are_lists(self, types: TypeTable, annotation: Any, value: Any, written: Any) -> None:
        assert leave(types, annotation, value) == written

    def test_moments_are_text(self, types: TypeTable) -> None:
        days = np.array([["2024-05-06", "2024-05-07"]], "M8[D]")
        written = leave(types, npt.NDArray[np.datetime64], days)
        assert (arrive(types, npt.NDArray[np.datetime64], written) == days).all()

    def test_not_a_number_is_null(self, toolkit: Toolkit) -> None:
        def gaps() -> npt.NDArray[np.float64]:
            return np.array([[1.0, np.nan, np.inf]])

        toolkit.register(gaps)
        result = toolkit.call_sync("gaps")
        assert (result.data, result.text) == ([[1.0, None, None]], "[[1.0, null, null]]")

    def test_results_without_annotation(self, toolkit: Toolkit) -> None:
        def mixed():  # type: ignore[no-untyped-def]
            return {"a": np.arange(2), np.int64(4): np.float32(0.5), "c": [np.array(["x"]), np.array(7)]}

        toolkit.register(mixed)
        assert toolkit.call_sync("mixed").data == {"a": [0, 1], "4": 0.5, "c": [["x"], 7]}

    def test_returns_have_a_schema(self, toolkit: Toolkit) -> None:
        def identity() -> Rotation:
            return np.eye(3)  # type: ignore[return-value]  # NumPy's hints do not say that they are three

        toolkit.register(identity)
        returns = toolkit["identity"].returns
        assert returns is not None
        assert (returns["minItems"], returns["items"]["maxItems"]) == (3, 3)


class TestWithOthers:
    def test_inside_containers_and_beside_null(self, types: TypeTable) -> None:
        found = arrive(types, dict[str, list[Vector | None]], {"a": [[1, 2], None]})
        assert found["a"][1] is None
        assert found["a"][0].tolist() == [1.0, 2.0]

    def test_bounds_count_the_first_dimension(self, types: TypeTable) -> None:
        few = Annotated[Matrix, Param("a few rows", max_length=2)]
        assert (schema(types, few)["maxItems"], schema(types, few)["description"]) == (2, "a few rows")
        assert arrive(types, few, [[1], [2]]).shape == (2, 1)
        assert refused(types, few, [[1], [2], [3]])

    def test_a_called_tool_gets_an_array_even_out_of_text(self, toolkit: Toolkit) -> None:
        def total(m: Matrix) -> np.int64:
            assert type(m) is np.ndarray
            return np.int64(m.sum())

        toolkit.register(total)
        assert toolkit.call_sync("total", {"m": [[1, 2], [3, 4]]}).data == 10
        repaired = toolkit.call_sync("total", {"m": "[[1, 2]]"})
        assert (repaired.data, len(repaired.notes)) == (3, 1)

    def test_mistakes_are_explained_with_their_paths(self, types: TypeTable) -> None:
        assert problems(types, Matrix, [[1, "x"], [2.5, 3]]) == [
            'm[0][1]: expected integer >= -2147483648 and <= 2147483647, got string "x"',
            "m[1][0]: expected integer >= -2147483648 and <= 2147483647, got number 2.5",
        ]
        assert problems(types, np.ndarray, [["x"]]) == ['m[0][0]: expected number or array, got string "x"']

    def test_a_field_of_a_dataclass(self) -> None:
        import pegboard_numpy

        packs = pytest.importorskip("pegboard_dataclasses")
        with Toolkit(plugins=[packs, pegboard_numpy]) as toolkit:
            toolkit.register(reach)
            assert toolkit.call_sync("reach", {"path": {"points": [[3, 4]]}}).data == {"points": [[6.0, 8.0]]}


@dataclass
class Path:
    points: Points


def reach(path: Path) -> Path:
    return Path(path.points * np.float32(2))


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (npt.NDArray[np.complex64], "numpy.complex64"),
        (npt.NDArray[np.object_], "numpy.object_"),
        (np.ndarray[tuple[()], np.dtype[np.int8]], "scalar class"),
        (np.ndarray[tuple[Literal[2, 3]], np.dtype[np.int8]], r"Literal\[2, 3\]"),
        (np.ndarray[tuple[Literal[-1]], np.dtype[np.int8]], "not the length"),
        (npt.NDArray[np.float32 | np.float64], "not one dtype"),
        (np.matrix, "numpy.matrix.*TypeHandler"),
        (np.ma.MaskedArray, "MaskedArray.*TypeHandler"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_one_line(types: TypeTable, annotation: Any, said: str) -> None:
    with pytest.raises(RegistrationError, match=said) as raised:
        types.plan(annotation)
    assert "\n" not in str(raised.value)
