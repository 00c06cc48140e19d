"""Sessions: one user's view of a toolkit, and the surface through which calls are made."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, final

from pegboard._base.effects import is_interrupt
from pegboard._board.group_tool import META_TOOL, PARAMETER, GroupTool
from pegboard._board.groups import Activation, groups_of
from pegboard._board.permissions import Permissions
from pegboard._execution.bound_tool import BoundTool, Unavailable
from pegboard._injection.context import Scope
from pegboard._injection.presets import Preset, Presets
from pegboard._model.call import ToolCall
from pegboard._model.permission import Permission
from pegboard._model.policy import DEFAULT_POLICY, ExecutionPolicy
from pegboard._model.result import Status
from pegboard._model.tool import Tool
from pegboard._toolkit.calls import Calls
from pegboard._toolkit.deferred import OFF_BOARD, FoundTools
from pegboard._toolkit.listing import ToolListing
from pegboard._toolkit.state import ToolkitState

if TYPE_CHECKING:
    from pegboard._board.views import Lens, Names, Rename
    from pegboard._model.group import Group, Manager

__all__ = ["Session", "Sessions"]


class Sessions(Calls):
    """Opens narrower sessions below `_caller`."""

    __slots__ = ()

    @property
    @abstractmethod
    def _caller(self) -> Session: ...

    def session(
        self,
        *,
        context: Any = (),
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        groups: Names | None = None,
        policy: ExecutionPolicy | None = None,
        approver: Callable[..., Any] | None = None,
        agent: Any = None,
    ) -> Session:
        """One user's overlay: presets, group activation, approver, permissions, policy and context of its own.

        With `groups`, exactly these are active in it, whatever is created later.
        """
        wider = self._caller
        return Session(
            wider._core,
            wider=wider,
            context=context,
            presets=presets,
            groups=groups,
            policy=policy,
            approver=approver,
            agent=agent,
        )

    def view(
        self,
        *,
        include: Names | None = None,
        exclude: Names = (),
        tags: Names = (),
        prefix: str = "",
        rename: Rename | None = None,
        where: Callable[[Tool], bool] | None = None,
    ) -> Session:
        """A narrower session that shows some of the tools only, or shows them under other names.

        A tool is shown if it is among `include` (names and patterns such as `files_*`), not among `exclude`, has one of
        the `tags`, and `where(tool)` says so. `rename` maps names, `prefix` is put in front of all. Tools that do not
        fit do not exist in the view. It follows the board. Raises `UnknownNameError` for a name that nothing has,
        `ConflictError` for two tools of one name, and `RegistrationError` for a name that providers refuse.
        """
        from pegboard._board.views import Lens, listed

        wider = self._caller
        lens = Lens(
            wider._lens,
            None if include is None else listed(include),
            listed(exclude),
            frozenset(listed(tags)) or None,
            prefix,
            rename,
            where,
        )
        lens.check(wider._core.board)
        return Session(wider._core, wider=wider, lens=lens)


@final
class Session(ToolListing, Sessions):
    """Owns group activation, presets, approver, permissions, policy, context and agent of one user of a toolkit.

    Get one from `toolkit.session(...)`; a toolkit has a root session that it delegates to. What a session does not
    say is as in the wider one, and nothing that it says leaks into another. Made by `view(...)`, it shows some of the
    tools, or shows them under other names; these are its only names then.
    """

    __slots__ = ("_approver", "_policy", "_wider", "agent", "scope")

    scope: Scope
    agent: Any

    def __init__(
        self,
        core: ToolkitState,
        *,
        wider: Session | None = None,
        context: Any = (),
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        groups: Names | None = None,
        policy: ExecutionPolicy | None = None,
        approver: Callable[..., Any] | None = None,
        agent: Any = None,
        permissions: str | os.PathLike[str] | None = None,
        lens: Lens | None = None,
    ) -> None:
        self._core = core
        self._wider = wider
        registry = core.registry
        level = "toolkit" if wider is None else "session"
        around = None if wider is None else wider.scope
        if agent is not None:
            around = Scope((agent,), level="agent", wider=around)
        self.scope = Scope(context, level=level, wider=around)
        self.agent = agent if agent is not None or wider is None else wider.agent
        self._approver = approver
        self._policy = policy or DEFAULT_POLICY
        if wider is None:
            self._presets = Presets(registry.life, override=core.preset_override)
            self._activation = Activation(core.groups)
            self._permissions = Permissions(registry.removals, permissions)
            self._found = FoundTools(registry.removals)
            self._lens = None
        else:
            wider._narrowed = True
            self._presets = Presets(registry.life, wider._presets, override=core.preset_override)
            self._activation = Activation(core.groups, wider._activation)
            removals = registry.removals
            self._permissions = Permissions(removals, None, wider._permissions)
            self._found = FoundTools(removals, wider._found)
            self._lens = lens or wider._lens
        self._narrowed = False
        self._cache = {}
        self._memo = {}
        self._generation = -1
        if presets:
            for tool, values in presets.items():
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

    def set_permission(self, name: str, permission: str) -> None:
        """`"always"`, `"prompt"` or `"never"`. Raises `UnknownNameError`, and ValueError for another word."""
        self._permissions.set(self._tool(name).name, Permission(permission))
        self._changed()

    def set_presets(self, name: str, values: Mapping[str, Any]) -> None:
        """Replace the presets of a tool. Raises `UnknownNameError` and `RegistrationError` naming the parameter."""
        self._presets.replace(self._tool(name), values)
        self._changed()

    def update_presets(self, name: str, values: Mapping[str, Any]) -> None:
        """Add to the presets of a tool; a value of None is a preset of None."""
        self._presets.merge(self._tool(name), values)
        self._changed()

    def check_presets(self, tool: Tool, values: Mapping[str, Any]) -> None:
        """Raises what `set_presets` would raise for a tool that does not hang yet."""
        self._presets.read(tool, values)

    def presets_of(self, name: str) -> dict[str, Preset]:
        """The presets of a tool; their repr shows no values."""
        return dict(self._presets.of(self._tool(name).name))

    def forget(self, tools: Iterable[str]) -> None:
        """Drop what tools that are taken down were allowed; whatever else is said of them ends by itself."""
        self._permissions.forget(tools)

    # Groups ----------------------------------------------------------------------------------------------------

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, in the order in which they were created."""
        return self._core.groups.all()

    @property
    def active_groups(self) -> tuple[str, ...]:
        """The names of the groups that are active in this session."""
        return self._activation.active()

    def update_groups(self, names: Names, active: bool) -> None:
        """Activate or deactivate groups, all or none. Raises `UnknownNameError` naming the known groups."""
        self._activation.update(names, active)
        self._changed()

    def set_active_groups(self, names: Names, *, managed_by: Manager | None = None) -> None:
        """Make exactly these groups active: of all groups, or of those that the model or the program manages.

        Said of all groups, it holds in a session for groups that are created later too: they are inactive there.
        """
        self._activation.set(names, managed_by)
        self._changed()

    # Calls -----------------------------------------------------------------------------------------------------

    def ready(self, name: Any) -> BoundTool | Unavailable:
        """The tool made ready for calls, or why it cannot be called. Never raises."""
        self._refresh()
        if not isinstance(name, str):
            return Unavailable(
                Status.NOT_FOUND, "not_found", f"a tool is called by its name, got a {type(name).__name__}"
            )
        cache = self._cache
        try:
            found = cache.get(name) or self._make_ready(name)
        except BaseException as error:  # reading a tool on first use runs its module and its annotations
            if is_interrupt(error):
                raise
            return Unavailable.unusable(name, error)
        if isinstance(found, BoundTool):
            cache[name] = found
        return found

    def _make_ready(self, name: str) -> BoundTool | Unavailable:
        tool = self._find(name)
        if tool is None:
            return Unavailable(Status.NOT_FOUND, "not_found", self._absence(name))
        if not self._activation.offers(tool):
            return self._inactive(name, groups_of(tool))
        explicit = self._permissions.of(tool.name)
        shown = self._shown(tool)
        named = tool if shown == tool.name else tool.evolve(name=shown)
        # What others decide about a tool they decide by its name on the board, whatever a view calls it.
        judged = named if tool.name == OFF_BOARD else tool
        return BoundTool(
            named,
            self._presets.of(tool.name),
            self.policy,
            explicit or tool.permission,
            self._core.middleware_for(judged),
            self._core.limits_for(judged),
            self._core.engine.stats.of(shown),
            explicit_permission=explicit is not None,
            bounded_output=self._core.engine.outcomes.max_output is not None,
            decode=self._core.engine.accelerators.decode,
        )

    def _inactive(self, name: str, groups: tuple[str, ...]) -> Unavailable:
        named = ", ".join(map(repr, groups))
        missing = sorted(set(groups) - {group.name for group in self.groups})
        create = f"create_group({missing[0]!r}, ...), for there is no such group yet, and " if missing else ""
        remedy = f"{create}update_groups([{named}], True)"
        switchable = [group.name for group in self._core.groups.all("model") if group.name in groups]
        meta = self._meta_tool_name() if switchable else None
        how = f"call {meta}, with {switchable[0]!r} in {PARAMETER}" if meta else f"the program calls {remedy}"
        are = "groups are" if len(groups) > 1 else "group is"
        message = f"{name} is inactive, for its {are} not active: {named}. To activate it, {how}"
        return Unavailable(Status.INACTIVE, "inactive", message, {"remedy": remedy})

    def _meta_tool_name(self) -> str | None:
        """The name here of the meta tool, if there is one that may be called."""
        tool = self._core.registry.find(META_TOOL)
        if tool is None or not isinstance(tool.definition, GroupTool):
            return None
        if self._permissions.of(META_TOOL) is Permission.NEVER:
            return None
        return META_TOOL if self._lens is None else self._sight(self._lens).names.get(META_TOOL)

    @property
    def pending(self) -> list[ToolCall]:
        """The suspended calls whose answers are owed: those of this session; the toolkit's own knows all."""
        everything = list(self._core.engine.suspended.values())
        return everything if self._wider is None else [call for call in everything if call._state.session is self]

    def __repr__(self) -> str:
        return f"Session({len(self)} tools, groups={list(self.active_groups)}, agent={self.agent!r})"
