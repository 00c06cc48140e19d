"""The core of one toolkit: what all of its sessions share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from pegboard._board import Board, Registry
from pegboard._collect import Collector
from pegboard._definition import Assembly
from pegboard._engine import Engine
from pegboard._errors import PegboardError, UnknownNameError, suggestion
from pegboard._extension import Dialect, Middleware
from pegboard._groups import Groups
from pegboard._plugins import Plugins
from pegboard._straight import Straight
from pegboard._tool import Tool, ToolSchema

__all__ = ["Core"]


@final
class Core:
    """Board, plugins, engine and groups of a toolkit, and the tables that its tools are read with."""

    def __init__(
        self,
        plugins: Plugins,
        assembly: Assembly,
        collector: Collector,
        engine: Engine,
        *,
        middleware: list[Middleware],
        dialects: Mapping[str, Dialect],
        parallel: bool,
        preset_override: bool,
        own_tools: tuple[Any, ...] = (),
    ) -> None:
        self.plugins = plugins
        self.assembly = assembly
        self.collector = collector
        self.engine = engine
        self.straight = Straight(engine)
        self.registry = Registry()
        self.groups = Groups()
        self.middleware = sorted(middleware, key=lambda each: each.order)
        self.dialects = dialects
        self.parallel = parallel
        self.preset_override = preset_override
        self.own_tools = own_tools

    @property
    def board(self) -> Board:
        """What hangs there now."""
        return self.registry.board

    def absence(self, name: str) -> str:
        """Why there is no such tool: the nearest names, and a plugin that failed if it may be its."""
        reason = self.board.absence(name)
        plugin = self.plugins.explain_absent(name)
        return f"{reason} {plugin}" if plugin else reason

    def middleware_for(self, tool: Tool) -> list[Middleware]:
        """The middleware that applies to a tool, outermost first."""
        return [each for each in self.middleware if each.applies is None or each.applies(tool)]

    def dialect(self, name: str) -> Dialect:
        """The provider dialect of that name. Raises `UnknownNameError` naming the pack to install."""
        if name not in self.dialects:
            known = suggestion(name, self.dialects, noun="dialects")
            raise UnknownNameError(
                f"there is no dialect {name!r}. {known} Install one with: pip install pegboard-dialects"
            )
        return self.dialects[name]

    def described(self, tool: Tool) -> ToolSchema | None:
        """A tool as a model sees it; None for one whose pack turns out to be broken on first use: it is not offered."""
        try:
            return tool.schema()
        except PegboardError:
            return None
