"""Permissions of tools, kept in a file if the program wants to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import final

from pegboard._approval import Permission
from pegboard._errors import SettingsError

__all__ = ["Permissions"]


@final
class Permissions:
    """What one session says of tools; a tool that it does not name is as in the wider session."""

    __slots__ = ("_path", "_said", "_wider")

    def __init__(self, path: str | Path | None = None, wider: Permissions | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._wider = wider
        self._said = {} if self._path is None else _read(self._path)

    def of(self, tool: str) -> Permission | None:
        """The permission that somebody set; None where nobody did."""
        if tool in self._said:
            return self._said[tool]
        return None if self._wider is None else self._wider.of(tool)

    def set(self, tool: str, permission: Permission) -> None:
        """Set and, with a file, save."""
        self._said[tool] = permission
        self._save()

    def forget(self, tools: Iterable[str]) -> None:
        """Drop what was said of tools that are gone, so that a later namesake starts afresh."""
        gone = [name for name in tools if self._said.pop(name, None) is not None]
        if gone:
            self._save()

    def _save(self) -> None:
        if self._path is None:
            return
        text = json.dumps({name: each.value for name, each in sorted(self._said.items())}, indent=2, ensure_ascii=False)
        # Written beside and renamed: a crash leaves the old permissions, never half a file.
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        beside.write_text(f"{text}\n", encoding="utf-8")
        beside.replace(self._path)


def _read(path: Path) -> dict[str, Permission]:
    if not path.exists():
        return {}
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): Permission(value) for name, value in saved.items()}
    except (ValueError, AttributeError, OSError) as error:
        raise SettingsError(
            f'{path}: permissions are a JSON object of tool names and "always", "prompt" or "never": {error}'
        ) from error
