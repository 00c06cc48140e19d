"""A type handler whose schema and `structure` say different things is found."""

import json
import re
import types
from collections.abc import Callable
from typing import Any

import pytest

from pegboard import (
    Choice,
    Member,
    Mismatch,
    Record,
    Scalar,
    Shape,
    Text,
    Toolkit,
    TypeHandler,
    TypePlan,
    hookimpl,
    shaped,
)
from pegboard_testing import assert_conforms, check_types, conformance


class Celsius:
    def __init__(self, degrees: Any) -> None:
        self.degrees = degrees


def pack(*handlers: TypeHandler) -> Any:
    module = types.ModuleType("acme")
    module.provide_types = hookimpl(lambda: list(handlers))  # type: ignore[attr-defined]
    return module


def plan(schema: dict[str, Any], structure: Callable[[Any], Any]) -> Callable[[Any, Any], TypePlan]:
    return lambda annotation, types: TypePlan(schema, structure)


def strictly(kind: type) -> Callable[[Any], Any]:
    def structure(value: Any) -> Any:
        if type(value) is not kind:
            raise Mismatch
        return Celsius(value)

    return structure


def code(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch("[A-Z]{3}", value):
        raise Mismatch
    return value


def given(schema: dict[str, Any], shape: Shape) -> Callable[[Any, Any], TypePlan]:
    return lambda annotation, types: shaped(schema, shape)


NAMED = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
OPEN = Record(dict, (Member("x", "x", shaped({"type": "integer"}, Scalar(int))),), open=True)

# Without a shape a plan is held to its schema, so that it can only refuse too much.
DISAGREE: dict[str, tuple[Callable[[Any, Any], TypePlan], str]] = {
    "no integers": (plan({"type": "number"}, strictly(float)), "refuses what its schema accepts"),
    "a pattern that is not in the schema": (plan({"type": "string"}, code), "refuses what its schema accepts"),
    "a value too many": (
        plan({"enum": ["a", "b"]}, lambda value: {"a": 1}[value]),
        "refuses what its schema accepts",
    ),
    "no schema at all": (plan({}, strictly(str)), "refuses what its schema accepts"),
    "int of anything": (given({"type": "integer"}, Scalar(object)), "accepts what its schema refuses"),
    "another type": (given({"type": "boolean"}, Scalar(int)), "refuses what its schema accepts"),
    "a bound that is not enforced": (
        given({"type": "integer", "minimum": 3}, Scalar(int)),
        "accepts what its schema refuses",
    ),
    "surplus members": (given(NAMED, OPEN), "accepts what its schema refuses"),
}


@pytest.mark.parametrize("name", DISAGREE)
@pytest.mark.parametrize("matches", [Celsius, (Celsius,)], ids=["class", "tuple"])
def test_found(name: str, matches: Any) -> None:
    build, what = DISAGREE[name]
    guilty = pack(TypeHandler(matches, build))
    (finding,) = [each for each in conformance(guilty) if each.check == "types"]
    assert what in finding.what
    assert "the handler of acme for" in finding.what
    assert "Celsius" in finding.what
    with pytest.raises(AssertionError, match="schema and structure say the same"):
        assert_conforms(guilty)


@pytest.mark.parametrize(
    "build",
    [
        plan({"type": "number"}, lambda value: shaped({}, Scalar(float)).structure(value)),
        lambda annotation, types: types.plan(int),
        lambda annotation, types: shaped({"type": "string", "pattern": "^[A-Z]{3}$"}, Text(code)),
        lambda annotation, types: shaped({"enum": ["a", 1]}, Choice((("a", 1), (1, 2)))),
        plan({"type": "string", "format": "made-up"}, code),
        # What they would take besides, their schemas refuse.
        plan({"type": "integer"}, int),
        plan({"type": "boolean"}, bool),
        plan({"type": "string"}, str),
        plan({"type": "integer"}, lambda value: Celsius(value + 0)),
        plan({"type": "integer", "minimum": 3}, int),
        plan(NAMED, lambda value: Celsius(value["x"])),
    ],
)
def test_nothing_to_find(build: Any) -> None:
    handler = TypeHandler(Celsius, build)
    assert [each for each in conformance(pack(handler)) if each.check == "types"] == []


def test_a_type_taken_over_by_a_predicate() -> None:
    handler = TypeHandler(lambda annotation: annotation is int, plan({"type": "integer"}, strictly(float)))
    (finding,) = [each for each in conformance(pack(handler)) if each.check == "types"]
    assert "for int refuses what its schema accepts" in finding.what


def test_types_of_the_tools_parameters() -> None:
    def f(celsius: Celsius) -> None:
        """Warm.

        Args:
            celsius: How warm.
        """

    module = pack(TypeHandler(lambda annotation: annotation is Celsius, plan({"type": "number"}, strictly(float))))
    module.provide_tools = hookimpl(lambda settings: [f])
    (finding,) = [each for each in conformance(module) if each.check == "types"]
    assert "Celsius refuses what its schema accepts" in finding.what


def test_only_the_packs_own() -> None:
    toolkit = Toolkit(plugins=[pack(TypeHandler(Celsius, plan({"type": "integer"}, strictly(str))))])
    assert len(list(check_types(toolkit))) == 1
    assert list(check_types(toolkit, "acme")) != []
    assert list(check_types(toolkit, "other")) == []
    assert len(toolkit) == 0


def test_doctor(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    main = pytest.importorskip("pegboard_cli").main
    runner = pytest.importorskip("click.testing").CliRunner()
    from pegboard_testing import fake_distribution

    source = (
        "from pegboard import TypeHandler, TypePlan, hookimpl\n"
        "class Celsius: ...\n"
        "@hookimpl\n"
        "def provide_types():\n"
        "    return [TypeHandler(Celsius, lambda *_: TypePlan({'type': 'integer'}, {}.__getitem__))]\n"
    )
    fake_distribution(tmp_path, "acme-warm", entry_points={"warm": "acme_warm"}, modules={"acme_warm": source})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PEGBOARD_PLUGINS", "warm")
    for options, found in (([], 0), (["--deep"], 1)):
        result = runner.invoke(main, ["doctor", "--json", *options], standalone_mode=False)
        findings = [each for each in json.loads(result.stdout) if each["code"] == "type-handler"]
        assert len(findings) == found
        for each in findings:
            assert each["level"] == "error"
            assert "Celsius refuses what its schema accepts" in each["message"]
