"""The core of one toolkit: what its plugins bring, asked once, and what all of its sessions share."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterable, Mapping
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

from pegboard import builtin
from pegboard._arguments.validate import RepairMode
from pegboard._base.effects import tried
from pegboard._base.errors import UnknownNameError, suggestion
from pegboard._base.names import OWN, SEARCH_TOOL
from pegboard._board.board import Groups, Registry
from pegboard._board.permissions import Guards
from pegboard._execution.concurrency import Limit
from pegboard._execution.engine import Engine
from pegboard._execution.prepared import CallRunner
from pegboard._injection.injectors import InjectorTable
from pegboard._injection.presets import Preset, for_tools, read_presets
from pegboard._model.plugin_record import Contribution
from pegboard._model.policy import checked_capacity
from pegboard._model.tool import Entry, Origin, Tool
from pegboard._plugins.hooks import HookName
from pegboard._plugins.manager import Plugins
from pegboard._results.converters import ConverterTable
from pegboard._results.factory import ResultFactory
from pegboard._tools.collect import Collector, own_name
from pegboard._tools.signature import TypeTables
from pegboard._types.table import TypeTable
from pegboard.extension import Dialect, Middleware, Offer

# The presets of several tools, by the entries of these.
Presets: TypeAlias = dict[Entry, dict[str, Preset]]

# What the search is called where tools go by their names on the board: none can have this one.
OFF_BOARD: Final = ".search_tools"

# How many deferred tools are still listed like any other: as many as a model picks from without help.
DEFER_THRESHOLD: Final = 10


_TABLES: Final[tuple[HookName, ...]] = ("provide_types", "provide_injectors", "provide_converters")


def tables(plugins: Plugins) -> TypeTables:
    """The tables of types, injectors and converters, with what plugins bring."""
    made = TypeTables(TypeTable(plugins.chosen), InjectorTable(), ConverterTable())
    for hook in _TABLES:
        table = getattr(made, hook.removeprefix("provide_"))
        for each in plugins.contributions(hook):
            table.add(each.value, each.origin, "builtin" if each.builtin else "plugin")
    return made


def _named(plugins: Plugins, hook: HookName) -> dict[str, Any]:
    """Contributions by their own names. Of two with one name the first counts, and is told; the core's own give way."""
    found: dict[str, Contribution] = {}
    for contribution in plugins.contributions(hook):
        name = tried(attrgetter("name"), contribution.value)
        if not isinstance(name, str):
            plugins.pass_over(contribution.origin, f"a {type(contribution.value).__name__} of {hook} has lost its name")
        elif name not in found:
            found[name] = contribution
        elif not contribution.builtin:
            sides = f"{found[name].origin} and {contribution.origin}"
            plugins.pass_over(contribution.origin, f"{name!r} is offered by {sides}; block one of them")
    return {name: contribution.value for name, contribution in sorted(found.items())}


def standard_tables() -> TypeTables:
    """What tools outside a toolkit are read with: the installed plugins, and no program's own handlers."""
    return _tables_on(tuple(sys.path))


@cache
def _tables_on(path: tuple[str, ...]) -> TypeTables:
    plugins = Plugins.load(builtin=builtin.plugins())
    return tables(plugins)


class ToolkitOptions(NamedTuple):
    """What a program says of its toolkit, once and for all."""

    parallel: bool
    allow_tool_deletion: bool
    preset_override: bool
    repair: RepairMode
    max_threads: int
    max_concurrency: int | None
    defer_threshold: int


