"""Patterns of models mean what they mean in Python wherever they can, and take no longer than the text is long."""

import re
import sys
import unicodedata
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard_schemas import PatternError, compiled_search
from tests.plugins.schemas.hostile_schemas import pattern_attacks
from tests.support.measuring import paces
from tests.support.thinning import one_in

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
    "\u0663\u0664\u00a0\u2014\U0001f600",
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
    "a{,2}b",
    "[{,2}]",
    "[^a-z ]",
    r"[\d\s]",
    r"[^\W\d_]",
    r"[\W_]",
    r"[\S\d]$",
    r"^[^\S ]",
    r"\S\s\S",
    r"\D\W",
    "a.*?b",
    "(a*)*b",
    "(a+)+$",
    r"a\.b\*c\[d\]",
    "[]d]",
    r"[^]\[]d",
    r"[\]]$",
    r"[:f:]oo$",
    "[$^]",
    r"\^|\$",
    "(?i)FOO",
    "(?i:F)oo",
    "(?P<name>o)o",
    r"\Afoo",
    r"baz\Z",
    r"\t",
    r"\x41|\u00e9$|\U0001F600$",
    r"[\u4e00-\u9fff]{2}",
    "caf\u00e9",
    "[\u4e00-\u9fff]+",
    "^(_|x)",
    "(^a|b$)",
    "(?:)",
    "(|a)b",
    "x*",
    "()",
]

CLASSES = [r"\w", r"\W", r"\d", r"\D", r"\s", r"\S"]


def found(pattern: str, text: str, *, ignore_case: bool = False) -> list[str]:
    """The lines of a text that hold a pattern."""
    encoded = text.encode()
    return [encoded[a:b].decode() for a, b in compiled_search(pattern, ignore_case=ignore_case).lines(encoded)]


class TestMeaning:
    @pytest.mark.parametrize("pattern", PATTERNS)
    def test_agrees_with_python(self, pattern: str) -> None:
        assert found(pattern, "\n".join([*TEXTS, ""])) == [text for text in TEXTS if re.search(pattern, text)]
        swapped = [text.swapcase() for text in TEXTS]
        expected = [text for text in swapped if re.search(pattern, text, re.IGNORECASE)]
        assert found(pattern, "\n".join([*swapped, ""]), ignore_case=True) == expected

    @pytest.mark.slow
    def test_classes_are_those_of_python_for_all_of_unicode(self) -> None:
        # What a version of Unicode has not assigned may be assigned by that of RE2; private ones are all alike.
        left_out = ("Cn", "Co", "Cs")
        characters = [c for c in map(chr, range(0x20000)) if c != "\n" and unicodedata.category(c) not in left_out]
        text = "\n".join([*characters, "\ue000", ""])
        for pattern in (*CLASSES, *(f"[{each}-]" for each in CLASSES), r"[^\W\d_]", r"[^\S]"):
            assert found(pattern, text) == [each for each in re.findall(pattern, text) if each != "\n"], pattern

    @pytest.mark.parametrize(
        "pattern", ["[a-z]", "[A-Z]", "[^a-z]", "s", "K", "[a-y]", "ss", "\u00df", "[\u00e0-\u00ff]", r"\w"]
    )
    def test_letters_whose_other_case_is_not_one_letter(self, pattern: str) -> None:
        for letter in "\u00df\u1e9e\u017f\u212a\u0149\ufb00\u0390\u1f88\u01c5":
            expected = [letter] if re.search(pattern, letter, re.IGNORECASE) else []
            assert found(pattern, letter, ignore_case=True) == expected

    def test_words_are_those_of_ascii(self) -> None:
        assert found(r"\bfoo\b", "foo\nfoo\u00e9\n\u4e2dfoo\nfood\n") == ["foo", "foo\u00e9", "\u4e2dfoo"]
        # What the refusal of \b beside such a letter says to write.
        assert found(r"(^|\W)\u00e9t(\W|$)", "\u00e9t\nl'\u00e9t.\nr\u00e9t\n") == ["\u00e9t", "l'\u00e9t."]

    def test_hyphen_behind_a_class_is_itself(self) -> None:
        # Python refuses it; other languages do not, and models write it.
        assert found(r"^[\w-.]+@", "a-b.c@\na+b@\n") == ["a-b.c@"]
        with pytest.raises(PatternError, match="write a hyphen first or last in brackets"):
            compiled_search(r"[.-\w]")

    def test_names_of_classes(self) -> None:
        assert found(r"^[[:alpha:]]+\p{Greek}$", "ab\u03b1\nab1\n") == ["ab\u03b1"]


ATOMS = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\w", r"\b", r"\B", "^", "$", " ", r"\d", r"\s", r"\S", r"[\W1]"]
)
REGEXES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{,2}", "*?"])).map(
            lambda part: f"(?:{part[0]}){part[1]}"
        ),
    ),
    max_leaves=8,
)

# Before Python 3.14, \B is not found in an empty text.
LINES = st.lists(st.text("aBb 1\r", min_size=1, max_size=8), max_size=5)


@given(REGEXES, LINES, st.booleans())
def test_agrees_with_python_on_random_patterns(pattern: str, lines: list[str], ignore_case: bool) -> None:
    expected = [line for line in lines if re.search(pattern, line, re.IGNORECASE if ignore_case else 0)]
    assert found(pattern, "".join(f"{line}\n" for line in lines), ignore_case=ignore_case) == expected


