"""Collecting: how whatever is registered becomes tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, final

from attrs import evolve

from pegboard._base.errors import RegistrationError, UnknownNameError, suggestion
from pegboard._base.names import check_name
from pegboard._model.declare import declared_options, declared_toolset
from pegboard._model.tool import Origin, Tool, ToolOptions
from pegboard._tools.definition import ToolDefinition, definition_of
from pegboard._tools.signature import TypeTables, read_function, tool_name
from pegboard.extension import ToolSource

if TYPE_CHECKING:
    from pegboard._model.toolset import Toolset

__all__ = ["Collected", "Collector", "Registration"]

_NOTHING_SAID = ToolOptions()
_HERE = ("inline", "thread")
_IMPORT_STRING = r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"


@final
class Registration:
    """The options of `register(...)`; empty for what plugins contribute."""

    __slots__ = (
        "description",
        "disable",
        "enable",
        "extended_model",
        "groups",
        "lenient",
        "name",
        "prefix",
        "rename",
        "takes_all",
    )

    def __init__(
        self,
        name: str | None = None,
        description: str | None = None,
        groups: tuple[str, ...] = (),
        extended_model: Any = None,
        enable: tuple[str, ...] | None = None,
        disable: tuple[str, ...] = (),
        prefix: str = "",
        rename: Mapping[str, str] | Callable[[str], str] | None = None,
        lenient: bool = False,
    ) -> None:
        self.name = name
        self.description = description
        self.groups = groups
        self.extended_model = extended_model
        self.enable = enable
        self.disable = disable
        self.prefix = prefix
        self.rename = rename
        self.lenient = lenient
        """Whether unknown names in `enable` and `disable` are nothing to speak of: the source may be away."""
        self.takes_all = enable is None and not disable and not prefix and rename is None
        """Whether every tool hangs under its own name."""

    def check_renamed(self, names: Iterable[str]) -> None:
        """Raises `UnknownNameError` for a tool to rename that is none of those collected, and was not left out."""
        if self.enable is None and isinstance(self.rename, Mapping):
            known = [*names, *self.disable]
            for name in self.rename:
                if name not in known:
                    hint = suggestion(name, known, noun="tools")
                    raise UnknownNameError(f"this registration has no tool {name!r} to rename. {hint}")

    def options(self, declared: ToolOptions) -> ToolOptions:
        """What the tool declares, with what the registration says instead."""
        changes: dict[str, Any] = {}
        if self.description is not None:
            changes["description"] = self.description
        if self.extended_model is not None:
            changes["extended_model"] = self.extended_model
        return evolve(declared, **changes) if changes else declared

    def leniently(self) -> Registration:
        """The same for a source that may be away: unknown names in `enable` and `disable` are nothing to speak of."""
        lenient = copy(self)
        lenient.lenient = True
        return lenient


@final
class Collected:
    """The tools of one registered object, their `names` before prefix and rename, and the toolset that they form."""

    __slots__ = ("names", "tools", "toolset")

    def __init__(self, tools: tuple[Tool, ...], toolset: Toolset | None = None, names: tuple[str, ...] = ()) -> None:
        self.tools = tools
        self.toolset = toolset
        self.names = names


@final
class Collector:
    """Turns objects into tools for one toolkit."""

    __slots__ = ("assembly", "backends", "foreign")

    def __init__(
        self,
        assembly: TypeTables,
        backends: Mapping[str, Any] | None,
        foreign: Callable[[Any], Iterable[Any] | None],
    ) -> None:
        self.assembly = assembly
        self.backends = backends
        """By name; None outside of a toolkit, where nothing is run."""
        self.foreign = foreign
        """Asks the plugins' `tools_from` hooks about an object that the core does not know."""

    def collect(
        self, source: Any, registration: Registration, origin: Origin, pack: str | None, failed: Callable[..., None]
    ) -> Collected:
        """The tools of `source`. Raises `RegistrationError` saying what it is and what to do."""
        if type(source) is FunctionType and registration.takes_all:
            tool = self.function(source, registration, origin, pack)
            return Collected((tool,), names=(tool.name,))
        found = self._collect(source, registration, origin, pack, failed)
        kept = _selected(found.tools, registration)
        tools = tuple(_renamed(tool, registration) for tool in kept)
        toolset = None if found.toolset is None else evolve(found.toolset, tools=tools)
        return Collected(tools, toolset, tuple(map(_own_name, kept)))

    def _collect(
        self, source: Any, registration: Registration, origin: Origin, pack: str | None, failed: Callable[..., None]
    ) -> Collected:
        one = partial(self._made, registration, origin, pack)
        if isinstance(source, str):
            return Collected((self._lazy(source, registration, origin, pack, failed),))
        if isinstance(source, Tool):
            return Collected((self._rebound(source, registration, one),))
        if isinstance(source, type):
            source = _instantiated(source)
        methods = _tool_methods(source)
        if methods:
            return self._toolset(source, methods, registration, one)
        if _is_handwritten(source):
            return Collected((self._handwritten(source, registration, one),))
        if callable(source):
            return Collected((self._function(source, registration, one),))
        if isinstance(source, ToolSource):
            collect = partial(self._collect, registration=registration, origin=origin, pack=pack, failed=failed)
            return Collected(tuple(self._from_source(list(source.tools()), registration, one, collect)))
        several = self.foreign(source)
        if several is None:
            raise _not_a_tool(source)
        tools = [tool for each in several for tool in self._collect(each, registration, origin, pack, failed).tools]
        return Collected(tuple(tools))

    def _from_source(
        self,
        several: list[Any],
        registration: Registration,
        one: Callable[..., Tool],
        collect: Callable[[Any], Collected],
    ) -> Iterator[Tool]:
        """The tools of a source: those by hand may have any name there, and get a legal one here."""
        from pegboard._base.names import legal_names

        names = legal_names(each.name for each in several if _is_handwritten(each))
        for each in several:
            if _is_handwritten(each):
                yield self._handwritten(each, registration, one, names[each.name])
            else:
                yield from collect(each).tools

    def _made(
        self,
        registration: Registration,
        origin: Origin,
        pack: str | None,
        definition: ToolDefinition,
        options: ToolOptions,
    ) -> Tool:
        groups = registration.groups or options.groups
        tool = Tool(definition.name, definition, options, groups, origin, pack=pack)
        self._check_backend(tool)
        return tool

    def function(self, function: Any, registration: Registration, origin: Origin, pack: str | None = None) -> Tool:
        """The tool that a plain function is: what `collect` finds for nearly everything that is registered."""
        return self._function(function, registration, partial(self._made, registration, origin, pack))

    def _function(self, function: Any, registration: Registration, one: Callable[..., Tool]) -> Tool:
        declared = declared_options(function) or _NOTHING_SAID
        name = tool_name(function, registration.name or declared.name)
        options = registration.options(declared)
        return one(ToolDefinition(read_function, function, name, options, self.assembly), options)

    def _rebound(self, tool: Tool, registration: Registration, one: Callable[..., Tool]) -> Tool:
        name = check_name(registration.name or tool.name)
        options = registration.options(tool.options)
        if not registration.groups and tool.groups:
            options = evolve(options, group=tool.groups)
        return one(definition_of(tool).rebuilt(name, options, self.assembly), options)

    def _handwritten(
        self, source: Any, registration: Registration, one: Callable[..., Tool], name: str | None = None
    ) -> Tool:
        from pegboard._tools.schema_tool import Written, read_schema

        foreign, name = name is not None, check_name(registration.name or name or source.name)

        def says(hint: str) -> bool | None:
            said = getattr(source, hint, None)
            return said if isinstance(said, bool) else None

        declared = ToolOptions(
            tags=tuple(getattr(source, "tags", ())),
            read_only=says("read_only"),
            destructive=says("destructive"),
            idempotent=says("idempotent"),
            open_world=says("open_world"),
        )
        options = registration.options(declared)
        returns = getattr(source, "returns", None)
        written = Written(
            source.description, source.parameters, source.call, returns if isinstance(returns, Mapping) else None
        )
        source_name = source.name if foreign else None
        return one(ToolDefinition(read_schema, written, name, options, self.assembly, source_name=source_name), options)

    def _toolset(
        self, source: Any, methods: dict[str, ToolOptions], registration: Registration, one: Callable[..., Tool]
    ) -> Collected:
        declared = declared_toolset(type(source))
        prefix = declared.prefix if declared else ""
        if registration.name is not None and len(methods) > 1:
            raise RegistrationError(f"{type(source).__qualname__} has {len(methods)} tools; name= fits only one")
        tools = []
        for attribute, said in methods.items():
            method = getattr(source, attribute)
            name = check_name(registration.name or f"{prefix}{said.name or attribute}")
            options = registration.options(said)
            tools.append(one(ToolDefinition(read_function, method, name, options, self.assembly), options))
        label = (declared.name if declared else None) or type(source).__name__
        description = (declared.description if declared else None) or _first_line(type(source).__doc__)
        from pegboard._model.toolset import Toolset

        return Collected(tuple(tools), Toolset(label, description, tuple(tools)))

    def _lazy(
        self, target: str, registration: Registration, origin: Origin, pack: str | None, failed: Callable[..., None]
    ) -> Tool:
        from pegboard._tools.lazy import ImportString, read_import

        if not re.fullmatch(_IMPORT_STRING, target):
            raise RegistrationError(f'{target!r} is no import string; write "package.module:function"')
        name = check_name(registration.name or target.rpartition(".")[2].rpartition(":")[2])
        source = ImportString(target, registration.options, self._check_backend, failed)
        definition = ToolDefinition(read_import, source, name, None, self.assembly, lazy=True)
        return Tool(name, definition, None, registration.groups, origin, pack=pack)

    def _check_backend(self, tool: Tool) -> None:
        wanted = tool.options.backend
        if wanted is None or wanted in _HERE:
            return
        if self.backends is None:
            return
        if wanted not in self.backends:
            from pegboard._base.known_packs import known_pack

            pack = known_pack(wanted, "backends")
            known = suggestion(wanted, (*_HERE, *self.backends), noun="backends")
            remedy = f"To install it: pip install {pack.distribution}" if pack else known
            raise RegistrationError(f"tool {tool.name!r}: there is no backend {wanted!r}. {remedy}")
        check = getattr(self.backends[wanted], "check", None)
        if check is not None:
            check(tool)