class ToolkitState:
    """Board, plugins, engine and groups of a toolkit, and the tables that its tools are read with."""

    def __init__(self, plugins: Plugins, toolkit: Any, results: ResultFactory, options: ToolkitOptions) -> None:
        if options.defer_threshold < 0:
            raise ValueError(f"defer_threshold takes a number of tools, 0 or more; got {options.defer_threshold}")
        if options.max_concurrency is not None:
            checked_capacity(options.max_concurrency, "max_concurrency")
        self.options = options
        self.toolkit = toolkit
        self.plugins = plugins
        plugins.ask_all(toolkit)
        self.assembly = tables(plugins)
        own = {each.value.name: each.value for each in plugins.contributions("provide_backends") if each.builtin}
        own["thread"].size = options.max_threads
        self.engine = engine = Engine(results, lambda: own["thread"].pool, repair=options.repair)
        for name, backend in _named(plugins, "provide_backends").items():
            # To the core's own there are shortcuts, for which the name is enough.
            engine.backends[name] = name if own.get(name) is backend else backend
        self.dialects: dict[str, Dialect] = _named(plugins, "provide_dialects")
        guards = plugins.contributions("provide_guards")
        self.guards = Guards((each.value, each.origin) for each in guards)
        engine.checks = [each.value.check for each in guards if each.value.check is not None]
        middleware: list[Middleware] = [each.value for each in plugins.contributions("provide_middleware")]
        self.middleware = sorted(middleware, key=attrgetter("order"))
        engine.around = [each for each in self.middleware if each.whole]
        self.runner = CallRunner(engine)
        # How those calls are made that no session prepared.
        self.run = self.runner.entered if engine.around else self.runner.run
        self.collector = Collector(self.assembly, plugins, engine.backends)
        self.registry = Registry(self.assembly.forget)
        self.groups = Groups()
        self.live: list[Any] = []  # the registrations of live sources, each with a `record`
        # One program's handler at a time.
        self.extending = threading.RLock()

    def check_presets(self, tool: Tool, values: Mapping[str, Any]) -> dict[str, Preset]:
        """The presets that these values are, for a tool that need not be registered yet. Raises `RegistrationError`."""
        presets = read_presets(tool, values, override=self.options.preset_override)
        self.collector.check_secrets(tool, [name for name, preset in presets.items() if preset.secret])
        return presets

    def read_presets(self, terms: Offer, tools: Collection[Tool], *, lenient: bool) -> Presets:
        """The presets in the terms of a registration. Raises `RegistrationError` for one that does not fit."""
        given = for_tools(terms.presets, {own_name(tool): tool for tool in tools}, lenient=lenient)
        named = ((tool, given.get(own_name(tool))) for tool in tools)
        return {tool.entry: self.check_presets(tool, values) for tool, values in named if values}

    def hold_presets(self, tools: Iterable[Tool | None], presets: Presets) -> None:
        """Set presets that were read, for those tools that were registered."""
        for tool in tools:
            if tool is not None and tool.entry in presets:
                self.toolkit._set_presets(tool, presets[tool.entry])
                self.registry.touched()

    def absence(self, name: str, *, brief: bool = False) -> str:
        """Why there is no such tool: the nearest names, and a plugin or a source that failed if it may be theirs."""
        plugin = self.plugins.explain_absent(name, brief=brief)
        away = [each.record.problems[0] for each in self.live if each.record.problems and not each.record.tools]
        return " ".join([self.registry.board.absence(name), *([plugin] if plugin else []), *away])

    def offered(self) -> list[Contribution]:
        """The tools that plugins bring, without the core's own: these are registered when they are wanted."""
        return [each for each in self.plugins.tools() if not each.builtin]

    def own_tool(self, name: str) -> Tool:
        """A tool of the core itself, from the built-in plugin that provides it."""
        from pegboard._plugins.candidates import load_plugin

        offered = (each.value for each in self.plugins.tools() if each.builtin)
        function = load_plugin(next(target for target in offered if target.endswith(f":{name}")))
        return self.collector.function(function, Offer(function), Origin(OWN))

    @cached_property
    def search_tool(self) -> Tool:
        """It is registered nowhere: sessions show it while they leave out tools that wait to be found."""
        return self.own_tool(SEARCH_TOOL).evolve(name=OFF_BOARD)

    def limits_for(self, tool: Tool) -> list[Limit]:
        """The limits that calls of a tool need a place in, in an order that is the same for all tools."""
        capacities = {f"the lock {name!r}": 1 for name in tool.options.locks}
        if tool.options.exclusive:
            capacities[f"the exclusive tool {tool.name!r}"] = 1
        if self.options.max_concurrency is not None:
            capacities["max_concurrency of the toolkit"] = self.options.max_concurrency
        for group in self.groups.of(tool):
            if group.max_concurrency is not None:
                capacities[f"max_concurrency of the group {group.name!r}"] = group.max_concurrency
        return [self.engine.limits.named(label, capacity) for label, capacity in sorted(capacities.items())]

    def dialect(self, name: str) -> Dialect:
        """The provider dialect of that name. Raises `UnknownNameError` naming the pack to install."""
        if name not in self.dialects:
            known, near = sorted(self.dialects), suggestion(name, self.dialects, noun="dialects")
            every = [f"All there are: {', '.join(known)}."] if near.startswith("Did") else []
            none = [] if self.plugins.records else ["This toolkit loads no plugins."]
            message = [f"there is no dialect {name!r}. {near}", *every, *none, self.plugins.how_to_get("dialects")]
            raise UnknownNameError(" ".join(message).strip())
        return self.dialects[name]


def replaces(tool: Tool | None, name: str) -> bool:
    """Whether a tool, a pack's, stands in for the core's own of that name."""
    return tool is not None and tool.replaces == f"{OWN}__{name}"
