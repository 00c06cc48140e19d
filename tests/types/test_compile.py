"""Generated structuring code: what it accepts, how it counts, and how it reads."""

import functools
import linecache
import traceback
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from typing import Any, Literal

import pytest

from pegboard._base.errors import Mismatch
from pegboard._model.shapes import (
    Check,
    Choice,
    Deferred,
    Items,
    Mapped,
    Member,
    Record,
    Scalar,
    Tagged,
    Text,
    TypePlan,
    Union,
)
from pegboard._types.codegen import Writer, emit, structurer
from pegboard._types.plans import shaped
from tests.types.table import plan, refused

TEXT, WHOLE, ANYTHING = plan(str), plan(int), plan(object)


@dataclass
class Item:
    name: str
    size: int = 1


def record(*members: Member, build: Callable[..., Any] = dict, is_open: bool = False) -> TypePlan:
    return shaped({"type": "object"}, Record(build, members, "item", is_open))


ITEM = record(Member("name", "name", TEXT), Member("size", "size", WHOLE, required=False), build=Item)


def counting(found: TypePlan) -> tuple[Callable[[Any], tuple[Any, int]], str]:
    """A function that structures and counts, and its source."""
    writer = Writer(count=True)
    value, result = writer.fresh("value"), writer.fresh("result")
    with writer.block(f"def structure({value}):"):
        writer.line("members = 0")
        emit(writer, found, value, result)
        writer.line(f"return {result}, members")
    return writer.build("structure", "test"), writer.source


class TestRecords:
    def test_members_reach_the_class_by_name(self) -> None:
        assert ITEM.structure({"size": 2, "name": "a"}) == Item("a", 2)

    def test_an_absent_optional_member_is_left_to_the_class(self) -> None:
        assert ITEM.structure({"name": "a"}) == Item("a", 1)

    @pytest.mark.parametrize(
        "value", [{}, {"size": 1}, {"name": 1}, {"name": "a", "x": 1}, {"name": "a", "size": None}, [], "a"]
    )
    def test_missing_surplus_and_misfits_are_refused(self, value: Any) -> None:
        with pytest.raises(Mismatch):
            ITEM.structure(value)

    def test_surplus_members_of_an_open_record_are_ignored(self) -> None:
        found = record(Member("name", "name", TEXT), is_open=True)
        assert found.structure({"name": "a", "x": {"y": 1}}) == {"name": "a"}

    def test_names_that_python_cannot_write_are_passed_too(self) -> None:
        for name in ("class", "a-b"):
            found = record(Member(name, name, TEXT), Member("c-d", "c d", WHOLE, required=False))
            assert found.structure({name: "x", "c d": 1}) == {name: "x", "c-d": 1}

    def test_keys_are_not_names(self) -> None:
        found = record(Member("name", "full name", TEXT), build=Item)
        assert found.structure({"full name": "a"}) == Item("a")
        assert refused(found.structure, {"name": "a"})

    def test_positional_arguments_are_used_only_where_they_mean_the_same(self) -> None:
        def swapped(size: int, name: str) -> tuple[int, str]:
            return size, name

        class Picky:
            def __new__(cls, size: int, name: str) -> Any:
                return (size, name)

            def __init__(self, name: str, size: int) -> None: ...

        class Meta(type):
            def __call__(cls, size: int, name: str) -> Any:
                return (size, name)

        class Managed(metaclass=Meta):
            def __init__(self, name: str, size: int) -> None: ...

        members = (Member("name", "name", TEXT), Member("size", "size", WHOLE))
        for build in (swapped, Picky, Managed, functools.partial(swapped)):
            assert record(*members, build=build).structure({"name": "a", "size": 1}) == (1, "a")
        writer = Writer()
        emit(writer, record(*members, build=Item), "value", "result")
        assert "Item(result_name, result_size)" in writer.source

    def test_an_exception_of_the_class_comes_through(self) -> None:
        def build(name: str) -> None:
            raise LookupError(name)

        with pytest.raises(LookupError, match="a"):
            record(Member("name", "name", TEXT), build=build).structure({"name": "a"})


