"""What is known of a plugin: its record, its failure, its contributions."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from attrs import field, frozen

from pegboard._tool import Origin

__all__ = ["Contribution", "PluginChanges", "PluginFailure", "PluginRecord", "PluginState"]


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


@frozen
class PluginRecord:
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


@frozen
class PluginChanges:
    """What `toolkit.reload_plugins()` changed; false if nothing.

    `added` are active now and were not, `removed` were active and are not (as they were), `changed` are otherwise new
    or different. `tools_added` and `tools_removed` are names on the board.
    """

    added: tuple[PluginRecord, ...] = ()
    removed: tuple[PluginRecord, ...] = ()
    changed: tuple[PluginRecord, ...] = ()
    tools_added: tuple[str, ...] = ()
    tools_removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != PluginChanges()


@frozen(eq=False)
class PluginFailure:
    """A plugin that failed; `traceback` is empty where nothing was raised."""

    record: PluginRecord
    traceback: str = field(default="", repr=False)
    exception: BaseException | None = field(default=None, repr=False)


@frozen(eq=False)
class Contribution:
    """One thing that a plugin contributes. `pack` is the prefix of its tool names; None for the core's own plugins."""

    origin: Origin
    pack: str | None
    value: Any
    builtin: bool = False
