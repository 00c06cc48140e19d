"""The board: an immutable snapshot of every registered tool, the registry that makes it, and the groups."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, final, get_args

from attrs import evolve, field, frozen

from pegboard._base.errors import ConflictError, RegistrationError, UnknownNameError, suggestion
from pegboard._base.names import Names, legal_name, listed
from pegboard._base.records import Compared, Shown
from pegboard._model.policy import checked_capacity
from pegboard._model.tool import Entry, Tool

if TYPE_CHECKING:
    from pegboard._model.program import Group, Manager, Toolset

OnConflict: TypeAlias = Literal["raise", "replace", "skip", "rename"]
_ON_CONFLICT = get_args(OnConflict)


@frozen(eq=False, repr=False)
class Clash(Compared):
    """Two packs offer tools of one name: each is offered as `<pack>__<name>`, the plain name resolves to neither.

    Args:
        name: The name that is taken twice.
        sides: The tools that claim it.
    """

    name: str
    sides: tuple[Tool, ...]

    def __str__(self) -> str:
        sides = [f"{tool.name} ({tool.origin})" for tool in self.sides]
        return f"{self.name!r} is offered by {len(sides)} packs: {', '.join(sides)}"


@final
@frozen(eq=False, repr=False)
class Board(Shown):
    """What is registered.

    Args:
        tools: Registered tools by name, in the order of the board.
        aliases: Other names that lead to a tool, such as `<pack>__<name>`.
        clashes: Names that two packs offer, each with its `Clash`.
        toolsets: Tools that belong together.
    """

    tools: Mapping[str, Tool] = field(factory=dict)
    aliases: Mapping[str, Tool] = field(factory=dict)
    clashes: Mapping[str, Clash] = field(factory=dict)
    toolsets: tuple[Toolset, ...] = ()

    def find(self, name: str) -> Tool | None:
        """The tool of that name or alias."""
        return self.tools.get(name) or self.aliases.get(name)

    def absence(self, name: str) -> str:
        """Why there is no such tool, with the nearest names."""
        if name in self.clashes:
            return f"{self.clashes[name]}; use one of these names"
        return _no_such_tool(name, self.tools)


def _no_such_tool(name: str, known: Mapping[str, Tool]) -> str:
    """The sentence for a name that none of the `known` tools has; it names none that no model is shown."""
    shown = [each for each, tool in known.items() if not (tool.definition.is_loaded and tool.for_apps_only)]
    asked = name if len(name) <= 100 else f"{name[:97]}..."  # a model may ask for anything, at any length
    return f"there is no tool {asked!r}. {suggestion(asked, shown, noun='tools')}"


class View(NamedTuple):
    """What one session shows of a board: its tools by the names shown; `names` says which these are.

    `refused` says of each name that no tool can have here why that is. Without `names` it is the board as it is.
    """

    board: Board
    tools: Mapping[str, Tool]
    names: Mapping[Entry, str] | None = None
    refused: Mapping[str, RegistrationError] = MappingProxyType({})

    def name_of(self, tool: Tool) -> str | None:
        """The name that a tool is shown under; None where it is not."""
        return tool.name if self.names is None else self.names.get(tool.entry)

    def absence(self, name: str) -> str:
        """Why a view shows no such tool, with the nearest names."""
        return str(self.refused[name]) if name in self.refused else _no_such_tool(name, self.tools)


def groups_of(tool: Tool) -> tuple[str, ...]:
    """The groups of a tool; one that is named by an import string is imported to tell."""
    return tool.groups or tool.options.groups


class Groups:
    """The groups of a toolkit, by name."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def create(self, group: Group) -> None:
        """Add a group. Raises `RegistrationError` for a name that is taken or is none, ValueError for a bad limit."""
        checked_capacity(group.max_concurrency, "max_concurrency")
        if not str(group.name).strip():
            raise RegistrationError(f"a tool group needs a name, got {group.name!r}")
        from pegboard._model.program import Manager

        if group.managed_by not in get_args(Manager):
            raise RegistrationError(f'managed_by takes "model" or "program", got {group.managed_by!r}')
        if group.name in self._groups:
            raise RegistrationError(f"tool group {group.name!r} already exists; remove it first or choose another name")
        self._groups[group.name] = group

    def check(self, names: Names, managed_by: Manager | None = None) -> tuple[str, ...]:
        """The names as a tuple, once each. Raises `UnknownNameError` naming the groups that there are."""
        given = tuple(dict.fromkeys(listed(names)))
        known = [group.name for group in self.all(managed_by)]
        for name in given:
            if name not in known:
                noun = "groups" if managed_by is None else f"groups managed by the {managed_by}"
                remedy = f"{suggestion(str(name), known, noun=noun)} Create it with create_group({name!r}, ...)"
                raise UnknownNameError(f"there is no tool group {name!r}. {remedy}")
        return given

    def of(self, tool: Tool) -> list[Group]:
        """The groups of a tool, without those that do not exist."""
        return [self._groups[name] for name in groups_of(tool) if name in self._groups]

    def remove(self, names: Iterable[str]) -> None:
        """Forget groups, all or none."""
        for name in self.check(names):
            del self._groups[name]

    def find(self, name: str) -> Group | None:
        """The group of that name."""
        return self._groups.get(name)

    def all(self, managed_by: Manager | None = None) -> tuple[Group, ...]:
        """All groups, or those that the model or the program manages, in the order in which they were created."""
        everything = tuple(self._groups.values())  # in one step: another thread may create one meanwhile
        return tuple(each for each in everything if managed_by in (None, each.managed_by))


