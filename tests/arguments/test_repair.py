"""The repair ladder: each rung, both ways, and what must be left alone."""

import copy
import enum
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard._arguments.examine import examine, refusal
from pegboard._base.markers import MISSING
from pegboard._model.shapes import Choice, TypePlan
from pegboard._types.plans import shaped
from tests.support import shapes
from tests.support.examining import repair
from tests.support.shapes import ANYTHING, BOOLEAN, DATE, DAYS, INTEGER, NULL, NUMBER, TEXT, UNIT

RED, GREEN = object(), object()
COLOUR = shaped({"enum": ["#f00", "#0f0"]}, Choice((("#f00", RED), ("#0f0", GREEN)), {"RED": RED, "GREEN": GREEN}))
POINT = shapes.record(x=NUMBER, y=NUMBER, defaults={"y": 0.0})
CIRCLE = shapes.record(kind=shapes.literal("circle"), radius=NUMBER)


class Letter(enum.Enum):
    C = "C"


class TestRungs:
    @pytest.mark.parametrize(
        ("plan", "sent", "repaired", "note"),
        [
            (INTEGER, "3", 3, 'text "3" read as integer 3'),
            (INTEGER, " -3 ", -3, 'text " -3 " read as integer -3'),
            (INTEGER, "3.0", 3, 'text "3.0" read as integer 3'),
            (INTEGER, "+3", 3, 'text "+3" read as integer 3'),
            (NUMBER, "3", 3.0, 'text "3" read as number 3.0'),
            (NUMBER, "-2.5e3", -2500.0, 'text "-2.5e3" read as number -2500.0'),
            (BOOLEAN, "true", True, 'text "true" read as boolean true'),
            (BOOLEAN, "False", False, 'text "False" read as boolean false'),
            (NULL, "null", None, 'text "null" read as null'),
            (TEXT, 3, "3", 'integer 3 read as string "3"'),
            (UNIT, "c", "C", 'text "c" read as string "C"'),
            (COLOUR, "RED", "#f00", 'text "RED" read as string "#f00"'),
            (COLOUR, "green", "#0f0", 'text "green" read as string "#0f0"'),
            (COLOUR, "#F00", "#f00", 'text "#F00" read as string "#f00"'),
            (shapes.literal(1, 2), "2", 2, 'text "2" read as integer 2'),
            (shapes.literal("1", "2"), 2, "2", 'integer 2 read as string "2"'),
            (shapes.literal(True, "x"), "True", True, 'text "True" read as boolean true'),
            (shapes.optional(INTEGER), "", None, 'text "" read as null'),
            (shapes.optional(INTEGER), "null", None, 'text "null" read as null'),
            (shapes.array(INTEGER), "[1, 2]", [1, 2], "JSON text read as array"),
            (shapes.array(INTEGER), 3, [3], "integer 3 read as array of one item"),
            (shapes.array(POINT), {"x": 1}, [{"x": 1}], 'object {"x": 1} read as array of one item'),
            (shapes.array(TEXT), "a b", ["a b"], 'text "a b" read as array of one item'),
            (shapes.array(shapes.literal("a, b")), "a, b", ["a, b"], 'text "a, b" read as array of one item'),
            (shapes.array(INTEGER), "```json\n[1]\n```", [1], "JSON text read as array"),
            (BOOLEAN, 1, True, "integer 1 read as boolean true"),
            (BOOLEAN, 0, False, "integer 0 read as boolean false"),
            (UNIT, " C\n", "C", 'text " C\\n" read as string "C"'),
            (shapes.literal("a", "A"), " a", "a", 'text " a" read as string "a"'),
            (COLOUR, " RED", "#f00", 'text " RED" read as string "#f00"'),
            (shapes.either(BOOLEAN, shapes.array(TEXT)), "a", ["a"], 'text "a" read as array of one item'),
            (shapes.array(UNIT), "C", ["C"], 'text "C" read as array of one item'),
            (shapes.fixed(INTEGER, TEXT), '[1, "a"]', [1, "a"], "JSON text read as array"),
            (shapes.mapping(INTEGER), '{"a": 1}', {"a": 1}, "JSON text read as object"),
            (POINT, ' {"x": 1}', {"x": 1}, "JSON text read as object"),
            (
                shapes.tagged("kind", circle=CIRCLE),
                '{"kind": "circle", "radius": 1}',
                {"kind": "circle", "radius": 1},
                "JSON text read as object",
            ),
            (shapes.either(INTEGER, BOOLEAN), "true", True, 'text "true" read as boolean true'),
            (shapes.opaque({"type": "integer"}, int.bit_count), "3", 3, 'text "3" read as integer 3'),
            (shapes.opaque({"type": "number"}, math.sqrt), "2.5", 2.5, 'text "2.5" read as number 2.5'),
            (shapes.opaque({"type": "boolean"}, [0, 1].__getitem__), "true", True, 'text "true" read as boolean true'),
            (shapes.either(shapes.array(TEXT), TEXT), 5, "5", 'integer 5 read as string "5"'),
            (shapes.either(NUMBER, INTEGER), "3", 3.0, 'text "3" read as number 3.0'),
            (shapes.either(INTEGER, NUMBER), "3", 3, 'text "3" read as integer 3'),
            (shapes.either(INTEGER, POINT), '{"x": 1}', {"x": 1}, "JSON text read as object"),
        ],
    )
    def test_repairs_with_a_note(self, plan: TypePlan, sent: Any, repaired: Any, note: str) -> None:
        value, notes = repair(plan, sent)
        assert (value, type(value)) == (repaired, type(repaired))
        assert [(str(each), each.kind, each.path) for each in notes] == [(note, "repair", "")]
        assert refusal(plan, value) is None

    @pytest.mark.parametrize(
        ("plan", "sent", "repaired"),
        [
            (shapes.array(INTEGER), "3", [3]),
            (shapes.array(BOOLEAN), 0, [False]),
            (shapes.array(POINT), '{"x": 1}', [{"x": 1}]),
        ],
    )
    def test_two_on_one_value(self, plan: TypePlan, sent: Any, repaired: Any) -> None:
        value, notes = repair(plan, sent)
        assert (value, len(notes)) == (repaired, 2)

    def test_members_of_what_is_wrapped_are_wrapped_too(self) -> None:
        plan = shapes.array(shapes.record(tags=shapes.array(TEXT)))
        assert repair(plan, {"tags": "a"})[0] == [{"tags": ["a"]}]
        assert repair(plan, [{"tags": "a"}])[0] == [{"tags": ["a"]}]

    def test_every_level_is_reached(self) -> None:
        plan = shapes.record(orders=shapes.array(shapes.record(qty=INTEGER)), tags=shapes.mapping(BOOLEAN))
        value, notes = repair(plan, {"orders": '[{"qty": "3"}, {"qty": 4}]', "tags": {"a b": "true"}})
        assert value == {"orders": [{"qty": 3}, {"qty": 4}], "tags": {"a b": True}}
        assert notes == [
            "orders: JSON text read as array",
            'orders[0].qty: text "3" read as integer 3',
            'tags["a b"]: text "true" read as boolean true',
        ]
        assert [note.path for note in notes] == ["orders", "orders[0].qty", 'tags["a b"]']

    def test_keys_of_a_mapping(self) -> None:
        value, notes = repair(shapes.mapping(INTEGER, COLOUR), {"RED": "1", "#0f0": 2})
        assert value == {"#f00": 1, "#0f0": 2}
        assert notes == ['RED: text "RED" read as string "#f00"', 'RED: text "1" read as integer 1']

    def test_a_recursive_type(self) -> None:
        value, _ = repair(shapes.tree(), {"name": "a", "children": [{"name": 1, "children": '[{"name": 2}]'}]})
        assert value == {"name": "a", "children": [{"name": "1", "children": [{"name": "2"}]}]}

    def test_a_tag_is_read_as_any_other_choice(self) -> None:
        value, notes = repair(shapes.tagged("kind", circle=CIRCLE), {"kind": "Circle", "radius": "2"})
        assert value == {"kind": "circle", "radius": 2.0}
        assert len(notes) == 2


