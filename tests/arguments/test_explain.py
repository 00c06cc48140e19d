"""What a model is told about arguments that do not fit."""

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard._base.errors import Mismatch
from pegboard._model.shapes import Check, Mapped, Member, Record, Text, TypePlan
from pegboard._schema.problems import Problem, expectation, got, join, message, spell
from pegboard._types.plans import shaped
from tests.support import shapes
from tests.support.examining import explain
from tests.support.shapes import BOOLEAN, DATE, DAYS, INTEGER, NULL, NUMBER, TEXT, UNIT

FORECAST = shapes.record(city=TEXT, days=INTEGER, unit=UNIT, defaults={"days": 1, "unit": "C"})
CIRCLE = shapes.record(kind=shapes.literal("circle"), radius=NUMBER)
POINT = shapes.record(x=INTEGER, y=INTEGER, defaults={"y": 0})
SQUARE = shapes.record(kind=shapes.literal("square"), side=NUMBER)


def told(plan: TypePlan, value: Any, **options: Any) -> list[str]:
    return [str(problem) for problem in explain(plan, value, **options)]


class TestMessages:
    @pytest.mark.parametrize(
        ("plan", "value", "expected"),
        [
            (INTEGER, "three", 'expected integer, got string "three"'),
            (INTEGER, 5.7, "expected integer, got number 5.7"),
            (INTEGER, True, "expected integer, got boolean true"),
            (TEXT, None, "expected string, got null"),
            (TEXT, {"a": [1, None]}, 'expected string, got object {"a": [1, null]}'),
            (NUMBER, "x", 'expected number, got string "x"'),
            (BOOLEAN, 0, "expected boolean, got integer 0"),
            (NULL, 0, "expected null, got integer 0"),
            (DAYS, 0, "expected integer >= 1, got integer 0"),
            (UNIT, "Celsius", 'expected one of "C", "F", got string "Celsius"'),
            (
                shapes.literal("celsius", "kelvin"),
                "celcius",
                'expected one of "celsius", "kelvin", got string "celcius", did you mean "celsius"?',
            ),
            (shapes.literal("only"), "other", 'expected "only", got string "other"'),
            (shapes.array(INTEGER), "abc", 'expected array, got string "abc": write a JSON array, such as [..., ...]'),
            (shapes.array(INTEGER, least=1), [], "expected array of at least 1 items, got array []"),
            (shapes.array(INTEGER, unique=True), [1, 1], "expected array of unique items, got array [1, 1]"),
            (shapes.fixed(INTEGER, TEXT), [1], "expected array of exactly 2 items, got array [1]"),
            (shapes.mapping(INTEGER), [], "expected object, got array []"),
            (shapes.optional(INTEGER), "x", 'expected integer or null, got string "x"'),
            (shapes.either(INTEGER, TEXT), None, "expected integer or string, got null"),
            (shapes.either(INTEGER, TEXT), 1.5, "expected integer, got number 1.5"),
            (shapes.either(CIRCLE, POINT), {}, "expected object with kind, radius or object with x, got object {}"),
            (shapes.either(CIRCLE, INTEGER), None, "expected object or integer, got null"),
            (CIRCLE, 3, "expected object, got integer 3"),
            (shapes.tagged("kind", circle=CIRCLE), 3, "expected object, got integer 3"),
        ],
    )
    def test_of_one_problem(self, plan: TypePlan, value: Any, expected: str) -> None:
        assert told(plan, value) == [expected]

    def test_name_the_parser_s_reason(self) -> None:
        assert told(DATE, "2024-02-30") == [
            'expected date string, got string "2024-02-30": day is out of range for month'
        ]

    def test_all_problems_come_at_once(self) -> None:
        assert told(FORECAST, {"dais": 3, "days": "three", "unit": "c"}) == [
            "city: missing (required string)",
            'days: expected integer, got string "three"',
            'unit: expected one of "C", "F", got string "c", did you mean "C"?',
            "dais: unknown argument, did you mean 'days'?",
        ]

    def test_an_array_s_own_bounds_come_before_its_items(self) -> None:
        plan = shapes.record(days=shapes.array(DAYS, least=3, unique=True))
        assert told(plan, {"days": [0, 0]}) == [
            "days: expected array of at least 3 items and of unique items, got array [0, 0]",
            "days[0]: expected integer >= 1, got integer 0",
            "days[1]: expected integer >= 1, got integer 0",
        ]
        assert told(plan, {"days": [0, 1, 2]}) == ["days[0]: expected integer >= 1, got integer 0"]

    def test_a_mapping_s_own_bounds_come_before_its_members(self) -> None:
        check = Check("minProperties", 2, "len({value}) >= {limit}")
        plan = shaped({"type": "object", "minProperties": 2}, Mapped(UNIT, INTEGER, checks=(check,)))
        assert told(plan, {"K": "x"}) == [
            'expected object of at least 2 members, got object {"K": "x"}',
            'K: expected a key that is one of "C", "F", got string "K"',
            'K: expected integer, got string "x"',
        ]

    def test_a_surplus_name_like_no_other_gets_the_known_ones(self) -> None:
        assert told(FORECAST, {"city": "x", "zzz": 1}) == ["zzz: unknown argument (known: city, days, unit)"]

    def test_surplus_is_fine_where_the_record_is_open(self) -> None:
        plan = shapes.record(city=TEXT, surplus=True)
        assert told(plan, {"zzz": 1}) == ["city: missing (required string)"]

    def test_what_fits_has_no_problems(self) -> None:
        assert explain(FORECAST, {"city": "Paris"}) == []


