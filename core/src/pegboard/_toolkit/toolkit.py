"""The toolkit: assembles whatever is installed, and hands everything else to those who know."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, final, overload

from pegboard import builtin
from pegboard._arguments.validate import RepairMode
from pegboard._base.errors import PegboardError, RegistrationError, spelled_out
from pegboard._base.names import check_name
from pegboard._board.board import Groups, OnConflict
from pegboard._board.overlay import META_TOOL, GroupFace, Overlay
from pegboard._injection.context import Scope
from pegboard._model.plugin_record import PluginRecord
from pegboard._model.policy import ExecutionPolicy
from pegboard._model.tool import F, Origin, Tool, ToolOptions, ToolTerms, marking
from pegboard._plugins.manager import Plugins
from pegboard._results.factory import ExposeErrors, Overflow, ResultFactory
from pegboard._toolkit.catalog import is_meta_tool
from pegboard._toolkit.live_sources import SourceRecord, leave
from pegboard._toolkit.register import assemble, change, extend, register
from pegboard._toolkit.session import Session
from pegboard._toolkit.state import DEFER_THRESHOLD, ToolkitOptions, ToolkitState, standard_tables
from pegboard._tools.collect import Collector
from pegboard._types.table import TypeTable
from pegboard.extension import Converter, Injector, LiveSource, Offer, TypeHandler

if TYPE_CHECKING:
    from pegboard._base.names import Names
    from pegboard._model.program import Manager, PluginFailure


@final
class Toolkit(Session):
    """The tools of one program: those of the installed packs and those that it registers.

    `Toolkit()` assembles whatever is installed; `Toolkit(plugins=())` is empty. `plugins` and `block` select by
    entry-point or distribution name, `settings` and `config` configure packs, `on_plugin_error="raise"` turns a broken
    plugin into a `PluginError`. `context`, `policy`, `approver` and `agent` are those of the
    root session. `repair` says how far mistakes of the model are repaired, `expose_errors` how much of an exception it
    sees. Text of more than `max_output` characters is cut, or with `overflow="spill"` kept for the tool `read_output`.
    At most `max_concurrency` calls run at once, those that tools make themselves not counted; the others wait. Where
    more than `defer_threshold` tools with `@tool(defer=True)` are offered, `search_tools` finds them instead of a list.
    A context manager, sync and async, that closes its threads and its loop.

    Raises `PluginError` and `SettingsError` as said above, ValueError for an option that does not exist.
    """

    def __init__(
        self,
        *,
        plugins: str | Iterable[Any] = "installed",
        block: str | Iterable[str] = (),
        on_plugin_error: Literal["collect", "raise"] = "collect",
        settings: Mapping[str, Any] | None = None,
        config: str | os.PathLike[str] | None = None,
        parallel: bool = True,
        allow_tool_deletion: bool = True,
        policy: ExecutionPolicy | None = None,
        context: Any = (),
        agent: Any = None,
        approver: Callable[..., Any] | None = None,
        preset_override: bool = True,
        repair: RepairMode = "safe",
        expose_errors: ExposeErrors = "message",
        max_output: int | None = None,
        overflow: Overflow = "truncate",
        max_threads: int = 64,
        max_concurrency: int | None = None,
        defer_threshold: int = DEFER_THRESHOLD,
    ) -> None:
        loaded = Plugins.load(
            selection=plugins,
            block=block,
            on_error=on_plugin_error,
            settings=settings,
            config=config,
            builtin=builtin.plugins(),
        )
        options = ToolkitOptions(
            parallel, allow_tool_deletion, preset_override, repair, max_threads, max_concurrency, defer_threshold
        )
        overlay = Overlay(Groups(), None, policy, approver)
        core = ToolkitState(loaded, self, ResultFactory(expose_errors, max_output, overflow), options, overlay)
        scope = Scope(context, wider=None if agent is None else Scope((agent,), level="agent"))
        core.assembly.injectors.in_context = scope.classes()
        super().__init__(core, overlay, scope, agent)
        assemble(core)
        loaded.check_required()

    # Registering -----------------------------------------------------------------------------------------------

    def register(
        self,
        *sources: Any,
        name: str | None = None,
        description: str | None = None,
        group: str | Iterable[str] | None = None,
        presets: Mapping[str, Any] | None = None,
        extended_model: Any = None,
        enable: Iterable[str] | None = None,
        disable: Iterable[str] = (),
        prefix: str = "",
        rename: Mapping[str, str] | Callable[[str], str] | None = None,
        defer: bool = False,
        types: Mapping[Any, TypeHandler] | None = None,
        on_conflict: OnConflict = "raise",
    ) -> list[Tool]:
        """Register tools, all or none: typed functions, objects or classes with `@tool` methods, `Tool`s, tool sources.

        `presets` are `{tool: {parameter: value}}`, or `{parameter: value}` where there is one tool. With `defer` they
        are found by `search_tools` where there are many. `types` map annotations for these tools alone:
        `{annotation: TypeHandler}`. Raises `RegistrationError` naming the parameter, the annotation and the remedy,
        `ConflictError` for a name that is taken, `UnknownNameError` for an unknown group.
        """
        if not sources:
            raise RegistrationError("register() needs something to register: a function, a Tool, an object with tools")
        if on_conflict == "replace":
            self._check_deletion('on_conflict="replace"')
        groups = () if group is None else self._core.groups.check(group)
        said: dict[str, Any] = {"name": name, "description": description, "extended_model": extended_model}
        said["types"] = types or {}
        offer = Offer(sources, groups, presets or {}, enable, disable, prefix, rename, defer=defer, **said)
        if name is not None and len(sources) > 1:
            raise RegistrationError(f"name= fits one source, got {len(sources)}")
        return [self.seen(tool) for tool in register(self._core, offer, on_conflict)]

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, *, presets: Mapping[str, Any] | None = None, **options: Unpack[ToolTerms]) -> Callable[[F], F]: ...

    # mypy takes no unpacked TypedDict beside a keyword; the callers' types are those above.
    def tool(self, function: Any = None, /, *, presets: Any = None, **options: Any) -> Any:  # type: ignore[misc]
        """Declare, register and give the function back: `@toolkit.tool`, or with the options of `tool` and `presets`.

        `register` gives a list of tools instead, which is no use as a decorator. Raises as `register` does.
        """
        group, mark = options.pop("group", None), marking(sys._getframe(1), None, options)

        def declare(target: Any) -> Any:
            self.register(mark(target), group=group, presets=presets)
            return target

        return declare if function is None else declare(function)

    def unregister(self, *names: str | LiveSource) -> None:
        """Remove tools, all or none; a live source, such as an MCP server, goes with all its tools.

        Raises `UnknownNameError`, and `PegboardError` where deletion is refused.
        """
        self._check_deletion("unregister")
        gone = [each for each in self._core.live if any(each.source is name for name in names)]
        theirs = {id(each.source): each.record.tools for each in gone}
        tools = [tool for name in names for tool in theirs.get(id(name), (str(name),))]
        # A file that cannot be written must leave the tools where they are: permissions go first.
        self._core.overlay.forget_allowed(self._core.registry.resolve(tools))
        leave(self._core, gone)
        self._core.registry.remove(tools)

    def register_meta_tool(self) -> Tool:
        """Let the model switch groups itself: register `reset_equipped_tools`. A second time changes nothing.

        It sets which of the groups that the model manages are active, in the session that calls it. Raises
        `ConflictError` where the program has another tool of that name.
        """
        core = self._core
        registered = core.registry.find(META_TOOL)
        if registered is None or not is_meta_tool(registered):
            own = core.own_tool(META_TOOL)
            core.registry.add([own.evolve(face=GroupFace(core.overlay), origin=Origin())], (), "raise")
        return self[META_TOOL]

    def register_type(self, handler: TypeHandler) -> None:
        """Map a type for this toolkit: the program's handlers win over plugins'. Registered tools are read anew.

        Raises `RegistrationError`, and changes nothing, where one of them cannot be read then.
        """
        extend(self._core, "types", handler)

    @property
    def types(self) -> TypeTable:
        """The type table: `types.plan(annotation)`, and `types.handler_for(annotation)` for who maps it."""
        return self._core.assembly.types

    def register_converter(self, converter: Converter) -> None:
        """Convert results of a type for this toolkit."""
        extend(self._core, "converters", converter)

    def register_injector(self, injector: Injector) -> None:
        """Provide parameters of a type. Registered tools are read anew; raises as `register_type` does."""
        extend(self._core, "injectors", injector)

    def injectable(self, cls: type) -> type:
        """Declare that values of this class come from the context, as `@injectable` does for all toolkits.

        Registered tools are read anew; raises as `register_type` does, and for one that has the class inside another
        type.
        """
        change(self._core, lambda: self._core.assembly.injectors.declare_context_only(cls))
        return cls

    # Groups ----------------------------------------------------------------------------------------------------

    def create_group(
        self,
        name: str,
        description: str = "",
        *,
        active: bool = True,
        managed_by: Manager = "model",
        instructions: str | None = None,
        max_concurrency: int | None = None,
    ) -> None:
        """Create a tool group; at most `max_concurrency` calls of its tools run at once.

        Raises `RegistrationError` for a name that is taken, ValueError for a limit below 1.
        """
        from pegboard._model.program import Group

        self._core.groups.create(Group(name, description, active, managed_by, instructions, max_concurrency))
        self._core.registry.touched()

    def remove_groups(self, names: Names) -> None:
        """Remove groups, and the tools that belong to no other group. All or none."""
        self._check_deletion("remove_groups")
        gone = self._core.groups.check(names)
        self._core.overlay.forget_allowed(self._core.registry.only_in(gone))
        self._core.registry.leave_groups(gone)
        self._core.groups.remove(gone)
        self._core.registry.touched()

    def _check_deletion(self, operation: str) -> None:
        if not self._core.options.allow_tool_deletion:
            raise PegboardError(f"{operation} would delete tools, which is refused here (allow_tool_deletion=False)")

    @property
    def plugins(self) -> list[PluginRecord]:
        """Every plugin that was found and what became of it."""
        return list(self._core.plugins.records)

    @property
    def plugin_errors(self) -> list[PluginFailure]:
        """The plugins that failed, with tracebacks."""
        return list(self._core.plugins.errors)

    @property
    def sources(self) -> list[SourceRecord]:
        """The live sources, such as remote servers: their registered tools, and what is wrong with the rest."""
        return [each.record for each in self._core.live]

    @property
    def problems(self) -> list[str]:
        """What is wrong with the board, a sentence each: clashing names, broken plugins, unreadable distributions."""
        clashes = [str(clash) for _, clash in sorted(self._core.registry.board.clashes.items())]
        away = (problem for source in self.sources for problem in source.problems)
        own = (*clashes, *self._core.assembly.problems, *super().problems, *self._core.plugins.problems)
        return [spelled_out(problem) for problem in (*own, *away)]

    @property
    def stats(self) -> dict[str, Any]:
        """Running and waiting calls, abandoned threads, and counts and latencies of each tool."""
        return self._core.engine.statistics()

    # Closing ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the calls that run, and end threads, processes and the loop. Closing twice does nothing.

        Sync tools cannot be stopped; they are waited for, 5 seconds at most.
        """
        try:
            self._core.engine.close()
        finally:
            leave(self._core, list(self._core.live))

    async def aclose(self) -> None:
        """`close` for coroutines: the event loop goes on meanwhile."""
        from pegboard._execution.loop_thread import aside

        await aside(self.close)  # while the running loop goes on: what is to end may have to end there

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        active = sum(record.state == "active" for record in self.plugins)
        return f"Toolkit({len(self)} tools, {active} of {len(self.plugins)} plugins active)"


def _read_tool(
    function: Any, name: Any, description: Any, parameters: Mapping[str, Any] | None = None, meta: Any = None
) -> Tool:
    """`Tool.from_function`, with the types of the installed plugins; without a function `Tool.external`."""
    tables = standard_tables()
    if function is not None:
        return Collector(tables).function(function, Offer(function, name=name, description=description), Origin())
    from pegboard._tools.definition import ToolDefinition
    from pegboard._tools.plan import EMPTY_SCHEMA, Written, read_schema

    source = Written(description, EMPTY_SCHEMA if parameters is None else parameters)
    options = ToolOptions(meta=meta or {})
    return Tool(check_name(name), ToolDefinition(read_schema, source, name, options, tables))


Tool._reader = _read_tool
