"""What is known of a plugin: its record, its failure, its contributions."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from attrs import frozen

from pegboard._base.records import Compared
from pegboard._model.tool import Origin


class PluginState(StrEnum):
    """How far a plugin came; everything but `active` has its reason on the record."""

    FOUND = "found"
    """Installed, but not asked for."""
    BLOCKED = "blocked"
    INCOMPATIBLE = "incompatible"
    """Requires another version of Pegboard; it was not imported."""
    FAILED = "failed"
    SHADOWED = "shadowed"
    """Another distribution offers a plugin of the same name, and that one counts."""
    ACTIVE = "active"


@frozen(eq=False, repr=False)
class PluginRecord(Compared):
    """One plugin: `name` is its entry point's name, `entry_point` that one's value (`module` or `module:attribute`).

    `reason` is a sentence; on an active plugin it says what is remarkable, and is mostly empty.
    """

    name: str
    distribution: str | None = None
    version: str | None = None
    entry_point: str | None = None
    state: PluginState = PluginState.FOUND
    reason: str = ""

    @property
    def origin(self) -> Origin:
        """Where this plugin's contributions come from."""
        return Origin(self.name, self.distribution, self.version, self.entry_point)

    @property
    def label(self) -> str:
        """The plugin as messages name it: `files (pegboard-files 0.1.0)`."""
        return f"{self.name} ({self.origin})" if self.distribution else self.name


class Contribution(NamedTuple):
    """One thing that a plugin contributes. `pack` is the prefix of its tool names; None for the core's own plugins."""

    origin: Origin
    pack: str | None
    value: Any
    builtin: bool = False
