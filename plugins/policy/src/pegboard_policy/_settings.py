"""The settings of the pack."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import attrs

from pegboard_policy._flow import Flow
from pegboard_policy._limits import Limit

__all__ = ["Settings"]


@attrs.frozen(eq=False, slots=False)
class Settings:
    """The section `policy` of the settings: files, limits and flow rules that tools are held to."""

    lock: Path | None = None
    """A file of `pegboard lock`: only tools that are as it has them are offered and called."""
    permissions: Path | None = None
    """A file that permissions are kept in."""
    limits: Mapping[str, Limit | tuple[Limit, ...]] = attrs.field(factory=dict)
    """How many calls may begin, by patterns of tools' names."""
    flow: Flow = ()
    """What may follow once a session has called certain tools: rules, or `"trifecta"`."""
    history: Literal["memory", "journal"] = "memory"
    """Where it is known what a session has called: in this process alone, or in the journal of several."""

    @cached_property
    def made(self) -> dict[str, Any]:
        """What the hooks of one toolkit have made of these settings, and share."""
        return {}
