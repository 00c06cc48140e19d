"""A shell tool for LLM agents: an allow-list, approval for the rest, a sandbox, and an end to every command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import attrs

import pegboard
from pegboard_shell._limits import Limits
from pegboard_shell._policy import Decision, Verdict
from pegboard_shell._tools import DEFAULT_MAX_OUTPUT, DEFAULT_TIMEOUT, ShellTools

__all__ = ["Decision", "Limits", "Settings", "ShellTools", "Verdict", "provide_tools", "settings_type"]


@attrs.frozen
class Settings:
    """The section `shell` of the settings: what `ShellTools` takes, but for functions."""

    base_dir: str = "."
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    shell: bool = False
    sandbox: Literal["auto", "required", "none"] = "auto"
    network: bool = False
    readable: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    variables: dict[str, str] = attrs.field(factory=dict, repr=False, metadata={"secret": True})
    path: str | None = None
    limits: dict[str, int] = attrs.field(factory=dict)
    timeout: float = DEFAULT_TIMEOUT
    max_timeout: float = 24 * 3600.0
    grace: float = 0.5
    max_output: int = DEFAULT_MAX_OUTPUT


@pegboard.hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@pegboard.hookimpl
def provide_tools(settings: Settings) -> Iterable[ShellTools]:
    """The shell tool as it is configured; as it comes it asks before every command."""
    return [ShellTools(**attrs.asdict(settings, recurse=False))]
