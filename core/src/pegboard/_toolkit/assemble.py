"""Assembling: asks every hook once and compiles the answers into what tools and calls are made with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias, final

from pegboard import builtin
from pegboard._base.errors import ConflictError
from pegboard._base.names import check_name
from pegboard._injection.injectors import InjectorTable
from pegboard._model.tool import Origin, Tool, ToolOptions
from pegboard._plugins.hooks import HookName
from pegboard._plugins.manager import Contribution, Plugins
from pegboard._results.converters import ConverterTable
from pegboard._tools.collect import Collector
from pegboard._tools.signature import TypeTables
from pegboard._types.table import Level, TypeTable
from pegboard.extension import Dialect, Middleware, Offer

__all__ = ["Handler", "Services", "external_tool", "forget_standard_tables", "read_tool", "tables"]

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

    __slots__ = ("accelerators", "backends", "dialects", "handlers", "middleware", "own_backends", "plugins")

    def __init__(self, plugins: Plugins) -> None:
        plugins.ask_all()
        self.plugins = plugins
        self.backends = _named(plugins, "provide_backends")
        own = (each.value for each in plugins.contributions("provide_backends") if each.builtin)
        self.own_backends = {backend.name: backend for backend in own}
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


# Tools outside a toolkit -----------------------------------------------------------------------------------------


def read_tool(function: Callable[..., object], *, name: str | None = None, description: str | None = None) -> Tool:
    """`Tool.from_function`: a typed function, read with the types of the installed plugins."""
    terms = Offer(function, name=name, description=description)
    return Collector(_standard_tables(tuple(sys.path))).function(function, terms, Origin())


def external_tool(name: str, description: str = "", parameters: Mapping[str, object] | None = None) -> Tool:
    """`Tool.external`: a schema alone."""
    from pegboard._tools.definition import ToolDefinition
    from pegboard._tools.schema_tool import Written, read_schema

    source, standard = Written(description, parameters), _standard_tables(tuple(sys.path))
    return Tool(check_name(name), ToolDefinition(read_schema, source, name, ToolOptions(), standard))


@cache
def _standard_tables(path: tuple[str, ...]) -> TypeTables:
    plugins = Plugins.load(builtin=builtin.plugins())
    standard = tables(_handlers(plugins))
    standard.accelerators.use(_values(plugins, "provide_accelerators"))
    return standard


def forget_standard_tables() -> None:
    """Other plugins are installed now."""
    _standard_tables.cache_clear()
