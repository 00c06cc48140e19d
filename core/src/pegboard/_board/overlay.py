"""Overlays: what one session says of tools and groups, with the wider session behind it, and what it shows of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from attrs import frozen

from pegboard._base.errors import ConflictError, RegistrationError, UnknownNameError, suggestion
from pegboard._base.names import OWN, SEARCH_TOOL, Rename, check_name, renamed
from pegboard._board.board import Board, Groups, View, groups_of
from pegboard._board.permissions import Guards, fingerprint, strictest
from pegboard._model.policy import DEFAULT_POLICY, ExecutionPolicy, Permission
from pegboard._model.tool import Entry, Tool

if TYPE_CHECKING:
    from pegboard._model.call import CallerSession
    from pegboard._model.program import Group

_WILD: Final = frozenset("*?[")
META_TOOL: Final = "reset_equipped_tools"
PARAMETER: Final = "to_activate"

_INTRODUCTION: Final = (
    "Choose the groups of tools that you need. The groups that you name are active from then on, the other ones are "
    "not: name all that you need, those that are active already too. Only tools of active groups can be called."
)
_NONE: Final = "There are no groups yet."


class _Decision(NamedTuple):
    """The permission of a tool, None once the tool was removed; its hash when that was decided, and where it was."""

    permission: Permission | None
    fingerprint: str
    place: object


_Facts: TypeAlias = WeakKeyDictionary[Entry, Any]

# What most sessions have; facts are replaced, never changed: a reader sees all of them or nothing.
_NO_FACTS: Final[_Facts] = WeakKeyDictionary()
_NO_DECISIONS: Final[Mapping[str, _Decision]] = {}


class Overlay:
    """What a session sets: policy, approver, what its view shows, and what it says of tools and groups.

    What is not said here is as in the `parent`. Facts are kept by entry, so that they end with the tool or the group,
    and hold neither of them. Permissions go by name, as in the file for them: a refusal also holds for namesakes.
    """

    # Most sessions set none of these.
    _active = _found = _presets = _NO_FACTS
    _decisions = _NO_DECISIONS
    _closed = False
    _shown: Mapping[str, int] | None = None
    _first_shown = 0
    _last_view: View | None = None
    _is_parent = False

    def __init__(
        self,
        groups: Groups,
        guards: Guards,
        parent: Overlay | None = None,
        policy: ExecutionPolicy | None = None,
        approver: Callable[..., Any] | None = None,
        shows: Callable[[View], View] | None = None,
        prefix: str = "",
    ) -> None:
        self._groups = groups
        self._guards = guards
        self._parent = parent
        self._policy = policy
        self._approver = approver
        self._shows = shows
        if parent is None:
            self._lock = threading.Lock()  # one for a toolkit
            self.is_view, self._search_name = False, SEARCH_TOOL
        else:
            parent._is_parent = True
            self._lock = parent._lock
            self.is_view = shows is not None or parent.is_view
            self._search_name = f"{prefix}{parent._search_name}"

    def lineage(self) -> Iterator[Overlay]:
        """This one and the wider ones, innermost first."""
        overlay: Overlay | None = self
        while overlay is not None:
            yield overlay
            overlay = overlay._parent

    @property
    def approver(self) -> Callable[..., Any] | None:
        """Answers requests for approval; the wider session's if this one has none."""
        return next((each._approver for each in self.lineage() if each._approver is not None), None)

    @approver.setter
    def approver(self, approver: Callable[..., Any] | None) -> None:
        self._approver = approver

    @property
    def policy(self) -> ExecutionPolicy:
        """The merged execution policy."""
        merged = self._policy or DEFAULT_POLICY
        return merged if self._parent is None else merged.merged_over(self._parent.policy)

    def _view_of(self, board: Board) -> View:
        """A board as this session shows it; computed once for each."""
        if self._parent is not None and self._shows is None:
            return self._parent._view_of(board)
        view = self._last_view
        if view is None or view.board is not board:
            wide = View(board, board.tools) if self._parent is None else self._parent._view_of(board)
            self._last_view = view = wide if self._shows is None else self._shows(wide)
        return view

    # Presets and found tools -----------------------------------------------------------------------------------

    def _presets_for(self, tool: Tool) -> dict[str, Any]:
        """The presets of a tool: a session that sets one parameter must not lay open what a wider one sets."""
        merged: dict[str, Any] = {}
        for overlay in self.lineage():
            if overlay._presets is not _NO_FACTS and (own := overlay._presets.get(tool.entry)):
                merged = {**own, **merged}
        return merged

    def _set_presets(self, tool: Tool, presets: Mapping[str, Any], *, merge: bool = False) -> None:
        """Set the presets of a tool here, and drop those that were set here before unless they shall `merge`."""
        with self._lock:  # read and written in one step: two threads that merge lose nothing
            if self._presets is _NO_FACTS:
                self._presets = WeakKeyDictionary()
            before = (self._presets.get(tool.entry) if merge else None) or {}
            # Of one tool: no copy of what there is about all others.
            self._presets[tool.entry] = {**before, **presets}

    def _has_found(self, tool: Tool) -> bool:
        """Whether a deferred tool was found here or in a wider session."""
        return any(tool.entry in overlay._found for overlay in self.lineage())

    def _add_found(self, tools: Iterable[Tool]) -> bool:
        """Remember what was found; whether some of it is new."""
        fresh = {tool.entry: True for tool in tools if not self._has_found(tool)}
        if fresh:
            with self._lock:
                self._found = _with(self._found, fresh)
        return bool(fresh)

    # The order of reveal ---------------------------------------------------------------------------------------

    def _show(self, names: Iterable[str], board: Board) -> Mapping[str, int]:
        """The place of each name that was ever listed here; names that are new get the next ones."""
        with self._lock:
            before = dict.fromkeys(self._wider_order(board)) if self._shown is None else self._shown
            shown = {name: place for place, name in enumerate(dict.fromkeys((*before, *names)))}
            self._shown = shown
            self._first_shown = self._first_shown or len(shown)
        return shown

    def _go_on_with(self, names: Iterable[str]) -> None:
        """Begin with this order of reveal, and not with that of the wider session."""
        shown = {name: place for place, name in enumerate(dict.fromkeys(names))}
        with self._lock:
            self._shown, self._first_shown = shown, len(shown)

    def _wider_order(self, board: Board) -> Iterator[str]:
        """The order of the nearest wider session that has one, by the names that its tools have here."""
        wider = next((each for each in self.lineage() if each._shown is not None), None)
        if wider is None:
            return
        there, here = wider._view_of(board), self._view_of(board)
        for name in wider._shown or ():
            tool = there.tools.get(name)
            own = name if there is here else here.name_of(tool) if tool is not None else None
            if own is not None:
                yield own

    # Permissions -----------------------------------------------------------------------------------------------

    def _standing(self, tool: Tool) -> tuple[Permission | None, str]:
        """The permission that was set, here or by a guard, None where none was, and why it asks, if that is known."""
        permission, changed = self._decided(tool)
        if not self._guards:
            return permission, changed
        verdict = self._guards.verdict(tool)
        return strictest(permission, verdict.permission), changed or verdict.reason

    def _asks_again(self, tool: Tool) -> str:
        """That a tool has changed since it was allowed, and has to ask; empty if it need not."""
        return self._decided(tool)[1] or self._guards.asks_again(tool)

    def _decided(self, tool: Tool) -> tuple[Permission | None, str]:
        """The permission that was set, and that a tool which was allowed has changed and has to ask.

        What a session allowed ends when the tool is removed, so that a later namesake has to ask.
        """
        for overlay in self.lineage():
            decision = overlay._decisions.get(tool.name)
            if decision is None:
                continue
            if decision.permission in (Permission.PROMPT, Permission.NEVER):
                return decision.permission, ""
            if decision.fingerprint != fingerprint(tool):
                return Permission.PROMPT, f"{tool.name} has changed since it was allowed"
            if decision.permission is not None and decision.place in (None, tool.entry.place):
                return decision.permission, ""
        return None, ""

    def _set_permission(self, tool: Tool, permission: Permission, read: Tool) -> None:
        """Set it for the tool as it was `read`. Raises what a guard raises: nothing has changed then."""
        kept = bool(self._guards) and self._guards.hear(
            read.evolve(name=tool.name), permission, keep=self._parent is None
        )
        # The toolkit is told when a tool goes (`_forget_allowed`), its sessions are not.
        place = None if self._parent is None else tool.entry.place
        decided = {} if kept else {tool.name: _Decision(permission, fingerprint(read), place)}
        with self._lock:
            others = {name: each for name, each in self._decisions.items() if name != tool.name}
            self._decisions = {**others, **decided}

    def _forget_allowed(self, tools: Iterable[Tool]) -> None:
        """Drop what tools that are removed were allowed; one that comes back changed has to ask all the same."""
        gone = {tool.name: tool for tool in tools}
        if self._guards:
            for tool in gone.values():
                self._guards.hear(tool, None, keep=True)
        with self._lock:
            self._decisions = {
                name: each._replace(permission=None) if name in gone and each.permission is Permission.ALWAYS else each
                for name, each in self._decisions.items()
            }

    # Groups ----------------------------------------------------------------------------------------------------

    def _is_active(self, name: str) -> bool:
        """Whether a group is active here; one that does not exist is not."""
        # A pack's tool may name a group that the program has not created: it stays hidden until then.
        group = self._groups.find(name)
        if group is None:
            return False
        for overlay in self.lineage():
            active = overlay._active.get(group.entry)
            if active is not None:
                return bool(active)
            if overlay._closed:
                return False
        return group.active

    def _offers(self, tool: Tool) -> bool:
        """Whether a tool is offered here: in no group, or in an active one, and by every guard."""
        groups = groups_of(tool)
        return (not groups or any(map(self._is_active, groups))) and not self._withheld(tool)

    def _withheld(self, tool: Tool) -> str:
        """Why a guard keeps a registered tool back; empty if none does."""
        if not self._guards or (verdict := self._guards.verdict(tool)).offered:
            return ""
        return verdict.reason or f"{tool.name!r} is kept back by a guard"

    def _activate(self, said: Mapping[Entry, bool]) -> None:
        with self._lock:
            self._active = _with(self._active, said)