def _is_handwritten(source: Any) -> bool:
    """Whether an object has what a tool by hand needs: `name`, `description`, `parameters` and `call(call)`."""
    return (
        isinstance(getattr(source, "name", None), str)
        and isinstance(getattr(source, "description", None), str)
        and isinstance(getattr(source, "parameters", None), Mapping)
        and callable(getattr(source, "call", None))
    )


def _tool_methods(source: Any) -> dict[str, ToolOptions]:
    """The names and options of `@tool` methods, in the order of their first definition, inherited ones included.

    Classes are read without touching the instance: a property must not run because somebody looks for tools.
    """
    import inspect

    if inspect.isroutine(source):
        return {}
    methods: dict[str, ToolOptions] = {}
    for cls in reversed(type(source).__mro__):
        for name in vars(cls):
            options = declared_options(inspect.getattr_static(type(source), name, None))
            if options is not None:
                methods.setdefault(name, options)
    return methods


def _instantiated(cls: type) -> Any:
    try:
        return cls()
    except TypeError as error:
        raise RegistrationError(
            f"{cls.__qualname__} cannot be made without arguments ({error}); register an instance: "
            f"register({cls.__name__}(...))"
        ) from error


def _not_a_tool(source: Any) -> RegistrationError:
    kind = type(source).__qualname__
    return RegistrationError(
        f"an object of class {kind} has no tools: register a typed function, an object with @tool methods, a Tool, or "
        "an object with name, description, parameters and call(call); an object of another framework needs the pack "
        "that knows it"
    )


