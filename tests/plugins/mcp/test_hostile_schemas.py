"""Schemas of servers that want to freeze their host: each check ends soon, and other calls are answered meanwhile."""

import contextlib
import json
import random
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp_types import CallToolResult

from pegboard import RegistrationError, Status, Toolkit, ToolResult
from pegboard_mcp import McpServer
from pegboard_mcp._incoming import result_of
from pegboard_mcp._strangers import as_re2, compiled_pattern, strangers_schema
from tests.plugins.mcp.hostile_schemas import NAMED, Attack, pattern_attacks, schema_attacks
from tests.support.measuring import paces

SCRIPT = str(Path(__file__).with_name("hostile_server.py"))
SEED = 16
# What froze took minutes, 100,000 and more; what takes the most takes 30 to 100, and 500 where a collection of garbage
# comes in between.
MOST = 1_000


def problems(schema: dict[str, Any], value: Any) -> list[str]:
    found, _, _ = strangers_schema(schema, "it")
    return [str(problem) for problem in found.problems(value)]


class TestPatterns:
    @pytest.mark.parametrize("attack", pattern_attacks(len(NAMED), SEED), ids=[pattern for pattern, _ in NAMED])
    @pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
    def test_those_that_backtracked_for_ever(self, attack: Attack, keyword: str) -> None:
        text = str(attack.value["text"])
        (pattern,) = attack.schema["patternProperties"]
        named = {"patternProperties": {pattern: False}, "additionalProperties": {"type": "integer"}}
        schema, value = (
            ({"properties": {"text": {"pattern": pattern}}}, {"text": text})
            if keyword == "pattern"
            else (named, {text: 1})
        )
        assert paces(lambda: problems(schema, value), most=MOST) < MOST
        assert bool(problems(schema, value)) is (keyword == "pattern")

    @pytest.mark.parametrize(
        ("pattern", "fitting", "unfit"),
        [
            (r"^\u00e9+$", "éé", "e"),
            (r"^\u{1F600}$", "😀", "u"),
            (r"^\cJ$", "\n", "J"),
            (r"^\s$", "\u00a0", "a"),
            (r"^[a\s]$", "\u3000", "b"),
            (r"^\S$", "a", "\u00a0"),
            ("^[^]$", "\n", "ab"),
            ("^[[]$", "[", "]"),
            ("^[[a]+$", "[a", "]"),
            (r"^[\]a]$", "]", "b"),
            (r"^\d\.\w-\/$", "1._-/", "1x_-/"),
            ("a$", "a", "a\n"),
            ("^(?<year>[0-9]{4})$", "2026", "26"),
            (r"^\p{Lu}$", "É", "é"),
        ],
    )
    def test_mean_what_they_mean_in_ecmascript(self, pattern: str, fitting: str, unfit: str) -> None:
        schema = {"properties": {"x": {"pattern": pattern}}}
        assert problems(schema, {"x": fitting}) == []
        assert problems(schema, {"x": unfit})

    def test_nothing_at_all(self) -> None:
        assert as_re2("a[]") == r"a[^\x{0}-\x{10FFFF}]"
        assert problems({"properties": {"x": {"pattern": "[]"}}}, {"x": "a"})

    @pytest.mark.parametrize(
        ("pattern", "why"),
        [
            ("^(?=a)", "RE2: invalid perl operator"),
            (r"(a)\1", "RE2: invalid escape sequence"),
            (r"((\pL{30}){30})", "RE2: pattern too large"),
            ("a{1001}", "RE2: invalid repetition size"),
            ("a" * 1_001, "longer than 1000 characters"),
        ],
    )
    def test_those_that_nobody_can_match_are_left_to_the_server(self, pattern: str, why: str) -> None:
        schema = {
            "properties": {"x": {"type": "string", "pattern": pattern}, "n": {"type": "integer"}},
            "required": ["n"],
            "additionalProperties": False,
        }
        found, _, unchecked = strangers_schema(schema, "it")
        (said,) = unchecked
        assert said.startswith("pattern at #/properties/x: ")
        assert why in said
        assert found.problems({"x": "b", "n": 1}) == []
        assert len(found.problems({"x": 1, "y": 2})) == 3

    def test_many_that_nobody_can_match_are_told_in_few_words(self) -> None:
        _, _, unchecked = strangers_schema(
            {"properties": {f"\n{each}": {"pattern": "(?=a)"} for each in range(99)}}, "it"
        )
        assert unchecked[0].startswith("pattern at #/properties/?0: (?=a) (RE2: ")
        assert unchecked[3:] == ("96 parts more",)

    def test_text_that_is_no_text(self) -> None:
        assert problems({"properties": {"x": {"pattern": "^a$"}}}, {"x": "\ud800"})

    def test_too_many_are_refused(self) -> None:
        with pytest.raises(RegistrationError, match="more than 50 patterns"):
            strangers_schema({"pattern": r"[\pL\pN]" * 30}, "it")
        with pytest.raises(RegistrationError, match="more than 50 patterns"):
            strangers_schema({"properties": {f"p{number}": {"pattern": f"{number}"} for number in range(51)}}, "it")

    def test_without_the_engine_they_are_not_checked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "re2", None)
        compiled_pattern.cache_clear()
        try:
            _, _, (unchecked,) = strangers_schema({"pattern": "^a"}, "it")
        finally:
            compiled_pattern.cache_clear()
        assert "install google-re2" in unchecked


