"""Sessions: one user's view of a toolkit, and the surface through which calls are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, final

from attrs import evolve

from pegboard._approval import Permission
from pegboard._call import ToolCall
from pegboard._calls import Calls
from pegboard._core import Core
from pegboard._effects import is_interrupt
from pegboard._errors import UnknownNameError
from pegboard._groups import Activation
from pegboard._permissions import Permissions
from pegboard._policy import DEFAULT_POLICY, ExecutionPolicy
from pegboard._presets import Preset, Presets
from pegboard._ready import Absent, Ready
from pegboard._result import Status
from pegboard._scope import Scope
from pegboard._tool import Tool, ToolSchema, Toolset

__all__ = ["Session"]


@final
class Session(Calls):
    """Owns group activation, presets, approver, permissions, policy, context and agent of one user of a toolkit.

    Get one from `toolkit.session(...)`; a toolkit has a root session that it delegates to. What a session does not
    say is as in the wider one, and nothing that it says leaks into another.
    """

    __slots__ = (
        "_activation",
        "_approver",
        "_cache",
        "_core",
        "_generation",
        "_memo",
        "_permissions",
        "_policy",
        "_presets",
        "_wider",
        "agent",
        "scope",
    )

    scope: Scope
    agent: Any
    _presets: Presets
    _activation: Activation
    _permissions: Permissions

    def __init__(
        self,
        core: Core,
        *,
        wider: Session | None = None,
        context: Any = (),
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        groups: Iterable[str] | None = None,
        policy: ExecutionPolicy | None = None,
        approver: Callable[..., Any] | None = None,
        agent: Any = None,
        permissions: str | Path | None = None,
    ) -> None:
        self._core = core
        self._wider = wider
        level = "toolkit" if wider is None else "session"
        around = None if wider is None else wider.scope
        if agent is not None:
            around = Scope((agent,), level="agent", wider=around)
        self.scope = Scope(context, level=level, wider=around)
        self.agent = agent if agent is not None or wider is None else wider.agent
        self._approver = approver
        self._policy = policy or DEFAULT_POLICY
        self._presets = Presets(None if wider is None else wider._presets, override=core.preset_override)
        self._activation = Activation(core.groups, None if wider is None else wider._activation)
        self._permissions = Permissions(permissions, None if wider is None else wider._permissions)
        self._cache: dict[str, Ready] = {}
        self._memo: dict[str, Any] = {}
        self._generation = -1
        for tool, values in (presets or {}).items():
            self.set_presets(tool, values)
        if groups is not None:
            self._activation.set(groups)

    @property
    def _caller(self) -> Session:
        return self

    # What this session decides ---------------------------------------------------------------------------------

    @property
    def approver(self) -> Callable[..., Any] | None:
        """Answers requests for approval; the wider session's if this one has none."""
        return self._approver or (None if self._wider is None else self._wider.approver)

    @approver.setter
    def approver(self, approver: Callable[..., Any] | None) -> None:
        self._approver = approver

    @property
    def policy(self) -> ExecutionPolicy:
        """The merged execution policy."""
        return self._policy if self._wider is None else self._policy.merged_over(self._wider.policy)

    @property
    def permissions(self) -> dict[str, Permission]:
        """The permission of every tool by name."""
        return {name: self._permissions.of(name) or tool.permission for name, tool in self._core.board.tools.items()}

    def set_permission(self, name: str, permission: str) -> None:
        """`"always"`, `"prompt"` or `"never"`. Raises `UnknownNameError`, and ValueError for another word."""
        self._permissions.set(self.tool(name).name, Permission(permission))
        self._core.registry.changed()

    def set_presets(self, name: str, values: Mapping[str, Any]) -> None:
        """Replace the presets of a tool. Raises `UnknownNameError` and `RegistrationError` naming the parameter."""
        self._presets.replace(self._tool(name), values)
        self._core.registry.changed()

    def update_presets(self, name: str, values: Mapping[str, Any]) -> None:
        """Add to the presets of a tool; a value of None is a preset of None."""
        self._presets.merge(self._tool(name), values)
        self._core.registry.changed()

    def check_presets(self, tool: Tool, values: Mapping[str, Any]) -> None:
        """Raises what `set_presets` would raise for a tool that does not hang yet."""
        self._presets.read(tool, values)

    def presets_of(self, name: str) -> dict[str, Preset]:
        """The presets of a tool; their repr shows no values."""
        return dict(self._presets.of(self._tool(name).name))

    def forget(self, tools: Iterable[str]) -> None:
        """Drop what was said of tools that are gone."""
        names = list(tools)
        self._presets.forget(names)
        self._permissions.forget(names)

    # Groups ----------------------------------------------------------------------------------------------------

    @property
    def active_groups(self) -> tuple[str, ...]:
        """The names of the groups that are active in this session."""
        return self._activation.active()

    def update_groups(self, names: Iterable[str] | str, active: bool) -> None:
        """Activate or deactivate groups, all or none. Raises `UnknownNameError` naming the known groups."""
        self._activation.update([names] if isinstance(names, str) else names, active)
        self._core.registry.changed()

    def set_active_groups(self, names: Iterable[str] | str) -> None:
        """Make exactly these groups active."""
        self._activation.set([names] if isinstance(names, str) else names)
        self._core.registry.changed()

    def forget_groups(self, names: Iterable[str]) -> None:
        """Drop what was said of groups that are gone."""
        self._activation.forget(names)

    def offers(self, tool: Tool) -> bool:
        """Whether a tool is offered: it is in no group, or one of its groups is active."""
        return not tool.groups or any(self._activation.is_active(group) for group in tool.groups)

    # Tools -----------------------------------------------------------------------------------------------------

    @property
    def tools(self) -> list[Tool]:
        """The tools offered now, in board order, as this session's model sees them."""
        return list(self._remember("tools", lambda: [tool for tool in self.all_tools if self.offers(tool)]))

    @property
    def all_tools(self) -> list[Tool]:
        """Every tool on the board, offered or not."""
        return [self.view(tool) for tool in self._core.board.tools.values()]

    @property
    def toolsets(self) -> list[Toolset]:
        """The toolsets, their tools as this session's model sees them."""
        return [evolve(each, tools=tuple(map(self.view, each.tools))) for each in self._core.board.toolsets]

    def tool(self, name: str) -> Tool:
        """The tool of that name as this session's model sees it. Raises `UnknownNameError` with the nearest names."""
        return self.view(self._tool(name))

    def schemas(self, dialect: str | None = None) -> list[Any]:
        """What to show the model: `ToolSchema`s, or a provider's own definitions with `dialect=`.

        Raises `UnknownNameError` for a dialect that no installed pack provides.
        """
        if dialect is None:
            schemas: list[ToolSchema] = self._remember("schemas", self._schemas)
            return list(schemas)
        return self._core.dialect(dialect).tools(self.tools)

    def _schemas(self) -> list[ToolSchema]:
        found = map(self._core.described, self.tools)
        return [schema for schema in found if schema is not None]

    def _tool(self, name: str) -> Tool:
        tool = self._core.registry.find(name)
        if tool is None:
            raise UnknownNameError(self._core.absence(name))
        return tool

    def view(self, tool: Tool) -> Tool:
        """A tool that hangs there as this session's model sees it: without the parameters that presets fill."""
        presets = self._presets.of(tool.name)
        return tool.evolve(hidden=frozenset(presets)) if presets else tool

    def _remember(self, key: Any, compute: Callable[[], Any]) -> Any:
        self._refresh()
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]

    def _refresh(self) -> None:
        generation = self._core.registry.generation
        if self._generation != generation:
            self._cache = {}
            self._memo = {}
            self._generation = generation

    # Calls -----------------------------------------------------------------------------------------------------

    def ready(self, name: Any) -> Ready | Absent:
        """The tool made ready for calls, or why it cannot be called. Never raises."""
        self._refresh()
        if not isinstance(name, str):
            return Absent(Status.NOT_FOUND, "not_found", f"a tool is called by its name, got a {type(name).__name__}")
        try:
            found = self._cache.get(name) or self._make_ready(name)
        except BaseException as error:  # reading a tool on first use runs its module and its annotations
            if is_interrupt(error):
                raise
            return Absent.unusable(name, error)
        if isinstance(found, Ready):
            self._cache[name] = found
        return found

    def _make_ready(self, name: str) -> Ready | Absent:
        tool = self._core.registry.find(name)
        if tool is None:
            return Absent(Status.NOT_FOUND, "not_found", self._core.absence(name))
        if not self.offers(tool):
            groups = ", ".join(map(repr, tool.groups))
            message = f"{name} is inactive: activate its group {groups} first"
            remedy = {"remedy": f"update_groups([{groups}], True), or let the model call reset_equipped_tools"}
            return Absent(Status.INACTIVE, "inactive", message, remedy)
        explicit = self._permissions.of(tool.name)
        return Ready(
            tool,
            self._presets.of(tool.name),
            self.policy,
            explicit or tool.permission,
            self._core.middleware_for(tool),
            self._core.engine.stats.of(tool.name),
            explicit_permission=explicit is not None,
            bounded_output=self._core.engine.outcomes.max_output is not None,
        )

    @property
    def pending(self) -> list[ToolCall]:
        """The suspended calls whose answers are owed: those of this session; the toolkit's own knows all."""
        everything = list(self._core.engine.suspended.values())
        return everything if self._wider is None else [call for call in everything if call._state.session is self]

    def session(self, **options: Any) -> Session:
        """A narrower session; see `Toolkit.session`."""
        return Session(self._core, wider=self, **options)

    def __repr__(self) -> str:
        return f"Session({len(self.tools)} tools offered, groups={list(self.active_groups)}, agent={self.agent!r})"