def _selected(tools: tuple[Tool, ...], registration: Registration) -> tuple[Tool, ...]:
    """Enabled minus disabled, by the names that the source itself uses."""
    if registration.enable is None and not registration.disable:
        return tools
    known = list(map(_own_name, tools))
    for name in (*(registration.enable or ()), *registration.disable):
        if name not in known and not registration.lenient:
            raise UnknownNameError(f"this registration has no tool {name!r}. {suggestion(name, known, noun='tools')}")
    return tuple(
        tool
        for tool in tools
        if (registration.enable is None or _own_name(tool) in registration.enable)
        and _own_name(tool) not in registration.disable
    )


def _renamed(tool: Tool, registration: Registration) -> Tool:
    rename, own, name = registration.rename, _own_name(tool), tool.name
    if isinstance(rename, Mapping):
        name = rename.get(own, name)
    elif rename is not None:
        name = rename(own)
    name = f"{registration.prefix}{name}"
    if _is_foreign(tool):
        from pegboard._base.names import legal_name

        # Where others chose the name, it must not depend on its length whether their tools can be used.
        name = legal_name(name)
    return tool if name == tool.name else tool.evolve(name=check_name(name))


def _own_name(tool: Tool) -> str:
    """The name that the tool's source knows it by."""
    return tool.definition.source_name or tool.name


def _is_foreign(tool: Tool) -> bool:
    return tool.definition.source_name is not None


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0]