class TestPaths:
    @pytest.mark.parametrize(
        ("plan", "value", "path"),
        [
            (
                shapes.record(orders=shapes.array(shapes.record(qty=INTEGER))),
                {"orders": [{"qty": 1}, {"qty": "x"}]},
                "orders[1].qty",
            ),
            (shapes.record(filters=shapes.mapping(INTEGER)), {"filters": {"a b": "x"}}, 'filters["a b"]'),
            (shapes.record(pair=shapes.fixed(INTEGER, TEXT)), {"pair": [1, 2]}, "pair[1]"),
            (shapes.record(limit=shapes.optional(shapes.array(INTEGER))), {"limit": ["x"]}, "limit[0]"),
            (shapes.tree(), {"name": "a", "children": [{"name": "b"}, {"name": 3}]}, "children[1].name"),
            (
                shapes.record(shape=shapes.tagged("kind", circle=CIRCLE)),
                {"shape": {"kind": "circle", "radius": "x"}},
                "shape.radius",
            ),
        ],
    )
    def test_lead_to_the_value(self, plan: TypePlan, value: Any, path: str) -> None:
        assert [problem.path for problem in explain(plan, value)] == [path]

    def test_begin_where_the_caller_says(self) -> None:
        assert [problem.path for problem in explain(shapes.array(INTEGER), ["x"], "items")] == ["items[0]"]

    def test_a_key_is_explained_too(self) -> None:
        plan = shapes.mapping(INTEGER, key=UNIT)
        assert told(plan, {"K": 1}) == ['K: expected a key that is one of "C", "F", got string "K"']

    def test_a_key_gets_the_nearest_or_the_parser_s_reason(self) -> None:
        choices = shapes.mapping(INTEGER, key=shapes.literal("celsius", "kelvin"))
        assert told(choices, {"celcius": 1})[0].endswith('got string "celcius", did you mean "celsius"?')
        assert told(shapes.mapping(INTEGER, key=DATE), {"2024-02-30": 1})[0].endswith("day is out of range for month")

    def test_two_spellings_of_one_key(self) -> None:
        plan = shapes.mapping(INTEGER, key=shaped({"type": "string"}, Text(str.lower)))
        assert told(plan, {"a": 1, "b": 2, "A": 3}) == ['A: means the same key as "a"; send it once']

    @pytest.mark.parametrize(
        ("key", "path"), [("a", "x.a"), ("a b", 'x["a b"]'), (0, "x[0]"), ("é", "x.é"), ("", 'x[""]')]
    )
    def test_are_spelled(self, key: str | int, path: str) -> None:
        assert join("x", key) == path


class TestUnions:
    def test_a_record_is_told_by_its_keys(self) -> None:
        plan = shapes.either(shapes.record(a=INTEGER, b=INTEGER), shapes.record(c=INTEGER, d=INTEGER))
        assert told(plan, {"c": 1, "d": "x"}) == ['d: expected integer, got string "x"']

    def test_a_constant_decides(self) -> None:
        plan = shapes.either(shapes.record(kind=UNIT, a=TEXT, b=TEXT), CIRCLE)
        assert told(plan, {"kind": "circle", "a": "x"}) == [
            "radius: missing (required number)",
            "a: unknown argument (known: kind, radius)",
        ]

    def test_a_tag_leads_to_its_record(self) -> None:
        plan = shapes.record(shape=shapes.tagged("kind", circle=CIRCLE, square=SQUARE))
        assert told(plan, {"shape": {"kind": "square"}}) == ["shape.side: missing (required number)"]

    def test_a_wrong_tag_gets_the_nearest(self) -> None:
        plan = shapes.tagged("kind", circle=CIRCLE, square=SQUARE)
        assert told(plan, {"kind": "sqare"}) == [
            'kind: expected one of "circle", "square", got string "sqare", did you mean "square"?'
        ]

    def test_a_missing_tag(self) -> None:
        plan = shapes.tagged("kind", circle=CIRCLE, square=SQUARE)
        assert told(plan, {"radius": 1}) == ['kind: missing (required one of "circle", "square")']

    @pytest.mark.parametrize("tag", [[], {}, None, True, 1.0])
    def test_a_tag_of_another_type(self, tag: Any) -> None:
        (problem,) = explain(shapes.tagged("kind", circle=CIRCLE), {"kind": tag})
        assert problem.path == "kind"


