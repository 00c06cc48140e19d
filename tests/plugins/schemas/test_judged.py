"""Schemas of third parties that want to freeze their host: each is read soon, or refused, and so is each value."""

import contextlib
import json
import random
import sys
from functools import partial
from typing import Any, ClassVar

import pytest
from jsonschema import Draft202012Validator

from pegboard import RegistrationError
from pegboard_schemas import as_re2, compiled_pattern, judged
from tests.plugins.schemas.hostile_schemas import NAMED, Attack, pattern_attacks, schema_attacks
from tests.support.measuring import paces

SEED = 16
# What froze took minutes, 100,000 and more; what takes the most takes 30 to 100, and 500 where a collection of garbage
# comes in between.
MOST = 1_000


def problems(schema: dict[str, Any], value: Any) -> list[str]:
    return [str(problem) for problem in judged(schema).check.problems(value)]


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
    def test_those_that_re2_cannot_read_are_not_checked(self, pattern: str, why: str) -> None:
        schema = {
            "properties": {"x": {"type": "string", "pattern": pattern}, "n": {"type": "integer"}},
            "required": ["n"],
            "additionalProperties": False,
        }
        found, (message,) = judged(schema).check, judged(schema).unchecked
        assert message.startswith("pattern at #/properties/x: ")
        assert why in message
        assert found.problems({"x": "b", "n": 1}) == []
        assert len(found.problems({"x": 1, "y": 2})) == 3

    def test_many_that_re2_cannot_read_are_told_in_few_words(self) -> None:
        unchecked = judged({"properties": {f"\n{each}": {"pattern": "(?=a)"} for each in range(99)}}).unchecked
        assert unchecked[0].startswith("pattern at #/properties/?0: (?=a) (RE2: ")
        assert unchecked[3:] == ("96 parts more",)

    def test_text_that_is_no_text(self) -> None:
        assert problems({"properties": {"x": {"pattern": "^a$"}}}, {"x": "\ud800"})

    def test_too_many_are_refused(self) -> None:
        with pytest.raises(RegistrationError, match="more than 50 patterns"):
            judged({"pattern": r"[\pL\pN]" * 30})
        with pytest.raises(RegistrationError, match="more than 50 patterns"):
            judged({"properties": {f"p{number}": {"pattern": f"{number}"} for number in range(51)}})

    def test_without_the_engine_they_are_not_checked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "re2", None)
        compiled_pattern.cache_clear()
        try:
            (unchecked,) = judged({"pattern": "^a"}).unchecked
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
    values = 0
    for _ in range(400):
        schema = {"properties": {"x": _drawn(chance, 2, ["^a", "b$", "^[ab]+$"])}}
        if "unevaluated" in json.dumps(schema):
            continue
        found = judged(schema).check
        assert judged(schema).unchecked == ()
        for word in WORDS:
            value = {"x": word}
            assert (found.problems(value) == []) is Draft202012Validator(schema).is_valid(value), (schema, value)
            values += 1
    assert values > 2_000


def test_what_cannot_be_read_refuses_nothing_that_fits() -> None:
    chance = random.Random(SEED)
    fitting = refused = 0
    for _ in range(400):
        schema = {"properties": {"x": _drawn(chance, 2, ["^a", "^(?=a)", "^(?!a)", "b$"])}}
        found = judged(schema).check
        for word in WORDS:
            value = {"x": word}
            if Draft202012Validator(schema).is_valid(value):
                assert found.problems(value) == [], (schema, value)
                fitting += 1
            else:
                refused += bool(found.problems(value))
    assert fitting > 1_000
    assert refused > 200