class TestSubclassesOfJsonTypes:
    class Words(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "something else"

    class Whole(int):
        pass

    class Dict(dict[str, Any]):
        pass

    class List(list[Any]):
        pass

    @pytest.mark.parametrize("annotation", [str, int | str, str | None])
    def test_text_arrives_as_plain_text(self, annotation: Any) -> None:
        found = plan(annotation).structure(self.Words("a"))
        assert (type(found), found) == (str, "a")

    @pytest.mark.parametrize("annotation", [int, int | str, float | int])
    def test_integers_arrive_as_plain_ones(self, annotation: Any) -> None:
        found = plan(annotation).structure(self.Whole(3))
        assert (type(found), found) == (int, 3)

    def test_objects_and_arrays_may_be_subclasses(self) -> None:
        assert ITEM.structure(self.Dict(name="a")) == Item("a")
        assert plan(list[int]).structure(self.List([1])) == [1]
        assert plan(list[int] | dict[str, int]).structure(self.Dict(a=1)) == {"a": 1}

    @pytest.mark.parametrize("value", [(1,), {1}, b"a", object(), 1j, Item("a")])
    def test_what_json_does_not_have_is_refused(self, value: Any) -> None:
        for annotation in (
            str,
            int,
            float,
            bool,
            list[int],
            dict[str, int],
            int | str,
            None,
            Literal["a"],
            Literal[1, "a"],
        ):
            with pytest.raises((Mismatch, TypeError)):
                plan(annotation).structure(value)

    def test_a_refusal_says_no_more_than_that(self) -> None:
        for annotation, value in ((float, 10**400), (list[int], "a"), (list[int], {}), (int | str, object()), (str, 1)):
            with pytest.raises(Mismatch):
                plan(annotation).structure(value)

    def test_keys_of_a_mapping_have_to_be_text(self) -> None:
        assert refused(plan(dict[str, int]).structure, {1: 1})
        assert refused(plan(dict[int, int]).structure, {1: 1})


class TestCounting:
    @pytest.mark.parametrize(
        ("annotation", "value", "members"),
        [
            (int, 1, 0),
            (dict[str, int], {"a": 1, "b": 2}, 2),
            (list[dict[str, int]], [{"a": 1}, {"b": 1, "c": 1}], 3),
            (dict[str, dict[str, int]], {"a": {"b": 1}}, 2),
            (object, {"a": [{"b": {"c": 1}}]}, 3),
            (object, 1, 0),
            (object, [1.5, {"a": object()}], 1),
            (list[Any], [{"a": 1}, [{"b": 1}]], 2),
            (dict[str, int] | dict[str, str], {"a": "x"}, 1),
            (int | dict[str, int], {"a": 1}, 1),
            (dict[str, int] | None, {"a": 1}, 1),
            (tuple[dict[str, int], int], [{"a": 1}, 1], 1),
        ],
    )
    def test_every_member_of_every_object_is_counted(self, annotation: Any, value: Any, members: int) -> None:
        function, _ = counting(plan(annotation))
        assert function(value)[1] == members

    def test_records_and_their_ignored_members_are_counted(self) -> None:
        found = record(Member("name", "name", TEXT), Member("more", "more", ITEM, required=False), is_open=True)
        function, _ = counting(found)
        assert function({"name": "a"})[1] == 1
        assert function({"name": "a", "more": {"name": "b"}, "x": {"y": [{"z": 1}]}})[1] == 6

    def test_tagged_deferred_and_opaque_types_are_counted(self) -> None:
        tagged = shaped({}, Tagged("name", {"a": ITEM, "b": ITEM}))
        deferred = shaped({}, Deferred(lambda: ITEM))
        opaque = TypePlan({}, lambda value: value)
        for found in (tagged, deferred, opaque):
            function, _ = counting(found)
            assert function({"name": "a", "size": 1})[1] == 2

    def test_a_function_that_does_not_count_has_no_counter(self) -> None:
        writer = Writer()
        emit(writer, ITEM, "value", "result")
        assert "members" not in writer.source


class TestShapes:
    def test_a_tag_chooses_the_record(self) -> None:
        by_tag: dict[str | int | bool, TypePlan] = {
            tag: record(Member("kind", "kind", TEXT), build=lambda kind, tag=tag: (tag, kind)) for tag in ("a", "b")
        }
        found = shaped({}, Tagged("kind", by_tag))
        assert found.structure({"kind": "b"}) == ("b", "b")
        value: Any
        for value in ({"kind": "c"}, {}, {"kind": ["a"]}, {"kind": None}, [], "a"):
            assert refused(found.structure, value)

    def test_a_tag_that_is_a_number_is_no_truth_value(self) -> None:
        found = shaped({}, Tagged("kind", {1: record(Member("kind", "kind", WHOLE))}))
        assert found.structure({"kind": 1}) == {"kind": 1}
        assert refused(found.structure, {"kind": True})

    def test_the_first_of_two_equal_choices_counts(self) -> None:
        assert shaped({}, Choice((("a", 1), ("a", 2)))).structure("a") == 1
        assert shaped({}, Choice(((1, "whole"), (1.0, "real")))).structure(1) == "whole"

    def test_alternatives_are_tried_in_turn_whatever_they_raise(self) -> None:
        def fails(text: str) -> str:
            raise ZeroDivisionError(text)

        union = Union((shaped({}, Text(fails)), shaped({}, Text(str.upper))))
        assert shaped({}, union).structure("a") == "A"
        assert refused(shaped({}, Union((shaped({}, Text(str.upper)), shaped({}, Text(fails))))).structure, 1)

    def test_the_last_alternative_s_exception_is_the_one_that_is_seen(self) -> None:
        def fails(text: str) -> str:
            raise ZeroDivisionError(text)

        union = Union((shaped({}, Text(fails)), shaped({}, Text(fails))))
        with pytest.raises(ZeroDivisionError):
            shaped({}, union).structure("a")

    def test_two_spellings_of_one_key_are_refused(self) -> None:
        found = shaped({}, Mapped(shaped({}, Text(str.lower)), WHOLE))
        assert found.structure({"A": 1, "b": 2}) == {"a": 1, "b": 2}
        assert refused(found.structure, {"A": 1, "a": 2})

    def test_a_mapping_may_be_built_into_something_else(self) -> None:
        assert shaped({}, Mapped(None, WHOLE, build=sorted)).structure({"b": 1, "a": 2}) == ["a", "b"]

    def test_bounds_of_every_shape_are_enforced(self) -> None:
        check = (Check("bound", 2, "len({value}) >= {limit}"),)
        for shape, good, bad in (
            (Scalar(str, check), "ab", "a"),
            (Text(str, check), "ab", "a"),
            (Items(WHOLE, list, check), [1, 2], [1]),
            (Mapped(None, WHOLE, None, check), {"a": 1, "b": 1}, {"a": 1}),
            (Scalar(object, check), [None, None], []),
        ):
            structure = structurer(shape)
            assert structure(good) == good
            assert refused(structure, bad)

    def test_nesting_without_end_is_refused_and_not_an_accident(self) -> None:
        node: TypePlan = record(Member("next", "next", shaped({}, Deferred(lambda: node)), required=False))
        value: dict[str, Any] = {}
        for _ in range(5000):
            value = {"next": value}
        with pytest.raises(Mismatch, match="nested too deeply"):
            node.structure(value)

    def test_types_nested_deeper_than_python_allows_blocks_still_compile(self) -> None:
        found, value = WHOLE, 1
        for _ in range(40):
            found, value = shaped({}, Items(found)), [value]  # type: ignore[assignment]  # a deeper list each time
        assert found.structure(value) == value

    def test_a_type_used_very_often_does_not_grow_without_bound(self) -> None:
        found = ITEM
        for _ in range(8):
            found = record(*(Member(name, name, found) for name in ("a", "b", "c", "d")))
        _, source = counting(found)
        assert source.count("\n") < 2000


class TestWriting:
    def test_names_are_readable_and_never_clash(self) -> None:
        writer = Writer()
        names = [writer.fresh(hint) for hint in ("city", "city", "class", "1st", "<locals>", "a b", "type", "members")]
        assert names == ["city", "city_2", "_class", "_1st", "value", "a_b", "type_2", "members_2"]

    def test_one_object_is_one_constant(self) -> None:
        writer = Writer()
        first, second = object(), object()
        assert writer.constant(first, "thing") == writer.constant(first, "other") == "thing"
        assert writer.constant(second, "thing") == "thing_2"

    @pytest.mark.parametrize(
        "name", ["type", "int", "KeyError", "value", "result", "item", "structure", "to_text", "dict"]
    )
    def test_a_class_may_be_called_anything(self, name: str) -> None:
        cls = make_dataclass(name, [("len", str), ("key", int)])
        found = shaped({}, Record(cls, (Member("len", "len", TEXT), Member("key", "key", WHOLE)), name))
        listed = shaped({}, Items(shaped({}, Union((found, WHOLE)))))
        for structure in (listed.structure, lambda value: counting(listed)[0](value)[0]):
            assert structure([{"len": "x", "key": 1}, 5]) == [cls("x", 1), 5]
            assert refused(structure, [{"len": "x"}])

    def test_the_source_shows_the_names_of_the_user_s_types(self) -> None:
        _, source = counting(ITEM)
        assert "Item(" in source
        assert "result_name" in source

    def test_tracebacks_show_the_generated_line(self) -> None:
        with pytest.raises(ValueError, match="invalid literal") as caught:
            structurer(Text(int))("x")
        assert "result = int(result)" in "".join(traceback.format_exception(caught.value))

    def test_nothing_is_left_behind_when_a_function_is_gone(self) -> None:
        import gc

        writer = Writer()
        with writer.block("def f():"):
            writer.line("return 1")
        function = writer.build("f", "leaves nothing")
        name = function.__code__.co_filename
        assert name in linecache.cache
        del function
        gc.collect()
        assert name not in linecache.cache

    def test_nothing_is_compiled_before_the_first_call(self) -> None:
        class Unready:
            type = property(lambda self: pytest.fail("read before the first call"))

        structurer(Unready())  # type: ignore[arg-type]  # only to show that it is not looked at
