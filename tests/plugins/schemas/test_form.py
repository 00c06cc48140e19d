"""Forms of third parties: their fields, and what is wrong with an answer."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import RegistrationError
from pegboard_schemas import Form

DATES = {"type": "string", "format": "date", "minLength": 3}
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "full name": {"type": "string", "maxLength": 3},
        "on": DATES,
        "days": {"type": "array", "items": {"type": "string", "enum": ["mon", "tue"]}},
    },
    "required": ["name"],
}


def problems(answer: Any, form: Any = FORM) -> list[str]:
    return Form(form).problems(answer)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"name": "Ada"}, []),
        ({"name": "Ada", "days": []}, []),
        ({}, ["name: missing (required string of at least 2 characters)"]),
        ({"name": "A"}, ["name: expected string of at least 2 characters"]),
        ({"name": "Ada", "full name": "Ada L"}, ['["full name"]: expected string of at most 3 characters']),
        ({"name": "Ada", "on": "xy"}, ["on: expected string of at least 3 characters"]),
        ({"name": "Ada", "on": "2024"}, ['on: expected date string: write it as "2024-05-06"']),
        ({"name": "Ada", "on": None}, ["on: expected string of at least 3 characters"]),
        ({"name": "Ada", "days": ["mon", "sun"]}, ['days[1]: expected one of "mon", "tue"']),
        (
            {"on": "2024", "nom": "x"},
            [
                'on: expected date string: write it as "2024-05-06"',
                "name: missing (required string of at least 2 characters)",
                "nom: the form has no such member",
            ],
        ),
        ([], ["expected object"]),
        (None, ["expected object"]),
    ],
)
def test_what_is_wrong_is_named_once(answer: Any, expected: list[str]) -> None:
    assert sorted(problems(answer)) == sorted(expected)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("email", ["a@b", "ann.b@example.com"], ["", "ann", "a b@c", "@", "a@"]),
        ("uri", ["https://example.com/a?b#c", "urn:isbn:1"], ["", "example.com", "/a", "1:a", "https://a b"]),
        ("date", ["2024-02-29"], ["", "2023-02-29", "20240229", "2024-2-9", "2024-02-29T00:00:00Z", "٢٠٢٤-02-29"]),
        (
            "date-time",
            ["2024-05-06T07:08:09Z", "2024-05-06T07:08:09.123456789+02:00", "2024-05-06t07:08:09z"],
            ["2024-05-06", "2024-05-06T07:08:09", "2024-05-06 07:08:09Z", "2024-05-06T25:08:09Z"],
        ),
    ],
)
def test_the_formats_of_forms_are_checked(kind: str, good: list[str], bad: list[str]) -> None:
    form = {"type": "object", "properties": {"it": {"type": "string", "format": kind}}}
    assert [text for text in good if problems({"it": text}, form)] == []
    assert [text for text in bad if not problems({"it": text}, form)] == []


def test_a_form_that_takes_more_takes_other_members() -> None:
    more = {**FORM, "additionalProperties": {"type": "integer"}}
    assert problems({"name": "Ada", "age": 3}, more) == []
    assert problems({"name": "Ada", "age": "3"}, more) == ["age: expected integer"]
    assert problems({"name": "Ada", "age": 3}, {**FORM, "additionalProperties": False}) != []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "nonsense"}}},
        {"type": "object", "properties": ["a"]},
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/a"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
        {"type": "object", "required": "a"},
        "object",
    ],
)
def test_one_that_cannot_be_used_is_refused(schema: Any) -> None:
    with pytest.raises(RegistrationError, match="the form of a server"):
        Form(schema, "the form of a server")


def test_fields_are_read_whatever_their_schemas_are() -> None:
    schema = {
        "type": "object",
        "properties": {
            "any": True,
            "none": False,
            "several": {"type": ["null", "integer"], "title": "Several"},
            "null": {"type": ["null"]},
            "list": {"type": "array"},
            "lists": {"type": "array", "items": True},
            "legacy": {"enum": [1, None], "enumNames": "no list"},
            "short": {"enum": ["a", "b"], "enumNames": ["A"]},
            "union": {"anyOf": [{"type": "string"}, {"const": 1}]},
            "secret": {"type": "string", "writeOnly": True},
        },
    }
    form = Form(schema)
    assert {each.name: each.kind for each in form.fields} == {
        "any": "JSON",
        "none": "JSON",
        "several": "integer",
        "null": "null",
        "list": "array",
        "lists": "array",
        "legacy": "one of these",
        "short": "one of these",
        "union": "JSON",
        "secret": "text",
    }
    fields = {each.name: each for each in form.fields}
    assert fields["legacy"].choices == ((1, "1"), (None, "null"))
    assert fields["short"].choices == (("a", "A"), ("b", "b"))
    assert [name for name, each in fields.items() if each.private] == ["secret"]
    assert fields["several"].title == "Several"


KEYS = st.sampled_from(["name", "full name", "on", "days", "x"])


@given(answer=st.dictionaries(KEYS, st.one_of(st.text(min_size=4, alphabet="qwz"), st.integers(100_000))))
def test_no_value_is_ever_quoted(answer: dict[str, Any]) -> None:
    text = "".join(problems(answer))
    assert [value for value in answer.values() if str(value) in text] == []
