"""Assembling: asks every hook once and compiles the answers into the tables that tools and calls are made with."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from pegboard._admission import RepairMode
from pegboard._collect import Collector
from pegboard._conversion import ConverterTable
from pegboard._core import Core
from pegboard._definition import Assembly
from pegboard._engine import Engine
from pegboard._errors import ConflictError
from pegboard._extension import Dialect, Injector
from pegboard._injection import InjectorTable
from pegboard._invocation import Invocation
from pegboard._outcome import ExposeErrors, Outcomes
from pegboard._plugin_record import Contribution
from pegboard._plugins import Plugins
from pegboard._session import Session
from pegboard._spill import Spill
from pegboard._tool import Origin
from pegboard._types import Level, TypeTable

Overflow: TypeAlias = Literal["truncate", "spill"]

SPILL_PAGE: Final = 20_000
"""Characters of a page where only single tools bound their output."""

__all__ = ["Overflow", "assemble", "standard_assembly", "tables"]


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
) -> Core:
    """The core of a toolkit from its loaded plugins."""
    assembly = tables(plugins)
    for injector in _own_injectors(toolkit):
        assembly.injectors.add(injector, Origin("pegboard"), "builtin")
    backends = _by_name(plugins, plugins.contributions("provide_backends"))
    if overflow not in ("truncate", "spill"):
        raise ValueError(f'overflow takes "truncate" or "spill", got {overflow!r}')
    spill = Spill(max_output or SPILL_PAGE) if overflow == "spill" else None
    outcomes = Outcomes(expose_errors, max_output, spill.keep if spill else None)
    engine = Engine(outcomes, repair=repair, max_threads=max_threads, backends=backends)
    dialects: dict[str, Dialect] = _by_name(plugins, plugins.contributions("provide_dialects"))

    def foreign(source: Any) -> tuple[Any, ...] | None:
        answer = plugins.tools_from(source)
        return None if answer is None else answer.value

    return Core(
        plugins,
        assembly,
        Collector(assembly, backends.keys, foreign),
        engine,
        middleware=[contribution.value for contribution in plugins.contributions("provide_middleware")],
        dialects=dialects,
        parallel=parallel,
        preset_override=preset_override,
        own_tools=(spill,) if spill else (),
    )


def tables(plugins: Plugins) -> Assembly:
    """Types, injectors and converters of the plugins, the core's own last."""
    assembly = Assembly(TypeTable(), InjectorTable(), ConverterTable())
    for contribution in plugins.contributions("provide_types"):
        assembly.types.add(contribution.value, contribution.origin, _level(contribution))
    for contribution in plugins.contributions("provide_injectors"):
        assembly.injectors.add(contribution.value, contribution.origin, _level(contribution))
    for contribution in plugins.contributions("provide_converters"):
        assembly.converters.add(contribution.value, contribution.origin, _level(contribution))
    return assembly


def standard_assembly() -> Assembly:
    """What `Tool.from_function` reads with: the installed plugins, and no program's own handlers."""
    return _assembly_on(tuple(sys.path))


@cache
def _assembly_on(path: tuple[str, ...]) -> Assembly:
    from pegboard import builtin

    return tables(Plugins.load(builtin=builtin.plugins()))


def _own_injectors(toolkit: Any) -> list[Injector]:
    def session(invocation: Invocation) -> Any:
        return invocation.session

    return [Injector(Session, session), Injector(type(toolkit), lambda: toolkit)]


def _level(contribution: Contribution) -> Level:
    return "builtin" if contribution.builtin else "plugin"


def _by_name(plugins: Plugins, contributions: tuple[Contribution, ...]) -> dict[str, Any]:
    """Contributions by their own names. Two of one name: neither plugin wins silently, both are reported."""
    found: dict[str, Contribution] = {}
    for contribution in contributions:
        name = contribution.value.name
        if name in found:
            sides = f"{found[name].origin} and {contribution.origin}"
            error = ConflictError(f"{name!r} is offered by {sides}; block one of them")
            plugins.fail(contribution.origin, str(error), error)
            continue
        found[name] = contribution
    return {name: contribution.value for name, contribution in sorted(found.items())}