class TestText:
    def test_last_line_needs_no_line_feed(self) -> None:
        assert found("b?", "a\n\nb") == ["a", "", "b"]
        assert found("", "") == []

    def test_no_match_crosses_a_line(self) -> None:
        for pattern in (r"a\sb", "a[^c]b", "(?s)a.b", r"a[\n]b", r"a\Db", r"a\x0ab", "a$^b"):
            assert found(pattern, "a\nb\n") == []

    def test_other_separators_end_no_line(self) -> None:
        assert found("^b", "a\rb\u2028b\vb\x85b\n") == []

    @given(
        st.lists(st.sampled_from([b"a", b"\xc3\xa9", b"\xc3", b"\xa9", b"\xff", b"\xed\xa0\x80", b"\n"])).map(b"".join)
    )
    def test_bytes_that_are_not_utf_8_are_characters(self, text: bytes) -> None:
        lines = text.split(b"\n") if not text.endswith(b"\n") else text.split(b"\n")[:-1]
        expected = [line for line in lines if text and re.search("^a.[^a]$", line.decode(errors="surrogateescape"))]
        assert [text[a:b] for a, b in compiled_search("^a.[^a]$").lines(text)] == expected
        odd = [line for line in lines if text and re.search(r"^\W", line.decode(errors="surrogateescape"))]
        assert [text[a:b] for a, b in compiled_search(r"^\W").lines(text)] == odd


class TestRefusals:
    @pytest.mark.parametrize(
        ("pattern", "reason"),
        [
            ("(?=a)", r"^look-around is not supported: .*\(\?=\)$"),
            ("a(?!a)", "^look-around is not supported: search for what must be there"),
            ("(?<=a)b", "^look-around"),
            ("(?<!a)b", "^look-around"),
            (r"(a)\1", r"^back references are not supported: write the repeated text itself .*\\1\)$"),
            ("(?P<n>a)(?P=n)", "^back references"),
            ("(?>a)", "^nothing backtracks here: write a plain group"),
            ("a++", "^nothing backtracks"),
            ("a{2}+", "^nothing backtracks"),
            ("(a)?(?(1)b|c)", r"^conditions are not supported: write the alternatives, as in ab\|c"),
            ("(?x) a", "^only the flags i, m, s and U"),
            ("(?#note)a", "^only the flags"),
            ("a{1001}", "^counts may be up to 1000"),
            ("(a{30}){40}", "nested repetitions multiplied"),
            (r"\w{30}", r"^use smaller counts, or \[A-Za-z0-9_\] for \\w \(RE2: pattern too large"),
            ("a" * 1_001, "^it is longer than 1000 characters"),
            (r"a\n", "^no line has a line feed"),
            ("(a|\n)", "^no line has a line feed"),
            (r"\Ca", r"^\\C is not supported"),
            (r"\Q[\E", r"^\\Q is not supported"),
            ("\\b\u00e9", r"^\\b knows the words of ASCII alone: write \(\^\|\\W\) before a word"),
            ("\u00e9\\B", r"^\\B knows"),
            ("(", r"^RE2: missing \): \("),
            ("[z-a]", "^RE2: invalid character class range"),
            ("(?P<n", "^RE2: invalid named capture group"),
            ("\\", "^RE2: trailing"),
            ("*a", "^RE2: no argument for repetition operator"),
        ],
    )
    def test_name_the_part_and_what_to_write(self, pattern: str, reason: str) -> None:
        with pytest.raises(PatternError, match=reason):
            compiled_search(pattern)

    def test_without_the_engine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "re2", None)
        with pytest.raises(PatternError, match="install google-re2"):
            compiled_search("a")


HOSTILE = [
    ("(a+)+$", "a" * 1_000_000 + "!"),
    ("(a|a)*b", "a" * 1_000_000),
    ("(a|aa)+$", "a" * 1_000_000 + "!"),
    ("(.*)(.*)(.*)(.*)x", "a" * 1_000_000),
    ("(a?){50}a{50}$", "a" * 1_000_000 + "!"),
    ("(x+x+)+y", "x" * 1_000_000),
    ("(((a{1,10}){1,10}){1,10})$", "a" * 1_000_000 + "!"),
    (r"^(\w+\s?)*$", "a " * 500_000 + "!"),
    # Every line of a text, and each of them to its end.
    ("(.*a)+b", "a\n" * 500_000),
    # States double with each character that is remembered.
    ("[ab]*a[ab]{1000}c", "abbababaabab" * 90_000),
    ("(.*a.{10}){50}c", "abbababaabab" * 90_000),
    ("(?:.?){900}\u00e9", "abbababaabab" * 90_000),
]


class TestTime:
    @pytest.mark.parametrize(("pattern", "text"), one_in(4, HOSTILE), ids=[pattern for pattern, _ in HOSTILE])
    def test_of_a_piece_is_bounded(self, pattern: str, text: str) -> None:
        search = compiled_search(pattern)
        piece = text.encode()[: search.piece]
        assert search.piece >= 8_192
        # What backtracks takes longer than there is time; the longest of these takes a second, 1,000.
        assert paces(lambda: list(search.lines(piece)), most=5_000, tries=2) < 5_000

    def test_of_random_patterns(self) -> None:
        for attack in pattern_attacks(200, 7):
            (pattern,) = attack.schema["patternProperties"]
            text = str(attack.value["text"])
            assert paces(partial(_tried, pattern, text), most=1_000, tries=2) < 1_000


def _tried(pattern: str, text: str) -> None:
    with suppress(PatternError):
        found(pattern, text * 3)