class Registry:
    """What packs and the program have registered, under one lock; `board` is made anew on a look after a change."""

    def __init__(self, removed: Callable[[], Any]) -> None:
        self._lock = threading.RLock()
        # Is called when tools were removed.
        self._removed = removed
        # By pack, and by name there. The program's have no pack; they come first here and last on the board.
        self._tools: dict[str | None, dict[str, Tool]] = {None: {}}
        self._sets: dict[str | None, list[Toolset]] = {None: []}
        self._board: Board | None = None
        self.generation = 0

    @property
    def board(self) -> Board:
        """The current snapshot."""
        board = self._board
        if board is None:
            with self._lock:
                board = self._board = self._build()
        return board

    def find(self, name: str) -> Tool | None:
        """The tool of that name or alias. The program's own are found without making the board."""
        return self._tools[None].get(name) or self.board.find(name)

    def touched(self) -> None:
        """Something that tools are made ready with has changed: plans that are kept by generation are made anew."""
        with self._lock:
            self.generation += 1

    def _changed(self) -> None:
        self._board = None
        self.generation += 1

    def add_pack(self, pack: str, tools: Iterable[Tool], toolsets: Iterable[Toolset] = ()) -> list[Tool | None]:
        """Register a pack's tools, but none under a name that it has already: for each the tool, None if skipped."""
        with self._lock:
            own = self._tools.setdefault(pack, {})
            added = [tool if own.setdefault(tool.name, tool) is tool else None for tool in tools]
            self._sets.setdefault(pack, []).extend(toolsets)
            self._changed()
            return added

    def add(
        self, tools: Iterable[Tool], toolsets: Iterable[Toolset], on_conflict: OnConflict, displaced: Iterable[str] = ()
    ) -> list[Tool | None]:
        """Register the program's tools, all or none: for each the tool as it is on the board, None if it was skipped.

        The tools of `displaced` packs go. Raises `ConflictError`.
        """
        if on_conflict not in _ON_CONFLICT:
            known = ", ".join(map(repr, _ON_CONFLICT))
            raise RegistrationError(f"on_conflict takes one of {known}, got {on_conflict!r}")
        with self._lock:
            pending: dict[str, Tool] = {}
            added: list[Tool | None] = []
            own = self._tools[None]

            def registered(name: str) -> Tool | None:
                return pending.get(name) or own.get(name)

            for tool in tools:
                placed = _place(registered, tool, on_conflict)
                if placed is not None:
                    pending[placed.name] = placed
                added.append(placed)
            covered = {name: other for name in pending if (other := self._of_packs(name))}
            for name, tool in pending.items():
                replaced = own.get(name) or covered.get(name)
                if replaced is not None:
                    tool.entry.succeed(replaced.entry)
            for pack in displaced:
                self._tools.pop(pack, None)
                self._sets.pop(pack, None)
            # What the program's tools cover is removed: if it is on the board once more, it begins afresh.
            if covered:
                self.update({tool.entry: tool.evolve(entry=Entry()) for tool in covered.values()})
            self._tools[None].update(pending)
            self._sets[None].extend(toolsets)
            self._changed()
            return added

    def swap(
        self, fresh: Mapping[Entry, Tool | None], new: Iterable[Tool], on_conflict: OnConflict, pack: str | None
    ) -> list[Tool | None]:
        """Update and register tools of a pack or the program, all at once; for each new one what is there.

        A name that is taken is skipped with `"raise"` too: there is no caller to raise to.
        """
        with self._lock:
            if fresh:
                self.update(fresh)
            if pack is not None:
                return self.add_pack(pack, new)
            return self.add(new, (), "skip" if on_conflict == "raise" else on_conflict)

    def tools_of(self, pack: str | None) -> dict[str, Tool]:
        """The tools that a pack, or the program, has registered, by their names there."""
        with self._lock:
            return dict(self._tools.get(pack, ()))

    def _packs(self) -> list[str]:
        # Sorted, so that the same installed set gives the same board whatever the order of installation.
        return sorted(pack for pack in self._tools if pack is not None)

    def _of_packs(self, name: str) -> Tool | None:
        """The first tool of that name that a pack has registered."""
        return next((self._tools[pack][name] for pack in self._packs() if name in self._tools[pack]), None)

    def resolve(self, names: Iterable[str]) -> list[Tool]:
        """The tools on the board that names and aliases stand for. Raises `UnknownNameError`."""
        board, entries = self.board, set()
        for name in names:
            tool = board.find(name)
            if tool is None:
                raise UnknownNameError(board.absence(name))
            entries.add(tool.entry)
        return [tool for tool in board.tools.values() if tool.entry in entries]

    def only_in(self, groups: Iterable[str]) -> list[Tool]:
        """The tools that belong to no other group than `groups`."""
        of_tools = [(tool, groups_of(tool)) for tool in self.board.tools.values()]
        return [tool for tool, named in of_tools if named and set(groups).issuperset(named)]

    def leave_groups(self, groups: Iterable[str]) -> None:
        """Take tools out of groups, and away those that belong to no other one."""
        gone = set(groups)
        fresh: dict[Entry, Tool | None] = {}
        with self._lock:
            for tool in [tool for tools in self._tools.values() for tool in tools.values()]:
                named = groups_of(tool)
                left = tuple(group for group in named if group not in gone)
                if left != named:
                    fresh[tool.entry] = tool.evolve(groups=left) if left else None
            self.update(fresh)
        self._removed()

    def remove(self, tools: Iterable[Tool]) -> None:
        """Remove tools."""
        self.update(dict.fromkeys(tool.entry for tool in tools))
        self._removed()

    def update(self, fresh: Mapping[Entry, Tool | None]) -> None:
        """Put other versions of tools, by the entries of those that are registered, in their places; None removes."""

        def newest(tool: Tool) -> Tool | None:
            found = fresh.get(tool.entry, tool)
            return found if found is None or found.name == tool.name else found.evolve(name=tool.name)

        with self._lock:
            self._tools = {
                pack: {name: new for name, tool in tools.items() if (new := newest(tool)) is not None}
                for pack, tools in self._tools.items()
            }
            for toolsets in self._sets.values():
                changed = [[new for tool in each.tools if (new := newest(tool))] for each in toolsets]
                toolsets[:] = [evolve(each, tools=tuple(new)) for each, new in zip(toolsets, changed, strict=True)]
            self._changed()

    def _build(self) -> Board:
        tools: dict[str, Tool] = {}
        aliases: dict[str, Tool] = {}
        by_name: dict[str, list[Tool]] = {}
        for pack in self._packs():
            for name, tool in self._tools[pack].items():
                by_name.setdefault(name, []).append(tool)
        clashes: dict[str, Clash] = {}
        for name, offers in by_name.items():
            winner = _replacing(offers)
            for tool in offers:
                aliases[f"{tool.pack}__{tool.name}"] = tool
            if winner is not None:
                tools[name] = winner
                continue
            renamed = tuple(tool.evolve(name=legal_name(f"{tool.pack}__{tool.name}")) for tool in offers)
            clashes[name] = Clash(name, renamed)
            tools.update((tool.name, tool) for tool in renamed)
        return self._with_own(tools, aliases, clashes)

    def _with_own(self, tools: dict[str, Tool], aliases: dict[str, Tool], clashes: dict[str, Clash]) -> Board:
        for name, tool in self._tools[None].items():
            clashes.pop(name, None)  # the program's own tool takes the plain name
            tools.pop(name, None)  # and its place in board order is the program's
            tools[name] = tool
            if tool.pack is not None:
                aliases[f"{tool.pack}__{name}"] = tool
        aliases = {alias: tool for alias, tool in {**_illegal(tools), **aliases}.items() if alias not in tools}
        by_entry = {tool.entry: tool for tool in tools.values()}
        toolsets = (each for pack in (*self._packs(), None) for each in self._sets.get(pack, ()))
        # Without tools that were removed, under the names that they have on the board.
        registered = ((each, tuple(by_entry[t.entry] for t in each.tools if t.entry in by_entry)) for each in toolsets)
        return Board(tools, aliases, clashes, tuple(evolve(each, tools=left) for each, left in registered if left))


