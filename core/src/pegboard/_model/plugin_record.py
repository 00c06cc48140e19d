"""What is known of a plugin: its record, its failure, its contributions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from attrs import field, frozen

from pegboard._base.names import listed
from pegboard._base.records import Compared, Shown
from pegboard._model.tool import Origin


class PluginState(StrEnum):
    """How far a plugin came; everything but `active` has its reason on the record."""

    # Installed, but not asked for.
    FOUND = "found"
    BLOCKED = "blocked"
    # Requires another version of Pegboard; it was not imported.
    INCOMPATIBLE = "incompatible"
    FAILED = "failed"
    # Another distribution offers a plugin of the same name, and that one counts.
    SHADOWED = "shadowed"
    ACTIVE = "active"


@frozen(eq=False, repr=False)
class NotOffered(Shown):
    """Tools that a pack has and does not offer here; one of the things that `provide_tools` may return.

    A call of such a tool says why, and the program finds the remedy in `error.details`; the command line shows both.

    Args:
        names: Name or names of the tools.
        reason: What they need.
        remedy: What the program may do.
    """

    names: tuple[str, ...] = field(converter=listed)
    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.remedy}" if self.remedy else self.reason


@frozen(eq=False, repr=False)
class PluginRecord(Compared):
    """One plugin and its state.

    Args:
        name: Name of its entry point.
        distribution: Name of its distribution. None for a plugin object.
        version: Version of the distribution.
        entry_point: Value of the entry point: `module` or `module:attribute`.
        state: How far it came.
        reason: Why, as a sentence; on an active plugin what is remarkable, and mostly empty.
        not_offered: Tools that it does not offer here.
        faults: What is wrong with things that it offers and that cannot be tools, by the tool's name.
    """

    name: str
    distribution: str | None = None
    version: str | None = None
    entry_point: str | None = None
    state: PluginState = PluginState.FOUND
    reason: str = ""
    not_offered: tuple[NotOffered, ...] = ()
    faults: Mapping[str, str] = MappingProxyType({})

    @property
    def origin(self) -> Origin:
        """Where this plugin's contributions come from."""
        return Origin(self.name, self.distribution, self.version, self.entry_point)

    @property
    def label(self) -> str:
        """The plugin as messages name it: `files (pegboard-files 0.1.0)`."""
        return f"{self.name} ({self.origin})" if self.distribution else self.name


class Contribution(NamedTuple):
    """One thing that a plugin contributes.

    Args:
        origin: Where it comes from.
        pack: Prefix of the pack's tool names. None for the core's own plugins.
        value: The thing.
    """

    origin: Origin
    pack: str | None
    value: Any

    @property
    def builtin(self) -> bool:
        """Whether it is one of the core's own."""
        return self.pack is None
