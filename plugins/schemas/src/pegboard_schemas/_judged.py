"""A judged third-party schema: the check of values against it, and the parts that are not checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from pegboard import ForeignSchema, Judge, RegistrationError
from pegboard_schemas._counting import UNBOUNDED, checked, unpatterned, weakly_checked
from pegboard_schemas._patterns import MOST_CLASSES, MOST_PATTERNS, classes, compiled_pattern
from pegboard_schemas._survey import survey

__all__ = ["Judged", "judged"]

_MOST_NAMED: Final = 3
"""Unchecked parts of one schema that are named; further ones are only counted."""
# An unchecked part might accept any value. So only those parts are checked that cannot refuse a value that the whole
# schema accepts.
_WHOLE, _WEAK, _UNPATTERNED = (Judge(survey, keywords) for keywords in (checked, weakly_checked, unpatterned))


@attrs.frozen
class Judged:
    """A third-party schema: `check` checks values, in bounded steps.

    Args:
        check: The schema.
        judge: What a tool has as its attribute `judge` beside its schema, so that its arguments are checked as by
            `check`.
        unchecked: A phrase for each part that is not checked: a pattern that RE2 cannot read, a keyword that takes
            unbounded work.
    """

    check: ForeignSchema
    judge: Judge
    unchecked: tuple[str, ...] = ()


def judged(
    schema: Mapping[str, Any], where: str = "the schema", *, is_whole: bool = True, refuses_many: bool = True
) -> Judged:
    """Judge a schema.

    Raises `RegistrationError` for a schema that cannot be used: invalid, too large or too deep, with references to
    other documents or references that lead back to themselves without end, with too many alternatives for one value.

    Args:
        schema: The schema.
        where: Whose it is, for messages.
        is_whole: False if the schema is not the whole truth about a value: then it refuses no value that might be good.
        refuses_many: Whether a schema with more than 50 patterns is refused. False leaves its patterns unchecked.
    """
    found = ForeignSchema(schema, where, judge=_WHOLE)
    demanding = list(_demanding(schema, "#"))
    patterns = {pattern for _, pattern, _ in demanding if pattern is not None}
    if len(patterns) > MOST_PATTERNS or sum(map(classes, patterns)) > MOST_CLASSES:
        many = rf"more than {MOST_PATTERNS} patterns with {MOST_CLASSES} classes by \p"
        if refuses_many:
            raise RegistrationError(f"{where}: the schema has {many}")
        check = ForeignSchema(schema, where, judge=_UNPATTERNED)
        return Judged(check, _UNPATTERNED, (f"patterns, for there are {many}",))
    unchecked = [*dict.fromkeys(filter(None, (_why_unchecked(*each) for each in demanding)))]
    if is_whole and not unchecked:
        return Judged(found, _WHOLE)
    named = unchecked[:_MOST_NAMED]
    if len(unchecked) > len(named):
        named.append(f"{len(unchecked) - len(named)} parts more")
    return Judged(ForeignSchema(schema, where, judge=_WEAK), _WEAK, tuple(named))


def _why_unchecked(keyword: str, pattern: str | None, path: str) -> str:
    """A phrase for a part that cannot be checked; an empty text for one that can."""
    place = f"{keyword} at {_shortened(path)}"
    if pattern is None:
        return f"{place}, which takes work without bounds"
    compiled = compiled_pattern(pattern)
    return f"{place}: {_shortened(pattern)} ({compiled})" if isinstance(compiled, str) else ""


def _demanding(schema: Any, path: str) -> Iterator[tuple[str, str | None, str]]:
    """Patterns, and keywords without bounds. Those in data, such as a default, are included, which does no harm."""
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
