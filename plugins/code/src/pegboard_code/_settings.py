"""Settings of the pack: which tools programs may call."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import attrs

__all__ = ["Settings", "view_of"]


@attrs.frozen
class Settings:
    """`[code]`: `tools` are names and patterns of the tools that `run_code` may call; without them there is none."""

    tools: list[str] = attrs.field(factory=list)


def view_of(toolkit: Any, patterns: list[str]) -> Any:
    """The tools of a toolkit that fit; which there are is not known while it is put together."""

    def fits(tool: Any) -> bool:
        names = (tool.name, tool.qualified_name)
        return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)

    return toolkit.view(where=fits)
