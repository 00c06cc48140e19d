"""Which regular expressions may take forever, told without running them."""

import re
import time

import pytest

from pegboard._schema.vet import read_pattern

GOOD = [
    "^a+$",
    "^[a-z]+(-[a-z]+)*$",
    r"^\d+\.\d+\.\d+$",
    r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    r"^\s*\S.*$",
    r"^(?!\s*$).+",
    r"^https?://[^\s/$.?#].[^\s]*$",
    r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    r"^(jan|jun|jul)(,(jan|jun|jul))*$",
    r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-((0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?$",
    r"^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$",
    r"^([a-z]{1,63}\.)+[a-z]{2,}$",
    "^(a|b)*c$",
    "",
]
EXPONENTIAL = [
    ("^(a+)+$", "a"),
    ("^(a*)*$", "a"),
    ("^(a|aa)+$", "a"),
    (r"^(\w+\s?)*$", "a"),
    ("(x+x+)+y", "x"),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a"),
    ("^(.*)*$", "\n"),
    (r"^(\d+\.?)+$", "1"),
    ("^(a?b?)*$", "ab"),
    ("(a?){30}a{30}$", "a"),
    ("^([a-z]{1,9})*$", "a"),
    ("^((ab)*)*c$", "ab"),
    (r"^(?=(a+)+b)", "a"),
    ("^(?i:Ab|aB)*c$", "ab"),
    ("^(a|ab|b)*c$", "ab"),
]


@pytest.mark.parametrize("pattern", GOOD)
def test_harmless_ones_pass(pattern: str) -> None:
    assert not read_pattern(pattern).exponential


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in EXPONENTIAL])
def test_exponential_ones_are_told(pattern: str) -> None:
    assert read_pattern(pattern).exponential


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [
        ("^a+$", 10**8),
        ("abc", 10**8),
        (".*", 10**8),
        ("^.*,.*$", 10**4),
        ("a+b", 10**4),
        (".*a.*b", 464),
        (".*a.*b.*c", 100),
    ],
)
def test_the_more_open_ends_the_shorter_the_text(pattern: str, longest: int) -> None:
    assert read_pattern(pattern).longest in (longest, longest - 1)


@pytest.mark.parametrize("pattern", [*GOOD, ".*a.*b", r"^\s+|\s+$", "(a*b*c*)d"])
@pytest.mark.parametrize("piece", ["a", "ab", "1.", "a-", "a@a.", " ", "a.", "jan,", "\u4e2d"])
def test_the_longest_text_is_matched_in_good_time(pattern: str, piece: str) -> None:
    if read_pattern(pattern).exponential:
        pytest.skip("would be refused")
    text = piece * (min(read_pattern(pattern).longest, 20_000) // len(piece))
    started = time.perf_counter()
    re.search(pattern, text + "\0")
    assert time.perf_counter() - started < 20


def test_a_large_pattern_is_read_in_good_time() -> None:
    started = time.perf_counter()
    words = "|".join(f"word{number}" for number in range(3000))
    assert read_pattern(f"^({words})(,({words}))*$").exponential  # too large to tell
    read_pattern("^" + "(a|b)?" * 300 + "$")
    assert time.perf_counter() - started < 20


def test_an_unreadable_one_is_an_error() -> None:
    with pytest.raises(re.error):
        read_pattern("(")
