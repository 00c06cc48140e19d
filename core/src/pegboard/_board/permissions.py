"""Permissions of tools, kept in a file if the program wants to."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from pegboard._base.errors import SettingsError
from pegboard._model.permission import Permission

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Permissions"]

_Said: TypeAlias = dict[str, tuple[int, Permission]]
_NOTHING: Final[_Said] = {}  # what is said is replaced, never changed


@final
class Permissions:
    """What one session says of tools; a tool that it does not name is as in the wider session.

    What a tool was allowed ends when it is taken down, so that a later namesake has to ask: `removals(name)` counts how
    often that has happened. What was refused stays. Raises `SettingsError` for a file that cannot be read, and for one
    that cannot be written: nothing has changed then.
    """

    __slots__ = ("_lock", "_path", "_removals", "_said", "_wider")

    def __init__(
        self,
        removals: Callable[[str], int],
        path: str | os.PathLike[str] | None = None,
        wider: Permissions | None = None,
    ) -> None:
        self._removals = removals
        self._path = None if path is None else _resolved(path)
        self._wider = wider
        self._lock: threading.Lock = threading.Lock() if wider is None else wider._lock  # one for a toolkit
        self._said: _Said = _NOTHING
        if self._path is not None:
            self._said = {name: (0, permission) for name, permission in _read(self._path).items()}

    def of(self, tool: str) -> Permission | None:
        """The permission that somebody set; None where nobody did."""
        said = self._said.get(tool)
        if said is not None and (said[1] is not Permission.ALWAYS or said[0] == self._removals(tool)):
            return said[1]
        return None if self._wider is None else self._wider.of(tool)

    def set(self, tool: str, permission: Permission) -> None:
        """Set and, with a file, save."""
        with self._lock:
            self._become({**self._latest(), tool: (self._removals(tool), permission)})

    def forget(self, tools: Iterable[str]) -> None:
        """Drop what tools that are gone were allowed."""
        gone = {name for name in tools if self._said.get(name, (0, None))[1] is Permission.ALWAYS}
        if gone:
            with self._lock:
                self._become({name: said for name, said in self._latest().items() if name not in gone})

    def _latest(self) -> _Said:
        """With what another program may have saved meanwhile."""
        if self._path is None:
            return self._said
        saved = _read(self._path)
        known = {name: said for name, said in self._said.items() if saved.get(name) is said[1]}
        return {name: (self._removals(name), permission) for name, permission in saved.items()} | known

    def _become(self, said: _Said) -> None:
        if self._path is not None:
            _write(self._path, {name: permission for name, (_, permission) in sorted(said.items())})
        self._said = said


def _resolved(path: str | os.PathLike[str]) -> Path:
    """The file of now: the program may change its directory later, and a link stays one when the file is replaced."""
    from pathlib import Path

    return Path(path).resolve()


def _read(path: Path) -> dict[str, Permission]:
    try:
        saved = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_without_doubles)
        return {name: Permission(value) for name, value in saved.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, OSError, RecursionError) as error:
        raise SettingsError(
            f'{path}: permissions are a JSON object of tool names and "always", "prompt" or "never": {error}'
        ) from error


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found


def _write(path: Path, said: Mapping[str, Permission]) -> None:
    """Write beside and rename: a crash leaves the old permissions, never half a file."""
    text = json.dumps({name: permission.value for name, permission in said.items()}, indent=2, ensure_ascii=False)
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
