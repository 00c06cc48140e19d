"""`pegboard lock --diff`: the class of each change, and a value that both schemas confirm."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema
from jsonschema import Draft202012Validator

from pegboard.inspection import digest
from tests.plugins.cli.command import Outcome

pytest.importorskip("pegboard_schemas")
Run = Callable[..., Outcome]
Parts = dict[str, Any]

INT: Parts = {"type": "integer"}
TEXT: Parts = {"type": "string"}
NULL: Parts = {"type": "null"}
PLAIN: Parts = {
    "approval": "never",
    "description": "Do it.",
    "hints": {"destructive": None, "idempotent": None, "open_world": None, "read_only": None},
    "origin": {"distribution": "acme-dice", "plugin": "dice", "version": "1.2"},
    "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    "returns": TEXT,
}


def takes(*required: str, defs: Parts | None = None, **members: Any) -> Parts:
    """What is pinned of a tool that takes these."""
    schema = {**PLAIN["parameters"], "properties": members, "required": list(required)}
    return {"parameters": schema if defs is None else {**schema, "$defs": defs}}


def x(schema: Parts) -> Parts:
    """What is pinned of a tool that takes one thing."""
    return takes("x", x=schema)


def record(*required: str, **members: Any) -> Parts:
    return {"type": "object", "properties": members, "required": list(required), "additionalProperties": False}


def tree(name: str, value: Parts) -> Parts:
    node = record(kids={"type": "array", "items": {"$ref": f"#/$defs/{name}"}}, value=value)
    return takes("x", defs={name: node}, x={"$ref": f"#/$defs/{name}"})


def of(kind: str, **words: Any) -> Parts:
    return {"type": kind, **words}


def hints(**some: Any) -> Parts:
    return {"hints": {**PLAIN["hints"], **some}}


PAIR = [{"const": "a"}, {"const": "b"}]
TAGGED = [record("k", k={"const": "circle"}, r=INT), record("k", k={"const": "square"}, a=INT)]

# Before, after, and what is expected of which place. "+" after a class: with a witness.
CASES: dict[str, tuple[Parts | None, Parts | None, dict[str, str]]] = {
    "optional_added": (x(INT), takes("x", x=INT, y=TEXT), {"parameters.y": "widening+"}),
    "required_added": (x(INT), takes("x", "y", x=INT, y=TEXT), {"parameters.y": "breaking+"}),
    "removed": (takes("x", x=INT, y=TEXT), x(INT), {"parameters.y": "breaking+"}),
    "renamed": (takes(x=INT), takes(y=INT), {"parameters.x": "breaking+", "parameters.y": "widening+"}),
    "made_required": (takes(x=INT), takes("x", x=INT), {"parameters.x": "breaking+"}),
    "given_a_default": (takes("x", x=INT), takes(x=of("integer", default=1)), {"parameters.x": "widening+"}),
    "integer_to_number": (x(INT), x(of("number")), {"parameters.x": "widening+"}),
    "number_to_integer": (x(of("number")), x(INT), {"parameters.x": "breaking+"}),
    "integer_to_text": (x(INT), x(TEXT), {"parameters.x": "breaking+"}),
    "may_be_null": (x(TEXT), x({"anyOf": [TEXT, NULL]}), {"parameters.x": "widening+"}),
    "choice_added": (x(of("string", enum=["a"])), x(of("string", enum=["a", "b"])), {"parameters.x": "widening+"}),
    "choice_removed": (x(of("string", enum=["a", "b"])), x(of("string", enum=["a"])), {"parameters.x": "breaking+"}),
    "choices_swapped": (x({"enum": ["a", "b"]}), x({"enum": ["b", "c"]}), {"parameters.x": "breaking+"}),
    "minimum_raised": (x(of("integer", minimum=0)), x(of("integer", minimum=1)), {"parameters.x": "breaking+"}),
    "minimum_lowered": (x(of("number", minimum=5)), x(of("number", minimum=2.5)), {"parameters.x": "widening+"}),
    "bound_spelled_anew": (
        x(of("integer", exclusiveMinimum=0)),
        x(of("integer", minimum=1)),
        {"parameters.x": "text"},
    ),
    "longest_gone": (x(of("string", maxLength=80)), x(TEXT), {"parameters.x": "widening+"}),
    "shortest_raised": (x(of("string", minLength=1)), x(of("string", minLength=2)), {"parameters.x": "breaking+"}),
    "pattern_added": (x(TEXT), x(of("string", pattern="^[a-z]{3}$")), {"parameters.x": "breaking+"}),
    "pattern_gone": (x(of("string", pattern=r"^\d{4}-\d{2}$")), x(TEXT), {"parameters.x": "widening+"}),
    "pattern_narrowed": (
        x(of("string", pattern="^[a-z]+$")),
        x(of("string", pattern="^[a-z]{2,}$")),
        {"parameters.x": "breaking+"},
    ),
    "pattern_unclear": (
        x(of("string", pattern="^a+$")),
        x(of("string", pattern="^aa*$")),
        {"parameters.x": "unproven"},
    ),
    "date_asked_for": (x(TEXT), x(of("string", format="date-time")), {"parameters.x": "breaking+"}),
    "date_to_moment": (
        x(of("string", format="date")),
        x(of("string", format="date-time")),
        {"parameters.x": "breaking+"},
    ),
    "made_a_set": (
        x(of("array", items=INT)),
        x(of("array", items=INT, uniqueItems=True)),
        {"parameters.x": "breaking+"},
    ),
    "items_widened": (
        x(of("array", items=INT)),
        x(of("array", items={"anyOf": [INT, TEXT]})),
        {"parameters.x": "widening+"},
    ),
    "tuple_longer": (
        x(of("array", prefixItems=[INT], items=False, minItems=1)),
        x(of("array", prefixItems=[INT, INT], items=False, minItems=2)),
        {"parameters.x": "breaking+"},
    ),
    "values_widened": (
        x(of("object", additionalProperties=INT)),
        x(of("object", additionalProperties=of("number"))),
        {"parameters.x": "widening+"},
    ),
    "inner_optional_added": (x(record("a", a=INT)), x(record("a", a=INT, b=INT)), {"parameters.x": "widening+"}),
    "inner_required_added": (x(record("a", a=INT)), x(record("a", "b", a=INT, b=INT)), {"parameters.x": "breaking+"}),
    "definition_renamed": (tree("Node", INT), tree("Tree", INT), {"parameters.x": "text"}),
    "tree_widened": (tree("Node", INT), tree("Node", of("number")), {"parameters.x": "widening+"}),
    "definition_changed": (
        {"parameters": {**takes(x={"$ref": "#/definitions/n"}, y=INT)["parameters"], "definitions": {"n": INT}}},
        {"parameters": {**takes(x={"$ref": "#/definitions/n"}, y=INT)["parameters"], "definitions": {"n": TEXT}}},
        {"parameters.x": "breaking+"},
    ),
    "kind_added": (x({"oneOf": TAGGED[:1]}), x({"oneOf": TAGGED}), {"parameters.x": "widening+"}),
    "union_reordered": (x({"anyOf": PAIR}), x({"anyOf": PAIR[::-1]}), {"parameters.x": "text"}),
    "multiples": (x(of("integer", multipleOf=4)), x(of("integer", multipleOf=2)), {"parameters.x": "widening+"}),
    "opened": (
        x(INT),
        {"parameters": {**x(INT)["parameters"], "additionalProperties": True}},
        {"parameters": "widening+"},
    ),
    "negation_unclear": (x({"not": of("string", minLength=1)}), x({"not": TEXT}), {"parameters.x": "breaking+"}),
    "described": (x(INT), x(of("integer", description="How many")), {"parameters.x": "text"}),
    "default_changed": (takes(x=of("integer", default=1)), takes(x=of("integer", default=2)), {"parameters.x": "text"}),
    "tool_described": ({}, {"description": "Do it well."}, {"description": "text"}),
    "moved": ({}, {"origin": {**PLAIN["origin"], "distribution": "acme-drum"}}, {"origin": "text"}),
    "released": ({}, {"origin": {**PLAIN["origin"], "version": "1.3"}}, {}),
    "returns_more": ({}, {"returns": {"anyOf": [TEXT, INT]}}, {"returns": "breaking+"}),
    "returns_less": ({"returns": {"anyOf": [TEXT, INT]}}, {}, {"returns": "widening+"}),
    "returns_anything": ({}, {"returns": None}, {"returns": "breaking+"}),
    "destroys": ({}, hints(destructive=True), {"hints.destructive": "breaking"}),
    "writes": (hints(read_only=True), {}, {"hints.read_only": "breaking"}),
    "only_reads": ({}, hints(read_only=True), {"hints.read_only": "widening"}),
    "asks_less": ({"approval": "always"}, {"approval": "sometimes"}, {"approval": "breaking"}),
    "asks_more": ({}, {"approval": "always"}, {"approval": "widening"}),
    "came": (None, {}, {"": "widening"}),
    "gone": ({}, None, {"": "breaking"}),
}


def write(path: Path, tools: dict[str, Parts | None], **origin: Any) -> str:
    """A lock file of these tools."""
    whole = {name: {**PLAIN, **parts} for name, parts in tools.items() if parts is not None}
    for parts in whole.values():
        parts["origin"] = {**parts["origin"], **origin}
    pinned = {name: {"hash": digest(parts), "schema_hash": "", **parts} for name, parts in whole.items()}
    path.write_text(json.dumps({"format": 1, "distributions": {}, "tools": pinned}), "utf-8")
    return str(path)


def accepts(schema: Parts | None, value: Any) -> bool:
    validator = Draft202012Validator(schema or {}, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return bool(validator.is_valid(value))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the command says of all cases at once."""
    import click.testing

    from pegboard_cli import main

    folder = tmp_path_factory.mktemp("locks")
    files = [write(folder / f"{side}.lock", {name: case[side] for name, case in CASES.items()}) for side in (0, 1)]
    result = click.testing.CliRunner().invoke(main, ["lock", "--diff", *files, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", CASES)
def test_class_and_witness(found: Any, name: str) -> None:
    before, after, expected = CASES[name]
    changes = {each["path"]: each for each in found["changes"] if each["tool"] == name}
    told = {path: each["class"] + ("" if each["witness"] is None else "+") for path, each in changes.items()}
    assert told == expected
    for path, each in changes.items():
        if not told[path].endswith("+"):
            continue
        what = path.partition(".")[0]
        old, new = ({**PLAIN, **(parts or {})}[what] for parts in (before, after))
        is_news = (each["class"] == "widening") is (what == "parameters")
        assert (accepts(old, each["witness"]), accepts(new, each["witness"])) == (not is_news, is_news)


# For objects, hypothesis-jsonschema needs an older hypothesis: their comparison is tried in tests/plugins/schemas.
WIDER = {
    name: (before["parameters"], after["parameters"])
    for name, (before, after, expected) in CASES.items()
    if before and after and expected == {"parameters.x": "widening+"}
    if "x" in before["parameters"]["required"] and not any(word in str(before) for word in ("kids", "'k'", "'a': {"))
    if "'additionalProperties': {" not in str(before)
}


@given(st.data())
def test_a_widening_refuses_nothing_that_was_accepted(data: st.DataObject) -> None:
    before, after = WIDER[data.draw(st.sampled_from(sorted(WIDER)))]
    value = data.draw(from_schema(before["properties"]["x"]))
    assert accepts(after, {"x": value})


PROGRAM = """
from pegboard import Toolkit

def roll({}) -> int: return 1

def make():
    toolkit = Toolkit(plugins=())
    toolkit.register(roll)
    return toolkit
"""


class TestCommand:
    @pytest.mark.parametrize(
        ("version", "after", "step"),
        [
            ("1.2", x(TEXT), "major"),
            ("0.9", x(TEXT), "minor"),
            ("0.9", takes("x", x=INT, y=INT), "minor"),
            ("2.0", takes("x", x=INT, y=INT), "minor"),
            ("1.2", x(of("integer", title="How many")), "patch"),
            ("1.2", x(INT), "patch"),
            ("1.2", {**x(INT), **hints(open_world=True)}, "major"),
            ("1.2", x(of("integer", pattern="^a")), "patch"),
            (None, x(of("number", multipleOf=0.5)), "major"),
        ],
    )
    def test_step(self, here: Path, run: Run, version: str | None, after: Parts, step: str) -> None:
        files = [
            write(here / f"{name}.lock", {"roll": parts}, version=version)
            for name, parts in (("a", x(INT)), ("b", after))
        ]
        assert run("lock", "--diff", *files, "--json").data["step"] == step

    def test_people_read_the_gravest_first(self, here: Path, run: Run) -> None:
        old = write(here / "old.lock", {"roll": {**takes(x=INT, y=INT), "description": "Roll."}, "throw": {}})
        new = write(here / "new.lock", {"roll": takes(x=of("number"), y=of("integer", maximum=5))})
        told = run("lock", "--diff", old, new)
        lines = [line.split() for line in told.out.splitlines()[2:]]
        assert [line[:3] for line in lines[:-2]] == [
            ["breaking", "roll", "parameters.y"],
            ["breaking", "throw", "the"],
            ["widening", "roll", "parameters.x"],
            ["text", "roll", "description"],
        ]
        assert told.out.splitlines()[2].endswith('refused now: {"y": 6}')
        assert told.out.endswith("\nstep: major\n")

    def test_nothing_has_changed(self, here: Path, run: Run) -> None:
        file = write(here / "pegboard.lock", {"roll": {}})
        told = run("lock", "--diff", file, file, "--fail-on", "text")
        assert (told.code, told.out) == (0, "No tool has changed.\n")
        assert run("lock", "--diff", file, file, "--json").data == {"changes": [], "step": "patch"}

    def test_fails_on_request(self, here: Path, run: Run) -> None:
        unclear = x(of("string", pattern="^a+$")), x(of("string", pattern="^aa*$"))
        files = [write(here / f"{number}.lock", {"roll": parts}) for number, parts in enumerate(unclear)]
        codes = [run("lock", "--diff", *files, "--fail-on", kind).code for kind in ("breaking", "unproven", "text")]
        assert codes == [0, 1, 1]

    def test_against_the_tools_of_now(self, here: Path, run: Run) -> None:
        (here / "program.py").write_text(PROGRAM.format("sides: int"))
        assert run("lock", "--toolkit", "program.py:make").code == 0
        before = (here / "pegboard.lock").read_bytes()
        (here / "program.py").write_text(PROGRAM.format("sides: int, count: int"))
        told = run("lock", "--diff", "--toolkit", "program.py:make", "--fail-on", "breaking", "--json")
        assert told.code == 1
        assert told.data["changes"] == [
            {"tool": "roll", "path": "parameters.count", "class": "breaking", "witness": {"sides": 1}}
        ]
        assert (here / "pegboard.lock").read_bytes() == before

    def test_hostile_schemas_end(self, here: Path, run: Run) -> None:
        before, after = x(of("string", pattern="^(a+)+$")), x(of("string", pattern="^(a+)+b?$"))
        files = [write(here / f"{number}.lock", {"roll": parts}) for number, parts in enumerate((before, after))]
        (change,) = run("lock", "--diff", *files, "--json").data["changes"]
        assert change["class"] == "unproven"

    def test_what_it_cannot_begin_with(self, here: Path, run: Run) -> None:
        assert "there is no pegboard.lock; write one with: pegboard lock" in run("lock", "--diff").complaint
        for arguments in (["old.lock"], ["--fail-on", "breaking"]):
            told = run("lock", *arguments)
            assert (told.code, "pegboard lock --diff" in told.complaint) == (2, True)
        assert list(here.iterdir()) == []

    def test_without_the_library_that_compares(self, here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        files = [write(here / f"{number}.lock", {"roll": x(each)}) for number, each in enumerate((INT, TEXT))]
        monkeypatch.setitem(sys.modules, "pegboard_schemas", None)
        told = run("lock", "--diff", *files)
        assert (told.code, told.complaint.endswith("pip install 'pegboard-cli[diff]'")) == (1, True)
