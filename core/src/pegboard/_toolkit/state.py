"""The core of one toolkit: what all of its sessions share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, final

from pegboard._base.errors import PegboardError, UnknownNameError, suggestion
from pegboard._board.board import Board, Registry
from pegboard._board.groups import Groups
from pegboard._execution.concurrency import Limit
from pegboard._execution.engine import Engine
from pegboard._execution.fastpath import FastPath
from pegboard._model.tool import Tool
from pegboard._plugins.manager import Plugins
from pegboard._toolkit.deferred import Catalogue
from pegboard._tools.collect import Collector
from pegboard._tools.signature import TypeTables
from pegboard.extension import Dialect, Middleware

if TYPE_CHECKING:
    from pegboard._model.facts import ToolSchema

__all__ = ["ToolkitState"]


@final
class ToolkitState:
    """Board, plugins, engine and groups of a toolkit, and the tables that its tools are read with."""

    def __init__(
        self,
        plugins: Plugins,
        assembly: TypeTables,
        collector: Collector,
        engine: Engine,
        *,
        middleware: list[Middleware],
        dialects: Mapping[str, Dialect],
        parallel: bool,
        preset_override: bool,
        max_concurrency: int | None = None,
        own_tools: tuple[Any, ...] = (),
        search_tool: Callable[[], Tool],
        defer_threshold: int,
    ) -> None:
        self.plugins = plugins
        self.assembly = assembly
        self.collector = collector
        self.engine = engine
        self.straight = FastPath(engine)
        self.registry = Registry()
        self.groups = Groups()
        self.set_middleware(middleware)
        self.dialects = dialects
        self.parallel = parallel
        self.preset_override = preset_override
        self.max_concurrency = max_concurrency
        self.own_tools = own_tools
        self.search_tool = search_tool
        self.defer_threshold = defer_threshold
        self.catalogue = Catalogue()
        self.live: list[Any] = []  # the registrations of live sources, each with a `record`

    @property
    def board(self) -> Board:
        """What hangs there now."""
        return self.registry.board

    def absence(self, name: str) -> str:
        """Why there is no such tool: the nearest names, and a plugin or a source that failed if it may be theirs."""
        plugin = self.plugins.explain_absent(name)
        away = [each.record.problems[0] for each in self.live if each.record.problems and not each.record.tools]
        return " ".join([self.board.absence(name), *([plugin] if plugin else []), *away])

    def set_middleware(self, middleware: Iterable[Middleware]) -> None:
        """Use this middleware from now on, by its order."""
        self.middleware = sorted(middleware, key=lambda each: each.order)

    def middleware_for(self, tool: Tool) -> list[Middleware]:
        """The middleware that applies to a tool, outermost first."""
        return [each for each in self.middleware if each.applies is None or each.applies(tool)]

    def limits_for(self, tool: Tool) -> list[Limit]:
        """The limits that calls of a tool need a place in, in an order that is the same for all tools."""
        capacities = {f"the lock {name!r}": 1 for name in tool.options.locks}
        if tool.options.exclusive:
            capacities[f"the exclusive tool {tool.name!r}"] = 1
        if self.max_concurrency is not None:
            capacities["max_concurrency of the toolkit"] = self.max_concurrency
        for group in self.groups.of(tool):
            if group.max_concurrency is not None:
                capacities[f"max_concurrency of the group {group.name!r}"] = group.max_concurrency
        return [self.engine.limits.named(label, capacity) for label, capacity in sorted(capacities.items())]

    def dialect(self, name: str) -> Dialect:
        """The provider dialect of that name. Raises `UnknownNameError` naming the pack to install."""
        if name not in self.dialects:
            from pegboard._base.known_packs import to_install

            known = suggestion(name, self.dialects, noun="dialects")
            remedy = to_install("dialects", (record.name for record in self.plugins.records))
            raise UnknownNameError(f"there is no dialect {name!r}. {known} {remedy}".rstrip())
        return self.dialects[name]

    def described(self, tool: Tool) -> ToolSchema | None:
        """A tool as a model sees it; None for one whose pack turns out to be broken on first use: it is not offered."""
        try:
            return tool.schema()
        except PegboardError:
            return None
