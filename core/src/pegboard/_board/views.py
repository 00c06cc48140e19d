"""Views: a board seen through a lens, which leaves tools out and shows others under other names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final, TypeAlias, final

from pegboard._base.errors import ConflictError, RegistrationError, UnknownNameError, suggestion
from pegboard._base.names import SEARCH_TOOL, check_name
from pegboard._board.board import Board
from pegboard._model.tool import Tool

__all__ = ["Lens", "Names", "Rename", "Sight", "listed"]

Names: TypeAlias = str | Iterable[str]
"""One name, or several; each may be a pattern such as `files_*`."""

Rename: TypeAlias = Mapping[str, str] | Callable[[str], str]
"""Other names for tools: those that a mapping has, or what a function makes of every name."""

_WILD: Final = frozenset("*?[")
_OWN: Final = "pegboard"


def listed(names: Names) -> tuple[str, ...]:
    """One name or several as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


@final
class Sight:
    """One board through a lens: `tools` as they hang there by the names shown, and the `names` shown by those there.

    `refused` says of each name that no tool can have here why that is.
    """

    __slots__ = ("names", "refused", "tools")

    def __init__(
        self,
        tools: Mapping[str, Tool],
        names: Mapping[str, str],
        refused: Mapping[str, RegistrationError],
    ) -> None:
        self.tools = tools
        self.names = names
        self.refused = refused


@final
class Lens:
    """What a view shows of the wider one: a tool that fits everything that is asked, under its new name.

    The tool that pages through long output is always there and keeps its name: results speak of it.
    """

    __slots__ = ("_last", "exclude", "include", "prefix", "rename", "tags", "where", "wider")

    def __init__(
        self,
        wider: Lens | None,
        include: tuple[str, ...] | None,
        exclude: tuple[str, ...],
        tags: frozenset[str] | None,
        prefix: str,
        rename: Rename | None,
        where: Callable[[Tool], bool] | None,
    ) -> None:
        self.wider = wider
        self.include = include
        self.exclude = exclude
        self.tags = tags
        self.prefix = prefix
        self.rename = rename
        self.where = where
        self._last: list[tuple[Board, Sight]] = []

    def look(self, board: Board) -> Sight:
        """What this lens shows of a board; computed once for each."""
        if self._last and self._last[-1][0] is board:
            return self._last[-1][1]
        sight = self._sight(board)
        self._last[:] = [(board, sight)]
        return sight

    def check(self, board: Board) -> None:
        """Raise `UnknownNameError` for a name that names nothing, and the error of names that cannot be given."""
        tools = self._around(board)
        known = {name for each in tools for name in self._names(each, tools[each])}
        renamed = list(self.rename) if isinstance(self.rename, Mapping) else []
        for name in (*(self.include or ()), *self.exclude, *renamed):
            if name not in known and (name in renamed or not _WILD & set(name)):
                hint = suggestion(name, tools, noun="tools")
                raise UnknownNameError(f"the view cannot find a tool {name!r}. {hint}")
        check_name(self.shown(SEARCH_TOOL))
        for error in self.look(board).refused.values():
            raise error

    def shown(self, name: str) -> str:
        """The name here of a tool that has no place on the board, but comes by itself: it gets the prefixes."""
        return f"{self.prefix}{name if self.wider is None else self.wider.shown(name)}"

    def _around(self, board: Board) -> Mapping[str, Tool]:
        return board.tools if self.wider is None else self.wider.look(board).tools

    def _sight(self, board: Board) -> Sight:
        by_name: dict[str, list[tuple[str, Tool]]] = {}
        for name, tool in self._around(board).items():
            if _is_own(tool):
                by_name.setdefault(name, []).append((name, tool))
            elif self._shows(name, tool):
                by_name.setdefault(self._renamed(name), []).append((name, tool))
        refused: dict[str, RegistrationError] = {}
        for name, candidates in by_name.items():
            error = _refusal(name, [wide for wide, _ in candidates])
            if error is not None:
                refused[name] = error
        tools = {name: candidates[0][1] for name, candidates in by_name.items() if name not in refused}
        return Sight(tools, {tool.name: name for name, tool in tools.items()}, refused)

    def _shows(self, name: str, tool: Tool) -> bool:
        names = self._names(name, tool)
        return (
            (self.include is None or _fits(names, self.include))
            and not _fits(names, self.exclude)
            and (self.tags is None or not self.tags.isdisjoint(tool.tags))
            and (self.where is None or bool(self.where(tool if name == tool.name else tool.evolve(name=name))))
        )

    def _names(self, name: str, tool: Tool) -> tuple[str, ...]:
        """What a tool goes by: on the board also by its pack's name, in a view only by the name shown there."""
        return (name, tool.qualified_name) if self.wider is None else (name,)

    def _renamed(self, name: str) -> str:
        rename = self.rename
        if isinstance(rename, Mapping):
            name = rename.get(name, name)
        elif rename is not None:
            name = rename(name)
        return f"{self.prefix}{name}"


def _fits(names: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _is_own(tool: Tool) -> bool:
    return tool.pack is None and tool.origin.plugin == _OWN


def _refusal(name: str, candidates: list[str]) -> RegistrationError | None:
    if len(candidates) > 1:
        both = " and ".join(map(repr, candidates))
        return ConflictError(f"{both} would both be called {name!r} in this view; rename one of them, or leave it out")
    try:
        check_name(name)
    except RegistrationError as error:
        return RegistrationError(f"{candidates[0]!r} cannot be called that in this view: {error}")
    return None
