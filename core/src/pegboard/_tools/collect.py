"""Collecting: how whatever is registered becomes the tools of one toolkit."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Container, Iterable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, final

from attrs import evolve

from pegboard._base.errors import PegboardError, RegistrationError, UnknownNameError, describe_exception, suggestion
from pegboard._base.names import check_name, legal_name
from pegboard._model.declare import declared_options
from pegboard._model.plugin_record import Contribution
from pegboard._model.tool import Origin, Tool, ToolOptions
from pegboard._tools.definition import ToolDefinition, definition_of
from pegboard._tools.signature import Reading, TypeTables, read_function, tool_name
from pegboard.extension import Offer

if TYPE_CHECKING:
    from pegboard._model.program import Toolset

Failed: TypeAlias = Callable[[str, BaseException | None], None]
"""Is told why a lazy tool could not be loaded."""

_NOTHING_SAID = ToolOptions()
_IMPORT_STRING = r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"
"""Where the core itself runs tools."""


class Sources(Protocol):
    """Who knows how an object becomes tools: the plugins."""

    @property
    def takes_sources(self) -> bool:
        """Whether anybody but the core itself wants to be asked."""
        ...

    def tools_from(self, source: Any, passed: Container[str] = ()) -> Contribution | None:
        """The first answer about an object, of plugins that are none of those `passed` over."""
        ...


def nobody_told(reason: str, error: BaseException | None) -> None:
    """A lazy tool of the program, or of the core: its own error says everything."""


@final
class Collected:
    """The tools of one registered object, their `names` before prefix and rename, and the toolsets that they form."""

    __slots__ = ("names", "tools", "toolsets")

    def __init__(self, tools: tuple[Tool, ...], names: tuple[str, ...], toolsets: tuple[Toolset, ...] = ()) -> None:
        self.tools = tools
        self.names = names
        self.toolsets = toolsets

    @property
    def by_name(self) -> dict[str, Tool]:
        """The tools by the names that their source uses."""
        return dict(zip(self.names, self.tools, strict=True))


@final
class Collector:
    """Turns objects into tools for one toolkit."""

    __slots__ = ("assembly", "backends", "sources")

    def __init__(
        self, assembly: TypeTables, sources: Sources | None = None, backends: Mapping[str, Any] | None = None
    ) -> None:
        self.assembly = assembly
        self.sources = sources
        self.backends = backends
        """The backends by name; None where nobody knows yet which there will be."""

    def collect(
        self,
        source: Any,
        terms: Offer,
        origin: Origin,
        pack: str | None = None,
        failed: Failed = nobody_told,
        *,
        lenient: bool = False,
    ) -> Collected:
        """The tools of `source` under the terms of a registration; `lenient` where the source may be away.

        Raises `RegistrationError` saying what it is and what to do, `UnknownNameError` for names in the terms that
        nothing has.
        """
        collection = _Collection(self, terms, origin, pack, failed)
        takes_all = terms.enable is None and not terms.disable and not terms.prefix and terms.rename is None
        if type(source) is FunctionType and takes_all and not (self.sources and self.sources.takes_sources):
            tool = collection.function(source)
            return Collected((tool,), (tool.name,))
        found = list(collection.tools(source, frozenset()))
        if terms.name is not None and len(found) > 1:
            kind = source if isinstance(source, type) else type(source)
            raise RegistrationError(f"{kind.__qualname__} has {len(found)} tools; name= fits only one")
        kept = _selected(found, terms, lenient)
        hung = {tool.entry: _renamed(tool, terms) for tool in kept}
        toolsets = [
            evolve(each, tools=tuple(hung[tool.entry] for tool in each.tools if tool.entry in hung))
            for each in collection.toolsets
        ]
        return Collected(tuple(hung.values()), tuple(map(_own_name, kept)), tuple(toolsets))

    def function(self, function: Any, terms: Offer, origin: Origin) -> Tool:
        """The tool that a function is, whoever else might know what to make of it."""
        return _Collection(self, terms, origin, None, nobody_told).function(function)

    def check_backend(self, tool: Tool) -> None:
        """Raises `RegistrationError` for a tool whose backend is not there, or cannot run it."""
        if self.backends is None:
            return
        wanted = tool.options.backend or "thread"
        if wanted not in self.backends:
            from pegboard._base.known_packs import known_pack

            pack = known_pack(wanted, "backends")
            known = suggestion(wanted, self.backends, noun="backends")
            remedy = f"To install it: pip install {pack.distribution}" if pack else known
            raise RegistrationError(f"tool {tool.name!r}: there is no backend {wanted!r}. {remedy}")
        check = getattr(self.backends[wanted], "check", None)
        if check is not None:
            check(tool)


@final
class _Collection:
    """One registration: what it says is said of all tools in it, however deep inside the source they are."""

    __slots__ = ("_collector", "_failed", "_origin", "_pack", "_terms", "toolsets")

    def __init__(self, collector: Collector, terms: Offer, origin: Origin, pack: str | None, failed: Failed) -> None:
        self._collector = collector
        self._terms = terms
        self._origin = origin
        self._pack = pack
        self._failed = failed
        self.toolsets: list[Toolset] = []

    def tools(self, source: Any, passed: frozenset[str]) -> Iterable[Tool]:
        """The tools of an object; no plugin is asked about what it answered itself."""
        from pegboard._model.program import Toolset

        if isinstance(source, Tool):
            return [self._rebound(source)]
        if isinstance(source, str):
            return [self._lazy(source)]
        if isinstance(source, Toolset):
            members = tuple(tool for each in source.tools for tool in self.tools(each, passed))
            self.toolsets.append(evolve(source, tools=members))
            return members
        sources = self._collector.sources
        answer = None if sources is None else sources.tools_from(source, passed)
        if answer is None:
            raise _not_a_tool(source)
        passed |= {answer.pack or ""}
        several = [(each,) if each is source else self.tools(each, passed) for each in answer.value]
        return [self.function(each) if each is source else each for found in several for each in found]

    def function(self, function: Any) -> Tool:
        """The tool that a plain function is: what is found for nearly everything that is registered."""
        declared = declared_options(function) or _NOTHING_SAID
        name, options = tool_name(function, self._terms.name or declared.name), self._options(declared)
        return self._made(ToolDefinition(read_function, function, name, options, self._collector.assembly), options)

    def _rebound(self, tool: Tool) -> Tool:
        name, options = check_name(self._terms.name or tool.name), self._options(tool.options)
        if not self._terms.group and tool.groups:
            options = evolve(options, group=tool.groups)
        return self._made(definition_of(tool).rebuilt(name, options, self._collector.assembly), options)

    def _lazy(self, target: str) -> Tool:
        if not re.fullmatch(_IMPORT_STRING, target):
            raise RegistrationError(f'{target!r} is no import string; write "package.module:function"')
        name = check_name(self._terms.name or target.rpartition(".")[2].rpartition(":")[2])
        source = ImportString(target, self._options, self._collector.check_backend, self._failed)
        definition = ToolDefinition(read_import, source, name, None, self._collector.assembly, lazy=True)
        return Tool(name, definition, None, self._terms.group, self._origin, pack=self._pack)

    def _made(self, definition: ToolDefinition, options: ToolOptions) -> Tool:
        groups = self._terms.group or (options.groups if options.group else ())
        tool = Tool(definition.name, definition, options, groups, self._origin, pack=self._pack)
        if options.backend is not None:
            self._collector.check_backend(tool)
        return tool

    def _options(self, declared: ToolOptions) -> ToolOptions:
        """What the tool declares, with what the registration says instead."""
        terms = self._terms
        if terms.description is not None:
            declared = evolve(declared, description=terms.description)
        return declared if terms.extended_model is None else evolve(declared, extended_model=terms.extended_model)


class ImportString(NamedTuple):
    """`"pkg.module:attribute"`: `adjust` gives the options of the registration, `check` refuses, `failed` is told."""

    target: str
    adjust: Callable[[ToolOptions], ToolOptions]
    check: Callable[[Tool], None]
    failed: Failed


def read_import(source: ImportString, name: str, options: ToolOptions | None, tables: TypeTables) -> Reading:
    """Read what stands behind an import string. Raises `PegboardError` saying what is wrong with the pack."""
    try:
        reading = _load(source, name, options, tables)
        known = ToolDefinition(lambda *_: reading, None, name, reading.options, tables)
        source.check(Tool(name, known, reading.options))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        reason = f"{source.target} could not be loaded: {describe_exception(error)}"
        source.failed(reason, error)
        raise PegboardError(reason) from error
    return reading


def _load(source: ImportString, name: str, options: ToolOptions | None, tables: TypeTables) -> Reading:
    module_name, _, path = source.target.partition(":")
    found: Any = importlib.import_module(module_name)
    for part in path.split("."):
        found = getattr(found, part)
    if isinstance(found, Tool):
        return definition_of(found).read(name, options or source.adjust(found.options), tables)
    if isinstance(found, type) or not callable(found):
        raise RegistrationError(f"{source.target} is {found!r}; an import string names one function or one Tool")
    return read_function(found, name, options or source.adjust(declared_options(found) or ToolOptions()), tables)


def check_renamed(terms: Offer, names: Iterable[str]) -> None:
    """Raises `UnknownNameError` for a tool to rename that is none of those collected, and was not left out."""
    if terms.enable is None and isinstance(terms.rename, Mapping):
        _check_known(terms.rename, [*names, *terms.disable], " to rename")


def _check_known(asked: Iterable[str], known: list[str], what_for: str = "") -> None:
    for name in asked:
        if name not in known:
            hint = suggestion(name, known, noun="tools")
            raise UnknownNameError(f"this registration has no tool {name!r}{what_for}. {hint}")


def _not_a_tool(source: Any) -> RegistrationError:
    kind = type(source).__qualname__
    return RegistrationError(
        f"an object of class {kind} has no tools: register a typed function, an object with @tool methods, a Tool, or "
        "an object with name, description, parameters and call(call); an object of another framework needs the pack "
        "that knows it"
    )


def _selected(tools: list[Tool], terms: Offer, lenient: bool) -> list[Tool]:
    """Enabled minus disabled, by the names that the source itself uses."""
    if not lenient:
        _check_known((*(terms.enable or ()), *terms.disable), list(map(_own_name, tools)))
    enabled = tools if terms.enable is None else [tool for tool in tools if _own_name(tool) in terms.enable]
    return [tool for tool in enabled if _own_name(tool) not in terms.disable]


def _renamed(tool: Tool, terms: Offer) -> Tool:
    rename, own, name = terms.rename, _own_name(tool), tool.name
    if isinstance(rename, Mapping):
        name = rename.get(own, name)
    elif rename is not None:
        name = rename(own)
    name = f"{terms.prefix}{name}"
    if definition_of(tool).source_name is not None:
        # Where others chose the name, it must not depend on its length whether their tools can be used.
        name = legal_name(name)
    return tool if name == tool.name else tool.evolve(name=check_name(name))


def _own_name(tool: Tool) -> str:
    """The name that the tool's source knows it by."""
    return definition_of(tool).source_name or tool.name
