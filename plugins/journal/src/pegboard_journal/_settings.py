"""The settings of the pack."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs

if TYPE_CHECKING:
    from pegboard import Tool

__all__ = ["Settings", "age"]

_UNITS: Final = {"d": "days", "h": "hours"}


def age(text: str) -> timedelta:
    """`"90d"` or `"12h"` as a time. Raises ValueError for anything else."""
    found = re.fullmatch(r"(\d{1,6})([dh])", text)
    if found is None:
        raise ValueError(f"a time is a number of days or hours, such as 90d or 12h; got {text!r}")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _is_age(record: Any, field: Any, value: str | None) -> None:
    if value is not None:
        age(value)


@attrs.frozen(eq=False, slots=False)
class Settings:
    """The section `journal` of the settings. With a `url`, or with a `cassette` and a `mode`, the journal is on.

    Args:
        url: Where calls are recorded: `sqlite:///calls.db`, `sqlite:////absolute/calls.db` or `postgresql://...`;
            masked wherever settings are shown. None records nothing.
        content: What is kept of arguments and results: `"digest"` (SHA-256), `"keyed"` (HMAC with `key`), `"redacted"`
            (JSON text without secrets) or `"none"`.
        key: Key of `"keyed"`.
        mode: Replay from the cassette: `"off"`, `"record"`, `"replay"` or `"strict"`.
        cassette: File of recorded calls.
        cache: Seconds that answers are kept, by patterns of tools' names.
        cache_scope: Who shares kept answers: the calls of a `"session"`, or of the whole `"board"`.
        once: Patterns of the names of tools that run once for each key. Needs a `url`.
        retain: How long rows are kept: a number of days or hours, such as `90d` or `12h`. None for ever.
        on_failure: What becomes of a tool with an effect while the journal cannot be written: `"refuse"`, or `"run"`
            without a record.
    """

    url: str | None = attrs.field(default=None, repr=False, metadata={"secret": True})
    content: Literal["digest", "keyed", "redacted", "none"] = "digest"
    key: str | None = attrs.field(default=None, repr=False, metadata={"secret": True})
    mode: Literal["off", "record", "replay", "strict"] = "off"
    cassette: Path | None = None
    cache: Mapping[str, float] = attrs.field(factory=dict)
    cache_scope: Literal["session", "board"] = "session"
    once: tuple[str, ...] = ()
    retain: str | None = attrs.field(default=None, validator=_is_age)
    on_failure: Literal["refuse", "run"] = "refuse"

    def __attrs_post_init__(self) -> None:
        if self.content == "keyed" and not self.key:
            raise ValueError('content = "keyed" needs a key')
        if self.once and self.url is None:
            raise ValueError("once needs a url: what has run is looked up in the journal")
        if self.mode != "off" and self.cassette is None:
            raise ValueError(f"mode = {self.mode!r} needs a cassette, the path of a file")

    @property
    def replays(self) -> bool:
        """Whether a cassette answers calls."""
        return self.mode != "off"

    def seconds_cached(self, tool: Tool) -> float | None:
        """For how long the answers of a tool are kept; None for one that is not `read_only`, or not named."""
        if tool.hints.read_only is not True:
            return None
        return next((seconds for pattern, seconds in self.cache.items() if fnmatchcase(tool.name, pattern)), None)

    def runs_once(self, name: str) -> bool:
        """Whether a tool runs once for each key."""
        return any(fnmatchcase(name, pattern) for pattern in self.once)

    @property
    def is_on(self) -> bool:
        """Whether calls are recorded, or answered."""
        return self.url is not None or self.replays or bool(self.cache)

    @cached_property
    def made(self) -> dict[str, Any]:
        """What the hooks of one toolkit have made of these settings, and share."""
        return {}
