"""The toolkit: assembles whatever is installed, and hands everything else to those who know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, final

from pegboard import builtin
from pegboard._admission import RepairMode
from pegboard._approval import Permission
from pegboard._assembling import Overflow, assemble
from pegboard._board import OnConflict
from pegboard._calls import Calls
from pegboard._collect import Registration
from pegboard._errors import PegboardError, RegistrationError
from pegboard._extension import Converter, Injector, TypeHandler
from pegboard._groups import Group
from pegboard._outcome import ExposeErrors
from pegboard._plugin_record import PluginFailure, PluginRecord
from pegboard._plugins import Plugins
from pegboard._policy import ExecutionPolicy
from pegboard._registration import describe_failure, hang_up_packs, register, register_type, reread
from pegboard._session import Session
from pegboard._standalone import external_tool, read_tool
from pegboard._tool import Origin, Tool, Toolset
from pegboard._types import TypeTable

__all__ = ["Tool", "Toolkit"]


@final
class Toolkit(Calls):
    """The tools of one program: those of the installed packs and those that it registers.

    `Toolkit()` assembles whatever is installed; `Toolkit(plugins=())` is empty. `plugins` and `block` select by
    entry-point or distribution name, `settings` and `config` configure packs, `on_plugin_error="raise"` turns a broken
    plugin into a `PluginError`. `context`, `policy`, `approver`, `permissions` (a file) and `agent` are those of the
    root session. `repair` says how far mistakes of the model are mended, `expose_errors` how much of an exception it
    sees. Text of more than `max_output` characters is cut, or with `overflow="spill"` kept for the tool `read_output`.
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
        config: str | Path | None = None,
        parallel: bool = True,
        allow_tool_deletion: bool = True,
        policy: ExecutionPolicy | None = None,
        context: Any = (),
        agent: Any = None,
        approver: Callable[..., Any] | None = None,
        permissions: str | Path | None = None,
        preset_override: bool = True,
        repair: RepairMode = "safe",
        expose_errors: ExposeErrors = "message",
        max_output: int | None = None,
        overflow: Overflow = "truncate",
        max_threads: int = 64,
    ) -> None:
        loaded = Plugins.load(
            selection=plugins,
            block=block,
            on_error=on_plugin_error,
            settings=settings,
            config=config,
            builtin=builtin.plugins(),
        )
        self._core = assemble(
            loaded,
            self,
            parallel=parallel,
            preset_override=preset_override,
            repair=repair,
            expose_errors=expose_errors,
            max_output=max_output,
            overflow=overflow,
            max_threads=max_threads,
        )
        self._allow_tool_deletion = allow_tool_deletion
        self._root = Session(
            self._core, context=context, policy=policy, approver=approver, agent=agent, permissions=permissions
        )
        hang_up_packs(self._core)

    @property
    def _caller(self) -> Session:
        return self._root

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
        registration = Registration(
            name,
            description,
            self._core.groups.check((group,) if isinstance(group, str) else group or ()),
            extended_model,
            None if enable is None else tuple(enable),
            tuple(disable),
            prefix,
            rename,
        )
        if name is not None and len(sources) > 1:
            raise RegistrationError(f"name= fits one source, got {len(sources)}")
        return register(self._core, self._root, sources, registration, presets, on_conflict)

    def unregister(self, *names: str) -> None:
        """Take tools down, all or none. Raises `UnknownNameError`, and `PegboardError` where deletion is refused."""
        self._check_deletion("unregister")
        self._core.registry.remove(names)
        self._root.forget(names)

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
        reread(self._core)

    def register_injector(self, injector: Injector) -> None:
        """Provide parameters of a type for tools that are registered from now on."""
        self._core.assembly.injectors.add(injector, Origin(), "program")

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
        managed_by: Literal["model", "program"] = "model",
        instructions: str | None = None,
    ) -> None:
        """Create a tool group. Raises `RegistrationError` for a name that is taken."""
        self._core.groups.create(Group(name, description, active, managed_by, instructions))
        self._core.registry.changed()

    def remove_groups(self, names: Iterable[str] | str) -> None:
        """Remove groups, and the tools that belong to no other group. All or none."""
        self._check_deletion("remove_groups")
        gone = self._core.groups.check([names] if isinstance(names, str) else names)
        lost = self._core.registry.leave_groups(gone)
        self._core.groups.remove(gone)
        self._root.forget_groups(gone)
        self._root.forget(lost)

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, in the order in which they were created."""
        return self._core.groups.all()

    @property
    def active_groups(self) -> tuple[str, ...]:
        """The names of the groups active in the root session."""
        return self._root.active_groups

    def update_groups(self, names: Iterable[str] | str, active: bool) -> None:
        """Activate or deactivate groups, all or none."""
        self._root.update_groups(names, active)

    def set_active_groups(self, names: Iterable[str] | str) -> None:
        """Make exactly these groups active."""
        self._root.set_active_groups(names)

    def _check_deletion(self, operation: str) -> None:
        if not self._allow_tool_deletion:
            raise PegboardError(
                f"{operation} would delete tools, which this toolkit refuses (allow_tool_deletion=False)"
            )

    # Looking ---------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Tool:
        return self._root.tool(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._core.board.find(name) is not None

    def __len__(self) -> int:
        return len(self._core.board.tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._root.all_tools)

    @property
    def tools(self) -> list[Tool]:
        """The tools offered now, in board order."""
        return self._root.tools

    @property
    def all_tools(self) -> list[Tool]:
        """Every tool on the board, offered or not."""
        return self._root.all_tools

    @property
    def toolsets(self) -> list[Toolset]:
        """The toolsets: classes with `@tool` methods."""
        return self._root.toolsets

    def schemas(self, dialect: str | None = None) -> list[Any]:
        """What to show the model: `ToolSchema`s, or a provider's own definitions."""
        return self._root.schemas(dialect)

    @property
    def plugins(self) -> list[PluginRecord]:
        """Every plugin that was found and what became of it."""
        return list(self._core.plugins.records)

    @property
    def plugin_errors(self) -> list[PluginFailure]:
        """The plugins that failed, with tracebacks."""
        return list(self._core.plugins.errors)

    @property
    def problems(self) -> list[str]:
        """What is wrong with the board, a sentence each: clashing names, failed plugins, unreadable distributions."""
        clashes = [str(clash) for _, clash in sorted(self._core.board.clashes.items())]
        return [*clashes, *map(describe_failure, self._core.plugins.errors), *self._core.plugins.unreadable]

    @property
    def stats(self) -> dict[str, Any]:
        """Running and waiting calls, abandoned threads, and counts and latencies of each tool."""
        return self._core.engine.stats.to_dict(abandoned_threads=self._core.engine.abandoned)

    # The root session ------------------------------------------------------------------------------------------

    def session(
        self,
        *,
        context: Any = (),
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        groups: Iterable[str] | None = None,
        policy: ExecutionPolicy | None = None,
        approver: Callable[..., Any] | None = None,
        agent: Any = None,
    ) -> Session:
        """One user's view: presets, group activation, approver, permissions, policy and context of its own."""
        return Session(
            self._core,
            wider=self._root,
            context=context,
            presets=presets,
            groups=groups,
            policy=policy,
            approver=approver,
            agent=agent,
        )

    def set_presets(self, name: str, values: Mapping[str, Any]) -> None:
        """Replace the presets of a tool; the schema follows at once."""
        self._root.set_presets(name, values)

    def update_presets(self, name: str, values: Mapping[str, Any]) -> None:
        """Add to the presets of a tool; a value of None is a preset of None."""
        self._root.update_presets(name, values)

    @property
    def permissions(self) -> dict[str, Permission]:
        """The permission of every tool."""
        return self._root.permissions

    def set_permission(self, name: str, permission: str) -> None:
        """`"always"`, `"prompt"` or `"never"`; saved with `Toolkit(permissions=path)`."""
        self._root.set_permission(name, permission)

    # Closing ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End threads and the loop. Closing twice does nothing."""
        self._core.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        active = sum(record.state == "active" for record in self.plugins)
        return f"Toolkit({len(self)} tools, {active} of {len(self.plugins)} plugins active)"


# The record stands floors below the reader that it needs: it is handed down here, where both are known.
Tool._factory = read_tool
Tool._external_factory = external_tool
