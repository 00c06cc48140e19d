"""Offerings: the tools of a board as one session shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from pegboard._base.errors import UnknownNameError
from pegboard._base.names import SEARCH_TOOL
from pegboard._board.board import no_such_tool
from pegboard._board.group_tool import GroupTool
from pegboard._board.groups import Activation
from pegboard._board.permissions import Permissions
from pegboard._execution.bound_tool import BoundTool
from pegboard._injection.presets import Presets
from pegboard._model.permission import Permission
from pegboard._model.tool import Tool
from pegboard._toolkit.deferred import OFF_BOARD, FoundTools, Listing, Searched
from pegboard._toolkit.state import ToolkitState

if TYPE_CHECKING:
    from pegboard._board.views import Lens, Sight
    from pegboard._model.facts import ToolSchema
    from pegboard._model.toolset import Toolset

__all__ = ["ToolListing"]


class ToolListing:
    """What a session shows its model: through its lens, under its presets, with its groups, and what was found.

    Everything is looked up in the board of now; what costs more than a look is remembered until something changes.
    """

    __slots__ = (
        "_activation",
        "_cache",
        "_core",
        "_found",
        "_generation",
        "_lens",
        "_memo",
        "_narrowed",
        "_permissions",
        "_presets",
    )

    _core: ToolkitState
    _lens: Lens | None
    _activation: Activation
    _presets: Presets
    _permissions: Permissions
    _found: FoundTools
    _narrowed: bool
    _generation: int
    _cache: dict[str, BoundTool]
    _memo: dict[str, Any]

    @property
    def tools(self) -> list[Tool]:
        """The tools offered now, in board order, as this session's model sees them.

        Of many deferred tools only those that were found; `search_tools` comes last then.
        """
        return list(self._remember("tools", self._listed))

    @property
    def all_tools(self) -> list[Tool]:
        """Every tool on the board, offered or not."""
        return [self.seen(tool) for tool in self._hanging().values()]

    @property
    def toolsets(self) -> list[Toolset]:
        """The toolsets, their tools as this session's model sees them."""
        shown = self._core.board.tools if self._lens is None else self._sight(self._lens).names
        seen = (
            evolve(each, tools=tuple(self.seen(tool) for tool in each.tools if tool.name in shown))
            for each in self._core.board.toolsets
        )
        return [each for each in seen if each.tools]

    @property
    def problems(self) -> list[str]:
        """What is wrong with this session's tools, a sentence each."""
        refused = {} if self._lens is None else self._sight(self._lens).refused
        problems = [str(error) for _, error in sorted(refused.items())]
        # Asked first, because to make the listing imports what is named by import strings.
        rival = self._listing().rival if self._search_name in self._hanging() else None
        if rival is not None:
            problems.append(
                f"all deferred tools are listed, for {rival.name!r} ({rival.origin}) has the name of the search for "
                "them; give it another one"
            )
        return problems

    @property
    def permissions(self) -> dict[str, Permission]:
        """The permission of every tool by name."""
        return {name: self._permissions.of(tool.name) or tool.permission for name, tool in self._hanging().items()}

    def tool(self, name: str) -> Tool:
        """The tool of that name as this session's model sees it. Raises `UnknownNameError` with the nearest names."""
        return self.seen(self._tool(name))

    def __getitem__(self, name: str) -> Tool:
        return self.tool(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __len__(self) -> int:
        return len(self._hanging())

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.all_tools)

    def schemas(self, dialect: str | None = None) -> list[Any]:
        """What to show the model: `ToolSchema`s, or a provider's own definitions with `dialect=`.

        Raises `UnknownNameError` for a dialect that no installed pack provides.
        """
        if dialect is None:
            schemas: list[ToolSchema] = self._remember("schemas", self._schemas)
            return list(schemas)
        return self._core.dialect(dialect).tools(self.tools)

    def _schemas(self) -> list[ToolSchema]:
        found = map(self._core.described, self.tools)
        return [schema for schema in found if schema is not None]

    def seen(self, tool: Tool) -> Tool:
        """A tool that hangs there as this session's model sees it: under its name here, without what presets fill."""
        changes: dict[str, Any] = {}
        if (name := self._shown(tool)) != tool.name:
            changes["name"] = name
        if presets := self._presets.of(tool.name):
            changes["hidden"] = frozenset(presets)
        if isinstance(tool.definition, GroupTool):
            changes["definition"] = tool.definition.seen_by(self._activation)
        return tool.evolve(**changes) if changes else tool

    def search(self, query: str, limit: int = 5) -> list[Tool]:
        """The deferred tools that fit best, best first; they are listed in this session from now on.

        Tools that are not permitted are left out. This is what the tool `search_tools` does.
        """
        searched: Searched = self._remember("searched", self._make_searched)
        found = searched.search(query, limit)
        if self._found.add(found):
            self._changed()
        return list(found.values())

    def _make_searched(self) -> Searched:
        hanging, permissions = self._hanging(), self.permissions
        tools = [tool for tool in self._listing().deferred.values() if permissions[tool.name] is not Permission.NEVER]
        return Searched(
            self._core.catalogue.index(tools), {tool.name: (hanging[tool.name].name, tool) for tool in tools}
        )

    @property
    def found_tools(self) -> tuple[str, ...]:
        """The names of the deferred tools that were found and are therefore listed, in board order."""
        return tuple(name for name in self._listing().deferred if self._is_found(name))

    def forget_found_tools(self) -> None:
        """Leave out again what was found in this session; what the wider session found stays listed."""
        self._found.clear()
        self._changed()

    def _is_found(self, name: str) -> bool:
        return self._hanging()[name].name in self._found

    def _listing(self) -> Listing:
        listing: Listing = self._remember("listing", self._make_listing)
        return listing

    def _make_listing(self) -> Listing:
        hanging = self._hanging()
        offered = (self.seen(tool) for tool in list(hanging.values()) if self._activation.offers(tool))
        return Listing.of(offered, self._core.defer_threshold, hanging.get(self._search_name), self._is_found)

    def _listed(self) -> list[Tool]:
        listing = self._listing()
        return [*listing.tools, *([self.seen(self._core.search_tool())] if listing.is_partial else ())]

    @property
    def _search_name(self) -> str:
        return SEARCH_TOOL if self._lens is None else self._lens.shown(SEARCH_TOOL)

    def _sight(self, lens: Lens) -> Sight:
        return lens.look(self._core.board)

    def _hanging(self) -> Mapping[str, Tool]:
        """The tools as they hang on the board, by their names here."""
        return self._core.board.tools if self._lens is None else self._sight(self._lens).tools

    def _shown(self, tool: Tool) -> str:
        """The name here of a tool that hangs there, or of the search."""
        if tool.name == OFF_BOARD:
            return self._search_name
        return tool.name if self._lens is None else self._sight(self._lens).names.get(tool.name, tool.name)

    def _find(self, name: str) -> Tool | None:
        """The tool of that name as it hangs on the board; in a view there are no aliases."""
        found = self._core.registry.find(name) if self._lens is None else self._hanging().get(name)
        if found is None and name == self._search_name and self._listing().is_partial:
            return self._core.search_tool()
        return found

    def _tool(self, name: str) -> Tool:
        tool = self._find(name)
        if tool is None:
            raise UnknownNameError(self._absence(name))
        return tool

    def _absence(self, name: str) -> str:
        if self._lens is None:
            return self._core.absence(name)
        refused = self._sight(self._lens).refused.get(name)
        return no_such_tool(name, self._hanging()) if refused is None else str(refused)

    def _remember(self, key: str, compute: Callable[[], Any]) -> Any:
        self._refresh()
        memo = self._memo
        if key not in memo:
            memo[key] = compute()
        return memo[key]

    def _refresh(self) -> None:
        generation = self._core.registry.generation
        if self._generation != generation:
            self._cache = {}
            self._memo = {}
            self._generation = generation

    def _changed(self) -> None:
        """What this session says has changed: what it keeps ready is made anew, and what narrower ones keep."""
        if self._narrowed:
            self._core.registry.touched()
        # Others, not emptied ones: whoever is at work fills the old ones, with what held when he began.
        self._cache, self._memo = {}, {}
