"""Findings: what is wrong, how bad it is, and the command or line that fixes it."""

from __future__ import annotations

from typing import Any, Literal

import attrs

__all__ = ["Finding", "Level"]

Level = Literal["error", "warning", "note"]
"""`error` for what does not work, `warning` for what works and should be otherwise, `note` for what could be more."""


@attrs.frozen
class Finding:
    """One thing that is wrong: `code` names the check, `subject` the plugin, tool or file, `fix` the next act."""

    level: Level
    code: str
    subject: str
    message: str
    fix: str

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON-able data."""
        return attrs.asdict(self)
