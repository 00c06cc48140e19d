"""The catalog: what one session shows of the board, and makes ready for calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from pegboard._base.effects import guarded, pass_interrupt
from pegboard._base.errors import PegboardError, UnknownNameError
from pegboard._base.names import SEARCH_TOOL
from pegboard._board.board import View, groups_of
from pegboard._board.overlay import META_TOOL, PARAMETER, Overlay
from pegboard._execution.bound import BoundTool, Unavailable
from pegboard._injection.context import Scope
from pegboard._model.call import ToolCall
from pegboard._model.policy import ExecutionPolicy, Permission
from pegboard._model.result import Status
from pegboard._model.tool import Tool, ToolSchema
from pegboard._toolkit.state import OFF_BOARD, ToolkitState, replaces
from pegboard._tools.signature import shown_context
from pegboard.extension import SuspendedCalls

T = TypeVar("T")
_refreshing: Final = threading.Lock()
guarded(_refreshing)


class _Listing(NamedTuple):
    """What a session shows: the `tools`, with the search if it `searches`, and of all offered the `deferred` ones.

    While there are many of these, only those that were found are listed. `rival` is the tool that has the name of the
    search, for which everything has to be listed. `apps` are offered too, to pages of MCP Apps alone.
    """

    tools: list[Tool]
    deferred: list[Tool]
    apps: list[Tool]
    searches: bool = False
    rival: Tool | None = None


class Reveal(NamedTuple):
    """What a session ever listed and still has, in order of reveal, and the names that it listed at first."""

    tools: list[Tool]
    first: frozenset[str]


class Catalog(Overlay):
    """What a session sets, and which tools follow from it: under which names, which are listed, and how they run.

    It stands on the board of now and on what the session says of it; what costs more than a look is remembered until
    either changes.
    """

    _generation = -1
    shared: SuspendedCalls | None = None  # where its suspended calls are kept for other programs too

    def __init__(
        self,
        core: ToolkitState,
        parent: Overlay | None,
        scope: Scope,
        agent: Any,
        subject: Any = None,
        id: str | None = None,  # noqa: A002 - the session's own name
        policy: ExecutionPolicy | None = None,
        approver: Callable[..., Any] | None = None,
        shows: Callable[[View], View] | None = None,
        prefix: str = "",
    ) -> None:
        super().__init__(core.groups, core.guards, parent, policy, approver, shows, prefix)
        self._core = core
        self.scope = scope
        self.agent = agent
        self.subject = subject
        self.id = id
        self._cache: dict[str, BoundTool] = {}
        self._memo: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Tool:
        """The tool of that name as this session's model sees it. Raises `UnknownNameError` with the nearest names."""
        return self.seen(self._tool(name))

    def seen(self, tool: Tool) -> Tool:
        """A registered tool as this session's model sees it: under its name here, without what presets fill."""
        changes: dict[str, Any] = {}
        if (name := self._name_of(tool)) != tool.name:
            changes["name"] = name
        if presets := self._presets_for(tool):
            changes["hidden"] = frozenset(presets)
        if tool.face is not None:
            changes["face"] = tool.face.of(self)
        return tool.evolve(**changes) if changes else tool

    @property
    def problems(self) -> list[str]:
        """What is wrong with this session's tools, a sentence each."""
        view = self._view
        problems = [*(str(error) for _, error in sorted(view.refused.items())), *self._exposed(view)]
        for name, tool in view.tools.items():
            if withheld := self._withheld(tool):
                problems.append(withheld)
            if again := self._asks_again(tool):
                how = f'to allow it as it is now: set_permission({name!r}, "always")'
                problems.append(f"{name!r} asks again: {again}; {how}")
        # Asked first, because to make the listing imports what is named by import strings.
        rival = self._listing().rival if self._search_name in view.tools else None
        if rival is not None:
            problems.append(
                f"all deferred tools are listed, for {rival.name!r} ({rival.origin}) has the name of the search for "
                "them; give it another one"
            )
        return problems

    def _exposed(self, view: View) -> Iterator[str]:
        """The parameters that a model is asked for, although objects of their classes are in this session's context."""
        assembly = self._core.assembly
        given = self.scope.classes() - assembly.injectors.in_context  # for these the registration was refused
        loaded = [(name, tool) for name, tool in view.tools.items() if given and tool.definition.is_loaded]
        for name, tool in loaded:
            for each in self.seen(tool).params:
                if each.source == "model" and (problem := shown_context(each.annotation, given, assembly.types)):
                    yield f"tool {name!r}: parameter {each.name!r}: {problem}"

    @property
    def _view(self) -> View:
        return self._view_of(self._core.registry.board)

    def _listing(self) -> _Listing:
        return self._remember("listing", self._make_listing)

    def _make_listing(self) -> _Listing:
        registered = self._view.tools
        everything = [self.seen(tool) for tool in registered.values() if self._offers(tool)]
        apps = [tool for tool in everything if tool.for_apps_only]
        offered = [tool for tool in everything if not tool.for_apps_only] if apps else everything
        deferred = [tool for tool in offered if tool.options.defer]
        if len(deferred) <= self._core.options.defer_threshold:
            return _Listing(offered, deferred, apps)
        search = registered.get(self._search_name)
        if search is not None and not replaces(search, SEARCH_TOOL):
            return _Listing(offered, deferred, apps, rival=search)
        listed = [tool for tool in offered if not tool.options.defer or self._has_found(tool)]
        own = [self.seen(self._core.search_tool)] if search is None else []
        return _Listing([*listed, *own], deferred, apps, searches=bool(own))

    def _listed(self) -> list[Tool]:
        """The tools to list, in order of reveal: nothing that was listed moves, so that providers' caches keep it."""
        return self._remember("listed", self._in_order)

    def _in_order(self) -> list[Tool]:
        tools = self._listing().tools
        places = self._show([tool.name for tool in tools], self._core.registry.board)
        return sorted(tools, key=lambda tool: places[tool.name])

    def reveal(self) -> Reveal:
        """The tools that were ever listed here and are registered still, whether they are offered now or not.

        None that a guard keeps back.
        """
        return self._remember("reveal", self._make_reveal)

    def _make_reveal(self) -> Reveal:
        listed = {tool.name: tool for tool in self._listed()}
        tools, shown = [], tuple(self._shown or ())
        for name in shown:
            found = None if name in listed else self._find(name)
            if name in listed:
                tools.append(listed[name])
            elif found is not None and not (found.for_apps_only or self._withheld(found)):
                tools.append(self.seen(found))
        return Reveal(tools, frozenset(shown[: self._first_shown]))

    def why_listed(self, tool: Tool) -> str:
        """Why a tool is listed here: for its group, a search, or because it is registered."""
        if active := [name for name in groups_of(tool) if self._is_active(name)]:
            return f"group {active[0]!r} is active"
        if tool.options.defer and self._has_found(tool):
            return "a search found it"
        return f"registered by {tool.origin}"

    def why_unlisted(self, tool: Tool) -> str:
        """Why a tool that was listed here is not listed now."""
        found = self._find(tool.name)
        if found is None:
            return f"no longer registered by {tool.origin}"
        if withheld := self._withheld(found):
            return withheld
        if not self._offers(found):
            return f"group {groups_of(found)[0]!r} is not active"
        return "no search found it"

    def _schemas(self) -> list[ToolSchema]:
        schemas = []
        for tool in self._listed():
            with suppress(PegboardError):  # its pack turns out to be broken on first use: it is not offered
                schemas.append(tool.schema())
        return schemas

    def _find_tools(self, tools: Iterable[Tool]) -> None:
        if self._add_found(tools):
            self._changed()

    def _name_of(self, tool: Tool) -> str:
        """The name here of a registered tool, or of the search. The board is made for views alone."""
        if tool.name == OFF_BOARD:
            return self._search_name
        return (self._view.name_of(tool) if self.is_view else None) or tool.name

    def _find(self, name: str) -> Tool | None:
        """The tool of that name as it is registered; in a view there are no aliases."""
        found = self._view.tools.get(name) if self.is_view else self._core.registry.find(name)
        if found is None and name == self._search_name and self._listing().searches:
            return self._core.search_tool
        return found

    def _tool(self, name: str) -> Tool:
        tool = self._find(name)
        if tool is None:
            raise UnknownNameError(self._absence(name))
        return tool

    def _absence(self, name: str, *, brief: bool = False) -> str:
        return self._view.absence(name) if self.is_view else self._core.absence(name, brief=brief)

    def _remember(self, key: str, compute: Callable[[], T]) -> T:
        self._refresh()
        memo: dict[str, T] = self._memo
        if key not in memo:
            memo[key] = compute()
        return memo[key]

    def _refresh(self) -> None:
        generation = self._core.registry.generation
        if self._generation != generation:
            with _refreshing:  # of two threads, one must not throw away what the other has made ready by then
                if self._generation != generation:
                    self._cache, self._memo = {}, {}
                    self._generation = generation

    def _changed(self) -> None:
        """What this session says has changed: what it keeps ready is made anew, and what narrower ones keep."""
        if self._is_parent:
            self._core.registry.touched()
        # New ones, not emptied ones: a thread that is at work fills the old ones, with what held when it began.
        self._cache, self._memo = {}, {}

    # What it decides -------------------------------------------------------------------------------------------

    @property
    def toolkit(self) -> Any:
        """The toolkit that this is a session of."""
        return self._core.toolkit

    @property
    def pending(self) -> list[ToolCall]:
        """The suspended calls whose answers are owed: those of this session; the toolkit's own knows all."""
        ending = self._core.runner.ending
        for shared in list(ending.shared):
            restore = getattr(shared, "restore", None)
            if restore is None:
                shared.refresh()
            else:
                restore(self)
        everything = list(ending.suspended.values())
        if self._parent is None:
            return everything
        return [call for call in everything if call._state.session is self]

    # Calls -----------------------------------------------------------------------------------------------------

    def ready(self, name: Any) -> BoundTool | Unavailable:
        """The tool made ready for calls, or why it cannot be called. Never raises."""
        self._refresh()
        if not isinstance(name, str):
            message = f"a tool is called by its name, got a {type(name).__name__}"
            return Unavailable(Status.NOT_FOUND, "not_found", message)
        cache = self._cache
        try:
            found = cache.get(name) or self._make_ready(name)
        except BaseException as error:  # noqa: BLE001 - reading a tool runs its module and its annotations
            pass_interrupt(error)
            return Unavailable.unusable(name, error)
        return cache.setdefault(name, found) if isinstance(found, BoundTool) else found

    def holds(self, bound: BoundTool) -> bool:
        """Whether nothing was decided anew since that tool was made ready."""
        return self._generation == self._core.registry.generation and self._cache.get(bound.asked) is bound

    def _make_ready(self, name: str) -> BoundTool | Unavailable:
        tool = self._find(name)
        if tool is None:
            absent = self._absence
            return Unavailable(Status.NOT_FOUND, "not_found", absent(name, brief=True), {"remedy": absent(name)})
        if withheld := self._withheld(tool):
            message = f"{name} cannot be called: it is not offered here"
            return Unavailable(Status.DENIED, "denied", message, {"remedy": withheld})
        if not self._offers(tool):
            return self._inactive(name, groups_of(tool))
        shown = self._name_of(tool)
        named = tool if shown == tool.name else tool.evolve(name=shown)
        # Middleware and limits know a tool by its registered name, whatever a view calls it.
        judged = named if tool.name == OFF_BOARD else tool
        return BoundTool(
            named,
            self._presets_for(tool),
            self.policy,
            *self._standing(tool),
            [each for each in self._core.middleware if each.applies is None or each.applies(judged)],
            self._core.limits_for(judged),
            self._core.engine,
            name,
        )

    def _inactive(self, name: str, groups: tuple[str, ...]) -> Unavailable:
        """Why a tool of those groups cannot be called. The model reads of a group only where it may switch it."""
        named = ", ".join(map(repr, groups))
        missing = sorted(set(groups) - {group.name for group in self._core.groups.all()})
        create = f"create_group({missing[0]!r}, ...), for there is no such group yet, and " if missing else ""
        remedy = f"{create}update_groups([{named}], True)"
        switchable = [group.name for group in self._core.groups.all("model") if group.name in groups]
        tool = self._core.registry.find(META_TOOL) if switchable else None
        may_switch = tool is not None and is_meta_tool(tool) and self._standing(tool)[0] != Permission.NEVER
        meta = self._view.name_of(tool) if tool is not None and may_switch else None
        how = f"to activate it, call {meta}, with {switchable[0]!r} in {PARAMETER}" if meta else "go on without it"
        reason = f"its {'groups are' if len(groups) > 1 else 'group is'} not active: {named}"
        message = f"{name} is not available now; {how}"
        return Unavailable(Status.INACTIVE, "inactive", message, {"reason": reason, "remedy": remedy})


def is_meta_tool(tool: Tool) -> bool:
    """Whether it is the tool that switches groups, and not another one of its name."""
    return (tool.face is not None and tool.face.own) or replaces(tool, META_TOOL)
