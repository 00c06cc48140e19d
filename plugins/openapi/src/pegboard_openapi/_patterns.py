"""Patterns of strangers: matched by RE2, which takes time in proportion to the text, whatever the pattern."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

__all__ = ["Keywords", "keywords_for"]

Keywords: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]

MOST_PATTERNS: Final = 50
"""Of one schema; they are compiled when it is read."""
LONGEST_PATTERN: Final = 1_000
MOST_CLASSES: Final = 5
r"""How many `\p` a pattern may have: each is a table of some hundred ranges."""
_SPACE: Final = r"\s\x{b}\x{feff}\p{Z}"
r"""What `\s` is in ECMA-262, in brackets: RE2 has less of it."""
_NOT_SPACE: Final = re.compile(r"\[\^[^\]]*\\S")
r"""What RE2 has no words for: whatever `\S` is not, and perhaps more."""
MEMORY: Final = 1 << 18
"""In bytes, of a compiled pattern."""
STATES_A_STEP: Final = 512
"""How many states of a pattern a text may meet while one step of a check is counted."""
NEGATIVE: Final = ("contains", "if", "not")
"""What refuses more where a schema inside accepts more."""


def keywords_for(schema: Any, *, is_whole: bool) -> Keywords:
    """What is done for the keywords of a schema whose patterns nobody has looked at.

    A pattern that RE2 cannot read is for the server to check. Where there is one, or where the schema is not all that
    the document says, nothing is asked that would refuse what that accepts.
    """
    patterns = [*dict.fromkeys(_patterns_in(schema))]
    if is_whole and len(patterns) <= MOST_PATTERNS and all(map(_compiled, patterns)):
        return _checked
    return _weakly_checked


def _patterns_in(schema: Any) -> Iterator[str]:
    """All texts that are called a pattern, also those that stand in data, which does no harm."""
    if isinstance(schema, Mapping):
        for keyword, value in schema.items():
            if keyword == "pattern" and isinstance(value, str):
                yield value
            yield from _patterns_in(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _patterns_in(each)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    """What RE2 makes of a pattern; None for one that it cannot take."""
    if len(pattern) > LONGEST_PATTERN or pattern.lower().count(r"\p") > MOST_CLASSES or _NOT_SPACE.search(pattern):
        return None
    try:
        import re2
    except ImportError:  # no wheel for this platform, and installed without what this pack declares
        return None
    options = re2.Options()
    options.max_mem, options.never_capture, options.log_errors = MEMORY, True, False
    try:
        return re2.compile(_as_re2(pattern).encode("utf-8", "replace"), options)
    except re2.error:
        return None


def _as_re2(pattern: str) -> str:
    """A pattern of ECMA-262, which documents use, with its white space."""
    inside = False

    def spelled(match: re.Match[str]) -> str:
        nonlocal inside
        part = match[0]
        if part == r"\s":
            return _SPACE if inside else f"[{_SPACE}]"
        if part == r"\S" and not inside:
            return f"[^{_SPACE}]"
        inside = part == "[" if part in ("[", "]") else inside
        return part

    return re.sub(r"\\.|[\[\]]", spelled, pattern, flags=re.DOTALL)


class _Pattern:
    """The check of `pattern`, and how many steps it takes."""

    def __call__(self, validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
        from jsonschema import ValidationError

        compiled = _compiled(pattern) if isinstance(value, str) else None
        if compiled is not None and compiled.search(value.encode("utf-8", "replace")) is None:
            yield ValidationError("does not match")

    def weight(self, pattern: str, value: Any, schema: Any) -> int:
        """Steps, by the size of the compiled pattern and of the text."""
        size: int = getattr(_compiled(pattern), "programsize", 0) if isinstance(value, str) else 0
        return 1 + size * len(value) // STATES_A_STEP if size else 1


def _checked(keywords: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**keywords, "pattern": _Pattern()}


def _weakly_checked(keywords: Mapping[str, Any]) -> Mapping[str, Any]:
    return {word: check for word, check in _checked(keywords).items() if word not in NEGATIVE}
