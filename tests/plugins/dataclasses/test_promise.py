"""The schema is a promise: it accepts a value exactly when the value can be structured."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pegboard._types.table import TypeTable
from tests.plugins.dataclasses import postponed, test_attrs, test_dataclass, test_namedtuple, test_typeddict
from tests.plugins.dataclasses.travel import schema

TYPES: list[Any] = [
    test_dataclass.Point,
    test_dataclass.Node,
    test_dataclass.Selfish,
    test_dataclass.Box[test_dataclass.Box[int]],
    test_dataclass.TestUnions.Circle | test_dataclass.TestUnions.Square,
    test_dataclass.Point | test_dataclass.TestUnions.Named,
    test_attrs.Node,
    test_attrs.Box[str | None],
    test_typeddict.Loose,
    test_typeddict.Node,
    test_typeddict.IntPage,
    test_namedtuple.Node,
    postponed.Tight,
    postponed.Pair,
]
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["a", "b", "circle"]),
    "integer": st.integers(-9, 9) | st.just(3.0),
    "number": st.integers(-9, 9) | st.floats(-9, 9),
    "boolean": st.booleans(),
    "null": st.none(),
}
ANY = st.one_of(*SCALARS.values(), st.just([]), st.just({}))


def near(known: dict[str, Any], root: dict[str, Any], depth: int = 3) -> st.SearchStrategy[Any]:
    """Values that a schema mostly accepts: now and then something is missing, surplus or of another type."""
    if depth == 0:
        return ANY
    if "$ref" in known:
        return near(root["$defs"][known["$ref"].rpartition("/")[2]], root, depth)
    if "enum" in known or "const" in known:
        return st.sampled_from(known.get("enum", [known.get("const")])) | st.just("other")
    several = known.get("anyOf") or known.get("oneOf")
    if several:
        return st.one_of(*(near(each, root, depth) for each in several))
    if known.get("type") == "array":
        return st.lists(near(known["items"], root, depth - 1), max_size=2)
    if known.get("type") == "object":
        members = {name: near(each, root, depth - 1) for name, each in known["properties"].items()}
        surplus = {"surplus": ANY} if depth < 2 else {}
        required = {name: members.pop(name) for name in known["required"][: depth + 1]}
        return st.fixed_dictionaries(required, optional={**members, **surplus})
    usual = SCALARS.get(known.get("type", ""), ANY)
    return st.one_of(usual, usual, usual, ANY)


def structures(types: TypeTable, annotation: Any, value: Any) -> bool:
    try:
        types.plan(annotation).structure(value)
    except Exception:  # noqa: BLE001 - whatever it raises, it refused
        return False
    return True


@pytest.mark.parametrize("annotation", TYPES, ids=str)
def test_what_the_schema_accepts_arrives(types: TypeTable, annotation: Any) -> None:
    known = schema(types, annotation)
    oracle = Draft202012Validator(known)
    verdicts = set()

    @given(near(known, known) | ANY)
    def agree(value: Any) -> None:
        accepted = oracle.is_valid(value)
        verdicts.add(accepted)
        assert structures(types, annotation, value) == accepted

    agree()
    assert verdicts == {True, False}, "both must have been tried"
