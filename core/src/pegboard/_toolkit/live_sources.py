"""Live sources: tools that change at their source, and the toolkit that follows."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from copy import copy
from typing import TYPE_CHECKING, Any, final

from attrs import frozen

from pegboard._base.effects import tried
from pegboard._base.errors import PegboardError, describe_exception
from pegboard._base.records import Compared
from pegboard._board.board import OnConflict
from pegboard._injection.presets import for_tools
from pegboard._model.tool import Origin, Tool
from pegboard._toolkit.state import Presets, ToolkitState
from pegboard._tools.collect import Collected, check_renamed, own_name
from pegboard.extension import LiveSource, Offer

if TYPE_CHECKING:
    from pegboard._model.program import Group


@final
@frozen(eq=False, repr=False)
class SourceRecord(Compared):
    """A live source, such as a remote server.

    Args:
        name: Name of the source.
        tools: Names of its tools that are registered.
        problems: What is wrong with the rest, a sentence each.
    """

    name: str
    tools: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def is_live(source: Any) -> bool:
    """Whether the tools of an object may change. Looks at its class first: no property of its own runs."""
    watches = tried(hasattr, type(source), "watch") and tried(isinstance, source, LiveSource)
    return bool(watches) and not isinstance(source, type)


class Followed:
    """One registration of a live source: keeps on the board what the source offers now."""

    def __init__(
        self,
        core: ToolkitState,
        offer: Offer,
        on_conflict: OnConflict,
        pack: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.source: LiveSource = offer.source
        self._name = self.source.name
        # The pack that registered it; None for the program.
        self.pack = pack
        # The same object for all tools of this registration: how they are told from other tools of their names.
        self.origin = Origin(plugin=f"source {self.source.name!r}") if origin is None else copy(origin)
        self._core = core
        self._offer = offer
        self._on_conflict: OnConflict = on_conflict
        self._names: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._lock = threading.RLock()
        self._over = False
        self._follows = False
        self._missed = False
        self._stop = self.source.watch(self.refresh)

    @property
    def record(self) -> SourceRecord:
        """The tools of the source that are registered, and what is wrong with the rest."""
        ours = self._ours()
        registered = tuple(name for name in self._names.values() if name in ours)
        problems = tried(lambda: tuple(self.source.problems))
        if problems is None:
            problems = (f"the source {self._name!r} fails where it says what is wrong with it",)
        return SourceRecord(self._name, registered, (*problems, *self._refused.values()))

    def collect(self) -> Collected:
        """The tools of the source now; names that it does not know are no error while it is unavailable."""
        self.source.tools()  # whether it is available shows when it has been asked
        return self._collect(lenient=self.is_unavailable)

    def _collect(self, *, lenient: bool) -> Collected:
        return self._core.collector.collect(self.source, self._offer, self.origin, self.pack, lenient=lenient)

    @property
    def is_unavailable(self) -> bool:
        """Whether the source has no tools to offer because something is wrong with it."""
        return bool(self.source.problems) and not self.source.tools()

    def follow(self, placed: Mapping[str, Tool]) -> None:
        """Remember which tool is registered for each name of the source, and follow from now on."""
        with self._lock:
            self._bring_groups()
            self._names = {own: tool.name for own, tool in placed.items()}
            self._follows = True
            missed = self._missed
        if missed:
            self.refresh()

    def begin(self) -> None:
        """Wait until the tools are known, and register them for the pack."""
        self.source.tools()
        self._missed = True
        self.follow({})

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that the source brings."""
        return tuple(getattr(self.source, "groups", ()))

    def _bring_groups(self) -> None:
        """Create the groups that the source brings. One that is there already stays as it is."""
        for group in self.groups:
            if self._core.groups.find(group.name) is None:
                self._core.groups.create(group)
                self._core.registry.touched()

    def stop(self) -> None:
        """Follow no longer. The tools stay where they are."""
        with self._lock:
            over, self._over = self._over, True
        if not over:
            self._stop()

    def refresh(self) -> None:
        """Put on the board what the source offers now, all at once."""
        with self._lock:
            if self._over or not self._follows:
                self._missed = True
                return
            try:
                self._core.assembly.as_of_now(self._offered, self._swap)
            except PegboardError as error:  # one of its tools cannot be a tool: what is registered stays
                self._refused[""] = describe_exception(error)

    def _offered(self) -> dict[str, Tool]:
        self._refused = {}
        offered = {own_name(tool): tool for tool in self._collect(lenient=True).tools}
        self._check_names(offered)
        return offered

    def _check_names(self, offered: Mapping[str, Tool]) -> None:
        """Note the names in a pack's terms that its source does not know: its author is told nowhere else."""
        if self.pack is None or self.is_unavailable:
            return
        try:
            self._collect(lenient=False)
            check_renamed(self._offer, offered)
            for_tools(self._offer.presets, offered)
        except PegboardError as error:
            self._refused["terms"] = f"{self.source.name!r}: {error}"

    def _swap(self, offered: dict[str, Tool]) -> None:
        ours = self._ours()
        names = {own: name for own, name in self._names.items() if name in ours}
        fresh = {ours[name].entry: _newest(ours[name], offered.get(own)) for own, name in names.items()}
        presets: Presets = {}
        unknown = ((own, tool) for own, tool in offered.items() if own not in self._names)
        new = {own: tool for own, tool in unknown if self._may_register(own, tool, presets)}
        added = self._core.registry.swap(fresh, new.values(), self._on_conflict, self.pack)
        self._core.hold_presets(added, presets)
        for own, placed in zip(new, added, strict=True):
            if placed is not None:
                self._names[own] = placed.name
            elif self._on_conflict == "raise":
                self._refused[own] = f"{own!r} is not offered: there is another tool named {new[own].name!r}"
        self._names = {own: name for own, name in self._names.items() if own in offered}

    def _may_register(self, own: str, tool: Tool, presets: Presets) -> bool:
        """Whether a new tool fits what was said at the registration; one whose presets do not would lay them open."""
        known = {group.name for group in self._core.groups.all()}
        if self.pack is None and not known.issuperset(tool.groups):
            self._refused[own] = f"{own!r} is not offered: its group was removed"
            return False
        try:
            if self._offer.presets:
                presets |= self._core.read_presets(self._offer, [tool], lenient=True)
        except PegboardError as error:
            self._refused[own] = f"{own!r} is not offered: {describe_exception(error)}"
            return False
        return True

    def _ours(self) -> dict[str, Tool]:
        """The tools of this registration, by the names that they were registered under."""
        registered = self._core.registry.tools_of(self.pack)
        return {name: tool for name, tool in registered.items() if tool.origin is self.origin}


def leave(core: ToolkitState, gone: list[Followed]) -> None:
    """Follow these no longer; their records go too."""
    core.live[:] = [each for each in core.live if each not in gone]
    with ExitStack() as stopping:  # each of them, whatever one of them raises
        for each in reversed(gone):
            stopping.callback(each.stop)


def _newest(old: Tool, offered: Tool | None) -> Tool | None:
    """What stands in the place of a tool that is offered still: what is said of it goes on too."""
    if offered is None:
        return None
    fresh = offered.evolve(name=old.name, groups=old.groups, entry=old.entry)
    same = old.schema_hash == fresh.schema_hash and old.returns == fresh.returns and old.options == fresh.options
    return old if same else fresh
