"""A grammar of the expensive: patterns that backtrack, and schemas that look at everything with everything.

The same seed gives the same to the test and to the server, which is another process.
"""

# ruff: noqa: RUF001 - letters that look like others are meant

import random
from collections.abc import Callable
from typing import Any, NamedTuple

NAMED = [
    ("^(α|.)+x$", "α" * 5_000),
    ("^(б|[^x])+$", "б" * 5_000 + "x"),
    ("^(((a?){4}){4}){3}$", "a" * 49),
    ("a?" * 30 + "a" * 30, "a" * 29),
    ("^(a+)+$", "a" * 5_000 + "!"),
    (".*.*.*z", "a" * 5_000),
]


class Attack(NamedTuple):
    """A schema of an object, and arguments (or an answer) that are dear to check against it."""

    schema: dict[str, Any]
    value: dict[str, Any]


# Patterns --------------------------------------------------------------------------------------------------------

ATOMS = [
    *("a", "b", ".", "α", "б", "[^x]", r"\w", r"\s", r"\d", "[a-f]", "(?:a|a)", "(?:a|ab)", "a?", "(a|б)", "[^\\s]"),
    *("(?:a|.)", "[aα]", "(?:aa|a)", r"\S", r"(?:\w|б)", "é", "[^b]"),
]
REPEATS = ["+", "*", "?", "{4}", "{0,9}", "{2,}", "{1,30}", "+?", "*?", "{10}"]
ENDS = ["x$", "$", "!", "", "z", "b$"]


def _piece(chance: random.Random, depth: int) -> str:
    if depth == 0:
        # Now and then something that no linear engine can read.
        return chance.choice(ATOMS) if chance.random() < 0.98 else chance.choice(["(?=a)", r"\1", "(?!b)"])
    inner = "".join(_piece(chance, depth - 1) for _ in range(chance.randint(1, 2)))
    if chance.random() < 0.4:
        inner = f"{inner}|{_piece(chance, depth - 1)}"
    return f"({inner}){chance.choice(REPEATS)}"


def pattern_attacks(number: int, seed: int) -> list[Attack]:
    """Patterns as values of `pattern` and as names in `patternProperties`, with texts that they fail to match."""
    chance = random.Random(seed)
    made = list(NAMED)
    while len(made) < number:
        start = chance.choice(["^", ""])
        pattern = start + _piece(chance, chance.randint(1, 4)) + chance.choice(ENDS)
        text = "".join(chance.choice(["a", "aб", "α", "ab", "a "]) for _ in range(2)) * chance.choice([15, 60, 1_000])
        made.append((pattern[:2_000], text + chance.choice(["", "!", "x", "é"])))
    return [
        Attack(
            {
                "type": "object",
                "properties": {"text": {"type": "string", "pattern": pattern}},
                "patternProperties": {pattern: {"type": "string"}},
                "additionalProperties": False,
            },
            {"text": text, text: 1},
        )
        for pattern, text in made[:number]
    ]


# Schemas ---------------------------------------------------------------------------------------------------------


def _small(chance: random.Random, number: int) -> dict[str, Any]:
    """Something that a value may fail in many ways."""
    kind = chance.randrange(6)
    if kind == 0:
        return {"const": number}
    if kind == 1:
        return {"type": "object", "properties": {f"k{number}": {"type": "string"}}, "required": [f"k{number}"]}
    if kind == 2:
        return {"enum": [f"name{number}", f"other{number}"]}
    if kind == 3:
        return {"type": "string", "pattern": f"^(a|.)+{number % 20}$"}
    if kind == 4:
        return {"not": {"not": {"type": "array", "minItems": number}}}
    return {"items": {"const": number}, "contains": {"const": number}, "uniqueItems": True}


def _many(chance: random.Random, number: int) -> list[dict[str, Any]]:
    return [_small(chance, each) for each in range(number)]


def _wide(chance: random.Random, number: int) -> dict[str, Any]:
    several: dict[str, Callable[[], Any]] = {
        "oneOf": lambda: _many(chance, number),
        "anyOf": lambda: _many(chance, number),
        "allOf": lambda: _many(chance, number // 4 + 1),
        "enum": lambda: [chance.choice([each, f"a name of {each}", [each] * 9, {"k": each}]) for each in range(number)],
        "contains": lambda: {"anyOf": _many(chance, number)},
        "propertyNames": lambda: {"oneOf": _many(chance, number)},
        "required": lambda: [f"name{each}" for each in range(number)],
        "properties": lambda: {f"name{each}": _small(chance, each) for each in range(number)},
        "unevaluatedProperties": lambda: {"anyOf": _many(chance, number)},
        "unevaluatedItems": lambda: _small(chance, 3),
        "additionalProperties": lambda: {"anyOf": _many(chance, number // 2 + 1)},
        "patternProperties": lambda: {f"^(a|.)+{each}$": _small(chance, each) for each in range(20)},
        "dependentSchemas": lambda: {f"k{each}": {"anyOf": _many(chance, 9)} for each in range(20)},
        "prefixItems": lambda: _many(chance, number),
        "if": lambda: {"anyOf": _many(chance, number)},
        "then": lambda: {"oneOf": _many(chance, number)},
        "not": lambda: {"allOf": _many(chance, number // 4 + 1)},
        f"x-{number}": lambda: [1],
    }
    found = {word: several[word]() for word in chance.sample(sorted(several), chance.randint(1, 3))}
    return {**found, **({"items": _wide(chance, number // 2 + 1)} if chance.random() < 0.4 else {})}


def _doubling(chance: random.Random, number: int) -> dict[str, Any]:
    """Each level of the value is looked at twice as often as the one above."""
    word = chance.choice(["anyOf", "oneOf", "allOf"])
    inner = [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}, *([False] if word != "allOf" else [])]
    return {"properties": {"x": {word: inner}, "v": {"type": "null"}, "items": {word: inner}}, "items": {word: inner}}


def _value(chance: random.Random, number: int) -> Any:
    kind = chance.randrange(7)
    if kind == 0:
        return [chance.choice([each, f"a nam of {each}", "a" * 200]) for each in range(number)]
    if kind == 1:
        return {f"nam{each}": each for each in range(number)}
    if kind == 2:
        return [{f"k{each}": each, "v": 1} for each in range(number // 2)]
    if kind == 3:
        return [[each] * 9 for each in range(number // 4)]
    if kind == 4:
        return ["a" * 2_000] * (number // 4 + 1)
    deep: Any = {"v": 1}
    for _ in range(60):
        deep = {"x": deep} if kind == 5 else [deep]
    return deep


def schema_attacks(number: int, seed: int) -> list[Attack]:
    """Schemas whose checks take work without bounds, with values that have them do it."""
    chance = random.Random(seed)
    made = []
    for _ in range(number):
        size = chance.choice([10, 40, 150])
        chain = {f"c{each}": {"$ref": f"#/$defs/c{each + 1}"} for each in range(40)}
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                "x": chance.choice([{"items": _wide(chance, size)}, _wide(chance, size), {"$ref": "#/$defs/n"}])
            },
            "$defs": {**chain, "c40": _wide(chance, 9), "n": _doubling(chance, size)},
        }
        if chance.random() < 0.3:
            schema["properties"]["x"] = {"anyOf": [schema["properties"]["x"], {"items": {"$ref": "#/$defs/c0"}}]}
        made.append(Attack(schema, {"x": _value(chance, size)}))
    return made
