"""Text from outside at a terminal: what does something, or is not seen, is spelled."""

import sys
import unicodedata

import pytest

from pegboard import Toolkit
from pegboard.inspection import spelled_out

# Of the planes that are all but empty, a part.
ALL = [
    chr(number) for number in range(sys.maxunicode + 1) if number < 0x32000 or number >> 12 == 0xE0 or number % 97 == 0
]


def test_nothing_unseen_is_left() -> None:
    """Controls (C0, C1), format characters (bidi, tags, joiners), surrogates, separators, what has no meaning."""
    kinds = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    left = [letter for letter in ALL if unicodedata.category(letter) in kinds and spelled_out(letter) == letter]
    assert left == ["\t", "\n"]


@pytest.mark.parametrize("blank", ["\u115f", "\u3164", "\uffa0", "\u2800", "\u034f", "\ufe00", "\U000e0100"])
def test_nor_an_invisible_letter(blank: str) -> None:
    assert spelled_out(f"a{blank}") == f"a{blank.encode('unicode_escape').decode()}"


def test_whatever_can_be_seen_stays() -> None:
    changed = [letter for letter in ALL if unicodedata.category(letter)[0] in "LNPS" and spelled_out(letter) != letter]
    assert changed == ["\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"]
    for text in ("Grüße, 世界\u3000 ❤\ufe0f 1\u202f000\xa0€", "line\n\tline", ""):
        assert spelled_out(text) == text


def test_it_can_be_told_what_was_there() -> None:
    assert spelled_out("a\x1b[2J\x9b\u202e\U000e0041\ud800") == r"a\x1b[2J\x9b\u202e\U000e0041\ud800"


def test_problems_of_a_toolkit_can_be_shown() -> None:
    class Source:
        name = "far"
        problems = ("it said \x1b]0;title\x07 and \u202e\U000e0041",)

        def tools(self) -> list[object]:
            return []

        def watch(self, changed: object) -> object:
            return lambda: None

    with Toolkit(plugins=()) as toolkit:
        toolkit.register(Source())
        assert r"it said \x1b]0;title\x07 and \u202e\U000e0041" in " ".join(toolkit.problems)
