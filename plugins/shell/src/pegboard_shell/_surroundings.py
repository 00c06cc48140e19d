"""Surroundings: everything that a command runs with but for the command itself."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from pegboard_shell._limits import Limits
from pegboard_shell._places import Places
from pegboard_shell._sandbox import SandboxMode

__all__ = ["Surroundings"]


@frozen
class Surroundings:
    """What `ShellTools` was told: `grace` is in seconds, `max_output` in bytes of each output."""

    directory: str
    environment: Mapping[str, str] = field(repr=False)
    places: Places
    sandbox: SandboxMode
    network: bool
    limits: Limits
    grace: float
    max_output: int
