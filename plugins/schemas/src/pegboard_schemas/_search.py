"""Searching the lines of a text with RE2, for a pattern in Python's syntax that a model or a third party wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from attrs import field, frozen

from pegboard_schemas._patterns import LONGEST_PATTERN, PatternError, engine

__all__ = ["LineSearch", "compiled_search"]

MEMORY: Final = 1 << 19
r"""Bytes of a compiled pattern and of the memory of its search: about 22,000 states, of which a `\w` has 1,350."""
_WORK: Final = 1 << 27
"""States times bytes of one search: about a second if RE2 has to follow every state separately."""
_LEAST_PIECE: Final = 1 << 13
_LARGEST_PIECE: Final = 1 << 20


@frozen
class LineSearch:
    """Finds the lines that match a pattern; `compiled_search` makes it.

    Threads may share it; a search releases the interpreter's lock.

    Args:
        piece: Bytes that a caller with a time limit searches at once: they take about a second at most, whatever the
            pattern is and whatever they hold.
        compiled: RE2's form of the pattern.
    """

    piece: int
    _compiled: Any = field(repr=False)

    def lines(self, text: bytes) -> Iterator[tuple[int, int]]:
        """The offsets at which the matching lines begin and end, in order, without their line feeds.

        Only a line feed ends a line. A byte that is not UTF-8 counts as a character that is no letter, digit or space.
        """
        readable, start = _readable(text), 0
        while start < len(text) and (found := self._compiled.search(readable, start)) is not None:
            begin = text.rfind(b"\n", start, found.start()) + 1 or start
            if begin == len(text):
                return  # no line begins after the last line feed
            end = text.find(b"\n", begin)
            end = len(text) if end < 0 else end
            yield begin, end
            start = end + 1


def compiled_search(pattern: str, *, ignore_case: bool = False) -> LineSearch:
    r"""A search for the lines that match a pattern. Its time depends on the text alone, and it takes up to 512 kB.

    `\w`, `\d` and `\s` mean the same as in Python, for all of Unicode; `\b` knows only words of ASCII. Raises
    PatternError, which names the part that cannot be used and what to write instead.

    Args:
        pattern: The expression.
        ignore_case: Whether letters match their other cases.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise PatternError(f"it is longer than {LONGEST_PATTERN} characters; shorten it")
    spelled = _spelled(pattern)
    try:
        compiled = engine(spelled, MEMORY, never_nl=True, case_sensitive=not ignore_case)
    except PatternError as error:
        advice = next((advice for part, advice in _ADVICE if re.search(part, str(error))), "")
        raise PatternError(f"{advice} ({error})" if advice else str(error)) from None
    size = max(compiled.programsize, compiled.reverseprogramsize, 1)
    return LineSearch(max(_LEAST_PIECE, min(_LARGEST_PIECE, _WORK // size)), compiled)


_ADVICE: Final = (
    (r": \(\?<?[=!]", "look-around is not supported: search for what must be there, and pass over what does not fit"),
    (r": \\[1-9]|: \(\?P$", "back references are not supported: write the repeated text itself"),
    (r": \(\?>|operator: .*\+$", "nothing backtracks here: write a plain group, and one of *, + and ? alone"),
    (r": \\[pP]$", "a class is no end of a range: write a hyphen first or last in brackets"),
    (r": \(\?\(", "conditions are not supported: write the alternatives, as in ab|c"),
    (r": \(\?[a-zA-Z#-]*$", "only the flags i, m, s and U are supported, and no comments"),
    ("repetition size", "counts may be up to 1000, those of nested repetitions multiplied: use smaller ones"),
    ("too large", r"use smaller counts, or [A-Za-z0-9_] for \w"),
)

_TOKEN: Final = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|.)|\[:\^?\w+:\]|\[\^?\]?|\]|\{,(?=[0-9]+\})|[$^\n]", re.DOTALL
)
_BEGIN, _END = "(?m:^)", "(?m:$)"
# For brackets: RE2's own classes are ASCII.
_CLASSES: Final = {
    r"\d": r"\p{Nd}",
    r"\D": r"\P{Nd}",
    r"\s": r"\x{9}-\x{d}\x{1c}-\x{20}\x{85}\p{Z}",
    r"\S": r"\x{0}-\x{8}\x{e}-\x{1b}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}"
    r"\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}",
    r"\w": r"\p{L}_\p{N}",  # a hyphen before it or behind it makes no range with the underscore
    # There is no class for all but letters and digits: these are the other categories, without the underscore.
    r"\W": r"\p{M}\p{Pd}\p{Ps}\p{Pe}\p{Pi}\p{Pf}\p{Po}\x{203f}\x{2040}\x{2054}\x{fe33}\x{fe34}\x{fe4d}-\x{fe4f}"
    r"\x{ff3f}\p{S}\p{Z}\p{C}",
}
_PLACES: Final = {"^": _BEGIN, r"\A": _BEGIN, "$": _END, r"\Z": _END, r"\z": _END, "{,": "{0,"}
_REFUSED: Final = {
    **dict.fromkeys(("\n", r"\n"), r"no line has a line feed: leave it out, or write $ for the end of a line"),
    r"\C": r"\C is not supported: write . for any character",
    r"\Q": r"\Q is not supported: write a backslash before each character that has a meaning",
}


def _spelled(pattern: str) -> str:
    """A regular expression of Python in RE2's spelling, for texts of several lines."""
    inside = False

    def spelled(match: re.Match[str]) -> str:
        nonlocal inside
        part, code = match[0], match[1] or match[2]
        if code:
            return rf"\x{{{code}}}"
        if inside:
            inside = part != "]"
            return _CLASSES.get(part, part)
        if part[0] == "[":
            inside = part[1:2] != ":"  # outside of brackets, [:a:] is a class of these characters
            return part
        if part in _REFUSED:
            raise PatternError(_REFUSED[part])
        beside = pattern[match.start() - 1 : match.start()] + pattern[match.end() : match.end() + 1]
        if part in (r"\b", r"\B") and not beside.isascii():
            raise PatternError(rf"{part} knows the words of ASCII alone: write (^|\W) before a word, (\W|$) behind it")
        if part in _CLASSES:
            return f"[^{_CLASSES[part.lower()]}]" if part[1].isupper() else f"[{_CLASSES[part]}]"
        return _PLACES.get(part, part)

    return _TOKEN.sub(spelled, pattern)


_NOT_UTF_8: Final = re.compile("[\udc80-\udcff]")


def _readable(text: bytes) -> bytes:
    """A UTF-8 text of the same length: no class of RE2 takes a byte that is not UTF-8, not even `.`."""
    if text.isascii():
        return text
    try:
        text.decode()
    except UnicodeDecodeError:
        return _NOT_UTF_8.sub("\x1a", text.decode(errors="surrogateescape")).encode()
    return text
