"""Usage: what the requests of a run took, in tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import asdict, astuple, frozen

__all__ = ["Usage", "reported"]

MOST: Final = 2**53
"""The largest whole number that every reader of JSON reads as it is; what is larger was never counted."""


@frozen
class Usage:
    """What requests to a model took, in tokens; None for what no server has reported.

    `input_tokens` include the cached ones, and `output_tokens` those of reasoning. `requests` counts what the agent
    asked a model; the attempts that this took are one request.
    """

    requests: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Those of the input that the server's cache had."""
    cache_written_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def total_tokens(self) -> int:
        """Input and output together, as far as they were reported."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def __add__(self, other: Usage) -> Usage:
        counts = (_sum(mine, more) for mine, more in zip(astuple(self), astuple(other), strict=True))
        return Usage(*counts)

    def to_dict(self) -> dict[str, int | None]:
        """The counts by their names, as JSON carries them."""
        return asdict(self)


def reported(usage: Mapping[str, Any]) -> Usage:
    """The usage in a chat completion. What is no count is ignored: it comes from a server."""
    prompt, completion = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = _count(prompt, "cached_tokens")
    return Usage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cached_tokens=_count(usage, "prompt_cache_hit_tokens") if cached is None else cached,  # DeepSeek's name
        cache_written_tokens=_count(prompt, "cache_write_tokens"),
        reasoning_tokens=_count(completion, "reasoning_tokens"),
    )


def _count(found: Any, name: str) -> int | None:
    count = found.get(name) if isinstance(found, Mapping) else None
    return count if type(count) is int and 0 <= count <= MOST else None


def _sum(one: Any, other: Any) -> Any:
    return other if one is None else one + (other or 0)
