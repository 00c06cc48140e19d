"""Patterns of third parties, matched by RE2: its time is proportional to the text, whatever the pattern is.

A pattern that RE2 cannot read is not checked: it has no look-around and no back-references.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

__all__ = [
    "LONGEST_PATTERN",
    "MOST_CLASSES",
    "MOST_PATTERNS",
    "PatternError",
    "as_re2",
    "classes",
    "compiled_pattern",
    "engine",
    "matches",
    "steps",
]

MOST_PATTERNS: Final = 50
"""The most patterns of one schema: they are compiled when the schema is judged."""
MOST_CLASSES: Final = 50
r"""The most `\p` classes in the patterns of one schema: each is a table of some hundred ranges."""
LONGEST_PATTERN: Final = 1_000
MEMORY: Final = 1 << 18
"""Bytes of a compiled pattern; about 11,000 states."""
STATES_A_STEP: Final = 512
"""The states of a pattern that count as one step of a check."""


class PatternError(ValueError):
    """RE2 cannot take a pattern. The message says why."""


@lru_cache(maxsize=1024)
def compiled_pattern(pattern: str) -> Any:
    """RE2's compiled form of a pattern of ECMA-262; a text with the reason if RE2 cannot take it.

    Args:
        pattern: The expression.
    """
    if len(pattern) > LONGEST_PATTERN:
        return f"longer than {LONGEST_PATTERN} characters"
    if _NOT_SPACE.search(pattern):
        return r"RE2 has no words for what \S leaves of other characters"
    try:
        return engine(as_re2(pattern), MEMORY)
    except PatternError as error:
        return str(error)


def engine(spelled: str, memory: int, **options: bool) -> Any:
    """RE2 for a pattern in RE2's spelling, with its options by name. Raises PatternError."""
    try:
        import re2
    except ImportError:  # no wheel for this platform, so it was installed without this library's dependency
        raise PatternError("RE2 is not installed here; install google-re2") from None
    chosen = re2.Options()
    for name, value in {"max_mem": memory, "never_capture": True, "log_errors": False, **options}.items():
        setattr(chosen, name, value)
    try:
        return re2.compile(spelled.encode("utf-8", "replace"), chosen)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise PatternError(f"RE2: {text}") from None


_TOKEN: Final = re.compile(
    r"\\u(?:([0-9A-Fa-f]{4})|\{([0-9A-Fa-f]{1,6})\})|\\c([A-Za-z])|\\.|\[\^?\]|[\[\]]", re.DOTALL
)
_SPACE: Final = r"\s\x{b}\x{feff}\p{Z}"
r"""The characters of `\s` in ECMA-262, for brackets: RE2's own `\s` has fewer."""
_NOT_SPACE: Final = re.compile(r"\[\^[^\]]*\\S")
r"""Brackets in which RE2's `\S` would also exclude the white space that RE2 does not know."""


def as_re2(pattern: str) -> str:
    """A regular expression of ECMA-262, which JSON Schema uses, in RE2's spelling.

    Args:
        pattern: The expression.
    """
    inside = False

    def spelled(match: re.Match[str]) -> str:
        nonlocal inside
        part = match[0]
        code = match[1] or match[2] or (match[3] and f"{ord(match[3]) % 32:x}")
        if code:
            return rf"\x{{{code}}}"
        if part == r"\s":
            return _SPACE if inside else f"[{_SPACE}]"
        if part == r"\S" and not inside:
            return f"[^{_SPACE}]"
        if part[0] == "\\":
            return part
        if inside:  # an opening bracket is a plain character here
            inside = not part.endswith("]")
            return part if part == "]" else f"\\{part}"
        inside = part == "["
        return {"[]": r"[^\x{0}-\x{10FFFF}]", "[^]": r"[\x{0}-\x{10FFFF}]"}.get(part, part)

    return _TOKEN.sub(spelled, pattern)


def classes(pattern: str) -> int:
    r"""An upper bound for the number of `\p` classes in a pattern."""
    return pattern.lower().count(r"\p")


def matches(pattern: str, text: str) -> bool | None:
    """Whether a pattern is found in a text; None if RE2 cannot take the pattern."""
    compiled = compiled_pattern(pattern)
    return None if isinstance(compiled, str) else compiled.search(text.encode("utf-8", "replace")) is not None


def steps(patterns: Iterable[str], characters: int) -> int:
    """The steps of a search for patterns in a text of this many characters."""
    sizes = [getattr(compiled_pattern(pattern), "programsize", 0) for pattern in patterns]
    return sum(1 + size * characters // STATES_A_STEP for size in sizes)
