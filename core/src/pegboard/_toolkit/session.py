"""Sessions: one user's overlay of a toolkit, and the surface that both share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, final

from attrs import evolve

from pegboard._base.effects import is_interrupt
from pegboard._base.errors import PegboardError, ToolError, UnknownNameError
from pegboard._base.names import SEARCH_TOOL, check_name
from pegboard._board.board import View, groups_of
from pegboard._board.overlay import META_TOOL, PARAMETER, GroupFace, Overlay
from pegboard._execution.bound_tool import BoundTool, Unavailable
from pegboard._injection.context import Scope
from pegboard._injection.presets import Preset, read_presets
from pegboard._model.call import ToolCall
from pegboard._model.policy import ExecutionPolicy, Permission
from pegboard._model.result import Status
from pegboard._model.tool import Tool
from pegboard._toolkit.calls import Calls
from pegboard._toolkit.state import OFF_BOARD, ToolkitState, replaces

if TYPE_CHECKING:
    from pegboard._base.names import Names
    from pegboard._board.views import Rename, ViewRules
    from pegboard._model.facts import ToolSchema
    from pegboard._model.program import Group, Manager, Toolset
    from pegboard.builtin.search import Index


class Surface(Calls):
    """What a toolkit and its sessions share, said of `_caller`: a session is its own, a toolkit's is its root session.

    Everything is looked up in the board of now; what costs more than a look is remembered until something changes.
    """

    __slots__ = ()

    _root: Session

    @property
    def _caller(self) -> Session:
        return self._root

    # Sessions --------------------------------------------------------------------------------------------------

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
        session = Session(wider._core, wider=wider, context=context, policy=policy, approver=approver, agent=agent)
        if presets:
            for tool, values in presets.items():
                session.set_presets(tool, values)
        if groups is not None:
            session.set_active_groups(groups)
        return session

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
        from pegboard._base.names import listed
        from pegboard._board.views import ViewRules

        wider = self._caller
        included = None if include is None else listed(include)
        rules = ViewRules(included, listed(exclude), frozenset(listed(tags)) or None, prefix, rename, where)
        session = Session(wider._core, wider=wider, rules=rules)
        rules.check(wider._view, session._view)
        check_name(session._overlay.search_name)
        return session

    # Looking ---------------------------------------------------------------------------------------------------

    @property
    def tools(self) -> list[Tool]:
        """The tools offered now, in board order, as this session's model sees them.

        Of many deferred tools only those that were found; `search_tools` comes last then.
        """
        session = self._caller
        return list(session._listing().tools)

    @property
    def all_tools(self) -> list[Tool]:
        """Every tool on the board, offered or not."""
        session = self._caller
        return [session.seen(tool) for tool in session._view.tools.values()]

    @property
    def toolsets(self) -> list[Toolset]:
        """The toolsets (classes with `@tool` methods), their tools as this session's model sees them."""
        session = self._caller
        view = session._view
        seen = (
            evolve(each, tools=tuple(session.seen(tool) for tool in each.tools if view.name_of(tool) is not None))
            for each in view.board.toolsets
        )
        return [each for each in seen if each.tools]

    def __getitem__(self, name: str) -> Tool:
        return self._caller.tool(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._caller._find(name) is not None

    def __len__(self) -> int:
        return len(self._caller._view.tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.all_tools)

    def schemas(self, dialect: str | None = None) -> list[Any]:
        """What to show the model: `ToolSchema`s, or a provider's own definitions with `dialect=`.

        Raises `UnknownNameError` for a dialect that no installed pack provides.
        """
        session = self._caller
        if dialect is None:
            schemas: list[ToolSchema] = session._remember("schemas", session._schemas)
            return list(schemas)
        return session._core.dialect(dialect).tools(session.tools)

    def search(self, query: str, limit: int = 5) -> list[Tool]:
        """The deferred tools that fit best, best first; they are listed in this session from now on.

        Tools that are not permitted are left out. This is what the tool `search_tools` does.
        """
        session = self._caller
        index: Index = session._remember("index", session._make_index)
        found = [session.tool(name) for name in index.search(query, limit)]
        session._find_tools(found)
        return found

    @property
    def deferred_tools(self) -> list[Tool]:
        """The deferred tools that may be found: those offered, found ones too, that are permitted."""
        session = self._caller
        permissions = session.permissions
        return [tool for tool in session._listing().deferred if permissions[tool.name] is not Permission.NEVER]

    def add_found_tools(self, *names: str) -> None:
        """List deferred tools from now on, as `search` does with what it finds. Raises `UnknownNameError`."""
        session = self._caller
        session._find_tools([session._tool(name) for name in names])

    @property
    def found_tools(self) -> tuple[str, ...]:
        """The names of the deferred tools that were found and are therefore listed, in board order."""
        session = self._caller
        return tuple(tool.name for tool in session._listing().deferred if session._overlay.has_found(tool))

    def forget_found_tools(self) -> None:
        """Leave out again what was found in this session; what the wider session found stays listed."""
        self._caller._overlay.forget_found()
        self._caller._changed()

    def read_output(self, handle: str, offset: int = 0) -> str:
        """A page of output that was too long to be shown at once, with `overflow="spill"`. Raises `ToolError`."""
        spill = self._caller._core.engine.outcomes.spill
        if spill is None:
            raise ToolError(f"no output {handle!r} is kept: long output is cut here")
        return spill.read(handle, offset)

    # Groups ----------------------------------------------------------------------------------------------------

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, in the order in which they were created."""
        return self._caller._core.groups.all()

    @property
    def active_groups(self) -> tuple[str, ...]:
        """The names of the groups that are active in this session; those of a toolkit in its root session."""
        return self._caller._overlay.active_groups()

    def update_groups(self, names: Names, active: bool) -> None:
        """Activate or deactivate groups, all or none. Raises `UnknownNameError` naming the known groups."""
        self._caller._overlay.update_groups(names, active)
        self._caller._changed()

    def set_active_groups(self, names: Names, *, managed_by: Manager | None = None) -> None:
        """Make exactly these groups active: of all groups, or of those that the model or the program manages.

        Said of all groups, it holds in a session for groups that are created later too: they are inactive there.
        """
        self._caller._overlay.set_active_groups(names, managed_by)
        self._caller._changed()

    # Presets and permissions -----------------------------------------------------------------------------------

    def set_presets(self, name: str, values: Mapping[str, Any]) -> None:
        """Replace the presets of a tool; the schema follows at once.

        Raises `UnknownNameError`, and `RegistrationError` naming the parameter.
        """
        self._caller._preset(name, values, merge=False)

    def update_presets(self, name: str, values: Mapping[str, Any]) -> None:
        """Add to the presets of a tool; a value of None is a preset of None."""
        self._caller._preset(name, values, merge=True)

    @property
    def permissions(self) -> dict[str, Permission]:
        """The permission of every tool by name."""
        session = self._caller
        explicit = session._overlay.permission_of
        return {name: explicit(tool) or tool.permission for name, tool in session._view.tools.items()}

    def set_permission(self, name: str, permission: str) -> None:
        """`"always"`, `"prompt"` or `"never"`; saved with `Toolkit(permissions=path)`.

        Raises `UnknownNameError`, and ValueError for another word.
        """
        session = self._caller
        session._overlay.set_permission(session._tool(name), Permission(permission))
        session._changed()


@final
class Session(Surface):
    """Owns group activation, presets, approver, permissions, policy, context and agent of one user of a toolkit.

    Get one from `toolkit.session(...)`; a toolkit has a root session that it delegates to. What a session does not
    say is as in the wider one, and nothing that it says leaks into another. Made by `view(...)`, it shows some of the
    tools, or shows them under other names; these are its only names then.
    """

    def __init__(
        self,
        core: ToolkitState,
        *,
        wider: Session | None = None,
        context: Any = (),
        policy: ExecutionPolicy | None = None,
        approver: Callable[..., Any] | None = None,
        agent: Any = None,
        permissions: str | os.PathLike[str] | None = None,
        rules: ViewRules | None = None,
    ) -> None:
        self._core = core
        self._narrowed = False
        if wider is None:
            self._overlay = Overlay(core.groups, None, policy, approver, permissions=permissions)
            around = None if agent is None else Scope((agent,), level="agent")
            self.scope = Scope(context, wider=around)
            self.agent = agent
        else:
            wider._narrowed = True
            self._overlay = Overlay(core.groups, wider._overlay, policy, approver, rules)
            self.scope = wider.scope if agent is None else Scope((agent,), level="agent", wider=wider.scope)
            if type(context) is not tuple or context:
                self.scope = Scope(context, level="session", wider=self.scope)
            self.agent = wider.agent if agent is None else agent
        self._cache: dict[str, BoundTool] = {}
        self._memo: dict[str, Any] = {}
        self._generation = -1

    @property
    def _caller(self) -> Session:
        return self

    # What this session decides ---------------------------------------------------------------------------------

    @property
    def approver(self) -> Callable[..., Any] | None:
        """Answers requests for approval; the wider session's if this one has none."""
        return next((each.approver for each in self._overlay.chain() if each.approver), None)

    @approver.setter
    def approver(self, approver: Callable[..., Any] | None) -> None:
        self._overlay.approver = approver

    @property
    def policy(self) -> ExecutionPolicy:
        """The merged execution policy."""
        return self._overlay.policy

    @property
    def toolkit(self) -> Any:
        """The toolkit that this is a session of."""
        return self._core.toolkit

    @property
    def pending(self) -> list[ToolCall]:
        """The suspended calls whose answers are owed: those of this session; the toolkit's own knows all."""
        everything = list(self._core.engine.suspended.values())
        if self._overlay.parent is None:
            return everything
        return [call for call in everything if call._state.session is self]

    def presets_of(self, name: str) -> dict[str, Preset]:
        """The presets of a tool; their repr shows no values."""
        return self._overlay.presets_of(self._tool(name))

    def check_presets(self, tool: Tool, values: Mapping[str, Any]) -> dict[str, Preset]:
        """What `set_presets` would set, or raise, for a tool that does not hang yet."""
        return read_presets(tool, values, override=self._core.preset_override)

    def _preset(self, name: str, values: Mapping[str, Any], *, merge: bool) -> None:
        tool = self._tool(name)
        self.hold_presets(tool, self.check_presets(tool, values), merge=merge)

    def hold_presets(self, tool: Tool, presets: dict[str, Preset], *, merge: bool = False) -> None:
        """Set presets that were checked, for a tool that hangs there."""
        self._overlay.set_presets(tool, presets, merge=merge)
        self._changed()

    def forget(self, tools: Iterable[str]) -> None:
        """Drop what tools that are taken down were allowed; whatever else is said of them ends by itself."""
        self._overlay.forget_allowed(tools)

    def _changed(self) -> None:
        """What this session says has changed: what it keeps ready is made anew, and what narrower ones keep."""
        if self._narrowed:
            self._core.registry.touched()
        # Others, not emptied ones: whoever is at work fills the old ones, with what held when he began.
        self._cache, self._memo = {}, {}

    # What it shows ---------------------------------------------------------------------------------------------

    def tool(self, name: str) -> Tool:
        """The tool of that name as this session's model sees it. Raises `UnknownNameError` with the nearest names."""
        return self.seen(self._tool(name))

    def seen(self, tool: Tool) -> Tool:
        """A tool that hangs there as this session's model sees it: under its name here, without what presets fill."""
        changes: dict[str, Any] = {}
        if (name := self._name_of(tool)) != tool.name:
            changes["name"] = name
        if presets := self._overlay.presets_of(tool):
            changes["hidden"] = frozenset(presets)
        if tool.definition.face is not None:
            changes["definition"] = tool.definition.facing(GroupFace(self._overlay))
        return tool.evolve(**changes) if changes else tool

    @property
    def problems(self) -> list[str]:
        """What is wrong with this session's tools, a sentence each."""
        view = self._view
        problems = [str(error) for _, error in sorted(view.refused.items())]
        # Asked first, because to make the listing imports what is named by import strings.
        rival = self._listing().rival if self._overlay.search_name in view.tools else None
        if rival is not None:
            problems.append(
                f"all deferred tools are listed, for {rival.name!r} ({rival.origin}) has the name of the search for "
                "them; give it another one"
            )
        return problems

    @property
    def _view(self) -> View:
        return self._overlay.view(self._core.registry.board)

    def _listing(self) -> _Listing:
        listing: _Listing = self._remember("listing", self._make_listing)
        return listing

    def _make_listing(self) -> _Listing:
        hanging, overlay = self._view.tools, self._overlay
        offered = [self.seen(tool) for tool in hanging.values() if overlay.offers(tool)]
        deferred = [tool for tool in offered if tool.options.defer]
        if len(deferred) <= self._core.defer_threshold:
            return _Listing(offered, deferred)
        search = hanging.get(overlay.search_name)
        if search is not None and not replaces(search, SEARCH_TOOL):
            return _Listing(offered, deferred, rival=search)
        listed = [tool for tool in offered if not tool.options.defer or overlay.has_found(tool)]
        own = [self.seen(self._core.search_tool)] if search is None else []
        return _Listing([*listed, *own], deferred, searches=bool(own))

    def _schemas(self) -> list[ToolSchema]:
        schemas = []
        for tool in self.tools:
            with suppress(PegboardError):  # its pack turns out to be broken on first use: it is not offered
                schemas.append(tool.schema())
        return schemas

    def _make_index(self) -> Index:
        from pegboard.builtin.search import tool_index

        return tool_index(self.deferred_tools)

    def _find_tools(self, tools: Iterable[Tool]) -> None:
        if self._overlay.add_found(tools):
            self._changed()

    def _name_of(self, tool: Tool) -> str:
        """The name here of a tool that hangs there, or of the search. The board is made for views alone."""
        if tool.name == OFF_BOARD:
            return self._overlay.search_name
        return (self._view.name_of(tool) if self._overlay.is_view else None) or tool.name

    def _find(self, name: str) -> Tool | None:
        """The tool of that name as it hangs on the board; in a view there are no aliases."""
        overlay = self._overlay
        found = self._view.tools.get(name) if overlay.is_view else self._core.registry.find(name)
        if found is None and name == overlay.search_name and self._listing().searches:
            return self._core.search_tool
        return found

    def _tool(self, name: str) -> Tool:
        tool = self._find(name)
        if tool is None:
            raise UnknownNameError(self._absence(name))
        return tool

    def _absence(self, name: str) -> str:
        return self._view.absence(name) if self._overlay.is_view else self._core.absence(name)

    def _remember(self, key: str, compute: Callable[[], Any]) -> Any:
        self._refresh()
        memo = self._memo
        if key not in memo:
            memo[key] = compute()
        return memo[key]

    def _refresh(self) -> None:
        generation = self._core.registry.generation
        if self._generation != generation:
            self._cache = {}
            self._memo = {}
            self._generation = generation

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
        if not self._overlay.offers(tool):
            return self._inactive(name, groups_of(tool))
        explicit = self._overlay.permission_of(tool)
        shown = self._name_of(tool)
        named = tool if shown == tool.name else tool.evolve(name=shown)
        # What others decide about a tool they decide by its name on the board, whatever a view calls it.
        judged = named if tool.name == OFF_BOARD else tool
        return BoundTool(
            named,
            self._overlay.presets_of(tool),
            self.policy,
            explicit or tool.permission,
            self._core.middleware_for(judged),
            self._core.limits_for(judged),
            self._core.engine.stats.of(shown),
            explicit_permission=explicit is not None,
            max_output=self._core.engine.outcomes.max_output,
            backend=self._core.engine.backend_of(tool),
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
        if tool is None or not is_meta_tool(tool):
            return None
        return None if self._overlay.permission_of(tool) is Permission.NEVER else self._view.name_of(tool)

    def __repr__(self) -> str:
        return f"Session({len(self)} tools, groups={list(self.active_groups)}, agent={self.agent!r})"


class _Listing(NamedTuple):
    """What a session shows: the `tools`, with the search if it `searches`, and of all offered the `deferred` ones.

    While there are many of these, only those that were found are listed. `rival` is the tool that has the name of the
    search, for which everything has to be listed.
    """

    tools: list[Tool]
    deferred: list[Tool]
    searches: bool = False
    rival: Tool | None = None


def is_meta_tool(tool: Tool) -> bool:
    """Whether it is the tool that switches groups, and not another one of its name."""
    return tool.definition.face is not None or replaces(tool, META_TOOL)