def _with(facts: _Facts, more: Mapping[Entry, Any]) -> _Facts:
    changed = WeakKeyDictionary(facts)
    changed.update(more)
    return changed


@frozen(eq=False)
class ViewRules:
    """What a session shows of the wider view: a tool that fits everything that is asked, under its new name.

    The tool that pages through long output is always there and keeps its name: results speak of it.
    """

    include: tuple[str, ...] | None
    exclude: tuple[str, ...]
    tags: tuple[str, ...]
    prefix: str
    rename: Rename | None
    where: Callable[[Tool], bool] | None

    def check(self, wider: View, view: View) -> None:
        """Raise `UnknownNameError` for a name that names nothing, and the error of names that cannot be given."""
        known = {name for each, tool in wider.tools.items() for name in _names(wider, each, tool)}
        others = list(self.rename) if isinstance(self.rename, Mapping) else []
        for name in (*(self.include or ()), *self.exclude, *others):
            if name not in known and (name in others or not _WILD & set(name)):
                hint = suggestion(name, wider.tools, noun="tools")
                raise UnknownNameError(f"the view cannot find a tool {name!r}. {hint}")
        for error in view.refused.values():
            raise error

    def applied(self, wider: View) -> View:
        """What these rules show of a wider view."""
        by_name: dict[str, list[tuple[str, Tool]]] = {}
        for name, tool in wider.tools.items():
            if tool.pack is None and tool.origin.plugin == OWN:
                by_name.setdefault(name, []).append((name, tool))
            elif self._shows(_names(wider, name, tool), name, tool):
                by_name.setdefault(renamed(name, self.rename, self.prefix, name), []).append((name, tool))
        refusals = {name: _refusal(name, [wide for wide, _ in candidates]) for name, candidates in by_name.items()}
        refused = {name: error for name, error in refusals.items() if error is not None}
        tools = {name: candidates[0][1] for name, candidates in by_name.items() if name not in refused}
        return View(wider.board, tools, {tool.entry: name for name, tool in tools.items()}, refused)

    def _shows(self, names: tuple[str, ...], name: str, tool: Tool) -> bool:
        return (
            (self.include is None or _fits(names, self.include))
            and not _fits(names, self.exclude)
            and (not self.tags or not set(self.tags).isdisjoint(tool.tags))
            and (self.where is None or bool(self.where(tool if name == tool.name else tool.evolve(name=name))))
        )


