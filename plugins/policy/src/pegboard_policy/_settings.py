"""The settings of the pack."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import attrs

from pegboard import SettingsError
from pegboard_policy._flow import flow_rules
from pegboard_policy._limits import limited

__all__ = ["Settings"]


@attrs.frozen(eq=False, slots=False)
class Settings:
    """The section `policy` of the settings: files, limits and flow rules that tools are held to.

    Args:
        lock: File of `pegboard lock`: only tools that are as it has them are offered and called. None for none.
        permissions: File that permissions are kept in. None for none.
        limits: How many calls may begin, by patterns of tools' names.
        flow: What may follow once a session has called certain tools: `"trifecta"`, or a list of rules.
        history: Where it is known what a session has called: `"memory"` (this process alone) or `"journal"` (several
            processes).
    """

    lock: Path | None = None
    permissions: Path | None = None
    limits: Mapping[str, Any] = attrs.field(factory=dict)
    flow: Any = ()
    history: Literal["memory", "journal"] = "memory"

    def __attrs_post_init__(self) -> None:
        try:
            _ = [*limited(self.limits), *flow_rules(self.flow)]
        except SettingsError as error:  # here, and not by the types of the fields, which could not say what is wrong
            raise ValueError(str(error)) from error

    @cached_property
    def made(self) -> dict[str, Any]:
        """What the hooks of one toolkit have made of these settings, and share."""
        return {}
