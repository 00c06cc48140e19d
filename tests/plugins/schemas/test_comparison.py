"""Comparing two schemas: what is shown is confirmed by jsonschema, and what is proven holds for every value."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pegboard import RegistrationError
from pegboard_schemas import compared_schemas, members_of
from tests.support.schemas_of_all_kinds import KEYWORDS, schemas, values


def accepts(schema: Any, value: Any) -> bool:
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return bool(validator.is_valid(value))


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object in a schema, itself included."""
    if isinstance(schema, dict):
        yield schema
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for each in inner:
        yield from parts(each)


@st.composite
def changes(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema, and the same with a keyword or two added, changed or removed; either is the later one."""
    before = draw(schemas())
    before.pop("$schema", None)
    after = json.loads(json.dumps(before))
    for _ in range(draw(st.integers(1, 2))):
        part = draw(st.sampled_from(list(parts(after))))
        word = draw(st.sampled_from(sorted(KEYWORDS)))
        if word in part and draw(st.booleans()):
            del part[word]
        else:
            part[word] = draw(KEYWORDS[word])
    return (before, after) if draw(st.booleans()) else (after, before)


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(changes(), st.lists(values, min_size=20, max_size=40))
def test_witnesses_are_confirmed_and_proofs_hold(pair: tuple[Any, Any], some: list[Any]) -> None:
    before, after = pair
    try:
        found = compared_schemas(before, after)
    except RegistrationError:
        assume(False)
    assert [(accepts(before, each), accepts(after, each)) for each in found.lost] in ([], [(True, False)])
    assert [(accepts(before, each), accepts(after, each)) for each in found.gained] in ([], [(False, True)])
    assert not (found.lost and found.keeps_all)
    assert not (found.gained and found.adds_nothing)
    for value in some if found.keeps_all or found.adds_nothing else ():
        old, new = accepts(before, value), accepts(after, value)
        assert new or not (found.keeps_all and old), value
        assert old or not (found.adds_nothing and new), value


INT, TEXT = {"type": "integer"}, {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"type": ["integer", "null"], "minimum": 1},
        {"oneOf": [{"type": "object", "properties": {"k": {"const": each}}, "required": ["k"]} for each in "ab"]},
        {"type": "array", "prefixItems": [INT, TEXT], "items": False, "minItems": 2},
        {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "additionalProperties": INT, "minProperties": 1},
        {"type": "object", "patternProperties": {"^x-": TEXT}, "properties": {"a": INT}, "additionalProperties": False},
        {"$defs": {"n": {"anyOf": [INT, {"type": "array", "items": {"$ref": "#/$defs/n"}}]}}, "$ref": "#/$defs/n"},
        {"if": {"type": "string"}, "then": {"minLength": 2}, "not": {"const": 1}, "contains": INT},
    ],
)
def test_a_schema_is_the_same_as_itself(schema: Any) -> None:
    found = compared_schemas(schema, schema if schema is True else {**schema, "title": "The same"})
    assert (found.lost, found.gained, found.keeps_all, found.adds_nothing) == ((), (), True, True)


@pytest.mark.parametrize(
    ("before", "after", "lost", "gained"),
    [
        (TEXT, INT, [""], [1]),
        ({"enum": [1, 2]}, {"type": "integer", "minimum": 2, "maximum": 3}, [1], [3]),
        # Names that match a pattern are none that the closed one knows.
        (
            {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False},
            {"type": "object", "additionalProperties": False},
            [{"x": ""}],
            [],
        ),
        ({"contains": INT, "minContains": 0}, {"contains": INT}, [[]], []),
    ],
)
def test_what_is_lost_and_gained(before: Any, after: Any, lost: list[Any], gained: list[Any]) -> None:
    found = compared_schemas(before, after)
    assert ([*found.lost], [*found.gained]) == (lost, gained)
    assert found.keeps_all is (not lost)
    assert not (gained and found.adds_nothing)


def test_one_member_alone() -> None:
    before = {"type": "object", "properties": {"a": INT, "b": INT}, "required": ["a"], "additionalProperties": False}
    after = {
        "type": "object",
        "properties": {"a": TEXT, "c": INT},
        "required": ["a", "c"],
        "additionalProperties": False,
    }
    assert members_of(before, after) == ["a", "b", "c"]
    found = {name: compared_schemas(before, after, member=name) for name in "abc"}
    assert [[*each.lost] for each in found.values()] == [[{"a": 1}], [{"a": 1, "b": 1}], [{"a": 1}]]
    assert [each.keeps_all for each in found.values()] == [False, False, False]
    assert members_of(before, {**after, "minProperties": 1}) == []


def test_formats_are_known_without_their_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Draft202012Validator.FORMAT_CHECKER, "checkers", {})
    for name, good in (("date-time", "2024-05-06T07:08:09Z"), ("time", "12:00:00Z"), ("duration", "PT1H")):
        found = compared_schemas(TEXT, {**TEXT, "format": name})
        assert (found.lost, found.adds_nothing) == (("",), True)
        assert compared_schemas({**TEXT, "const": good}, {**TEXT, "format": name}).keeps_all


def test_a_schema_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(RegistrationError, match="the later schema"):
        compared_schemas(INT, {"$ref": "#"})
