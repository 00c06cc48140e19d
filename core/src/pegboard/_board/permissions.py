"""The file that permissions are kept in, if the program wants to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from pegboard._base.errors import SettingsError
from pegboard._model.policy import Permission


@final
class PermissionFile:
    """Permissions by the names of tools, as JSON. Raises `SettingsError` for a file that cannot be read or written."""

    __slots__ = ("_path",)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # The file of now: the program may change its directory later, and a link stays one when the file is replaced.
        self._path = Path(path).resolve()

    def read(self) -> dict[str, Permission]:
        """What is saved there; nothing if there is no file."""
        try:
            saved = json.loads(self._path.read_text(encoding="utf-8-sig"), object_pairs_hook=_without_doubles)
            return {name: Permission(value) for name, value in saved.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, AttributeError, OSError, RecursionError) as error:
            raise SettingsError(
                f'{self._path}: permissions are a JSON object of tool names and "always", "prompt" or "never": {error}'
            ) from error

    def write(self, permissions: Mapping[str, Permission]) -> None:
        """Write beside and rename: a crash leaves the old permissions, never half a file."""
        values = {name: permission.value for name, permission in sorted(permissions.items())}
        text = json.dumps(values, indent=2, ensure_ascii=False)
        path = self._path
        beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("w", encoding="utf-8") as file:
                file.write(f"{text}\n")
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                beside.chmod(path.stat().st_mode & 0o777)
            beside.replace(path)
        except OSError as error:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            message = f"{path}: the permissions cannot be saved: {error.strerror}; nothing was changed"
            raise SettingsError(message) from error


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found
