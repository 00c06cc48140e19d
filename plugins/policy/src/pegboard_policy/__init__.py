"""Policy: a lock file and a file of permissions, as guards that hold tools to what was agreed to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from pegboard import Command, Guard, Session, SettingsError, Toolkit, hookimpl
from pegboard_policy._explain import Explanation, explain
from pegboard_policy._lock import LockFile, unenforced
from pegboard_policy._permissions import PermissionFile, kept_permissions, read_permissions

__all__ = [
    "Explanation",
    "LockFile",
    "Policy",
    "Settings",
    "provide_commands",
    "provide_guards",
    "settings_type",
    "unenforced",
]

PathLike: TypeAlias = str | os.PathLike[str]

_FROM_ENVIRONMENT: Final[Mapping[str, Callable[[str, str], Guard]]] = {
    "PEGBOARD_LOCK": LockFile.guard,
    "PEGBOARD_PERMISSIONS": lambda path, name: read_permissions(PermissionFile(path), name),
}


@attrs.frozen
class Settings:
    """The section `policy` of the settings: paths of a lock file and of a file of permissions."""

    lock: Path | None = None
    permissions: Path | None = None


@attrs.frozen(eq=False)
class Policy:
    """The policy of one program, for `Toolkit(plugins=["installed", Policy(...)])`; it stands for the installed pack.

    With `lock`, a file of `pegboard lock`, only tools that are as it has them are offered and called. `permissions` is
    a file that the permissions of the toolkit are kept in; it is made when the first is set. What the environment names
    (`PEGBOARD_LOCK`, `PEGBOARD_PERMISSIONS`) counts besides, and is never written.

    A toolkit raises `SettingsError` for a file that is damaged, and for a lock that is missing.
    """

    lock: PathLike | None = attrs.field(default=None, kw_only=True)
    permissions: PathLike | None = attrs.field(default=None, kw_only=True)

    @staticmethod
    def explain(session: Session | Toolkit) -> list[Explanation]:
        """What holds for every tool of a session, and what decides, by the names of the tools."""
        return explain(session)

    @hookimpl
    def settings_type(self) -> type[Settings]:
        """The pack's settings."""
        return Settings

    @hookimpl
    def provide_guards(self, settings: Settings) -> Iterator[Guard]:
        """A guard for each file."""
        for path in (self.lock, settings.lock):
            if path is not None:
                yield LockFile.guard(path)
        for path in (self.permissions, settings.permissions):
            if path is not None:
                yield kept_permissions(PermissionFile(path))
        for variable, guard in _FROM_ENVIRONMENT.items():
            if named := os.environ.get(variable):
                try:
                    yield guard(named, variable)
                except SettingsError as error:
                    raise SettingsError(f"{variable}: {error}") from error


def _check(arguments: list[str]) -> int:
    from pegboard_policy._explain import run

    return run(arguments)


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@hookimpl
def provide_commands() -> Iterable[Command]:
    """`pegboard policy check`."""
    return [Command("policy", "Say for each tool what holds, and why.", _check)]


@hookimpl
def provide_guards(settings: Settings) -> Iterator[Guard]:
    """What the settings and the environment name."""
    return Policy().provide_guards(settings)