class TestOmitted:
    @pytest.mark.parametrize(
        ("default", "sent"), [(1, None), (None, None), (None, ""), (None, "null"), (None, " NULL ")]
    )
    def test_means_the_default(self, default: Any, sent: Any) -> None:
        plan = shapes.record(city=TEXT, days=INTEGER, defaults={"days": default})
        value, notes = repair(plan, {"city": "x", "days": sent})
        assert value == {"city": "x"}
        assert [(note.path, note.kind) for note in notes] == [("days", "repair")]
        assert notes[0].endswith("read as omitted")

    def test_at_every_level(self) -> None:
        plan = shapes.array(shapes.record(days=INTEGER, defaults={"days": None}))
        assert repair(plan, [{"days": None}])[0] == [{}]

    @pytest.mark.parametrize("default", [1, None, 2.5, (), MISSING, object()])
    @pytest.mark.parametrize("sent", ["", "null", " Null "])
    def test_a_text_for_it_where_no_text_is_the_default(self, sent: str, default: Any) -> None:
        plan = shapes.record(days=INTEGER, x=UNIT, defaults={"days": default})
        value, notes = repair(plan, {"days": sent, "x": "C"})
        assert (value, notes) == ({"x": "C"}, [f'days: text "{sent}" read as omitted'])

    @pytest.mark.parametrize("default", ["C", Letter.C])
    @pytest.mark.parametrize("sent", ["", "null"])
    def test_but_not_where_a_text_is(self, sent: str, default: Any) -> None:
        plan = shapes.record(unit=UNIT, defaults={"unit": default})
        assert repair(plan, {"unit": sent}) == ({"unit": sent}, [])

    @pytest.mark.parametrize("sent", ["None", "none", "undefined", "N/A", "-"])
    def test_nor_what_other_languages_and_people_write(self, sent: str) -> None:
        plan = shapes.record(days=INTEGER, tags=shapes.array(TEXT), defaults={"days": None, "tags": None})
        assert repair(plan, {"days": sent})[1] == []

    def test_a_text_for_null_is_null_where_null_is_a_value(self) -> None:
        plan = shapes.record(days=shapes.optional(INTEGER), defaults={"days": 1})
        assert repair(plan, {"days": "null"})[0] == {"days": None}

    def test_nor_where_null_is_a_value(self) -> None:
        plan = shapes.record(days=shapes.optional(INTEGER), x=INTEGER, defaults={"days": 1})
        assert repair(plan, {"days": None, "x": "1"})[0] == {"days": None, "x": 1}

    def test_nor_where_it_is_required(self) -> None:
        assert repair(shapes.record(days=INTEGER), {"days": None}) == ({"days": None}, [])