def _names(wider: View, name: str, tool: Tool) -> tuple[str, ...]:
    """What a tool goes by: on the board also by its pack's name, in a view only by the name shown there."""
    return (name, tool.qualified_name) if wider.names is None else (name,)


def _fits(names: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _refusal(name: str, candidates: list[str]) -> RegistrationError | None:
    if len(candidates) > 1:
        both = " and ".join(map(repr, candidates))
        return ConflictError(f"{both} would both be called {name!r} in this view; rename one of them, or leave it out")
    try:
        check_name(name)
    except RegistrationError as error:
        return RegistrationError(f"{candidates[0]!r} cannot be called that in this view: {error}")
    return None


class GroupFace:
    """How the meta tool looks: its function's schema, with the groups of now written into it."""

    own = True

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def of(self, session: CallerSession) -> GroupFace:
        """How it looks in that session: the groups are those of the toolkit."""
        return self

    @property
    def description(self) -> str:
        """What the tool does, and every group that the model manages, with its instructions.

        Not which of them are active: a definition that changes costs what providers keep of a request.
        """
        lines = [self._described(group) for group in self._groups.all("model")]
        return "\n".join([_INTRODUCTION, "", "Groups:", *lines] if lines else [_INTRODUCTION, "", _NONE])

    def _described(self, group: Group) -> str:
        line = f"- {group.name}: {group.description}" if group.description else f"- {group.name}"
        return f"{line}\n  Instructions: {group.instructions}" if group.instructions else line

    def schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The function's schema, with the names of the groups as the values that there are."""
        if PARAMETER not in schema["properties"]:
            return schema
        array = dict(schema["properties"][PARAMETER])
        if names := [group.name for group in self._groups.all("model")]:
            array["items"] = {**array["items"], "enum": names}
        else:
            array["maxItems"] = 0  # an enum must have a member
        return {**schema, "properties": {**schema["properties"], PARAMETER: array}}
