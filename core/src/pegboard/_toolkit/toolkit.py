"""The toolkit: assembles whatever is installed, and hands everything else to those who know."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, final

from pegboard import builtin
from pegboard._arguments.validate import RepairMode
from pegboard._base.errors import PegboardError, RegistrationError
from pegboard._base.names import check_name
from pegboard._board.board import OnConflict
from pegboard._board.overlay import META_TOOL, GroupFace
from pegboard._model.plugin_record import PluginRecord
from pegboard._model.policy import ExecutionPolicy
from pegboard._model.tool import Origin, Tool, ToolOptions
from pegboard._plugins.manager import Plugins
from pegboard._results.factory import ExposeErrors, Overflow, ResultFactory
from pegboard._toolkit.live_sources import SourceRecord, unfollow
from pegboard._toolkit.register import follow_packs, hang_up_packs, register, register_type, reread
from pegboard._toolkit.session import Session, Surface, is_meta_tool
from pegboard._toolkit.state import DEFER_THRESHOLD, ToolkitState, replaces, standard_tables
from pegboard._tools.collect import Collector
from pegboard._types.table import TypeTable
from pegboard.extension import Converter, Injector, Offer, TypeHandler

if TYPE_CHECKING:
    from pegboard._base.names import Names
    from pegboard._model.program import Manager, PluginChanges, PluginFailure


@final
class Toolkit(Surface):
    """The tools of one program: those of the installed packs and those that it registers.

    `Toolkit()` assembles whatever is installed; `Toolkit(plugins=())` is empty. `plugins` and `block` select by
    entry-point or distribution name, `settings` and `config` configure packs, `on_plugin_error="raise"` turns a broken
    plugin into a `PluginError`. `context`, `policy`, `approver`, `permissions` (a file) and `agent` are those of the
    root session. `repair` says how far mistakes of the model are mended, `expose_errors` how much of an exception it
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
        permissions: str | os.PathLike[str] | None = None,
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
        self._core = ToolkitState(
            loaded,
            self,
            ResultFactory(expose_errors, max_output, overflow),
            parallel=parallel,
            preset_override=preset_override,
            repair=repair,
            max_threads=max_threads,
            max_concurrency=max_concurrency,
            defer_threshold=defer_threshold,
        )
        self._allow_tool_deletion = allow_tool_deletion
        self._root = Session(
            self._core, context=context, policy=policy, approver=approver, agent=agent, permissions=permissions
        )
        hang_up_packs(self._core, self._root)
        registry = self._core.registry
        if self._core.engine.outcomes.spill is not None and not replaces(registry.find("read_output"), "read_output"):
            registry.add([self._core.own_tool("read_output")], (), "raise")
        follow_packs(self._core, self._root)

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
        on_conflict: OnConflict = "raise",
    ) -> list[Tool]:
        """Hang up tools, all or none: typed functions, objects or classes with `@tool` methods, `Tool`s, tool sources.

        `presets` are `{tool: {parameter: value}}`, or `{parameter: value}` where there is one tool. Raises
        `RegistrationError` naming the parameter, the annotation and the remedy, `ConflictError` for a name that is
        taken, `UnknownNameError` for an unknown group.
        """
        if not sources:
            raise RegistrationError(
                "register() needs something to register: a function, an object with @tool methods, a Tool"
            )
        if on_conflict == "replace":
            self._check_deletion('on_conflict="replace"')
        offer = Offer(
            sources,
            () if group is None else self._core.groups.check(group),
            presets or {},
            enable,
            disable,
            prefix,
            rename,
            name=name,
            description=description,
            extended_model=extended_model,
        )
        if name is not None and len(sources) > 1:
            raise RegistrationError(f"name= fits one source, got {len(sources)}")
        return register(self._core, self._root, offer, on_conflict)

    def unregister(self, *names: str) -> None:
        """Take tools down, all or none. Raises `UnknownNameError`, and `PegboardError` where deletion is refused."""
        self._check_deletion("unregister")
        # A file that cannot be written must leave the tools where they are: permissions go first.
        self._root.forget(self._core.registry.resolve(names))
        self._core.registry.remove(names)

    def register_meta_tool(self) -> Tool:
        """Let the model switch groups itself: hang up `reset_equipped_tools`. A second time changes nothing.

        It sets which of the groups that the model manages are active, in the session that calls it. Raises
        `ConflictError` where the program has another tool of that name.
        """
        core, root = self._core, self._root
        hanging = core.registry.find(META_TOOL)
        if hanging is None or not is_meta_tool(hanging):
            own = core.own_tool(META_TOOL)
            core.registry.add(
                [own.evolve(definition=own.definition.facing(GroupFace(root._overlay)), origin=Origin())], (), "raise"
            )
        return root.tool(META_TOOL)

    def register_type(self, handler: TypeHandler) -> None:
        """Map a type for this toolkit: the program's handlers win over plugins'. Tools that hang are read anew."""
        register_type(self._core, handler)

    @property
    def types(self) -> TypeTable:
        """The type table: `types.plan(annotation)`, and `types.handler_for(annotation)` for who maps it."""
        return self._core.assembly.types

    def register_converter(self, converter: Converter) -> None:
        """Convert results of a type for this toolkit."""
        self._core.assembly.converters.add(converter, Origin(), "program")
        self._core.handlers.append(("converters", converter, Origin(), "program"))
        reread(self._core)

    def register_injector(self, injector: Injector) -> None:
        """Provide parameters of a type for tools that are registered from now on."""
        self._core.assembly.injectors.add(injector, Origin(), "program")
        self._core.handlers.append(("injectors", injector, Origin(), "program"))

    def injectable(self, cls: type) -> type:
        """Declare that parameters of this class come from the context; for tools that are registered from now on."""
        self._core.assembly.injectors.declare_context_only(cls)
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
        self._root.forget(self._core.registry.only_in(gone))
        self._core.registry.leave_groups(gone)
        self._core.groups.remove(gone)
        self._core.registry.touched()

    def _check_deletion(self, operation: str) -> None:
        if not self._allow_tool_deletion:
            raise PegboardError(
                f"{operation} would delete tools, which this toolkit refuses (allow_tool_deletion=False)"
            )

    @property
    def plugins(self) -> list[PluginRecord]:
        """Every plugin that was found and what became of it."""
        return list(self._core.plugins.records)

    def reload_plugins(self) -> PluginChanges:
        """Take in packs that were installed since, and let go of those that were removed; all or nothing.

        Everything else goes on: the packs that stay, as they were loaded, presets, permissions and sessions. A pack
        that failed is tried again. Raises what making a toolkit raises, and `RegistrationError` where a tool of the
        program's needs a type that is gone.
        """
        from pegboard._toolkit.reload import reload_plugins

        return reload_plugins(self._core, self._root)

    @property
    def plugin_errors(self) -> list[PluginFailure]:
        """The plugins that failed, with tracebacks."""
        return list(self._core.plugins.errors)

    @property
    def sources(self) -> list[SourceRecord]:
        """The live sources, such as remote servers: what hangs there of each, and what is wrong with the rest."""
        return [each.record for each in self._core.live]

    @property
    def problems(self) -> list[str]:
        """What is wrong with the board, a sentence each: clashing names, broken plugins, unreadable distributions."""
        clashes = [str(clash) for _, clash in sorted(self._core.registry.board.clashes.items())]
        away = (problem for source in self.sources for problem in source.problems)
        slow = self._core.engine.accelerators.problems
        return [*clashes, *self.types.ties, *self._root.problems, *self._core.plugins.problems, *slow, *away]

    @property
    def accelerators(self) -> dict[str, str]:
        """What is used to `decode` arguments and as `validator` of foreign schemas, where a plugin offers something."""
        return self._core.engine.accelerators.used

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
            unfollow(self._core.live)

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


def _read_tool(function: Callable[..., object], *, name: str | None = None, description: str | None = None) -> Tool:
    """`Tool.from_function`: a typed function, read with the types of the installed plugins."""
    terms = Offer(function, name=name, description=description)
    return Collector(standard_tables()).function(function, terms, Origin())


def _external_tool(name: str, description: str = "", parameters: Mapping[str, object] | None = None) -> Tool:
    """`Tool.external`: a schema alone."""
    from pegboard._tools.definition import ToolDefinition
    from pegboard._tools.plan import Written, read_schema

    source, standard = Written(description, parameters), standard_tables()
    return Tool(check_name(name), ToolDefinition(read_schema, source, name, ToolOptions(), standard))


# The record stands below the readers that it needs: they are handed down here, where both are known.
Tool._factory = _read_tool
Tool._external_factory = _external_tool
