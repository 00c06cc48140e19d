"""Patterns of third parties: matched by RE2, which takes time in proportion to the text, whatever the pattern.

What it cannot read (it knows no look-around and no back-references) is not checked.
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
"""Of one schema: they are compiled when it comes."""
MOST_CLASSES: Final = 50
r"""How many `\p` they may have: each is a table of some hundred ranges."""
LONGEST_PATTERN: Final = 1_000
MEMORY: Final = 1 << 18
"""In bytes, of a compiled pattern; about 11,000 states."""
STATES_A_STEP: Final = 512
"""How many states of a pattern a text may meet while one step of a check is counted."""


class PatternError(ValueError):
    """A pattern that RE2 cannot take. The message says why."""


@lru_cache(maxsize=1024)
def compiled_pattern(pattern: str) -> Any:
    """What RE2 makes of a pattern of ECMA-262; a text that says why, for one that it cannot take."""
    if len(pattern) > LONGEST_PATTERN:
        return f"longer than {LONGEST_PATTERN} characters"
    if _NOT_SPACE.search(pattern):
        return r"RE2 has no words for what \S leaves of other characters"
    try:
        return engine(as_re2(pattern), MEMORY)
    except PatternError as error:
        return str(error)


def engine(spelled: str, memory: int, **options: bool) -> Any:
    """RE2 for a pattern as it spells it, with its options by name. Raises PatternError."""
    try:
        import re2
    except ImportError:  # no wheel for this platform, and installed without what this library declares
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
r"""What `\s` is in ECMA-262, in brackets: RE2 has less of it."""
_NOT_SPACE: Final = re.compile(r"\[\^[^\]]*\\S")
r"""White space that RE2 does not know as such would be among the characters that are left out."""


def as_re2(pattern: str) -> str:
    """A regular expression of ECMA-262, which JSON Schema uses, as RE2 spells it."""
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
        if inside:  # an opening bracket is a plain character there
            inside = not part.endswith("]")
            return part if part == "]" else f"\\{part}"
        inside = part == "["
        return {"[]": r"[^\x{0}-\x{10FFFF}]", "[^]": r"[\x{0}-\x{10FFFF}]"}.get(part, part)

    return _TOKEN.sub(spelled, pattern)


def classes(pattern: str) -> int:
    r"""How many `\p` a pattern may have."""
    return pattern.lower().count(r"\p")


def matches(pattern: str, text: str) -> bool | None:
    """Whether a pattern is found in a text; None where it cannot be told."""
    compiled = compiled_pattern(pattern)
    return None if isinstance(compiled, str) else compiled.search(text.encode("utf-8", "replace")) is not None


def steps(patterns: Iterable[str], characters: int) -> int:
    """How many steps it takes to look for patterns in so many characters."""
    sizes = [getattr(compiled_pattern(pattern), "programsize", 0) for pattern in patterns]
    return sum(1 + size * characters // STATES_A_STEP for size in sizes)
