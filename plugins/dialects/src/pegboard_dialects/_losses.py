"""What a rendering does not carry."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["Loss", "Severity"]

Severity: TypeAlias = Literal["info", "warning", "error"]


class Loss(NamedTuple):
    """Something that a provider is not told, or is told in other words.

    `info`: in words, in a description. `warning`: the provider accepts more, or other, than the tool does, or does not
    hold the model to it; calls are checked all the same. `error`: the tool cannot be used like this.
    """

    tool: str
    path: str
    """Where in the parameters: `days`, `filter.tags[]`; empty for the tool itself."""
    keyword: str
    what: str
    severity: Severity

    def __str__(self) -> str:
        place = f"{self.tool}: {self.path}" if self.path else self.tool
        return f"{place}: {self.keyword}: {self.what}"
