"""A shell tool for LLM agents: an allow-list, approval for the rest, a sandbox, and an end to every command."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from pegboard import hookimpl
from pegboard_shell._policy.decision import Decision, Verdict
from pegboard_shell._settings import Limits, Settings
from pegboard_shell._tools import ShellTools

__all__ = ["Decision", "Limits", "Settings", "ShellTools", "Verdict", "provide_tools", "settings_type"]


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@hookimpl
def provide_tools(settings: Settings) -> Iterable[ShellTools]:
    """The shell tool as it is configured; as it comes it asks before every command."""
    return [ShellTools(**attrs.asdict(settings, recurse=False))]
