"""Assembling: asks every hook once and compiles the answers into the tables that tools and calls are made with."""

from __future__ import annotations

import sys
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pegboard._arguments.validate import RepairMode
from pegboard._base.errors import ConflictError
from pegboard._base.markers import MISSING
from pegboard._execution.engine import Engine
from pegboard._injection.injectors import InjectorTable
from pegboard._injection.invocation import Invocation
from pegboard._model.plugin_record import Contribution
from pegboard._model.policy import checked_capacity
from pegboard._model.tool import Origin, Tool
from pegboard._plugins.hooks import HookName
from pegboard._plugins.manager import Plugins
from pegboard._results.converters import ConverterTable
from pegboard._results.factory import ExposeErrors, ResultFactory
from pegboard._toolkit.session import Session
from pegboard._toolkit.state import ToolkitState
from pegboard._tools.collect import Collector
from pegboard._tools.signature import TypeTables
from pegboard._types.table import Level, TypeTable
from pegboard.extension import Dialect, Injector

if TYPE_CHECKING:
    from pegboard._results.overflow import Spill

Overflow: TypeAlias = Literal["truncate", "spill"]

SPILL_PAGE: Final = 20_000
"""Characters of a page where only single tools bound their output."""

Table: TypeAlias = list[tuple[Any, Origin]]

__all__ = ["Overflow", "assemble", "forget_standard_assembly", "named", "standard_assembly", "tables", "tables_of"]


def assemble(
    plugins: Plugins,
    toolkit: Any,
    *,
    parallel: bool,
    preset_override: bool,
    repair: RepairMode,
    expose_errors: ExposeErrors,
    max_output: int | None,
    overflow: Overflow,
    max_threads: int,
    max_concurrency: int | None,
    defer_threshold: int,
) -> ToolkitState:
    """The core of a toolkit from its loaded plugins."""
    plugins.ask_all()
    assembly = tables(plugins)
    for injector in _own_injectors(type(toolkit), toolkit):
        assembly.injectors.add(injector, Origin("pegboard"), "builtin")
    backends = named(plugins, "provide_backends")
    spill = _spill(max_output, overflow)
    outcomes = ResultFactory(expose_errors, max_output, spill.keep if spill else None)
    engine = Engine(
        outcomes, repair=repair, max_threads=max_threads, backends=backends, accelerators=assembly.accelerators
    )
    dialects: dict[str, Dialect] = named(plugins, "provide_dialects")
    return ToolkitState(
        plugins,
        assembly,
        Collector(assembly, plugins, engine.backends),
        engine,
        middleware=[contribution.value for contribution in plugins.contributions("provide_middleware")],
        dialects=dialects,
        parallel=parallel,
        preset_override=preset_override,
        max_concurrency=checked_capacity(max_concurrency, "max_concurrency"),
        own_tools=(spill,) if spill else (),
        search_tool=cache(partial(_search_tool, assembly)),
        defer_threshold=_threshold(defer_threshold),
    )


def _search_tool(assembly: TypeTables) -> Tool:
    from pegboard._toolkit.meta_tools import search_tool

    return search_tool(assembly)


def _threshold(tools: int) -> int:
    if tools < 0:
        raise ValueError(f"defer_threshold takes a number of tools, 0 or more; got {tools}")
    return tools


def _spill(max_output: int | None, overflow: Overflow) -> Spill | None:
    if overflow not in ("truncate", "spill"):
        raise ValueError(f'overflow takes "truncate" or "spill", got {overflow!r}')
    if overflow != "spill":
        return None
    from pegboard._results.overflow import Spill

    return Spill(max_output or SPILL_PAGE)


def tables(plugins: Plugins) -> TypeTables:
    """Types, injectors and converters of the plugins, the core's own last."""
    assembly = TypeTables(TypeTable(), InjectorTable(), ConverterTable())
    for contribution in plugins.contributions("provide_types"):
        assembly.types.add(contribution.value, contribution.origin, _level(contribution))
    for contribution in plugins.contributions("provide_injectors"):
        assembly.injectors.add(contribution.value, contribution.origin, _level(contribution))
    for contribution in plugins.contributions("provide_converters"):
        assembly.converters.add(contribution.value, contribution.origin, _level(contribution))
    assembly.accelerators.use(contribution.value for contribution in plugins.contributions("provide_accelerators"))
    return assembly


def standard_assembly(toolkit_class: type) -> TypeTables:
    """What `Tool.from_function` reads with: the installed plugins, and no program's own handlers."""
    return _assembly_on(tuple(sys.path), toolkit_class)


@cache
def _assembly_on(path: tuple[str, ...], toolkit_class: type) -> TypeTables:
    from pegboard import builtin

    assembly = tables(Plugins.load(builtin=builtin.plugins()))
    # Such a tool is read anew by the toolkit that it is registered with, which then provides itself.
    for injector in _own_injectors(toolkit_class, MISSING):
        assembly.injectors.add(injector, Origin("pegboard"), "builtin")
    return assembly


def forget_standard_assembly() -> None:
    """Other plugins are installed now."""
    _assembly_on.cache_clear()


def tables_of(plugins: Plugins) -> tuple[Table, Table, Table]:
    """The types, injectors and converters that plugins bring, without the core's own."""
    hooks: tuple[HookName, ...] = ("provide_types", "provide_injectors", "provide_converters")
    types, injectors, converters = (
        [(item.value, item.origin) for item in plugins.contributions(hook) if not item.builtin] for hook in hooks
    )
    return types, injectors, converters


def _own_injectors(toolkit_class: type, toolkit: Any) -> list[Injector]:
    def session(invocation: Invocation) -> Any:
        return invocation.session

    return [Injector(Session, session), Injector(toolkit_class, lambda: toolkit)]


def _level(contribution: Contribution) -> Level:
    return "builtin" if contribution.builtin else "plugin"


def named(plugins: Plugins, hook: HookName) -> dict[str, Any]:
    """Contributions by their own names. Of two with one name the first by plugin counts, and the other plugin fails."""
    found: dict[str, Contribution] = {}
    for contribution in plugins.contributions(hook):
        name = contribution.value.name
        if name in found:
            sides = f"{found[name].origin} and {contribution.origin}"
            error = ConflictError(f"{name!r} is offered by {sides}; block one of them")
            plugins.fail(contribution.origin, str(error), error)
            continue
        found[name] = contribution
    return {name: contribution.value for name, contribution in sorted(found.items())}
