"""The core of one toolkit: what its plugins bring, asked once, and what all of its sessions share."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from pegboard import builtin
from pegboard._arguments.validate import RepairMode
from pegboard._base.errors import ConflictError, UnknownNameError, suggestion
from pegboard._base.names import SEARCH_TOOL
from pegboard._board.board import Groups, Registry
from pegboard._execution.concurrency import Limit
from pegboard._execution.engine import Engine
from pegboard._execution.fastpath import FastPath
from pegboard._injection.injectors import InjectorTable
from pegboard._model.plugin_record import Contribution
from pegboard._model.policy import checked_capacity
from pegboard._model.tool import Origin, Tool
from pegboard._plugins.hooks import HookName
from pegboard._plugins.manager import Plugins
from pegboard._results.converters import ConverterTable
from pegboard._results.factory import ResultFactory
from pegboard._tools.collect import Collector
from pegboard._tools.signature import TypeTables
from pegboard._types.table import Level, TypeTable
from pegboard.extension import Dialect, Middleware, Offer

if TYPE_CHECKING:
    pass

OFF_BOARD: Final = ".search_tools"
"""What the search is called where tools go by their names on the board: none can have this one."""

OWN: Final = "pegboard"
"""Where tools of the core itself come from."""

DEFER_THRESHOLD: Final = 10
"""How many deferred tools are still listed like any other: as many as a model picks from without help."""


Handler: TypeAlias = tuple[str, Any, Origin, Level]
"""Something for a table: its name there, the handler, and who brings it."""

_TABLES: Final[tuple[tuple[str, HookName], ...]] = (
    ("types", "provide_types"),
    ("injectors", "provide_injectors"),
    ("converters", "provide_converters"),
)


@final
class Services:
    """What the plugins of one toolkit bring; one that reloads takes others in their place."""

    __slots__ = ("accelerators", "backends", "dialects", "handlers", "middleware", "plugins", "threads")

    def __init__(self, plugins: Plugins) -> None:
        plugins.ask_all()
        self.plugins = plugins
        own = {each.value.name: each.value for each in plugins.contributions("provide_backends") if each.builtin}
        self.threads = own["thread"]
        found = _named(plugins, "provide_backends")
        # To the core's own there are shortcuts, for which the name is enough.
        self.backends: dict[str, Any] = {
            name: name if own.get(name) is backend else backend for name, backend in found.items()
        }
        self.dialects: dict[str, Dialect] = _named(plugins, "provide_dialects")
        middleware: Iterable[Middleware] = _values(plugins, "provide_middleware")
        self.middleware = sorted(middleware, key=lambda each: each.order)
        self.accelerators = _values(plugins, "provide_accelerators")
        self.handlers = _handlers(plugins)


def tables(handlers: Iterable[Handler], context_only: Iterable[type] = ()) -> TypeTables:
    """The tables of types, injectors and converters; `context_only` are classes that come from the context."""
    made = TypeTables(TypeTable(), InjectorTable(context_only=set(context_only)), ConverterTable())
    for table, handler, origin, level in handlers:
        getattr(made, table).add(handler, origin, level)
    return made


def _handlers(plugins: Plugins) -> list[Handler]:
    """The types, injectors and converters that plugins bring, the core's own last; each with its table."""
    return [
        (table, each.value, each.origin, "builtin" if each.builtin else "plugin")
        for table, hook in _TABLES
        for each in plugins.contributions(hook)
    ]


def _values(plugins: Plugins, hook: HookName) -> list[Any]:
    return [each.value for each in plugins.contributions(hook)]


def _named(plugins: Plugins, hook: HookName) -> dict[str, Any]:
    """Contributions by their own names.

    Of two with one name the first by plugin counts, and the other plugin fails; the core's own give way.
    """
    found: dict[str, Contribution] = {}
    for contribution in plugins.contributions(hook):
        name = contribution.value.name
        if name in found and contribution.builtin:
            continue
        if name in found:
            sides = f"{found[name].origin} and {contribution.origin}"
            error = ConflictError(f"{name!r} is offered by {sides}; block one of them")
            plugins.fail(contribution.origin, str(error), error)
            continue
        found[name] = contribution
    return {name: contribution.value for name, contribution in sorted(found.items())}


def standard_tables() -> TypeTables:
    """What tools outside a toolkit are read with: the installed plugins, and no program's own handlers."""
    return _tables_on(tuple(sys.path))