class TestAuthorsOwnChecks:
    def refuse(self, error: BaseException) -> TypePlan:
        def build(**members: Any) -> Any:
            raise error

        return shapes.record(point=shapes.record(build, x=INTEGER))

    def test_speak_for_themselves(self) -> None:
        assert told(self.refuse(ValueError("x must be even")), {"point": {"x": 1}}) == ["point: x must be even"]

    @pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), RecursionError(), KeyError("x")])
    def test_may_raise_anything(self, error: BaseException) -> None:
        (problem,) = explain(self.refuse(error), {"point": {"x": 1}})
        assert problem.path == "point"

    def test_may_have_a_message_that_fails(self) -> None:
        class Broken(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no message")

        assert told(self.refuse(Broken()), {"point": {"x": 1}}) == ["point: Broken (its message could not be read)"]

    def test_a_group_gives_the_messages_inside(self) -> None:
        group = ExceptionGroup("outer", [ValueError("one"), ExceptionGroup("inner", [ValueError("two")])])
        assert told(self.refuse(group), {"point": {"x": 1}}) == ["point: one; two"]

    def test_of_several_arguments_the_first_is_the_message(self) -> None:
        """As validators of attrs raise them."""
        assert told(self.refuse(ValueError("x must be even", object(), 1)), {"point": {"x": 1}}) == [
            "point: x must be even"
        ]
        assert told(self.refuse(ValueError(1, 2)), {"point": {"x": 1}}) == ["point: (1, 2)"]
        error = UnicodeDecodeError("utf-8", b"x", 0, 1, "why")
        assert told(self.refuse(error), {"point": {"x": 1}}) == [f"point: {error}"]

    def test_a_keyboard_interrupt_leaves(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            explain(self.refuse(KeyboardInterrupt()), {"point": {"x": 1}})


class TestWithoutShape:
    """A third party's plan may have nothing but a schema and a function."""

    SCHEMA: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"km": {"type": "number", "minimum": 0}},
        "required": ["km"],
    }

    def refuse(self, value: Any) -> Any:
        raise Mismatch("only whole kilometres")

    def test_the_schema_says_what_is_wrong(self) -> None:
        plan = shapes.record(way=shapes.opaque(self.SCHEMA, self.refuse))
        assert told(plan, {"way": {"km": -1}}) == ["way.km: expected number >= 0, got integer -1"]

    def test_else_the_exception_does(self) -> None:
        plan = shapes.record(way=shapes.opaque(self.SCHEMA, self.refuse))
        assert told(plan, {"way": {"km": 1.5}}) == ["way: only whole kilometres"]

    def test_a_schema_that_cannot_stand_alone_refuses_everything_and_says_so(self) -> None:
        (message,) = told(shapes.opaque({"$ref": "#/$defs/elsewhere"}, str), "3 km")
        assert message.startswith("cannot be checked against its schema: ")
        assert "'/$defs/elsewhere' does not exist" in message


class TestJudges:
    """A type's own judge may find several problems at once, each with the way to it: `Mismatch(located=...)`."""

    LOCATED: ClassVar[list[tuple[list[str | int], str]]] = [(["days", 1], "is a holiday"), ([], "too long by hunter2")]

    def refuse(self, *args: Any) -> Any:
        raise Mismatch("the calendar refuses it", located=self.LOCATED)

    @pytest.mark.parametrize("made", ["record", "text", "opaque"])
    def test_each_problem_has_its_place(self, made: str) -> None:
        plan = {
            "record": shaped({"type": "object"}, Record(lambda **members: self.refuse(), ())),
            "text": shaped({"type": "string"}, Text(self.refuse)),
            "opaque": shapes.opaque({"type": "object"}, self.refuse),
        }[made]
        assert told(shapes.record(trip=plan), {"trip": "" if made == "text" else {}}) == [
            "trip.days[1]: is a holiday",
            "trip: too long by hunter2",
        ]

    def test_problems_inside_come_first(self) -> None:
        plan = shaped({"type": "object"}, Record(lambda **members: self.refuse(), (Member("x", "x", INTEGER),)))
        assert told(plan, {"x": "a"}) == ['x: expected integer, got string "a"']

    def test_its_words_are_redacted(self) -> None:
        plan = shapes.opaque({"type": "object"}, self.refuse)
        assert "hunter2" not in "".join(told(plan, {}, redact=lambda text: text.replace("hunter2", "***")))

    def test_a_walk_ends(self) -> None:
        def refuse(value: Any) -> Any:
            raise Mismatch(located=[([number], "no") for number in range(5000)])

        assert len(explain(shapes.opaque({"type": "array"}, refuse), [])) == 1000