def _illegal(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """The tools by the names that others gave them and no provider accepts, where these are unique."""
    named = [(tool.source_name, tool) for tool in tools.values() if tool.source_name]
    illegal = [(name, tool) for name, tool in named if name != legal_name(name)]
    often = Counter(name for name, _ in illegal)
    return {name: tool for name, tool in illegal if often[name] == 1}


def _place(known: Callable[[str], Tool | None], tool: Tool, on_conflict: OnConflict) -> Tool | None:
    other = known(tool.name)
    if other is None or on_conflict == "replace":
        return tool
    if on_conflict == "skip":
        return None
    if on_conflict == "rename":
        number = 2
        while known(f"{tool.name}_{number}") is not None:
            number += 1
        return tool.evolve(name=f"{tool.name}_{number}")
    raise ConflictError(
        f"a tool named {tool.name!r} is already registered ({_whence(other)}), and another one comes now "
        f'({_whence(tool)}); give it a name="...", or say on_conflict="replace", "skip" or "rename"'
    )


def _whence(tool: Tool) -> str:
    """Where a tool comes from, its function included: both sides of a conflict may be the program's."""
    function: Any = tool.function
    place = f"{function.__module__}.{function.__qualname__}" if hasattr(function, "__qualname__") else repr(function)
    return f"{place}, from {tool.origin}"


def _replacing(offers: list[Tool]) -> Tool | None:
    """The one tool that the plain name stands for, if there is one."""
    if len(offers) == 1:
        return offers[0]
    names = {f"{tool.pack}__{tool.name}": tool for tool in offers}
    replaced = {tool.replaces for tool in offers if tool.replaces in names}
    left = [tool for name, tool in names.items() if name not in replaced]
    return left[0] if len(left) == 1 else None