class TestSurvey:
    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            ({"$ref": "#"}, "leads back to itself"),
            (
                {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
                "leads back to itself",
            ),
            ({"not": {"$ref": "#"}}, "$ref at # leads back to itself without end"),
            ({"$id": "https://a.example/a", "properties": {"a": {"$id": "https://a.example/b"}}}, "only the root may"),
            ({"$defs": {"a": {"$anchor": "a"}}, "$ref": "#a"}, "only references within it (#/...)"),
            ({"$ref": "https://example.com/x.json"}, "only references within it (#/...)"),
            ({"enum": list(range(21_000))}, "more than 20000 parts"),
            ({"$vocabulary": {}, "enum": list(range(1_001))}, "with so many parts"),
            ({"type": "objekt"}, "is not valid JSON Schema"),
        ],
    )
    def test_what_cannot_be_used_is_refused(self, schema: dict[str, Any], message: str) -> None:
        with pytest.raises(RegistrationError) as caught:
            judged(schema, "the schema of a server")
        assert str(caught.value).startswith("the schema of a server: ")
        assert message in str(caught.value)

    @pytest.mark.parametrize("keyword", ["anyOf", "allOf", "oneOf"])
    def test_alternatives_that_double(self, keyword: str) -> None:
        levels: dict[str, Any] = {"d0": {"type": "integer"}}
        for level in range(1, 23):
            levels[f"d{level}"] = {keyword: [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
        with pytest.raises(RegistrationError, match="more than 10000 subschemas"):
            judged({"$defs": levels, "properties": {"x": {"$ref": "#/$defs/d22"}}})

    def test_a_recursive_schema_of_alternatives_is_fine(self) -> None:
        branches = [
            {"type": "object", "properties": {"op": {"const": op}, "a": {"$ref": "#"}}} for op in ("add", "mul")
        ]
        found = judged({"anyOf": [{"type": "number"}, *branches]}).check
        assert found.problems({"op": "mul", "a": {"op": "add", "a": 1}}) == []
        assert found.problems({"op": "mul", "a": {"op": "add", "a": "x"}})


class TestWhole:
    """What is not the whole truth about a value refuses nothing that the rest might accept."""

    SCHEMA: ClassVar[dict[str, Any]] = {"properties": {"x": {"not": {"type": "string"}}, "y": {"type": "integer"}}}

    def test_only_what_is_sure_is_checked(self) -> None:
        assert judged(self.SCHEMA).check.problems({"x": "a"})
        found = judged(self.SCHEMA, is_whole=False)
        assert found.check.problems({"x": "a"}) == []
        assert found.check.problems({"y": "a"})
        assert found.unchecked == ()

    def test_too_many_patterns_may_be_left_unchecked(self) -> None:
        schema = {"properties": {f"p{number}": {"type": "string", "pattern": f"{number}"} for number in range(51)}}
        found = judged(schema, refuses_many=False)
        assert found.check.problems({"p1": "x"}) == []
        assert found.check.problems({"p1": 1})
        assert "more than 50 patterns" in found.unchecked[0]


class TestWork:
    @pytest.mark.parametrize(
        ("schemas", "patterns"), [(40, 40), pytest.param(500, 2_000, marks=pytest.mark.slow)], ids=["few", "many"]
    )
    def test_is_bounded_whatever_the_schema(self, schemas: int, patterns: int) -> None:
        """Each is read soon, or refused, and so is each value checked."""
        for attack in [*schema_attacks(schemas, SEED), *pattern_attacks(patterns, SEED)]:

            def read(attack: Attack = attack) -> None:
                with contextlib.suppress(RegistrationError):
                    judged(attack.schema)

            assert paces(read, most=MOST) < MOST
            with contextlib.suppress(RegistrationError):
                found = judged(attack.schema).check
                assert paces(partial(found.problems, attack.value), most=MOST) < MOST

    def test_says_what_and_what_next(self) -> None:
        schema = {"properties": {"x": {"items": {"oneOf": [{"const": number} for number in range(900)]}}}}
        (message,) = problems(schema, {"x": [-1] * 900})
        assert message == (
            "cannot be checked against its schema: the value is too large for so much schema; "
            "send less, or simpler data"
        )

    def test_of_what_looks_at_everything_again_is_not_done(self) -> None:
        schema = {"properties": {"x": {"unevaluatedProperties": False, "properties": {"a": {"type": "integer"}}}}}
        unchecked = judged(schema).unchecked
        assert unchecked == ("unevaluatedProperties at #/properties/x, which takes work without bounds",)
        assert problems(schema, {"x": {"b": 1}}) == []
        assert problems(schema, {"x": {"a": "b"}})
