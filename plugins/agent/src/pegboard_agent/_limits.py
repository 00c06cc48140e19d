"""Limits: the most that one run of an agent may use, and the amounts that it has used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, final

from attrs import field, frozen

from pegboard_agent._usage import Usage

__all__ = ["Limits", "Meter"]


def _at_least(least: int) -> Callable[[Any, Any, Any], None]:
    def validate(limits: Any, attribute: Any, given: Any) -> None:
        if given is not None and (type(given) is not int or given < least):
            raise ValueError(f"{attribute.name} is a whole number >= {least}, or None for no limit, not {given!r}")

    return validate


def _seconds(limits: Any, attribute: Any, given: Any) -> None:
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if given is not None and not (is_number and 0 < given < math.inf):
        raise ValueError(f"{attribute.name} is a number above 0, or None for no limit, not {given!r}")


@frozen(kw_only=True)
class Limits:
    """The most that one run of an agent may use; None for no limit. Raises ValueError for an invalid number.

    Args:
        requests: Requests to the model.
        tool_calls: Calls that begin; of a message with more, the others are denied.
        tokens: Tokens of input and output together, as far as servers report them.
        seconds: Seconds from the beginning of the run to its end.
    """

    requests: int | None = field(default=None, validator=_at_least(1))
    tool_calls: int | None = field(default=None, validator=_at_least(0))
    tokens: int | None = field(default=None, validator=_at_least(1))
    seconds: float | None = field(default=None, validator=_seconds)


NO_LIMITS: Final = Limits()


@final
class Meter:
    """The amounts that a run has used. They also count for the runs above it: those of the agents that wait for it."""

    def __init__(self, limits: Limits = NO_LIMITS, above: Meter | None = None) -> None:
        self.limits = limits
        self.usage = Usage()
        self._calls = 0
        self._has_refused = False
        self._above = above

    def _all(self) -> Iterator[Meter]:
        meter: Meter | None = self
        while meter is not None:
            yield meter
            meter = meter._above

    def count(self, usage: Usage) -> None:
        """Add the usage of a request."""
        for meter in self._all():
            meter.usage += usage

    def count_request(self) -> None:
        """Count a request that is about to be sent."""
        self.count(Usage(requests=1))

    def admit(self, wanted: int) -> int:
        """How many of the `wanted` calls may begin; those are counted."""
        admitted = min(wanted, *(meter._left(wanted) for meter in self._all()))
        for meter in self._all():
            meter._has_refused = meter._has_refused or meter._left(wanted) < wanted
            meter._calls += admitted
        return admitted

    def _left(self, wanted: int) -> int:
        most = self.limits.tool_calls
        return wanted if most is None else most - self._calls

    @property
    def reached(self) -> str | None:
        """A sentence about the limit that this run, or one above it, has reached; None if there is none."""
        for meter in self._all():
            limits, usage = meter.limits, meter.usage
            if meter._has_refused:
                return f"limits.tool_calls: the model asked for more than {limits.tool_calls} calls"
            if limits.requests is not None and usage.requests >= limits.requests:
                return f"limits.requests: no answer after {usage.requests} requests to the model"
            if limits.tokens is not None and usage.total_tokens >= limits.tokens:
                return f"limits.tokens: no answer after {usage.total_tokens} tokens, of {limits.tokens} at most"
        return None
