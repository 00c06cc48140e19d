"""Candidates: what is to become of each installed plugin, decided from facts before anything is imported.

By argument, environment and settings file: all of them must allow it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import evolve

from pegboard._base.errors import suggestion
from pegboard._base.names import normalise, pack_name
from pegboard._model.plugin_record import PluginRecord, PluginState

if TYPE_CHECKING:
    from pegboard._plugins.discovery import FoundPlugin

INSTALLED = "installed"
_WILDCARDS = frozenset("*?[")


class Rule:
    """Names that one source allows or blocks: entry-point or distribution names, `*` stands for anything."""

    def __init__(self, source: str, names: tuple[str, ...]) -> None:
        self.source = source
        self.names = names
        meant = {normalise(name) for name in names}
        self._patterns = {name for name in meant if not _WILDCARDS.isdisjoint(name)}
        self._plain = meant - self._patterns

    def matches(self, *candidates: str | None) -> bool:
        """Whether one of the candidates' names is meant."""
        from fnmatch import fnmatchcase

        asked = {normalise(name) for name in candidates if name}
        return any(name in self._plain or any(fnmatchcase(name, each) for each in self._patterns) for name in asked)

    def __str__(self) -> str:
        return f"{self.source}={','.join(self.names)}"


class Selection(NamedTuple):
    """What was asked for: rules over names, plugin objects, and the names that have to be there."""

    allow: tuple[Rule, ...]
    block: tuple[Rule, ...]
    objects: tuple[Any, ...]
    requested: tuple[str, ...]
    # Whether installed plugins are wanted at all.
    scan: bool

    @classmethod
    def read(
        cls,
        selection: str | Iterable[Any] = INSTALLED,
        block: str | Iterable[str] = (),
        environ: Mapping[str, str] | None = None,
        configured: Iterable[tuple[str, str, tuple[str, ...]]] = (),
    ) -> Selection:
        """Combine the arguments with `PEGBOARD_PLUGINS`, `PEGBOARD_BLOCK` and a file's (key, source, names)."""
        items = [selection] if isinstance(selection, str) else list(selection)
        names = tuple(item for item in items if isinstance(item, str) and item != INSTALLED)
        objects = tuple(item for item in items if not isinstance(item, str))
        everything = INSTALLED in [item for item in items if isinstance(item, str)]
        allow = [] if everything else [Rule("plugins", names)]
        blocked = [Rule("block", (block,) if isinstance(block, str) else tuple(block))]
        for key, source, listed in (*configured, *_from_environment(environ or {})):
            (allow if key == "plugins" else blocked).append(Rule(source, listed))
        return cls(
            allow=tuple(allow),
            block=tuple(rule for rule in blocked if rule.names),
            objects=objects,
            requested=tuple(sorted({name for name in names if _WILDCARDS.isdisjoint(name)})),
            scan=everything or bool(names),
        )

    def blocks(self, *names: str | None) -> str:
        """Why none of these names may be loaded; empty if nothing blocks them."""
        return next((f"blocked by {rule}" for rule in self.block if rule.matches(*names)), "")

    def leaves_out(self, *names: str | None, by_object: bool = False) -> str:
        """Why none of these names was asked for; empty if they were. An object in `plugins=` asks for itself."""
        rules = [rule for rule in self.allow if not (by_object and rule.source == "plugins")]
        return next((f"not selected: {rule} does not name it" for rule in rules if not rule.matches(*names)), "")


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for key, variable in (("plugins", "PEGBOARD_PLUGINS"), ("block", "PEGBOARD_BLOCK")):
        if variable in environ:
            yield key, variable, tuple(name.strip() for name in environ[variable].split(",") if name.strip())


class Candidate:
    """A plugin and what has become of it. `plugin` is the object behind it, None until it is imported."""

    def __init__(self, record: PluginRecord, pack: str, plugin: Any = None) -> None:
        self.record = record
        self.pack = pack
        self.plugin = plugin
        self.guard: Any = None  # what pluggy has of it, once it is imported
        self.exception: BaseException | None = None
        self.traceback = ""
        self.notes: list[str] = []
        self.seconds = 0.0
        self.loadable = False

    def become(self, state: PluginState, reason: str = "") -> None:
        """Move on to another state."""
        self.record = evolve(self.record, state=state, reason=reason)
        self.loadable = False

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
    """Say that `active` was loaded instead of `slot`; one of the program's own is meant to be."""
    if active.record.entry_point is None and slot.record.entry_point is not None:
        slot.become(PluginState.FOUND, f"not selected: plugins= brings {active.record.name!r} itself")
        return
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
    from pegboard._plugins.discovery import conflict  # which has found it

    asked = conflict(found.requires, "pegboard", core) if core else ""
    if found.problem:
        slot.become(PluginState.FAILED, found.problem)
    elif found.hidden:
        slot.become(PluginState.SHADOWED, found.hidden)
    elif asked:
        remedy = f"install a release of {found.distribution} that fits"
        slot.become(PluginState.INCOMPATIBLE, f"{asked}; {remedy}")
    return slot


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
            from pegboard._base.known_packs import how_to_install

            advice = how_to_install(name) or "Install what offers it."
            slot = Candidate(PluginRecord(name), pack_name(name))
            slot.become(PluginState.FAILED, f"not installed. {hint} {advice}")
            yield slot
