"""Permissions in a file: kept for the next program, shared by several, and bound to the tools as they were."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from pegboard import Guard, Permission, SettingsError, Tool, Verdict
from pegboard.inspection import regular, write_file
from pegboard_policy._prints import Prints, allowed, changed

__all__ = ["PermissionFile", "kept_permissions", "read_permissions"]

_ALLOWED: Final = "$allowed"
"""No name of a tool."""


class PermissionFile:
    """Permissions by the names of tools, as JSON, and hashes of what is always allowed under the member `$allowed`.

    Raises `SettingsError` for a file that cannot be read or written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Resolved now: the program may change its directory later, and a link stays one when the file is replaced.
        self.path = Path(path).resolve()
        self._lock = threading.Lock()
        self._saved: dict[str, Permission] = {}
        # The hashes of tools when they were allowed. For an entry written by hand, those of its first use.
        self._allowed: dict[str, Prints] = {}

    def load(self) -> None:
        """Read the file; a missing file has no permissions."""
        with self._lock:
            self._read()

    def _read(self) -> None:
        try:
            with open(self.path, encoding="utf-8-sig", opener=regular) as file:
                saved = dict(json.load(file, object_pairs_hook=_without_doubles).items())
            allowed = {name: dict(prints.items()) for name, prints in saved.pop(_ALLOWED, {}).items()}
            self._saved = {name: Permission(value) for name, value in saved.items()}
            self._allowed.update(allowed)
        except FileNotFoundError:
            self._saved = {}
        except (ValueError, AttributeError, OSError, RecursionError) as error:
            words = 'a JSON object of tool names and "always", "prompt" or "never"'
            raise SettingsError(f"{self.path}: permissions are {words}: {error}") from error

    def judge(self, tool: Tool) -> Verdict | None:
        """The verdict of the file; a tool that has changed since it was allowed asks."""
        saved = self._saved.get(tool.name)
        if saved in (Permission.PROMPT, Permission.NEVER):
            return Verdict(permission=saved)
        if saved is None and tool.name not in self._allowed:
            return None
        now = allowed(tool)
        if other := changed(self._allowed.setdefault(tool.name, now), now):
            reason = f"{tool.name} has changed since it was allowed: its {other}"
            return Verdict(permission=Permission.PROMPT, reason=reason)
        return Verdict(permission=saved)

    def decided(self, tool: Tool, permission: Permission | None) -> bool:
        """Save a decision, or that an always allowed tool was removed. Raises `SettingsError`: nothing changed."""
        with self._lock, _alone(self.path):
            before = self._saved
            self._read()  # what another program may have saved meanwhile
            saved, fresh = dict(self._saved), dict(self._allowed)
            if permission is not None:
                saved[tool.name], fresh[tool.name] = permission, allowed(tool)
            elif saved.get(tool.name) is Permission.ALWAYS:
                del saved[tool.name]
            else:
                return True
            try:
                self._write(saved, fresh)
            except BaseException:
                self._saved = before
                raise
            self._saved, self._allowed = saved, fresh
        return True

    def _write(self, saved: Mapping[str, Permission], fresh: Mapping[str, Prints]) -> None:
        values: dict[str, Any] = {name: permission.value for name, permission in sorted(saved.items())}
        if kept := {name: fresh[name] for name, each in values.items() if each == "always" and name in fresh}:
            values[_ALLOWED] = kept
        write_file(self.path, json.dumps(values, indent=2, ensure_ascii=False) + "\n", "the permissions")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the folder of a file, so that of several programs one at a time reads and writes it."""
    try:
        import fcntl
    except ImportError:  # where only threads of one program are kept apart
        yield
        return
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError:  # the error will show when the file is written
        yield
        return
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def kept_permissions(file: PermissionFile) -> Guard:
    """The guard that keeps the toolkit's permissions in a file. Raises `SettingsError` for one that is damaged."""
    file.load()
    return Guard(file.judge, decided=file.decided, name="permissions")


def read_permissions(file: PermissionFile, name: str) -> Guard:
    """The guard of a file that is never written. Raises `SettingsError` for one that is missing or damaged."""
    if not file.path.exists():
        raise SettingsError(f"there is no {file.path}")
    file.load()
    return Guard(file.judge, name=name)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found
