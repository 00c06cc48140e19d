"""Regular expressions mean what they mean in Python, and take no longer for it than the text is long."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard_files import UnsuitableError
from pegboard_files._text import patterns as _patterns
from pegboard_files._text.patterns import Pattern
from tests.support.measuring import paces

TEXTS = [
    "",
    "a",
    "foo",
    "foo_bar baz",
    "def test_one(self):",
    "x = 10, y = -3.5",
    "\u4e2d\u6587 caf\u00e9 \u00c4\u00df",
    "tab\there",
    "a.b*c[d]",
    "_private9",
    "aaaaab",
    "e-mail: ada@example.com",
]
PATTERNS = [
    "foo",
    "^foo$",
    "^$",
    "",
    ".",
    "a|b|",
    "(a|b)+c?",
    "(?:x|y) = ",
    r"\bbar\b",
    r"\Bar",
    r"\w+@\w+\.\w+",
    r"-?\d+(\.\d+)?",
    r"def \w+\(.*\):$",
    "[a-c]{2,4}b",
    "a{3}",
    "a{2,}b",
    "a{0,2}b",
    "[^a-z ]",
    r"[\d\s]",
    r"[^\W\d_]",
    r"\S\s\S",
    r"\D\W",
    "a.*?b",
    "(a*)*b",
    "(a+)+$",
    r"a\.b\*c\[d\]",
    "(?i)FOO",
    "(?P<name>o)o",
    r"\Afoo",
    r"baz\Z",
    r"\t",
    "caf\u00e9",
    "[\u4e00-\u9fff]+",
    "^(_|x)",
    "(^a|b$)",
    "(?:)",
    "(|a)b",
    "x*",
    "()",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_agrees_with_python(pattern: str) -> None:
    found = [text for text in TEXTS if Pattern(pattern).found_in(text)]
    assert found == [text for text in TEXTS if re.search(pattern, text)]
    found = [text for text in TEXTS if Pattern(pattern, ignore_case=True).found_in(text.swapcase())]
    assert found == [text for text in TEXTS if re.search(pattern, text.swapcase(), re.IGNORECASE)]


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\b", r"\B", "^", "$", " ", r"\d"])
REGEXES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "*?"])).map(lambda p: f"(?:{p[0]}){p[1]}"),
    ),
    max_leaves=8,
)


@given(REGEXES, st.text("ab 1", min_size=1, max_size=10))
def test_agrees_with_python_on_random_patterns(pattern: str, text: str) -> None:
    assert Pattern(pattern).found_in(text) == (re.search(pattern, text) is not None)
    ignoring = re.search(pattern, text.upper(), re.IGNORECASE) is not None
    assert Pattern(pattern, ignore_case=True).found_in(text.upper()) == ignoring


@pytest.mark.parametrize(
    "pattern", ["[a-z]", "[A-Z]", "[^a-z]", "s", "K", "[a-y]", "ss", "\u00df", "[\u00e0-\u00ff]", r"\w"]
)
def test_letters_whose_other_case_is_not_one_letter(pattern: str) -> None:
    for letter in "\u00df\u1e9e\u017f\u212a\u0149\ufb00\u0390\u1f88\u01c5":
        matcher = Pattern(pattern, ignore_case=True)
        assert matcher.found_in(letter) == bool(re.search(pattern, letter, re.IGNORECASE)), letter


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*)(.*)(.*)(.*)x", "(a?){50}a{50}", "(x+x+)+y"])
def test_time_grows_with_the_text_alone(pattern: str) -> None:
    assert paces(lambda: Pattern(pattern).found_in("a" * 10_000 + "!"), most=2_000) < 2_000


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a**",
        "[z-a]",
        "(?P<n>a)(?P=n)",
        r"(a)\1",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?>a)",
        "a++",
        "(?i:a)",
        "(a)?(?(1)b|c)",
        "a" * 501,
        "(a{30}){30}",
        "a{0,100000}",
        "(" * 300 + ")" * 300,
        "x{4294967296}",
        "\\",
    ],
)
def test_what_cannot_be_matched_is_refused(pattern: str) -> None:
    with pytest.raises(UnsuitableError) as refused:
        Pattern(pattern)
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize("pattern", ["(?:){1000000000}", "(?:a{0}){1000000}", "((?:)*)*"])
def test_repeating_nothing_takes_no_time(pattern: str) -> None:
    found: list[bool] = []
    assert paces(lambda: found.append(Pattern(pattern).found_in("b")), most=1_000) < 1_000
    assert all(found)


@pytest.mark.parametrize(("pattern", "literal"), [(r"def \w+_handler", "_handler"), ("a|b", ""), ("foo.", "foo")])
def test_knows_what_is_in_every_line_that_matches(pattern: str, literal: str) -> None:
    assert Pattern(pattern).literal == literal


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_patterns, "_MAX_REMEMBERED", 10)
    pattern = Pattern("x$")
    assert not pattern.found_in("".join(map(chr, range(0x100, 0x400))))
    assert pattern.found_in("".join(map(chr, range(0x100, 0x400))) + "x")
    assert pattern._remembered <= 11
