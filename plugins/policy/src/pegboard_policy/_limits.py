"""Limits: how many calls of some tools may begin in a session, or in a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import attrs

from pegboard_policy._records import record_of

__all__ = ["SECONDS", "Limit", "LimitedTools", "limited"]

SECONDS: Final[Mapping[str, float]] = {"minute": 60.0, "hour": 3600.0, "day": 86400.0}


def _at_least_one(limit: Any, attribute: Any, given: int) -> None:
    if type(given) is not int or given < 1:
        raise ValueError(f"calls is a whole number of at least 1, not {given!r}")


def _is_known(limit: Any, attribute: Any, given: str) -> None:
    if given not in ("session", *SECONDS):
        raise ValueError(f"per is 'session', 'minute', 'hour' or 'day', not {given!r}")


@attrs.frozen
class Limit:
    """At most `calls` calls in each session, or in any minute, hour or day of the toolkit.

    Args:
        calls: Most calls, at least 1.
        per: What they are counted in: `"session"`, `"minute"`, `"hour"` or `"day"`.
    """

    calls: int = attrs.field(validator=_at_least_one)
    per: Literal["session", "minute", "hour", "day"] = attrs.field(default="session", validator=_is_known)


@attrs.frozen
class LimitedTools:
    """One limit, and the pattern of the names of the tools that count together."""

    pattern: str
    limit: Limit

    @property
    def seconds(self) -> float | None:
        """How long a call counts; None where it counts until the session ends."""
        return SECONDS.get(self.limit.per)

    def __str__(self) -> str:
        calls = "1 call" if self.limit.calls == 1 else f"{self.limit.calls} calls"
        return f"{calls} per {self.limit.per} of {self.pattern}"

    def message(self, left: float) -> str:
        """What a model reads: the limit, and when it ends, in seconds from now."""
        end = "with this session" if self.seconds is None else f"in {_duration(left)}"
        return f"the limit of {self} is reached; it ends {end}"


def limited(given: Mapping[str, Any] | None) -> Iterator[LimitedTools]:
    """Limits as settings or a program write them. Raises `SettingsError` for what is none."""
    for pattern, each in (given or {}).items():
        form = f"the limit of {pattern!r} is such as {{'calls': 20, 'per': 'session'}}"
        for limit in each if isinstance(each, Iterable) and not isinstance(each, Mapping | str) else (each,):
            yield LimitedTools(pattern, record_of(Limit, limit, form))


def _duration(seconds: float) -> str:
    whole = max(1, round(seconds))
    if whole < 120:
        return f"{whole} s"
    minutes = -(-whole // 60)
    return f"{minutes} min" if minutes < 120 else f"{-(-minutes // 60)} h"
