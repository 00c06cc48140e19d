"""Agent Skills: folders with instructions that a model loads when a task needs them."""

# Each name is imported on first use (PEP 562), PyYAML when skills are read.

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs

from pegboard import Command, NotOffered, hookimpl

if TYPE_CHECKING:
    from pegboard_skills._skill import Skill
    from pegboard_skills._skills import Skills, skill_resources

__all__ = ["Settings", "Skill", "Skills", "provide_commands", "provide_tools", "settings_type", "skill_resources"]

_HOMES = {"Skill": "_skill", "Skills": "_skills", "skill_resources": "_skills"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found


@attrs.frozen
class Settings:
    """The section `skills` of the settings.

    Args:
        folders: Folders that are skills, or hold some. A relative one is relative to the directory that is current when
            the toolkit is made.
    """

    folders: tuple[str, ...] = ()


def _run(folders: tuple[str, ...], arguments: list[str]) -> int:
    from pegboard_skills._command import run

    return run(folders, arguments)


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@hookimpl
def provide_tools(settings: Settings) -> Iterable[Any]:
    """The tools for the skills of the configured folders; none where there are no folders."""
    if not settings.folders:
        return [
            NotOffered(["load_skill", "read_skill_file"], "no folder with skills is configured", "set skills.folders")
        ]
    from pegboard_skills._skills import Skills

    return [Skills(*settings.folders)]


@hookimpl
def provide_commands(settings: Settings) -> Iterable[Command]:
    """`pegboard skills`."""
    return [Command("skills", "List the skills in folders, and check them.", partial(_run, settings.folders))]