WORDS = ["a", "ab", "b", 1, None, [], ["a"], ["b", "b"], {}, {"a": "a"}, {"a": "b", "b": "a"}, {"ab": 1}]


def _drawn(chance: random.Random, depth: int, patterns: list[str]) -> Any:
    """A small schema that uses patterns in every position."""
    pattern = chance.choice(patterns)
    if depth == 0:
        return chance.choice(
            [{"pattern": pattern}, {"type": "string", "pattern": pattern}, {"const": "a"}, True, False]
        )

    def inner() -> Any:
        return _drawn(chance, depth - 1, patterns)

    several: dict[str, Any] = {
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "items": inner,
        "contains": inner,
        "maxContains": lambda: 1,
        "propertyNames": inner,
        "additionalProperties": inner,
        "unevaluatedProperties": inner,
        "unevaluatedItems": inner,
        "oneOf": lambda: [inner(), inner()],
        "anyOf": lambda: [inner(), inner()],
        "allOf": lambda: [inner(), inner()],
        "prefixItems": lambda: [inner()],
        "properties": lambda: {"a": inner(), "b": inner()},
        "patternProperties": lambda: {pattern: inner()},
        "dependentSchemas": lambda: {"a": inner()},
        "uniqueItems": lambda: True,
        "required": lambda: ["a"],
    }
    return {word: several[word]() for word in chance.sample(sorted(several), 2)}


def test_what_can_be_read_is_judged_as_by_jsonschema() -> None:
    chance = random.Random(SEED)
    judged = 0
    for _ in range(400):
        schema = {"properties": {"x": _drawn(chance, 2, ["^a", "b$", "^[ab]+$"])}}
        if "unevaluated" in json.dumps(schema):
            continue
        found, _, unchecked = strangers_schema(schema, "it")
        assert unchecked == ()
        for word in WORDS:
            value = {"x": word}
            assert (found.problems(value) == []) is Draft202012Validator(schema).is_valid(value), (schema, value)
            judged += 1
    assert judged > 2_000


def test_what_cannot_be_read_refuses_nothing_that_fits() -> None:
    chance = random.Random(SEED)
    fitting = refused = 0
    for _ in range(400):
        schema = {"properties": {"x": _drawn(chance, 2, ["^a", "^(?=a)", "^(?!a)", "b$"])}}
        found, _, _ = strangers_schema(schema, "it")
        for word in WORDS:
            value = {"x": word}
            if Draft202012Validator(schema).is_valid(value):
                assert found.problems(value) == [], (schema, value)
                fitting += 1
            else:
                refused += bool(found.problems(value))
    assert fitting > 1_000
    assert refused > 200


