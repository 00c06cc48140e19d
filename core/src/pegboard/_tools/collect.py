"""Collecting: how whatever is registered becomes the tools of one toolkit."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from attrs import evolve

from pegboard._base.effects import pass_interrupt
from pegboard._base.errors import PegboardError, RegistrationError, UnknownNameError, describe_exception, suggestion
from pegboard._base.names import check_name, legal_name, renamed
from pegboard._model.plugin_record import Contribution
from pegboard._model.tool import Origin, Tool, ToolOptions, declared_options
from pegboard._tools.definition import ToolDefinition, definition_of
from pegboard._tools.signature import Reading, TypeTables, read_function, tool_name
from pegboard.extension import Offer

if TYPE_CHECKING:
    from pegboard._model.program import Toolset

# Is told which tool of a pack cannot be used, and why; of the program, or of the core, its own error says everything.
Failed: TypeAlias = Callable[[str, BaseException], None]

_NOTHING_SAID = ToolOptions()
_IMPORT_STRING = r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"


class Sources(Protocol):
    """Who knows how an object becomes tools: the plugins."""

    asks: bool  # whether a pack wants to be asked: what the core's own plugins would answer about functions is known

    def tools_from(self, source: Any, passed: Collection[str] = ()) -> Contribution | None:
        """The first answer about an object, of plugins that are none of those `passed` over."""


class Collected(NamedTuple):
    """The tools of one registered object, and the toolsets that they form."""

    tools: tuple[Tool, ...]
    toolsets: tuple[Toolset, ...]


class Collector(NamedTuple):
    """Turns objects into tools for one toolkit; `backends` is None where it is not known yet which there will be."""

    assembly: TypeTables
    sources: Sources | None = None
    backends: Mapping[str, Any] | None = None

    def collect(
        self,
        source: Any,
        terms: Offer,
        origin: Origin,
        pack: str | None = None,
        failed: Failed | None = None,
        refused: dict[str, BaseException] | None = None,
        *,
        lenient: bool = False,
    ) -> Collected:
        """The tools of `source` under the terms of a registration; `lenient` where the source may be away.

        What cannot be a tool goes to `refused`, if that is given, with what it raised, and costs no more than itself.
        Raises `RegistrationError` saying what it is and what to do, `UnknownNameError` for names in the terms that
        nothing has.
        """
        collector = self._replace(assembly=self.assembly.extended(terms.types)) if terms.types else self
        collection = _Collection(collector, terms, origin, pack, failed, [], refused)
        found = list(collection.tools(source, frozenset()))
        if terms.name is not None and len(found) > 1:
            kind = source if isinstance(source, type) else type(source)
            raise RegistrationError(f"{kind.__qualname__} has {len(found)} tools; name= fits only one")
        if terms.enable is not None or terms.disable or terms.prefix or terms.rename is not None:
            found = [_renamed(tool, terms) for tool in _selected(found, terms, lenient or bool(refused))]
        # The board takes a toolset's tools as they are registered, by their entries.
        return Collected(tuple(found), tuple(collection.toolsets))

    def function(self, function: Any, terms: Offer, origin: Origin) -> Tool:
        """The tool that a function is, whatever a pack might make of it."""
        return _Collection(self, terms, origin, None, None, [], None).function(function)

    def check_backend(self, tool: Tool) -> None:
        """Raises `RegistrationError` for a tool whose backend is not there, or cannot run it."""
        if self.backends is None:
            return
        wanted = tool.options.backend or "thread"
        if wanted not in self.backends:
            from pegboard._base.known_packs import how_to_get, known_pack

            remedy = how_to_get(known_pack(wanted, "backends")) or suggestion(wanted, self.backends, noun="backends")
            raise RegistrationError(f"tool {tool.name!r}: there is no backend {wanted!r}. {remedy}")
        check = getattr(self.backends[wanted], "check", None)
        if check is not None:
            check(tool)

    def check_secrets(self, tool: Tool, names: Iterable[str]) -> None:
        """Raises `RegistrationError` for a secret preset that must not go where the tool's backend would take it."""
        backend = (self.backends or {}).get(tool.options.backend or "thread")
        check = getattr(backend, "check_secret", None)
        if check is not None:
            for name in names:
                check(tool, name)


