"""Usage: the tokens of the requests of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import asdict, frozen

__all__ = ["Usage", "reported"]

MOST: Final = 2**53
"""The largest whole number that every reader of JSON reads exactly; a larger one cannot be a count."""


@frozen
class Usage:
    """The tokens of requests to a model; a count is None if no server has reported it.

    Args:
        requests: Requests to a model; all attempts of one count once.
        input_tokens: Tokens of input, cached ones included.
        output_tokens: Tokens of output, those of reasoning included.
        cached_tokens: Tokens of the input that were read from the provider's cache.
        cache_written_tokens: Tokens of input that were written into it.
        reasoning_tokens: Tokens of reasoning.
    """

    requests: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_written_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together, as far as servers have reported them."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.requests + other.requests,
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.cached_tokens, other.cached_tokens),
            _sum(self.cache_written_tokens, other.cache_written_tokens),
            _sum(self.reasoning_tokens, other.reasoning_tokens),
        )

    def to_dict(self) -> dict[str, int | None]:
        """The counts by their names, as JSON data."""
        return asdict(self)


def reported(usage: Mapping[str, Any]) -> Usage:
    """The usage in a chat completion. Values of a server that are not counts are ignored."""
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
    count = found.get(name) if found and isinstance(found, Mapping) else None
    return count if type(count) is int and 0 <= count <= MOST else None


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