@cache
def _tables_on(path: tuple[str, ...]) -> TypeTables:
    plugins = Plugins.load(builtin=builtin.plugins())
    standard = tables(_handlers(plugins))
    standard.accelerators.use(_values(plugins, "provide_accelerators"))
    return standard


def forget_standard_tables() -> None:
    """Other plugins are installed now."""
    _tables_on.cache_clear()


@final
class ToolkitState:
    """Board, plugins, engine and groups of a toolkit, and the tables that its tools are read with."""

    def __init__(
        self,
        plugins: Plugins,
        toolkit: Any,
        outcomes: ResultFactory,
        *,
        parallel: bool,
        preset_override: bool,
        repair: RepairMode,
        max_threads: int,
        max_concurrency: int | None,
        defer_threshold: int,
    ) -> None:
        if defer_threshold < 0:
            raise ValueError(f"defer_threshold takes a number of tools, 0 or more; got {defer_threshold}")
        self.toolkit = toolkit
        self.services = services = Services(plugins)
        self.handlers: list[Handler] = []
        """The types, injectors and converters of the program."""
        self.assembly = tables(services.handlers)
        services.threads.size = max_threads
        accelerators = self.assembly.accelerators
        self.engine = Engine(outcomes, lambda: services.threads.pool, repair=repair, accelerators=accelerators)
        self.engine.backends.update(services.backends)
        accelerators.use(services.accelerators)
        self.collector = Collector(self.assembly, plugins, self.engine.backends)
        self.fast_path = FastPath(self.engine)
        self.registry = Registry()
        self.groups = Groups()
        self.parallel = parallel
        self.preset_override = preset_override
        self.max_concurrency = None if max_concurrency is None else checked_capacity(max_concurrency, "max_concurrency")
        self.defer_threshold = defer_threshold
        self.live: list[Any] = []  # the registrations of live sources, each with a `record`

    def use(self, services: Services) -> None:
        """Exchange all that plugins bring: whoever makes tools ready makes them anew from now on."""
        engine, assembly = self.engine, self.assembly
        if services.handlers != self.services.handlers:
            fresh = tables([*services.handlers, *self.handlers], assembly.injectors.context_only)
            # In the same place: whatever reads tools looks there.
            assembly.types, assembly.injectors, assembly.converters = fresh.types, fresh.injectors, fresh.converters
        assembly.accelerators.use(services.accelerators)
        engine.backends.clear()
        engine.backends.update(services.backends)
        self.collector.sources = services.plugins
        self.services = services
        self.registry.touched()

    @property
    def plugins(self) -> Plugins:
        """Those that are active, and those that are not."""
        return self.services.plugins

    def absence(self, name: str) -> str:
        """Why there is no such tool: the nearest names, and a plugin or a source that failed if it may be theirs."""
        plugin = self.plugins.explain_absent(name)
        away = [each.record.problems[0] for each in self.live if each.record.problems and not each.record.tools]
        return " ".join([self.registry.board.absence(name), *([plugin] if plugin else []), *away])

    def offered(self) -> list[Contribution]:
        """The tools that plugins bring, without the core's own: these hang there when they are wanted."""
        return [each for each in self.plugins.tools() if not each.builtin]

    def own_tool(self, name: str) -> Tool:
        """A tool of the core itself, from the built-in plugin that provides it."""
        from pegboard._plugins.loading import load_plugin

        offered = (each.value for each in self.plugins.tools() if each.builtin)
        function = load_plugin(next(target for target in offered if target.endswith(f":{name}")))
        return self.collector.function(function, Offer(function), Origin(OWN))

    @cached_property
    def search_tool(self) -> Tool:
        """It hangs on no board: sessions show it while they leave out tools that wait to be found."""
        return self.own_tool(SEARCH_TOOL).evolve(name=OFF_BOARD)

    def middleware_for(self, tool: Tool) -> list[Middleware]:
        """The middleware that applies to a tool, outermost first."""
        return [each for each in self.services.middleware if each.applies is None or each.applies(tool)]

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
        if name not in self.services.dialects:
            from pegboard._base.known_packs import to_install

            known = suggestion(name, self.services.dialects, noun="dialects")
            remedy = to_install("dialects", (record.name for record in self.plugins.records))
            raise UnknownNameError(f"there is no dialect {name!r}. {known} {remedy}".rstrip())
        return self.services.dialects[name]


def replaces(tool: Tool | None, name: str) -> bool:
    """Whether a tool, a pack's, stands in for the core's own of that name."""
    return tool is not None and tool.replaces == f"{OWN}__{name}"