class TestLeftAlone:
    @pytest.mark.parametrize(
        ("plan", "sent"),
        [
            (INTEGER, "5.7"),
            (INTEGER, "three"),
            (INTEGER, "1_000"),
            (INTEGER, "0x10"),
            (INTEGER, "1e3"),
            (INTEGER, "٣"),
            (INTEGER, ""),
            (INTEGER, "9" * 500),
            (INTEGER, 5.7),
            (INTEGER, True),
            (INTEGER, [3]),
            (DAYS, "0"),
            (NUMBER, "nan"),
            (NUMBER, "inf"),
            (NUMBER, "1e999"),
            (NUMBER, "1,5"),
            (BOOLEAN, 2),
            (BOOLEAN, -1),
            (BOOLEAN, 1.0),
            (BOOLEAN, "yes"),
            (BOOLEAN, "1"),
            (BOOLEAN, ""),
            (TEXT, 5.7),
            (TEXT, True),
            (TEXT, None),
            (TEXT, ["a"]),
            pytest.param(TEXT, 10**5000, id="unspeakable"),
            (UNIT, "K"),
            (UNIT, ["C"]),
            (shapes.literal("b", "B"), " ß"),
            (shapes.literal("aa", "AA"), "Aa"),
            (DATE, 20240101),
            (shapes.array(TEXT), "a, b"),
            (shapes.array(TEXT), "a; b"),
            (shapes.array(TEXT), "a\nb"),
            (shapes.array(TEXT), "[a]"),
            (shapes.array(TEXT), "['a']"),
            (shapes.array(TEXT), "{a}"),
            (shapes.array(TEXT), ""),
            (shapes.array(TEXT), " "),
            (shapes.array(TEXT), "null"),
            (shapes.array(TEXT), "None"),
            (shapes.array(TEXT), None),
            (shapes.array(POINT), {}),
            (shapes.array(ANYTHING), {}),
            (shapes.array(shapes.array(INTEGER)), 3),
            (shapes.array(shapes.array(INTEGER)), [1, 2]),
            (shapes.array(shapes.array(INTEGER)), [1]),
            (shapes.array(shapes.array(INTEGER)), [[1], 2]),
            (shapes.array(shapes.fixed(INTEGER, INTEGER)), [1, 2]),
            (shapes.array(BOOLEAN), "1"),
            (shapes.either(BOOLEAN, TEXT), 1),
            (shapes.either(INTEGER, shapes.array(TEXT)), "3"),
            (INTEGER, "3."),
            (INTEGER, "- 3"),
            (shapes.array(INTEGER), "1,2"),
            (shapes.array(INTEGER), "[1, 2"),
            (shapes.array(INTEGER), "[1, NaN]"),
            (shapes.array(INTEGER), "[" * 10_000),
            (shapes.array(INTEGER), None),
            (shapes.array(INTEGER), 5.7),
            (shapes.array(INTEGER, least=2), []),
            (shapes.mapping(INTEGER), "[1]"),
            (shapes.fixed(INTEGER, INTEGER), 3),
            (shapes.fixed(INTEGER, INTEGER), ["1"]),
            (POINT, '{"x": 1, "x": 2}'),
            (POINT, '{"x": 1'),
            (POINT, 3),
            (shapes.tagged("kind", circle=CIRCLE), {"kind": "square"}),
            (shapes.either(INTEGER, BOOLEAN), "x"),
            (shapes.opaque({"type": "integer"}, int.bit_count), "three"),
            (shapes.opaque({"type": "string"}, str.swapcase), 3),
            (shapes.opaque({}, int.bit_count), "3"),
            (shapes.mapping(INTEGER, COLOUR), {"RED": 1, "#f00": 2}),
            (shapes.mapping(INTEGER, COLOUR), {"blue": 1}),
        ],
    )
    def test_what_would_be_a_guess(self, plan: TypePlan, sent: Any) -> None:
        assert refusal(plan, sent) is not None
        value, notes = repair(plan, sent)
        assert value == sent
        assert type(value) is type(sent)
        assert notes == []

    @pytest.mark.parametrize("sent", ["3", "true", "null", "", '{"a": 1}', "[1]"])
    @pytest.mark.parametrize(
        "plan", [TEXT, ANYTHING, shapes.optional(TEXT), shapes.either(INTEGER, TEXT), shapes.either(TEXT, POINT)]
    )
    def test_text_for_a_text_parameter(self, plan: TypePlan, sent: str) -> None:
        assert repair(plan, sent) == (sent, [])

    def test_what_fits_is_the_same_object(self) -> None:
        sent = {"x": 1}
        assert repair(POINT, sent)[0] is sent

    def test_what_cannot_be_repaired_beside_what_can(self) -> None:
        plan = shapes.record(a=INTEGER, b=INTEGER)
        value, notes = repair(plan, {"a": "1", "b": "x", "c": None})
        assert value == {"a": 1, "b": "x", "c": None}
        assert [note.path for note in notes] == ["a"]

    def test_everything_when_repair_is_off(self) -> None:
        value, problems, notes = examine(INTEGER, "3", repair=False)
        assert (value, len(problems), notes) == ("3", 1, [])


