"""The roster: what is to become of each installed plugin, decided from facts before anything is imported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from attrs import evolve

from pegboard._base.errors import suggestion
from pegboard._base.names import normalise, pack_name
from pegboard._model.plugin_record import PluginRecord, PluginState
from pegboard._plugins.selection import Selection

if TYPE_CHECKING:
    from pegboard._plugins.discovery import FoundPlugin

__all__ = ["Candidate", "groups", "roster", "shadow"]


class Candidate:
    """A plugin and what has become of it. `plugin` is the object behind it, None until it is imported."""

    __slots__ = ("exception", "loadable", "notes", "pack", "plugin", "record", "seconds", "traceback")

    def __init__(self, record: PluginRecord, pack: str, plugin: Any = None) -> None:
        self.record = record
        self.pack = pack
        self.plugin = plugin
        self.exception: BaseException | None = None
        self.traceback = ""
        self.notes: list[str] = []
        self.seconds = 0.0
        self.loadable = False

    def become(self, state: PluginState, reason: str = "") -> None:
        """Move on to another state."""
        self.record = evolve(self.record, state=state, reason=reason)
        self.loadable = False

    def carry(self, before: Candidate) -> None:
        """Go on as the same plugin was before; what runs is what was loaded then."""
        newer = f"{self.record.version} is installed by now; restart the program to use it"
        self.notes = [note for note in before.notes if note != newer]
        if self.record.version != before.record.version:
            self.notes.append(newer)
        self.record, self.plugin, self.seconds = before.record, before.plugin, before.seconds
        self.become(PluginState.ACTIVE, "; ".join(self.notes))

    @property
    def order(self) -> tuple[str, str, str]:
        """Sorts slots: the same installed set gives the same toolkit, whatever the order of directories."""
        return self.record.name, self.record.distribution or "", self.record.entry_point or ""


def roster(installed: Iterable[FoundPlugin], selection: Selection, core: str | None) -> list[Candidate]:
    """A slot for each plugin, sorted. `core` is the installed version of Pegboard; None if it is not known."""
    slots = [*_objects(selection), *(_installed(found, selection, core) for found in installed)]
    slots.extend(_missing(selection, slots))
    return sorted(slots, key=lambda slot: slot.order)


def groups(slots: Iterable[Candidate]) -> list[list[Candidate]]:
    """Loadable slots that claim the same name, the one to prefer first, in the order of their names.

    The program's own objects come first, then the distribution that carries the name (`pegboard-<name>`), then the
    others by distribution name: a name cannot be taken over by installing something.
    """
    by_pack: dict[str, list[Candidate]] = {}
    for slot in slots:
        if slot.loadable:
            by_pack.setdefault(slot.pack, []).append(slot)
    return [sorted(claimants, key=_preference) for _, claimants in sorted(by_pack.items())]


def shadow(slot: Candidate, active: Candidate) -> None:
    """Say that `active` was loaded instead of `slot`."""
    both = " and ".join(sorted({str(slot.record.origin), str(active.record.origin)}))
    counts = f"{active.record.origin} counts; uninstall or block one of them"
    slot.become(PluginState.SHADOWED, f"{both} both offer the plugin {slot.pack!r}, and {counts}")


def _preference(slot: Candidate) -> tuple[bool, bool, tuple[str, str, str]]:
    record = slot.record
    by_the_name = normalise(record.distribution or "") == f"pegboard-{normalise(record.name)}"
    return slot.plugin is None, not by_the_name, slot.order


def _objects(selection: Selection) -> Iterator[Candidate]:
    seen: Counter[str] = Counter()
    for plugin in selection.objects:
        name = _name(plugin)
        seen[name] += 1
        if seen[name] > 1:
            name = f"{name}_{seen[name]}"
        slot = Candidate(PluginRecord(name), pack_name(name) or "plugin", plugin)
        _decide(slot, selection.blocks(name), selection.leaves_out(name, by_object=True))
        yield slot


def _name(plugin: Any) -> str:
    """`weather` for a module `acme.weather`, `files` for `pegboard_files`, the class's name for any other object."""
    name = plugin.__name__ if isinstance(plugin, (ModuleType, type)) else type(plugin).__name__
    return name.rpartition(".")[2].removeprefix("pegboard_")


def _installed(found: FoundPlugin, selection: Selection, core: str | None) -> Candidate:
    record = PluginRecord(found.name, found.distribution, found.version, found.entry_point)
    slot = Candidate(record, pack_name(found.name))
    names = (found.name, found.distribution)
    _decide(slot, selection.blocks(*names), selection.leaves_out(*names))
    if not slot.loadable:
        return slot
    asked = _conflicts(found.requires, core) if core and found.requires else []
    if found.problem:
        slot.become(PluginState.FAILED, found.problem)
    elif found.hidden:
        slot.become(PluginState.SHADOWED, found.hidden)
    elif asked:
        remedy = f"pip install --upgrade pegboard {found.distribution}"
        slot.become(PluginState.INCOMPATIBLE, f"requires pegboard{asked[0]}, but {core} is installed; try: {remedy}")
    return slot


def _conflicts(requires: tuple[str, ...], core: str) -> list[str]:
    from pegboard._plugins.versions import conflicts

    return conflicts(requires, "pegboard", core)


def _decide(slot: Candidate, blocked: str, left_out: str) -> None:
    if blocked:
        slot.become(PluginState.BLOCKED, blocked)
    elif left_out:
        slot.become(PluginState.FOUND, left_out)
    else:
        slot.loadable = True


def _missing(selection: Selection, slots: list[Candidate]) -> Iterator[Candidate]:
    known = {(slot.record.name, slot.record.distribution) for slot in slots}
    names = {name for pair in known for name in pair if name}
    meant = set(map(normalise, names))
    for name in selection.requested:
        if normalise(name) not in meant:
            hint = suggestion(name, names, noun="installed plugins")
            from pegboard._base.known_packs import known_pack

            ours = known_pack(name)
            advice = f"To install it: pip install {ours.distribution}" if ours else "Install what offers it."
            slot = Candidate(PluginRecord(name), pack_name(name))
            slot.become(PluginState.FAILED, f"not installed. {hint} {advice}")
            yield slot
