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
from pegboard._board.board import OnConflict
from pegboard._board.overlay import META_TOOL, GroupFace
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

    `Toolkit()` loads every installed pack; `Toolkit(plugins=())` is empty. A toolkit is its own root session. As a
    context manager, sync or async, it closes its threads, its loop and what packs have opened.

    Raises `PluginError` with `on_plugin_error="raise"`, `SettingsError` for settings that no pack takes, ValueError for
    an option with an invalid value.

    Args:
        plugins: Which packs load: `"installed"` for all that are installed; or a list of entry-point names,
            distribution names, modules and plugin objects; `()` for none.
        block: Names of packs that are never loaded.
        on_plugin_error: What a broken pack does. `"collect"` keeps it out and records the reason in `plugins` and
            `problems`; `"raise"` raises `PluginError`.
        settings: Settings of packs, as `{pack: {key: value}}`. They win over the environment and the file.
        config: Path of a settings file in TOML. None reads the file that `PEGBOARD_CONFIG` names, if it names one.
        parallel: Whether the calls of a batch run at the same time. False runs them one after the other.
        allow_tool_deletion: Whether `unregister`, `remove_groups` and `on_conflict="replace"` may remove tools.
        policy: Timeout and retries of all calls, where neither the session, the tool nor the call says otherwise. None:
            the defaults of `ExecutionPolicy`.
        context: Objects that tools get by type: one, several in a list or tuple, or a mapping by name or class.
        agent: The object that tools with an `Agent` parameter get: anything with a `name`. None for no agent.
        approver: Function, sync or async, that decides on calls which need approval. It gets an `ApprovalRequest`.
            None: these calls are `suspended` until `resume` brings the decision.
        preset_override: Whether the model may replace a plain preset by sending its parameter, which leaves a note.
            `Locked` and `Secret` presets are never replaced.
        repair: Which mistakes in arguments are repaired: `"off"`, `"safe"`, or `"max"`, which also repairs malformed
            JSON.
        expose_errors: What the model sees of an exception: `"message"`, `"redacted"`, or `"traceback"`.
        max_output: Longest text of a result for the model, in characters, 100 at least. None for no limit.
            `@tool(max_output=...)` wins.
        overflow: What happens to longer text. `"truncate"` keeps its beginning and end; `"spill"` keeps all of it,
            which the model reads page by page with the tool `read_output`.
        max_threads: Most threads for sync tools that are called from an event loop.
        max_concurrency: Most calls that run at once; the others wait. Calls that tools make themselves are not counted.
            None for no limit.
        defer_threshold: With more tools of `@tool(defer=True)` than this, 10 by default, the model gets `search_tools`
            instead of their definitions.
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
        core = ToolkitState(loaded, self, ResultFactory(expose_errors, max_output, overflow), options)
        scope = Scope(context, wider=None if agent is None else Scope((agent,), level="agent"))
        core.assembly.injectors.in_context = scope.classes()
        super().__init__(core, None, scope, agent, policy=policy, approver=approver)
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
        """Register tools, all or none: typed functions, objects or classes with `@tool` methods, tool sources.

        Raises `RegistrationError` naming the parameter, the annotation and the remedy, `ConflictError` for a name that
        is taken, `UnknownNameError` for an unknown group.

        Args:
            sources: What becomes tools. Each may give several.
            name: Name for the one tool that is registered, instead of its own.
            description: Description for the one tool that is registered, instead of its docstring.
            group: Group or groups that the tools belong to. Each must exist. None: those that the tools name
                themselves.
            presets: Values that the program sets: `{tool: {parameter: value}}`, or `{parameter: value}` where there is
                one tool. They leave the schema.
            extended_model: Further parameters of the tools, from a record type or a JSON Schema of an object. They
                reach `**kwargs` and `ToolCall.arguments`.
            enable: Names of the only tools to take from the sources. None for all.
            disable: Names of tools to leave out.
            prefix: Text in front of each name.
            rename: Other names, as a mapping or a function of the name.
            defer: Whether the tools are found with `search_tools` where there are many, instead of being listed.
            types: Type handlers for these tools alone, as `{annotation: TypeHandler}`.
            on_conflict: What to do about a name that is taken: `"raise"`, `"replace"`, `"skip"` or `"rename"`.
        """
        if not sources:
            raise RegistrationError("register() needs something to register: a function, a Tool, an object with tools")
        if on_conflict == "replace":
            self._check_deletion('on_conflict="replace"')
        groups = () if group is None else self._core.groups.check(group)
        if name is not None and len(sources) > 1:
            raise RegistrationError(f"name= fits one source, got {len(sources)}")
        said = {"name": name, "description": description, "extended_model": extended_model, "types": types or {}}
        offer = Offer(sources, groups, presets or {}, enable, disable, prefix, rename, defer=defer, **said)
        return [self.seen(tool) for tool in register(self._core, offer, on_conflict)]

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, *, presets: Mapping[str, Any] | None = None, **options: Unpack[ToolTerms]) -> Callable[[F], F]: ...

    # mypy takes no unpacked TypedDict beside a keyword; the callers' types are those above.
    def tool(self, function: Any = None, /, *, presets: Any = None, **options: Any) -> Any:  # type: ignore[misc]
        """Declare and register a function, and return the function: `@toolkit.tool`, or with options.

        `register` returns a list of tools instead, which does not work as a decorator. Raises as `register` does.

        Args:
            function: The function, where the decorator has no options.
            presets: Values that the program sets, as `{parameter: value}`.
            options: The options of `pegboard.tool`, such as `name`, `timeout` or `read_only`.
        """
        group, mark = options.pop("group", None), marking(sys._getframe(1), None, options)

        def declare(target: Any) -> Any:
            self.register(mark(target), group=group, presets=presets)
            return target

        return declare if function is None else declare(function)

    def unregister(self, *names: str | LiveSource) -> None:
        """Remove tools, all or none.

        Raises `UnknownNameError`, and `PegboardError` where deletion is refused.

        Args:
            names: Names of tools; or live sources, such as an MCP server, each of which goes with all its tools.
        """
        self._check_deletion("unregister")
        gone = [each for each in self._core.live if any(each.source is name for name in names)]
        theirs = {id(each.source): each.record.tools for each in gone}
        registry = self._core.registry
        tools = registry.resolve(tool for name in names for tool in theirs.get(id(name), (str(name),)))
        # A file that cannot be written must leave the tools where they are: permissions go first.
        self._forget_allowed(tools)
        leave(self._core, gone)
        registry.remove(tools)

    def register_meta_tool(self) -> Tool:
        """Let the model switch groups itself: register `reset_equipped_tools`. A second time changes nothing.

        It sets which of the groups that the model manages are active, in the session that calls it. Raises
        `ConflictError` where the program has another tool of that name.
        """
        core = self._core
        registered = core.registry.find(META_TOOL)
        if registered is None or not is_meta_tool(registered):
            own = core.own_tool(META_TOOL)
            core.registry.add([own.evolve(face=GroupFace(core.groups), origin=Origin())], (), "raise")
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
        """Create a tool group.

        Raises `RegistrationError` for a name that is taken, ValueError for a limit below 1.

        Args:
            name: Name of the group.
            description: Text for the model, which reads it where it may switch groups.
            active: Whether its tools are offered at first.
            managed_by: Who switches it: `"model"`, by the tool of `register_meta_tool`, or `"program"` alone.
            instructions: Text that the model reads when it activates the group. None for none.
            max_concurrency: Most calls of its tools that run at once; the others wait. None for no limit.
        """
        from pegboard._model.program import Group

        self._core.groups.create(Group(name, description, active, managed_by, instructions, max_concurrency))
        self._core.registry.touched()

    def remove_groups(self, names: Names) -> None:
        """Remove groups, and the tools that belong to no other group. All or none."""
        self._check_deletion("remove_groups")
        gone = self._core.groups.check(names)
        self._forget_allowed(self._core.registry.only_in(gone))
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
