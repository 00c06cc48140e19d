"""Sessions: one user's overlay of a toolkit; the toolkit itself is one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from attrs import evolve

from pegboard._base.effects import ClosedError
from pegboard._base.errors import PegboardError, ToolError
from pegboard._base.names import SEARCH_TOOL, check_name, listed
from pegboard._board.board import View
from pegboard._board.overlay import ViewRules
from pegboard._execution.bound import BoundTool
from pegboard._execution.runner import NOTHING_GIVEN
from pegboard._injection.context import Scope
from pegboard._injection.presets import Preset
from pegboard._model.call import Listener, ToolCall
from pegboard._model.policy import ExecutionPolicy, Permission
from pegboard._model.result import ToolResult
from pegboard._model.tool import Tool, ToolSchema
from pegboard._toolkit.catalog import Catalog
from pegboard._toolkit.state import replaces
from pegboard.extension import BoundDialect, SuspendedCalls

if TYPE_CHECKING:
    from pegboard._base.names import Names, Rename
    from pegboard._execution.streaming import Batch, Event
    from pegboard._model.program import Group, Manager, Toolset

_NOTHING: Final = ()  # the one empty tuple that there is


class Session(Catalog):
    """Owns group activation, presets, approver, permissions, policy, context and agent of one user of a toolkit.

    Get one from `toolkit.session(...)`, not by its constructor; a toolkit is its own root session. What a session does
    not set is as in the wider one, and nothing that it sets leaks into another. Made by `view(...)`, it shows some of
    the tools, or shows them under other names; these are its only names then.

    Args:
        core: State of the toolkit. The parameters of the constructor are for the toolkit itself.
        parent: The wider session.
        scope: Where the context of its calls is looked up.
        agent: The agent that calls.
        subject: For whom the session acts.
        id: Name of the session over restarts.
        policy: Its own policy.
        approver: Its own approver.
        shows: What a view shows of the wider one. None for all.
        prefix: Text in front of the names in a view.
    """

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
        subject: Any = None,
        id: str | None = None,  # noqa: A002 - the session's own name
        shown: Names | None = None,
    ) -> Session:
        """Make a session: one user's presets, active groups, approver, permissions, policy and context.

        What is left out is as in the session that it is made from.

        Args:
            context: Objects that tools get by type, before those of the wider session: one, several in a list or tuple,
                or a mapping by name or class.
            presets: Values of parameters, as `{tool: {parameter: value}}`, before those of the toolkit.
            groups: The groups that are active, exactly these, whatever is created later. None: as in the wider session.
            policy: Timeout and retries, before those of the toolkit.
            approver: Who decides on calls that need approval. None: as in the wider session.
            agent: The object that tools with an `Agent` parameter get.
            subject: For whom the session acts. Middleware, logs and journals read it; no model does.
            id: Name of the session over restarts of the program, for the same readers.
            shown: Names of tools in the order of an earlier session, from its `shown`. Deferred tools among them count
                as found, unknown names are ignored.
        """
        scope = self.scope if agent is None else Scope((agent,), level="agent", wider=self.scope)
        if type(context) is not tuple or context:
            scope = Scope(context, level="session", wider=scope)
        session = Session(
            self._core,
            self,
            scope,
            self.agent if agent is None else agent,
            self.subject if subject is None else subject,
            self.id if id is None else id,
            policy,
            approver,
        )
        if presets:
            for tool, values in presets.items():
                session.set_presets(tool, values)
        if groups is not None:
            session.set_active_groups(groups)
        if shown is not None:
            session.shown = listed(shown)
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
        """Make a narrower session that shows some of the tools only, or shows them under other names.

        Tools that are not shown do not exist in the view. It follows the board. Raises `UnknownNameError` for a name
        that no tool has, `ConflictError` for two tools of one name, and `RegistrationError` for a name that providers
        refuse.

        Args:
            include: Names or patterns such as `files_*` of the tools to show; a pack's tools also as `<pack>__<name>`.
                None for all.
            exclude: Names or patterns of tools to leave out.
            tags: Tags, of which a tool must have one. Empty for no such condition.
            prefix: Text in front of every name.
            rename: Other names, as a mapping or a function of the name.
            where: Predicate over a `Tool`; it is asked once for each state of the board.
        """
        included = None if include is None else listed(include)
        rules = ViewRules(included, listed(exclude), listed(tags), prefix, rename, where)
        session = self._showing(rules.applied, prefix)
        rules.check(self._view, session._view)
        check_name(session._search_name)
        return session

    def through(self, view: Session) -> Session:
        """This session with the tools and names of a view instead of its own, whatever it shows; the rest is as here.

        For a tool that calls others in the name of its caller, who need not be shown them.
        """
        return self._showing(lambda wider: view._view_of(wider.board))

    def _showing(self, shows: Callable[[View], View], prefix: str = "") -> Session:
        return Session(self._core, self, self.scope, self.agent, self.subject, self.id, shows=shows, prefix=prefix)

    # Looking ---------------------------------------------------------------------------------------------------

    @property
    def tools(self) -> list[Tool]:
        """The tools offered now, as this session's model sees them, in order of reveal.

        The first look is in board order. What was listed keeps its place, and what comes later follows: a provider's
        cache keeps what did not move. Of many deferred tools only those that were found, and `search_tools`.
        """
        return list(self._listed())

    @property
    def app_tools(self) -> list[Tool]:
        """The tools offered now to pages of MCP Apps alone: listed to no model, and called by the program."""
        return list(self._listing().apps)

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the tools in the order in which this session first listed them, removed ones too.

        Set it to go on with the order of another session; deferred tools among the names count as found.
        """
        return tuple(self._shown or ())

    @shown.setter
    def shown(self, names: Iterable[str]) -> None:
        self._go_on_with(names)
        registered = (self._find(name) for name in self.shown)
        self._find_tools([tool for tool in registered if tool is not None and tool.options.defer])
        self._changed()

    @property
    def all_tools(self) -> list[Tool]:
        """Every tool on the board, offered or not."""
        return [self.seen(tool) for tool in self._view.tools.values()]

    @property
    def toolsets(self) -> list[Toolset]:
        """The toolsets (classes with `@tool` methods), their tools as this session's model sees them."""
        view = self._view
        seen = (
            evolve(each, tools=tuple(self.seen(tool) for tool in each.tools if view.name_of(tool) is not None))
            for each in view.board.toolsets
        )
        return [each for each in seen if each.tools]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __len__(self) -> int:
        return len(self._view.tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.all_tools)

    @overload
    def schemas(self, dialect: None = None) -> list[ToolSchema]: ...
    @overload
    def schemas(self, dialect: str) -> list[Any]: ...

    def schemas(self, dialect: str | None = None) -> list[Any]:
        """List what to show the model.

        Raises `UnknownNameError` for a dialect that no installed pack provides.

        Args:
            dialect: Name of a provider's format, such as `"openai"`, for that provider's definitions. None for
                `ToolSchema`s.
        """
        if dialect is not None:
            return self.dialect(dialect).tools()
        return list(self._remember("schemas", self._schemas))

    def dialect(self, name: str) -> BoundDialect:
        """A provider's format over what is offered here: definitions for requests, calls from responses, answers.

        Raises `UnknownNameError` naming the dialects that there are.

        Args:
            name: Name of the format, such as `"openai"`, `"anthropic"` or `"gemini"`.
        """
        return BoundDialect(self._core.dialect(name), self)

    def search(self, query: str, limit: int = 5) -> list[Tool]:
        """Find the deferred tools that fit best, best first; they are listed in this session from now on.

        Tools that are not permitted are left out. This is what the tool `search_tools` does; where a pack or the
        program replaces that tool, it is called, and what its result names was found. Raises `PegboardError` with its
        text where it ends as an error.

        Args:
            query: Words that the tools' names and descriptions may have.
            limit: Most tools to find.
        """
        from pegboard.builtin.search import tool_index

        search = self._find(self._search_name)
        if search is not None and replaces(search, SEARCH_TOOL):
            return self._found_by(self.seen(search), query, limit)
        index = self._remember("index", lambda: tool_index(self.deferred_tools))
        found = [self[name] for name in index.search(query, limit)]
        self._find_tools(found)
        return found

    def _found_by(self, search: Tool, query: str, limit: int) -> list[Tool]:
        """What another search finds: it names or describes tools in its result, or only lists them from now on."""
        takes, before = list(search.parameters["properties"]), self.found_tools
        arguments = {"query" if "query" in takes else "".join(takes[:1]): query, "limit": limit}
        result = self.call_sync(search.name, {name: arguments[name] for name in takes if name in arguments})
        if result.is_error:
            raise PegboardError(result.text)
        listed = result.data if isinstance(result.data, list) else []
        names = [each.get("name") if isinstance(each, dict) else each for each in listed]
        new = [name for name in self.found_tools if name not in before]
        found = [self[str(name)] for name in dict.fromkeys([*names, *new]) if name in self]
        self._find_tools(found)
        return found

    @property
    def deferred_tools(self) -> list[Tool]:
        """The deferred tools that may be found: those offered, found ones too, that are permitted."""
        permissions = self.permissions
        return [tool for tool in self._listing().deferred if permissions[tool.name] is not Permission.NEVER]

    def add_found_tools(self, *names: str) -> None:
        """List deferred tools from now on, as `search` does with what it finds. Raises `UnknownNameError`."""
        self._find_tools([self._tool(name) for name in names])

    @property
    def found_tools(self) -> tuple[str, ...]:
        """The names of the deferred tools that were found and are therefore listed, in board order."""
        return tuple(tool.name for tool in self._listing().deferred if self._has_found(tool))

    def read_output(self, handle: str, offset: int = 0) -> str:
        """Read a page of output that was too long to be shown at once, with `overflow="spill"`.

        It can be read in the session whose call made it, and in those that this one was made from. Raises `ToolError`,
        with the same words for output that is not kept and for that of another session.

        Args:
            handle: The handle that the text of the result names.
            offset: Number of characters to skip.
        """
        spill = self._core.engine.results.spill
        if spill is None:
            raise ToolError(f"no output {handle!r} is kept: long output is cut here")
        return spill.read(handle, offset, next(self.lineage()))

    # Groups ----------------------------------------------------------------------------------------------------

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, in the order in which they were created."""
        return self._groups.all()

    @property
    def active_groups(self) -> tuple[str, ...]:
        """The names of the groups that are active in this session; those of a toolkit in its root session."""
        return tuple(group.name for group in self.groups if self._is_active(group.name))

    def update_groups(self, names: Names, active: bool) -> None:
        """Activate or deactivate groups, all or none. Raises `UnknownNameError` naming the known groups.

        Args:
            names: Name or names of the groups.
            active: Whether their tools are offered from now on.
        """
        wanted = self._groups.check(names)
        self._activate({group.entry: bool(active) for group in self.groups if group.name in wanted})
        self._changed()

    def set_active_groups(self, names: Names, *, managed_by: Manager | None = None) -> None:
        """Make exactly these groups active.

        Args:
            names: Name or names of the groups.
            managed_by: `"model"` or `"program"` leaves groups of the other manager as they are. None means all groups;
                in a session it then holds for groups that are created later too: they are inactive there.
        """
        wanted = self._groups.check(names, managed_by)
        self._activate({group.entry: group.name in wanted for group in self._groups.all(managed_by)})
        # Not the toolkit's own: `create_group(active=)` is said of it.
        self._closed = self._closed or (managed_by is None and self._parent is not None)
        self._changed()

    # Presets and permissions -----------------------------------------------------------------------------------

    def set_presets(self, name: str, values: Mapping[str, Any]) -> None:
        """Replace the presets of a tool; the schema follows at once.

        Raises `UnknownNameError`, and `RegistrationError` naming the parameter.

        Args:
            name: Name of the tool.
            values: Values by parameter, plain or as `Locked`, `Secret` or `Computed`.
        """
        self._preset(name, values, merge=False)

    def update_presets(self, name: str, values: Mapping[str, Any]) -> None:
        """Add to the presets of a tool. Raises as `set_presets` does.

        Args:
            name: Name of the tool.
            values: Values by parameter. None is a preset of None.
        """
        self._preset(name, values, merge=True)

    @property
    def permissions(self) -> dict[str, Permission]:
        """The permission of every tool by name."""
        return {name: self._standing(tool)[0] or tool.permission for name, tool in self._view.tools.items()}

    def set_permission(self, name: str | Tool, permission: Permission | Literal["always", "prompt", "never"]) -> None:
        """Set whether a tool runs, until the program ends; the pack `pegboard-policy` keeps permissions in a file.

        Raises `UnknownNameError`, `PegboardError` naming a guard that holds the tool, and ValueError for another word.

        Args:
            name: Name of the tool. A `Tool` instead, such as the one of an `ApprovalRequest`, is allowed as it was
                read: if another one is registered by now, or it has changed, it asks again.
            permission: `"always"` runs it without asking, `"prompt"` asks the approver, `"never"` denies each call.
        """
        tool = self._tool(name if isinstance(name, str) else name.name)
        read = tool if isinstance(name, str) else name.evolve(hidden=frozenset())
        self._set_permission(tool, Permission(permission), read)
        self._changed()

    # What this session decides ---------------------------------------------------------------------------------

    def presets_of(self, name: str) -> dict[str, Preset]:
        """The presets of a tool; their repr shows no values."""
        return self._presets_for(self._tool(name))

    def _preset(self, name: str, values: Mapping[str, Any], *, merge: bool) -> None:
        tool = self._tool(name)
        self._set_presets(tool, self._core.check_presets(tool, values), merge=merge)
        self._changed()

    # Calls -----------------------------------------------------------------------------------------------------

    def prepare(self, name: str | ToolCall, arguments: Any = None, *, call_id: str | None = None) -> ToolCall:
        """Make a call that may run later.

        Never raises: a bad call has its result already (`not_found`, `invalid`, ...).

        Args:
            name: Name of the tool, or a `ToolCall` that was read from a model's response.
            arguments: Mapping, JSON text or bytes; None or empty text for no arguments. Ignored for a `ToolCall`.
            call_id: Id of the call. None makes one.
        """
        call = name if isinstance(name, ToolCall) else ToolCall(call_id or "", name, arguments)
        return self._core.runner.prepare(self, call)

    def call_sync(
        self,
        name: str | ToolCall,
        arguments: Any = None,
        *,
        call_id: str | None = None,
        context: Any = (),
        agent: Any = None,
        on_chunk: Listener | None = None,
        policy: ExecutionPolicy | None = None,
    ) -> ToolResult:
        """Call a tool from plain code. Ends in one `ToolResult` whatever the tool does.

        Args:
            name: Name of the tool, or a `ToolCall`.
            arguments: Mapping, JSON text or bytes; None or empty text for no arguments.
            call_id: Id of the call. None makes one.
            context: Objects for this call, before those of the session.
            agent: The object that an `Agent` parameter gets in this call.
            on_chunk: Function that gets each `Chunk` of progress.
            policy: Timeout and retries of this call. It wins over those of tool, session and toolkit.
        """
        result: ToolResult = self._called(name, arguments, call_id, context, agent, on_chunk, policy, False)
        try:
            return result
        finally:  # what a tool raised keeps this frame, and would keep its own result through it
            del result

    def _called(
        self,
        name: Any,
        arguments: Any,
        call_id: str | None,
        context: Any,
        agent: Any,
        on_chunk: Any,
        policy: Any,
        on_loop: bool,
    ) -> Any:
        """Make a call: its result or, `on_loop`, perhaps what has to be awaited for it."""
        core = self._core
        if type(name) is not str:
            call = self.prepare(name, arguments, call_id=call_id)
            return core.runner.execute(call, (context, agent, on_chunk, policy), on_loop)
        if self._generation != core.registry.generation:
            self._refresh()
        bound = self._cache.get(name) or self.ready(name)
        if type(bound) is not BoundTool:
            return core.runner.absent(self, name, call_id, bound)
        nothing = context is _NOTHING and agent is None and on_chunk is None and policy is None
        given = NOTHING_GIVEN if nothing else (context, agent, on_chunk, policy)
        if on_chunk is None:
            return core.run(self, bound, arguments, call_id, given, on_loop)
        from pegboard._execution.streaming import heard

        return heard(partial(core.run, self, bound, arguments, call_id), given, on_loop)

    async def call(
        self,
        name: str | ToolCall,
        arguments: Any = None,
        *,
        call_id: str | None = None,
        context: Any = (),
        agent: Any = None,
        on_chunk: Listener | None = None,
        policy: ExecutionPolicy | None = None,
    ) -> ToolResult:
        """Call a tool. Ends in one `ToolResult` whatever the tool does; only the caller's own cancellation is raised.

        Args:
            name: Name of the tool, or a `ToolCall`.
            arguments: Mapping, JSON text or bytes; None or empty text for no arguments.
            call_id: Id of the call. None makes one.
            context: Objects for this call, before those of the session.
            agent: The object that an `Agent` parameter gets in this call.
            on_chunk: Function, sync or async, that gets each `Chunk` of progress.
            policy: Timeout and retries of this call. It wins over those of tool, session and toolkit.
        """
        result = self._called(name, arguments, call_id, context, agent, on_chunk, policy, True)
        while type(result) is not ToolResult:
            result = await result
        try:
            return result
        finally:  # as above
            del result

    async def call_many(
        self,
        calls: Iterable[Any],
        *,
        context: Any = (),
        agent: Any = None,
        on_chunk: Listener | None = None,
        policy: ExecutionPolicy | None = None,
        parallel: bool | None = None,
    ) -> list[ToolResult]:
        """Run several calls and return their results in the order of the calls.

        Raises `PegboardError` for an item that is no call, before any of them runs.

        Args:
            calls: `ToolCall`s, pairs `(name, arguments)`, or mappings with `name`, `arguments` and `id`.
            context: Objects for these calls, before those of the session.
            agent: The object that `Agent` parameters get in these calls.
            on_chunk: Function, sync or async, that gets each `Chunk` of progress.
            policy: Timeout and retries of these calls. It wins over those of tool, session and toolkit.
            parallel: Whether they run at the same time. None: as the toolkit says.
        """
        return await self._batch(calls, on_chunk, parallel, context=context, agent=agent, policy=policy).run()

    def call_many_sync(
        self,
        calls: Iterable[Any],
        *,
        context: Any = (),
        agent: Any = None,
        on_chunk: Listener | None = None,
        policy: ExecutionPolicy | None = None,
        parallel: bool | None = None,
    ) -> list[ToolResult]:
        """`call_many` from plain code.

        Args:
            calls: `ToolCall`s, pairs `(name, arguments)`, or mappings with `name`, `arguments` and `id`.
            context: Objects for these calls, before those of the session.
            agent: The object that `Agent` parameters get in these calls.
            on_chunk: Function that gets each `Chunk` of progress.
            policy: Timeout and retries of these calls. It wins over those of tool, session and toolkit.
            parallel: Whether they run at the same time. None: as the toolkit says.
        """
        batch = self._batch(calls, on_chunk, parallel, context=context, agent=agent, policy=policy)
        drivers = self._core.engine.drivers
        try:
            results: list[ToolResult] = drivers.block_on(batch.run_apart)
        except ClosedError:  # before any of them began: each call says so itself
            return batch.run_one_by_one(self.call_sync)
        return results

    def stream(
        self,
        calls: Iterable[Any],
        *,
        context: Any = (),
        agent: Any = None,
        policy: ExecutionPolicy | None = None,
        parallel: bool | None = None,
    ) -> AsyncIterator[Event]:
        """Run several calls and yield their chunks and results as they come. Leaving early cancels the rest.

        Args:
            calls: `ToolCall`s, pairs `(name, arguments)`, or mappings with `name`, `arguments` and `id`.
            context: Objects for these calls, before those of the session.
            agent: The object that `Agent` parameters get in these calls.
            policy: Timeout and retries of these calls. It wins over those of tool, session and toolkit.
            parallel: Whether they run at the same time. None: as the toolkit says.
        """
        return self._batch(calls, None, parallel, context=context, agent=agent, policy=policy).stream()

    def _batch(self, calls: Iterable[Any], on_chunk: Listener | None, parallel: bool | None, **options: Any) -> Batch:
        from pegboard._execution.streaming import Batch

        together = self._core.options.parallel if parallel is None else parallel
        return Batch(self.call, calls, options, on_chunk, together, self._core.engine)

    def resume(self, call_id: str | ToolCall, value: Any) -> ToolResult:
        """Complete a suspended call with its answer.

        Raises `PegboardError` for an id that no call waits under, naming those that are owed, for one that two wait
        under, and for a call that another thread or program has answered meanwhile.

        Args:
            call_id: Id of the call, or the call itself, as `pending` lists it.
            value: The answer, which is converted as if the tool had returned it; an exception becomes an error.
        """
        result: ToolResult = self._core.runner.resume(call_id, value, self.pending)
        return result

    async def aresume(self, call_id: str | ToolCall, value: Any) -> ToolResult:
        """`resume` on an event loop, for calls whose tool goes on with the answer (`Suspend(reason, resume=...)`)."""
        result = self._core.runner.resume(call_id, value, self.pending, True)
        while not isinstance(result, ToolResult):
            result = await result
        return result

    def suspend(self, call: ToolCall, reason: str = "", resume: Callable[[Any], Any] | None = None) -> ToolResult:
        """Register a call that an earlier program left waiting for its answer: it is suspended here and does not run.

        Args:
            call: The call, with its old id.
            reason: Why it waits.
            resume: As in `Suspend`: makes the result from the answer. None takes the answer as the tool's value.
        """
        return self._core.runner.suspend(self.prepare(call), reason, resume)

    def withdraw(self, call: ToolCall) -> None:
        """Wait no longer for the answer of a suspended call: it was answered elsewhere, or the answer is not needed."""
        self._core.runner.ending.suspended.pop(id(call), None)

    def share_suspended(self, shared: SuspendedCalls) -> None:
        """Let the suspended calls of this session be answered by other programs too.

        `shared.refresh()` is asked before any `pending` is read, for as long as something else refers to `shared`.
        """
        self.shared = shared
        self._core.runner.ending.shared.add(shared)

    def __repr__(self) -> str:
        return f"Session({len(self)} tools, groups={list(self.active_groups)}, agent={self.agent!r})"
