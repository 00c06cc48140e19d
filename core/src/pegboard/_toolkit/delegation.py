"""The front of a toolkit: everything that it hands to its root session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pegboard._model.permission import Permission
from pegboard._model.tool import Tool
from pegboard._toolkit.session import Session, Sessions
from pegboard._toolkit.state import ToolkitState

if TYPE_CHECKING:
    from pegboard._board.views import Names
    from pegboard._model.group import Manager
    from pegboard._model.toolset import Toolset

__all__ = ["Delegation"]


class Delegation(Sessions):
    """What a program that needs one session alone says to the toolkit itself."""

    _core: ToolkitState
    _root: Session

    @property
    def _caller(self) -> Session:
        return self._root

    # Looking ---------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Tool:
        return self._root[name]

    def __contains__(self, name: object) -> bool:
        return name in self._root

    def __len__(self) -> int:
        return len(self._root)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._root)

    @property
    def tools(self) -> list[Tool]:
        """The tools offered now, in board order."""
        return self._root.tools

    @property
    def all_tools(self) -> list[Tool]:
        """Every tool on the board, offered or not."""
        return self._root.all_tools

    @property
    def toolsets(self) -> list[Toolset]:
        """The toolsets: classes with `@tool` methods."""
        return self._root.toolsets

    def schemas(self, dialect: str | None = None) -> list[Any]:
        """What to show the model: `ToolSchema`s, or a provider's own definitions."""
        return self._root.schemas(dialect)

    def search(self, query: str, limit: int = 5) -> list[Tool]:
        """The deferred tools that fit best, best first; they are listed from now on."""
        return self._root.search(query, limit)

    @property
    def found_tools(self) -> tuple[str, ...]:
        """The names of the deferred tools that were found and are therefore listed, in board order."""
        return self._root.found_tools

    def forget_found_tools(self) -> None:
        """Leave out again what was found."""
        self._root.forget_found_tools()

    # What the root session decides --------------------------------------------------------------------------

    @property
    def active_groups(self) -> tuple[str, ...]:
        """The names of the groups active in the root session."""
        return self._root.active_groups

    def update_groups(self, names: Names, active: bool) -> None:
        """Activate or deactivate groups, all or none."""
        self._root.update_groups(names, active)

    def set_active_groups(self, names: Names, *, managed_by: Manager | None = None) -> None:
        """Make exactly these groups active: of all groups, or of those that the model or the program manages."""
        self._root.set_active_groups(names, managed_by=managed_by)

    def set_presets(self, name: str, values: Mapping[str, Any]) -> None:
        """Replace the presets of a tool; the schema follows at once."""
        self._root.set_presets(name, values)

    def update_presets(self, name: str, values: Mapping[str, Any]) -> None:
        """Add to the presets of a tool; a value of None is a preset of None."""
        self._root.update_presets(name, values)

    @property
    def permissions(self) -> dict[str, Permission]:
        """The permission of every tool."""
        return self._root.permissions

    def set_permission(self, name: str, permission: str) -> None:
        """`"always"`, `"prompt"` or `"never"`; saved with `Toolkit(permissions=path)`."""
        self._root.set_permission(name, permission)