class TestDiscretion:
    def test_redacted_before_it_is_cut(self) -> None:
        secret = "s" * 50 + "ecret"
        plan = shapes.record(text=INTEGER)
        (told_,) = told(plan, {"text": "x" * 30 + secret}, redact=lambda text: text.replace(secret, "***"))
        assert "sss" not in told_
        assert "***" in told_

    def test_messages_of_exceptions_are_redacted(self) -> None:
        def build(**members: Any) -> Any:
            raise ValueError("bad key hunter2")

        plan = shapes.record(point=shapes.record(build, x=INTEGER))
        assert told(plan, {"point": {"x": 1}}, redact=lambda text: text.replace("hunter2", "***")) == [
            "point: bad key ***"
        ]


class TestSize:
    def test_a_message_fills_at_most_a_screen(self) -> None:
        lines = message(explain(shapes.array(INTEGER), ["x" * 500] * 100)).split("\n")
        assert len(lines) == 20
        assert max(map(len, lines)) <= 200
        assert lines[-1] == "and 81 more problems"

    def test_a_walk_ends(self) -> None:
        problems = explain(shapes.array(INTEGER), ["x"] * 100_000)
        assert len(problems) == 1000
        assert message(problems).endswith("and at least 981 more problems")

    def test_surplus_ends_too(self) -> None:
        assert len(explain(FORECAST, {f"n{number}": 1 for number in range(5000)})) == 1000

    def test_line_breaks_stay_inside_a_line(self) -> None:
        assert message([Problem("a", "x\ny"), Problem("b", "z")]) == "a: x y\nb: z"

    @pytest.mark.parametrize(
        "make",
        [
            lambda: "x" * 10**6,
            lambda: list(range(10**6)),
            lambda: {str(n): n for n in range(10**5)},
            lambda: -(10**5000),
        ],
    )
    def test_large_values_are_shortened(self, make: Callable[[], Any]) -> None:
        assert len(got(make())) <= 80

    def test_deep_values_too(self) -> None:
        value: Any = 1
        for _ in range(5000):
            value = [value]
        assert len(got(value)) <= 80

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        )
    )
    def test_every_json_value_is_spelled_shortly(self, value: Any) -> None:
        assert 0 < len(spell(value)) <= 62


class TestExpectations:
    @pytest.mark.parametrize(
        ("schema", "words"),
        [
            ({"type": "string"}, "string"),
            ({"type": ["string", "null"]}, "string or null"),
            ({"type": "integer", "minimum": 1, "maximum": 9}, "integer >= 1 and <= 9"),
            ({"type": "string", "format": "date-time"}, "date-time string"),
            ({"type": "string", "pattern": "^a$"}, 'string matching "^a$"'),
            ({"const": None}, "null"),
            ({"enum": list(range(30))}, "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (30 in all)"),
            ({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "string"}]}, "string or integer"),
            ({}, "any value"),
            (True, "any value"),
            (False, "no value"),
            ({"$ref": "#/$defs/Node"}, "Node"),
        ],
    )
    def test_in_words(self, schema: Any, words: str) -> None:
        assert expectation(schema) == words


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["city", "days", "unit", "kind", "x"]), inner)
    ),
    max_leaves=12,
)
PLANS = [
    FORECAST,
    shapes.tagged("kind", circle=CIRCLE, square=SQUARE),
    shapes.either(CIRCLE, SQUARE, INTEGER),
    shapes.tree(),
    shapes.mapping(shapes.array(shapes.optional(DATE))),
]


@pytest.mark.parametrize("plan", PLANS)
@given(value=JSON)
def test_there_are_problems_exactly_where_structuring_fails(plan: TypePlan, value: Any) -> None:
    problems = explain(plan, value)
    try:
        plan.structure(value)
    except Exception:  # noqa: BLE001 - whatever it raises, it refused
        assert problems
    else:
        assert not problems
    assert all(len(line) <= 200 for line in message(problems).split("\n"))
