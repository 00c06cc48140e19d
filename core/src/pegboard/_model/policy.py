"""Policies: whether a tool runs, and how: timeout and retries, merged field by field."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, final

from attrs import define, field, fields

from pegboard._base.errors import check_options
from pegboard._base.records import Compared

if TYPE_CHECKING:
    from datetime import timedelta  # which few programs load

_LONGEST_WAIT: Final = 4_000_000.0  # seconds, 46 days: the longest that every platform can wait for


class Permission(StrEnum):
    """Whether a tool runs without asking, asks the approver first, or never runs."""

    ALWAYS = "always"
    PROMPT = "prompt"
    NEVER = "never"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise ValueError(f'a permission is "always", "prompt" or "never", got {value!r}')


def seconds(duration: float | timedelta | None) -> Any:
    """A `datetime.timedelta` as its seconds; anything else as it is."""
    total = getattr(duration, "total_seconds", None)  # `datetime` need not be loaded for this
    return duration if total is None else total()


def _classes(kinds: Any) -> Any:
    listed = kinds if isinstance(kinds, list | tuple | set | frozenset) else (kinds,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in listed):
        raise ValueError(f"retry_on takes exception classes, got {kinds!r}")
    return tuple(listed)


def _refuse_change(policy: Any, attribute: Any, value: Any) -> NoReturn:
    raise AttributeError(f"an ExecutionPolicy is frozen; {attribute.name!r} cannot be set")


@final
@define(eq=False, repr=False, on_setattr=_refuse_change)
class ExecutionPolicy(Compared):
    """How calls are timed and retried.

    A field that is not given is filled by the next wider policy when policies merge (call > tool > session > toolkit >
    the defaults below). Times are in seconds, or a `timedelta`. Raises ValueError for an invalid value.

    Args:
        timeout: Seconds that each attempt may take, 300 by default. None for no limit.
        max_attempts: Most runs of the function, the first included; 1 by default.
        initial_backoff: Seconds to wait after the first failed attempt, 1 by default.
        backoff_multiplier: Factor by which each further wait is longer, 2 by default.
        max_backoff: Longest wait between attempts in seconds, 30 by default.
        jitter: Whether to wait a random part of that time only, True by default.
        retry_on: Exceptions after which to try again, `(Exception,)` by default. A timeout always counts, a `ToolError`
            only if it is named.
    """

    timeout: float | None = field(default=300.0, converter=seconds)
    max_attempts: int = 1
    initial_backoff: float = field(default=1.0, converter=seconds)
    backoff_multiplier: float = 2.0
    max_backoff: float = field(default=30.0, converter=seconds)
    jitter: bool = True
    retry_on: tuple[type[BaseException], ...] = field(default=(Exception,), converter=_classes)
    given: frozenset[str] = field(init=False)

    def __new__(cls, *args: Any, **options: Any) -> Self:
        check_options("ExecutionPolicy", options, _NAMES)
        policy = super().__new__(cls)
        # Here and not in `__init__`, which does not know what the caller has written.
        object.__setattr__(policy, "given", frozenset((*_NAMES[: len(args)], *options)))
        return policy

    def __attrs_post_init__(self) -> None:
        for name in sorted(self.given):
            _validate(name, getattr(self, name))

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
            return min(float(self.initial_backoff) * float(self.backoff_multiplier) ** (attempt - 1), limit)
        except OverflowError:
            return limit

    def __repr__(self) -> str:
        given = [f"{name}={getattr(self, name)!r}" for name in _NAMES if name in self.given]
        return f"ExecutionPolicy({', '.join(given)})"


_NAMES: Final = tuple(each.name for each in fields(ExecutionPolicy) if each.init)
"""Of the fields that a caller gives, in their order."""


def _validate(name: str, value: Any) -> None:
    """Raises ValueError for a value that this field of a policy cannot have."""
    if name == "retry_on" or (name == "timeout" and value is None):
        return
    least = 1 if name in ("max_attempts", "backoff_multiplier") else 0
    if name == "jitter":
        fits, wanted = isinstance(value, bool), "True or False"
    elif isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        fits, wanted = False, "a number of seconds, or a timedelta" if name == "timeout" else "a number"
    elif name == "max_attempts" and not isinstance(value, int):
        fits, wanted = False, "a whole number"
    elif math.isinf(value) and name not in ("timeout", "max_backoff"):
        fits, wanted = False, "finite"
    else:
        fits, wanted = (value > 0, "> 0") if name == "timeout" else (value >= least, f">= {least}")
    if not fits:
        raise ValueError(f"{name} must be {wanted}, got {value!r}")


DEFAULT_POLICY: Final = ExecutionPolicy()


def checked_timeout(value: Any) -> float | None:
    """A timeout in seconds, given so or as a `timedelta`. Raises ValueError for what is none."""
    return None if value is None else ExecutionPolicy(timeout=value).timeout


def checked_capacity(value: Any, what: str) -> int | None:
    """A limit as it was given. Raises ValueError for what is no number of calls."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise ValueError(f"{what} takes a number of calls, at least 1, or None for no limit; got {value!r}")
