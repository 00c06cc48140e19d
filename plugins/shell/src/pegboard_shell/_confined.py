"""Confined: a command in its sandbox."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

__all__ = ["Confined"]


@frozen
class Confined:
    """A command in its sandbox: what is started instead, by which `sandbox`, and what the supervisor has to know.

    `confinement` is what the supervisor does before the command begins. `monitor` says that the process that is started
    only watches over the command.
    """

    sandbox: str
    argv: tuple[str, ...]
    confinement: dict[str, Any] = field(factory=dict, repr=False)
    monitor: bool = False
