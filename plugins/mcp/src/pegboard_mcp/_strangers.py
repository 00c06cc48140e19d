"""Schemas that servers wrote: patterns are matched by RE2, and what takes work without bounds is not checked.

RE2 takes time in proportion to the text, whatever the pattern. What it cannot read (it knows no look-around and no
back-references) is left to the server; then only the parts are checked of which it is sure that they refuse nothing
that the whole schema accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from attrs import frozen

from pegboard import ForeignSchema, RegistrationError

__all__ = ["strangers_schema"]

Keywords: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]

MOST_PATTERNS: Final = 50
"""Of one schema: they are compiled when it comes."""
LONGEST_PATTERN: Final = 1_000
MOST_CLASSES: Final = 50
r"""How many `\p` they may have: each is a table of some hundred ranges."""
MEMORY: Final = 1 << 18
"""In bytes, of a compiled pattern; about 11,000 states."""
MOST_SAID: Final = 3
"""Parts of one schema that are not checked, and told one by one."""
STATES_A_STEP: Final = 512
"""How many states of a pattern a text may meet while one step of a check is counted."""


def strangers_schema(schema: Mapping[str, Any], where: str) -> tuple[ForeignSchema, Keywords, tuple[str, ...]]:
    """The schema, what is done for its keywords, and a sentence for each part that is not checked.

    Raises `RegistrationError` for one that cannot be used.
    """
    found = ForeignSchema(schema, where, keywords=checked)
    unchecked: dict[str, None] = {}
    patterns: set[str] = set()
    classes = 0
    for keyword, pattern, path in _demanding(schema, "#"):
        if pattern is None:
            unchecked[f"{keyword} at {_shortened(path)}, which takes work without bounds"] = None
            continue
        if pattern not in patterns:
            patterns.add(pattern)
            classes += pattern.lower().count(r"\p")
        if len(patterns) > MOST_PATTERNS or classes > MOST_CLASSES:
            limits = rf"{MOST_PATTERNS} patterns with {MOST_CLASSES} classes by \p"
            raise RegistrationError(f"{where}: the schema has more than {limits}")
        compiled = compiled_pattern(pattern)
        if isinstance(compiled, str):
            unchecked[f"{keyword} at {_shortened(path)}: {_shortened(pattern)} ({compiled})"] = None
    if not unchecked:
        return found, checked, ()
    said = [*unchecked][:MOST_SAID]
    if len(unchecked) > len(said):
        said.append(f"{len(unchecked) - len(said)} parts more")
    return ForeignSchema(schema, where, keywords=weakly_checked), weakly_checked, tuple(said)


def _demanding(schema: Any, path: str) -> Iterator[tuple[str, str | None, str]]:
    """Patterns, and keywords that are not bounded: also those that stand in data, which does no harm."""
    if isinstance(schema, Mapping):
        for keyword, value in schema.items():
            if keyword == "pattern" and isinstance(value, str):
                yield keyword, value, path
            elif keyword == "patternProperties" and isinstance(value, Mapping):
                yield from ((keyword, pattern, path) for pattern in value)
            elif keyword in UNBOUNDED:
                yield keyword, None, path
            yield from _demanding(value, f"{path}/{keyword}")
    elif isinstance(schema, list):
        for index, each in enumerate(schema):
            yield from _demanding(each, f"{path}/{index}")


def _shortened(text: str) -> str:
    text = "".join(each if each.isprintable() else "?" for each in text[:61])
    return text if len(text) <= 60 else f"{text[:60]}..."


# Patterns --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def compiled_pattern(pattern: str) -> Any:
    """What RE2 makes of a pattern; the reason for one that it cannot take."""
    if len(pattern) > LONGEST_PATTERN:
        return f"longer than {LONGEST_PATTERN} characters"
    try:
        import re2
    except ImportError:  # no wheel for this platform, and installed without what this pack declares
        return "RE2 is not installed here; install google-re2"
    options = re2.Options()
    options.max_mem, options.never_capture, options.log_errors = MEMORY, True, False
    try:
        return re2.compile(as_re2(pattern).encode("utf-8", "replace"), options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        return f"RE2: {said.decode('utf-8', 'replace') if isinstance(said, bytes) else said}"


_TOKEN: Final = re.compile(
    r"\\u(?:([0-9A-Fa-f]{4})|\{([0-9A-Fa-f]{1,6})\})|\\c([A-Za-z])|\\.|\[\^?\]|[\[\]]", re.DOTALL
)
_SPACE: Final = r"\s\x{b}\x{feff}\p{Z}"


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


def _matches(pattern: str, text: str) -> bool | None:
    """Whether a pattern is found in a text; None where it cannot be told."""
    compiled = compiled_pattern(pattern)
    return None if isinstance(compiled, str) else compiled.search(text.encode("utf-8", "replace")) is not None


def _steps(patterns: Iterable[str], characters: int) -> int:
    sizes = [getattr(compiled_pattern(pattern), "programsize", 0) for pattern in patterns]
    return sum(1 + size * characters // STATES_A_STEP for size in sizes)


# Keywords --------------------------------------------------------------------------------------------------------


@frozen(eq=False)
class _Check:
    """What is done for a keyword, and how many steps that takes."""

    check: Callable[..., Iterator[Any]]
    weight: Callable[[Any, Any, Any], int]

    def __call__(self, validator: Any, limit: Any, value: Any, schema: Any) -> Iterator[Any]:
        return self.check(validator, limit, value, schema)


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(value, str) and _matches(pattern, value) is False:
        yield ValidationError("does not match")


def _pattern_weight(pattern: str, value: Any, schema: Any) -> int:
    return _steps([pattern], len(value)) if isinstance(value, str) else 1


def _pattern_properties(validator: Any, limit: Any, value: Any, schema: Any) -> Iterator[Any]:
    for pattern, inner in limit.items() if isinstance(value, dict) else ():
        for key in value:
            if _matches(pattern, key):
                yield from validator.descend(value[key], inner, path=key, schema_path=pattern)


def _names_weight(limit: Any, value: Any, schema: Any) -> int:
    """Each name is looked for in all patterns."""
    if not isinstance(value, dict):
        return 1
    patterns = schema.get("patternProperties", {})
    return 1 + len(value) // 8 + len(value) * len(patterns) + _steps(patterns, sum(map(len, value)))


def _additional_properties(validator: Any, limit: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    surplus = {
        key: member
        for key, member in value.items()
        if key not in known and all(_matches(pattern, key) is False for pattern in patterns)
    }
    if limit is False and surplus:
        # Nobody needs to ask for the patterns again.
        yield ValidationError("has members that are not known", instance=surplus, schema={"properties": known})
    for key, member in surplus.items() if isinstance(limit, dict) else ():
        yield from validator.descend(member, limit, path=key)


UNBOUNDED: Final = ("$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties")
"""What looks at the same value again for each of the schemas inside."""
NEGATIVE: Final = ("contains", "disallow", "if", "not")
"""What refuses more where a schema inside accepts more."""


def checked(keywords: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is done for each keyword of a stranger's schema."""
    kept = {word: check for word, check in keywords.items() if word not in UNBOUNDED}
    return {
        **kept,
        "additionalProperties": _Check(_additional_properties, _names_weight),
        "pattern": _Check(_pattern, _pattern_weight),
        "patternProperties": _Check(_pattern_properties, _names_weight),
    }


def weakly_checked(keywords: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same where something cannot be checked: whatever the schema accepts is accepted, and more."""
    kept = {word: check for word, check in checked(keywords).items() if word not in NEGATIVE}
    return {**kept, "oneOf": kept["anyOf"]} if "anyOf" in kept else kept