class TestWork:
    @pytest.mark.parametrize(
        ("schemas", "patterns"), [(40, 40), pytest.param(500, 2_000, marks=pytest.mark.slow)], ids=["few", "many"]
    )
    def test_is_bounded_whatever_the_schema(self, schemas: int, patterns: int) -> None:
        """Each is read soon, or refused, and so is each value checked."""
        for attack in [*schema_attacks(schemas, SEED), *pattern_attacks(patterns, SEED)]:

            def read(attack: Attack = attack) -> None:
                with contextlib.suppress(RegistrationError):
                    strangers_schema(attack.schema, "it")

            assert paces(read, most=MOST) < MOST
            with contextlib.suppress(RegistrationError):
                found, _, _ = strangers_schema(attack.schema, "it")
                assert paces(partial(found.problems, attack.value), most=MOST) < MOST

    def test_says_what_and_what_next(self) -> None:
        schema = {"properties": {"x": {"items": {"oneOf": [{"const": number} for number in range(900)]}}}}
        (said,) = problems(schema, {"x": [-1] * 900})
        assert said == (
            "cannot be checked against its schema: the value is too large for so much schema; "
            "send less, or simpler data"
        )

    def test_an_answer_that_takes_too_much_is_taken_as_it_is(self) -> None:
        schema = {"properties": {"x": {"items": {"oneOf": [{"const": number} for number in range(900)]}}}}
        found, _, _ = strangers_schema(schema, "its output schema")
        answer = CallToolResult(content=[], structured_content={"x": [-1] * 900})
        result = result_of(answer, "t", found, False, {})
        assert (result.status, result.data) == (Status.SUCCESS, {"x": [-1] * 900})
        (note,) = result.notes
        assert (note.kind, "the answer was taken as it is: cannot be checked" in note) == ("unchecked", True)

    def test_of_what_looks_at_everything_again_is_not_done(self) -> None:
        schema = {"properties": {"x": {"unevaluatedProperties": False, "properties": {"a": {"type": "integer"}}}}}
        _, _, unchecked = strangers_schema(schema, "it")
        assert unchecked == ("unevaluatedProperties at #/properties/x, which takes work without bounds",)
        assert problems(schema, {"x": {"b": 1}}) == []
        assert problems(schema, {"x": {"a": "b"}})


def ping(number: int) -> int:
    """Give a number back."""
    return number


def attacked(kind: str, number: int) -> None:
    """Register a hostile server, call all its tools twice, and a tool of our own all the while."""
    attacks = (pattern_attacks if kind == "patterns" else schema_attacks)(number, SEED)
    done = threading.Event()
    answered = calls = 0
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(ping)

        def keep_calling() -> None:
            nonlocal answered
            while not done.is_set():
                answered += toolkit.call_sync("ping", {"number": answered}).data == answered
                time.sleep(0.001)

        server = McpServer.stdio(sys.executable, [SCRIPT, kind, str(number), str(SEED)], connect_timeout=120)
        thread = threading.Thread(target=keep_calling)
        thread.start()
        try:
            toolkit.register(server)
            offered = {tool.name for tool in toolkit.tools}
            for index, attack in enumerate(attacks):
                name = f"attack{index}"
                if name not in offered:
                    continue  # refused
                for arguments in (json.dumps(attack.value), "{}"):
                    results: list[ToolResult] = []

                    def call(name: str = name, sent: str = arguments, to: list[ToolResult] = results) -> None:
                        to.append(toolkit.call_sync(name, sent))

                    # All of the process: what the server's answer takes, and what is asked meanwhile.
                    assert paces(call, most=MOST, clock=time.process_time) < MOST
                    assert results[0].status in (Status.SUCCESS, Status.INVALID, Status.ERROR), results[0].text
                    calls += 1
        finally:
            done.set()
            thread.join(60)
    assert len(offered) > number * 0.9
    assert answered > calls / 10


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("kind", ["patterns", "schemas"])
def test_a_real_server(kind: str) -> None:
    attacked(kind, 20)


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(("kind", "number"), [("patterns", 2_000), ("schemas", 500)])
def test_a_real_server_for_long(kind: str, number: int) -> None:
    attacked(kind, number)