class _Collection(NamedTuple):
    """One registration: what it says is said of all tools in it, however deep inside the source they are."""

    collector: Collector
    terms: Offer
    origin: Origin
    pack: str | None
    failed: Failed | None
    toolsets: list[Toolset]
    refused: dict[str, BaseException] | None

    def tools(self, source: Any, passed: frozenset[str]) -> Iterable[Tool]:
        """The tools of an object; no plugin is asked about what it answered itself."""
        sources = self.collector.sources
        if type(source) is FunctionType:  # nearly everything that is registered
            answer = sources.tools_from(source, passed) if sources is not None and sources.asks else None
            if answer is None:
                return [self.function(source)] if self.refused is None else self.one(self.function, source)
            return self._answered(source, answer, passed)
        from pegboard._model.program import Toolset

        if isinstance(source, Tool):
            return self.one(self._rebound, source)
        if isinstance(source, str):
            return [self._lazy(source)]
        if isinstance(source, Toolset):
            members = tuple(tool for each in source.tools for tool in self.tools(each, passed))
            self.toolsets.append(evolve(source, tools=members))
            return members
        answer = None if sources is None else sources.tools_from(source, passed)
        if answer is None:
            raise RegistrationError(
                f"an object of class {type(source).__qualname__} has no tools: register a typed function, an object "
                "with @tool methods, a Tool, or an object with name, description, parameters and call(call); an object "
                "of another framework needs the pack that knows it"
            )
        return self._answered(source, answer, passed)

    def _answered(self, source: Any, answer: Contribution, passed: frozenset[str]) -> list[Tool]:
        passed |= {answer.pack or ""}
        found = (self.one(self.function, it) if it is source else self.tools(it, passed) for it in answer.value)
        return [tool for several in found for tool in several]

    def one(self, read: Callable[[Any], Tool], source: Any) -> list[Tool]:
        """The tool that a source is; none where it is a pack's, and cannot be one."""
        try:
            return [read(source)]
        except BaseException as error:
            pass_interrupt(error)
            if self.refused is None:
                raise
            said = source if isinstance(source, Tool) else declared_options(source)
            name = self.terms.name or (said and said.name) or getattr(source, "__name__", type(source).__name__)
            self.refused[str(name)] = error
            return []

    def function(self, function: Any) -> Tool:
        """The tool that a plain function is: what is found for nearly everything that is registered."""
        declared = declared_options(function) or _NOTHING_SAID
        given, options = self.terms.name, self._options(declared)
        name = tool_name(function, declared.name if given is None else given)
        return self._made(ToolDefinition(read_function, function, name, options, self.collector.assembly), options)

    def _named(self, own: str | None) -> str | None:
        return own if self.terms.name is None else self.terms.name

    def _rebound(self, tool: Tool) -> Tool:
        name, options = check_name(self._named(tool.name)), self._options(tool.options)
        if not self.terms.group and tool.groups:
            options = evolve(options, group=tool.groups)
        made = self._made(definition_of(tool).within(name, options, self.collector.assembly), options)
        return made.evolve(source_name=tool.source_name, face=tool.face)

    def _lazy(self, target: str) -> Tool:
        if not re.fullmatch(_IMPORT_STRING, target):
            raise RegistrationError(f'{target!r} is no import string; write "package.module:function"')
        name = check_name(self._named(target.rpartition(".")[2].rpartition(":")[2]))
        definition = ToolDefinition(self._imported, target, name, None, self.collector.assembly, lazy=True)
        return Tool(name, definition, None, self.terms.group, self.origin, pack=self.pack)

    def _imported(self, target: str, name: str, options: ToolOptions | None, tables: TypeTables) -> Reading:
        """Read what stands behind an import string. Raises `PegboardError` saying what is wrong with the pack."""
        try:
            reading = self._load(target, name, options, tables)
            read = ToolDefinition(lambda *_: reading, None, name, reading.options, tables)
            self.collector.check_backend(Tool(name, read, reading.options))
        except BaseException as error:
            pass_interrupt(error)
            if self.failed is not None:
                self.failed(name, error)
            raise PegboardError(f"{target} could not be loaded: {describe_exception(error)}") from error
        return reading

    def _load(self, target: str, name: str, options: ToolOptions | None, tables: TypeTables) -> Reading:
        module_name, _, path = target.partition(":")
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
        if isinstance(found, Tool):
            return definition_of(found).read(name, options or self._options(found.options), tables)
        if isinstance(found, type) or not callable(found):
            raise RegistrationError(f"{target} is {found!r}; an import string names one function or one Tool")
        return read_function(found, name, options or self._options(declared_options(found) or _NOTHING_SAID), tables)

    def _made(self, definition: ToolDefinition, options: ToolOptions) -> Tool:
        groups = self.terms.group or (options.groups if options.group else ())
        tool = Tool(definition.name, definition, options, groups, self.origin, pack=self.pack)
        if options.backend is not None:
            self.collector.check_backend(tool)
        return tool

    def _options(self, declared: ToolOptions) -> ToolOptions:
        """What the tool declares, with what the registration says instead."""
        terms = self.terms
        if terms.description is None and terms.extended_model is None and not terms.defer:
            return declared
        said = {"description": terms.description, "extended_model": terms.extended_model, "defer": terms.defer or None}
        return evolve(declared, **{name: value for name, value in said.items() if value is not None})


def check_renamed(terms: Offer, names: Iterable[str]) -> None:
    """Raises `UnknownNameError` for a tool to rename that is none of those collected, and was not left out."""
    if terms.enable is None and isinstance(terms.rename, Mapping):
        _check_known(terms.rename, [*names, *terms.disable], " to rename")


def _check_known(asked: Iterable[str], known: list[str], what_for: str = "") -> None:
    for name in asked:
        if name not in known:
            hint = suggestion(name, known, noun="tools")
            raise UnknownNameError(f"this registration has no tool {name!r}{what_for}. {hint}")


def _selected(tools: list[Tool], terms: Offer, lenient: bool) -> list[Tool]:
    """Enabled minus disabled, by the names that the source itself uses."""
    if not lenient:
        _check_known((*(terms.enable or ()), *terms.disable), list(map(own_name, tools)))
    enabled = tools if terms.enable is None else [tool for tool in tools if own_name(tool) in terms.enable]
    return [tool for tool in enabled if own_name(tool) not in terms.disable]


def _renamed(tool: Tool, terms: Offer) -> Tool:
    name = renamed(tool.name, terms.rename, terms.prefix, own_name(tool))
    if tool.source_name is not None:
        # Where others chose the name, it must not depend on its length whether their tools can be used.
        name = legal_name(name)
    return tool if name == tool.name else tool.evolve(name=check_name(name))


def own_name(tool: Tool) -> str:
    """The name that the tool's source knows it by, before prefix and rename."""
    return tool.source_name or definition_of(tool).name