def test_values_in_notes_are_redacted() -> None:
    _, notes = repair(TEXT, 1234567, redact=lambda text: text.replace("1234567", "***"))
    assert notes == ['integer *** read as string "***"']


PLANS = [
    shapes.record(
        a=INTEGER,
        b=TEXT,
        c=shapes.optional(BOOLEAN),
        d=shapes.array(UNIT),
        defaults={"a": None, "b": "x", "c": None, "d": ()},
    ),
    shapes.either(INTEGER, shapes.array(NUMBER), POINT),
    shapes.tagged("a", circle=shapes.record(a=shapes.literal("circle"), b=NUMBER, c=COLOUR)),
    shapes.array(shapes.fixed(INTEGER, BOOLEAN)),
    shapes.mapping(shapes.optional(shapes.array(INTEGER))),
    shapes.mapping(INTEGER, key=shapes.literal("x", "C")),
    shapes.tree(),
]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
TELLING = st.sampled_from(
    ["3", "3.0", "true", "", "null", "c", "RED", "circle", "Circle", "[1]", '{"x": "1"}', '[["1", "true"]]']
)
JSON = st.recursive(
    SCALARS | TELLING,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "d", "x", "name", "children"]), inner, max_size=4)
        | inner.map(json.dumps)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize("plan", PLANS)
@given(sent=JSON)
def test_promises(plan: TypePlan, sent: Any) -> None:
    before = copy.deepcopy(sent)
    repaired, notes = repair(plan, sent)
    assert sent == before, "the input is never changed"
    again, more = repair(plan, repaired)
    assert (again, more) == (repaired, []), "repair twice changes nothing more"
    if refusal(plan, sent) is None:
        assert repaired is sent
        assert notes == []
    if repaired != sent:
        assert notes
