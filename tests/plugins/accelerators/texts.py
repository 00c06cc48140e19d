"""JSON text, nearly JSON text, and no JSON text at all."""

from __future__ import annotations

import json

from hypothesis import strategies as st

TEXTS: tuple[str, ...] = (
    "{}",
    ' \t\r\n{ "a" : 1 } ',
    '{"a": 1, "a": 2}',
    '{"a": {"b": 1, "b": 1}}',
    '{"a": [{"b": 1}, {"b": 1, "\\u0062": 2}]}',
    '{"a:b": ":", "c": "::"}',
    '{"a": 1, "b": "a: 1", "a": 2}',
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"a": -Infinity}',
    '{"a": 1e400}',
    '{"a": -1e400}',
    '{"a": 1e-400}',
    '{"a": -0}',
    '{"a": -0.0}',
    '{"a": 1.0}',
    '{"a": 1E+2}',
    '{"a": 01}',
    '{"a": 1.}',
    '{"a": .5}',
    '{"a": +1}',
    '{"a": 0x10}',
    '{"a": 1_000}',
    *(f'{{"a": {sign}{2**bits + more}}}' for sign in ("", "-") for bits in (53, 63, 64) for more in (-1, 0, 1)),
    '{"a": 1234567890123456789}',
    '{"a": 0.1234567890123456789}',
    '{"a": "12345678901234567890"}',
    '{"a": 123456789012345678901234567890}',
    f'{{"a": {"1" * 4300}}}',
    f'{{"a": {"1" * 4301}}}',
    f'{{"a": {"1" * 400}.5}}',
    '{"a": 2.2250738585072011e-308}',
    '{"a": 9007199254740993.0}',
    '{"a": "\\ud800"}',
    '{"a": "\\udc00\\ud800"}',
    '{"a": "\\ud83d\\ude00"}',
    '{"a": "\ud800"}',
    '{"\\ud800": 1}',
    '{"a": "\\u0000"}',
    '{"a": "\x00"}',
    '{"a": "\x1f"}',
    '{"a": "\x7f\u2028\ufeff"}',
    '{"a": "\\x41"}',
    '{"a": "\\u00g0"}',
    '{"a": "\t"}',
    "\ufeff{}",
    "\xa0{}",
    '{"a": 1}\x00',
    '{"a": 1} {"b": 2}',
    '{"a": 1,}',
    '{"a": [1,]}',
    "{'a': 1}",
    '{"a": tru',
    '{"a": "unfinished',
    '{"a" 1}',
    "{a: 1}",
    "{1: 1}",
    '{"a": 1 /* no */}',
    "",
    "   ",
    "null",
    "[]",
    "3",
    '"{\\"a\\": 1}"',
    '"text"',
    "nonsense",
    "[" * 101 + "]" * 101,
    *('{"a":' * depth + "1" + "}" * depth for depth in (99, 100, 101, 500, 3000)),
    '{"a": ' + "[" * 99 + "]" * 99 + "}",
    '{"a": ' + "[" * 100 + "]" * 100 + "}",
    '{"a": "' + "[{" * 200 + '"}',
    '{"a": [' + ", ".join('{"b": [1]}' for _ in range(200)) + "]}",
    '{"a": [' + ", ".join('{"b": [1]}' for _ in range(200)) + ', {"b": 1, "b": 1}]}',
    '{"a": [' + ", ".join('{"b": "x:y"}' for _ in range(200)) + "]}",
)

_NUMBERS = st.one_of(
    st.integers().map(str),
    st.integers(-(10**40), 10**40).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{0,3})?", fullmatch=True),
    st.sampled_from(["-0", "NaN", "Infinity", "-Infinity", "1e999", "-", "00", "9" * 5000]),
)
_ESCAPES = [r"\n", r"\/", r"\\", r"\"", r"\ud83d", r"\ude00", r"\u0041", r"\u00", r"\x"]
_PIECES = st.sampled_from([*"ab:{}[],", *_ESCAPES, *"\t\x00\x7f\u2028\ud800\ufeffé😀", "1234567890123456789"])
_STRINGS = st.one_of(
    st.lists(_PIECES, max_size=6).map(lambda pieces: f'"{"".join(pieces)}"'),
    st.text(max_size=6).map(json.dumps),
    st.text(max_size=6).map(lambda text: json.dumps(text, ensure_ascii=False)),
)
_KEYS = st.one_of(st.sampled_from(['"a"', '"b"', '"\\u0061"', '"a:b"']), _STRINGS)
_SPACE = st.sampled_from(["", "", "", " ", "\n", "\r\t", "\xa0"])


def _array(items: list[str], space: str) -> str:
    return f"[{space}{f',{space}'.join(items)}{space}]"


def _object(members: list[tuple[str, str]], space: str) -> str:
    return f"{{{space}{f',{space}'.join(f'{key}{space}:{space}{value}' for key, value in members)}{space}}}"


def _containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds(_array, st.lists(inner, max_size=4), _SPACE),
        st.builds(_object, st.lists(st.tuples(_KEYS, inner), max_size=4), _SPACE),
    )


_VALUES = st.recursive(st.one_of(_NUMBERS, _STRINGS, st.sampled_from(["true", "false", "null", "tru"])), _containers)
_OBJECTS = st.builds(_object, st.lists(st.tuples(_KEYS, _VALUES), max_size=5), _SPACE)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Text of an object, cut off, or with a character put in, taken out or replaced."""
    text = draw(_OBJECTS)
    place = draw(st.integers(0, len(text)))
    fresh = draw(st.sampled_from(list('{}[]:,"\\0123456789eE+-. \t\x00\ud800é')))
    begin, rest = text[:place], text[place + 1 :]
    return draw(st.sampled_from([begin, begin + fresh + text[place:], begin + rest, begin + fresh + rest]))


texts = st.one_of(_OBJECTS, _OBJECTS, _VALUES, mutated(), st.text(max_size=20))
