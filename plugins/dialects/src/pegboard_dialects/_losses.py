"""Losses: what the definitions for a provider do not carry."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["Loss", "Severity"]

Severity: TypeAlias = Literal["info", "warning", "error"]


class Loss(NamedTuple):
    """A part of a tool that its definition for a provider leaves out, or holds only in a description.

    Args:
        tool: Name of the tool.
        path: Where the part is in the parameters: `days`, `filter.tags[]`; empty for the tool itself.
        keyword: Its schema keyword.
        what: What becomes of it.
        severity: `"info"`: the description holds it. `"warning"`: the provider accepts more than the tool, or other
            values, or does not hold the model to it; Pegboard still checks the calls. `"error"`: the tool cannot be
            used like this.
    """

    tool: str
    path: str
    keyword: str
    what: str
    severity: Severity

    def __str__(self) -> str:
        place = f"{self.tool}: {self.path}" if self.path else self.tool
        return f"{place}: {self.keyword}: {self.what}"
