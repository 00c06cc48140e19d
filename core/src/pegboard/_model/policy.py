"""Policies: whether a tool runs, and how: timeout and retries, merged field by field."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, Final, final

from pegboard._base.markers import MISSING

__all__ = ["DEFAULT_POLICY", "ExecutionPolicy", "Permission", "checked_capacity"]

_DEFAULTS: Final[dict[str, Any]] = {
    "timeout": 300.0,
    "max_attempts": 1,
    "initial_backoff": 1.0,
    "backoff_multiplier": 2.0,
    "max_backoff": 30.0,
    "jitter": True,
    "retry_on": (Exception,),
}

_LONGEST_WAIT: Final = 4_000_000.0  # seconds, 46 days: the longest that every platform can wait for


class Permission(StrEnum):
    """Whether a tool runs without asking, asks the approver first, or never runs."""

    ALWAYS = "always"
    PROMPT = "prompt"
    NEVER = "never"


@final
class ExecutionPolicy:
    """How calls are timed and retried. Times are in seconds.

    `ExecutionPolicy(timeout=300.0, max_attempts=1, initial_backoff=1.0, backoff_multiplier=2.0, max_backoff=30.0,
    jitter=True, retry_on=(Exception,))`. A field that is not given is filled by the next wider policy when policies
    merge (call > tool > session > toolkit > these defaults). `timeout` bounds each attempt; None means no limit.
    A `ToolError` is tried again only if `retry_on` names it. Raises ValueError for values that cannot be meant.
    """

    __slots__ = (*_DEFAULTS, "given")

    timeout: float | None
    max_attempts: int
    initial_backoff: float
    backoff_multiplier: float
    max_backoff: float
    jitter: bool
    retry_on: tuple[type[BaseException], ...]
    given: frozenset[str]

    def __init__(
        self,
        timeout: Any = MISSING,
        max_attempts: Any = MISSING,
        initial_backoff: Any = MISSING,
        backoff_multiplier: Any = MISSING,
        max_backoff: Any = MISSING,
        jitter: Any = MISSING,
        retry_on: Any = MISSING,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name in _DEFAULTS and value is not MISSING}
        if "retry_on" in arguments:
            arguments["retry_on"] = _classes(arguments["retry_on"])
        for name, value in {**_DEFAULTS, **arguments}.items():
            _validate(name, value)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "given", frozenset(arguments))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an ExecutionPolicy is frozen; {name!r} cannot be set")

    def merged_over(self, wider: ExecutionPolicy) -> ExecutionPolicy:
        """This policy, with the fields that it does not give taken from `wider`."""
        if not wider.given:
            return self
        given = {name: getattr(wider, name) for name in wider.given}
        return ExecutionPolicy(**given | {name: getattr(self, name) for name in self.given})

    def backoff(self, attempt: int) -> float:
        """Seconds to wait after the failed attempt number `attempt` (1 for the first), before jitter."""
        limit = float(min(self.max_backoff, _LONGEST_WAIT))
        if self.initial_backoff == 0:
            return 0.0
        try:
            grown = float(self.initial_backoff) * float(self.backoff_multiplier) ** (attempt - 1)
        except OverflowError:
            return limit
        return min(grown, limit)

    def __reduce__(self) -> tuple[Any, ...]:
        return _given, ({name: getattr(self, name) for name in sorted(self.given)},)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExecutionPolicy):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in (*_DEFAULTS, "given"))

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in _DEFAULTS))

    def __repr__(self) -> str:
        given = [f"{name}={getattr(self, name)!r}" for name in _DEFAULTS if name in self.given]
        return f"ExecutionPolicy({', '.join(given)})"


def _given(fields: dict[str, Any]) -> ExecutionPolicy:
    return ExecutionPolicy(**fields)


def _classes(kinds: Any) -> tuple[type[BaseException], ...]:
    listed = kinds if isinstance(kinds, list | tuple | set | frozenset) else (kinds,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in listed):
        raise ValueError(f"retry_on takes exception classes, got {kinds!r}")
    return tuple(listed)


def _validate(name: str, value: Any) -> None:
    if name == "retry_on" or (name == "timeout" and value is None):
        return
    if name == "jitter":
        if not isinstance(value, bool):
            raise ValueError(f"jitter must be True or False, got {value!r}")
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if name == "max_attempts" and not isinstance(value, int):
        raise ValueError(f"max_attempts must be a whole number, got {value!r}")
    if math.isinf(value) and name not in ("timeout", "max_backoff"):
        raise ValueError(f"{name} must be finite, got {value!r}")
    floor, inclusive = {
        "timeout": (0, False),
        "max_attempts": (1, True),
        "backoff_multiplier": (1.0, True),
    }.get(name, (0, True))
    if value < floor or (value == floor and not inclusive):
        raise ValueError(f"{name} must be {'>=' if inclusive else '>'} {floor}, got {value!r}")


DEFAULT_POLICY: Final = ExecutionPolicy()


def checked_capacity(value: Any, what: str) -> int | None:
    """A limit as it was given. Raises ValueError for what is no number of calls."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise ValueError(f"{what} takes a number of calls, at least 1, or None for no limit; got {value!r}")
