"""Candidates: what is to become of each plugin, decided from facts, and how one is loaded and run.

Argument, environment and settings file must all allow a plugin before it is imported. Nothing that its code does then
reaches the host; what it did is noted.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import evolve

from pegboard._base.effects import pass_interrupt, tried
from pegboard._base.errors import PluginError, describe_exception, suggestion
from pegboard._base.known_packs import how_to_install, known_pack
from pegboard._base.names import normalise, pack_name
from pegboard._model.plugin_record import PluginRecord, PluginState
from pegboard._plugins.settings import MissingSettingsError

if TYPE_CHECKING:
    from pegboard._plugins.discovery import FoundPlugin

INSTALLED = "installed"
_WILDCARDS = frozenset("*?[")
_LONGEST_REASON = 400


class Rule:
    """Names that one source allows or blocks: entry-point or distribution names, `*` stands for anything."""

    def __init__(self, source: str, names: Iterable[str]) -> None:
        self.source = source
        self.names = tuple(names)

    def matches(self, *candidates: str | None) -> bool:
        """Whether one of the candidates' names is meant."""
        from fnmatch import fnmatchcase

        asked = {normalise(name) for name in candidates if name}
        return any(fnmatchcase(name, normalise(each)) for name in asked for each in self.names)

    def __str__(self) -> str:
        return f"{self.source}={','.join(self.names)}"


class Selection(NamedTuple):
    """What was asked for: rules over names, and plugin objects. What `named` rules name has to be installed."""

    allow: tuple[Rule, ...]
    block: tuple[Rule, ...]
    named: tuple[Rule, ...]
    objects: tuple[Any, ...]
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
        names = [item for item in items if isinstance(item, str)]
        everything = INSTALLED in names
        own = Rule("plugins", (name for name in names if name != INSTALLED))
        allow, blocked = [] if everything else [own], [Rule("block", (block,) if isinstance(block, str) else block)]
        for key, source, chosen in configured:
            (allow if key == "plugins" else blocked).append(Rule(source, chosen))
        named = (own, *allow, *blocked)
        for rules, variable in ((allow, "PEGBOARD_PLUGINS"), (blocked, "PEGBOARD_BLOCK")):
            if environ and variable in environ:
                rules.append(Rule(variable, filter(None, map(str.strip, environ[variable].split(",")))))
        objects = tuple(item for item in items if not isinstance(item, str))
        return cls(tuple(allow), tuple(blocked), named, objects, scan=bool(names))

    def leave_out(self, slot: Candidate) -> None:
        """Say of a plugin that it is blocked, or was not asked for. An object in `plugins=` asks for itself."""
        names = (slot.record.name, slot.record.distribution)
        for rule in self.block:
            if rule.matches(*names):
                slot.become(PluginState.BLOCKED, f"blocked by {rule}")
                return
        for rule in self.allow:
            if not (rule.matches(*names) or (slot.plugin is not None and rule.source == "plugins")):
                slot.become(PluginState.FOUND, f"not selected: {rule} does not name it")
                return


class Candidate:
    """A plugin and what has become of it. `plugin` is the object behind it, None until it is imported.

    `pack` is the prefix of its tools' names, empty for one of the core's own.
    """

    def __init__(self, record: PluginRecord, pack: str, plugin: Any = None) -> None:
        self.record = record
        self.pack = pack
        self.plugin = plugin
        self.guard: Any = None  # what pluggy has of it, once it is imported
        self.settings: Any = None  # its own, once it is configured
        self.is_configured = False
        self.exception: BaseException | None = None
        self.traceback = ""
        self.notes: list[str] = []
        self.seconds = 0.0

    def become(self, state: PluginState, reason: str = "") -> None:
        """Move on to another state."""
        self.record = evolve(self.record, state=state, reason=reason)

    @property
    def is_loadable(self) -> bool:
        """Whether nothing speaks against loading it."""
        return self.record.state is PluginState.FOUND and not self.record.reason

    @property
    def is_active(self) -> bool:
        """Whether it was loaded and has not failed since."""
        return self.record.state is PluginState.ACTIVE

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
        if slot.is_loadable:
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
        selection.leave_out(slot)
        yield slot


def _name(plugin: Any) -> str:
    """`weather` for a module `acme.weather`, `files` for `pegboard_files`, the class's name for any other object."""
    name = plugin.__name__ if isinstance(plugin, (ModuleType, type)) else type(plugin).__name__
    return name.rpartition(".")[2].removeprefix("pegboard_")


def _installed(found: FoundPlugin, selection: Selection, core: str | None) -> Candidate:
    record = PluginRecord(found.name, found.distribution, found.version, found.entry_point)
    slot = Candidate(record, pack_name(found.name))
    selection.leave_out(slot)
    if not slot.is_loadable:
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


def _missing(selection: Selection, slots: list[Candidate]) -> Iterator[Candidate]:
    """Names that nothing has, but for those in the environment, which may be that of several programs."""
    known = sorted({name for slot in slots for name in (slot.record.name, slot.record.distribution) if name})
    named = {name: rule for rule in selection.named for name in rule.names if _WILDCARDS.isdisjoint(name)}
    for name, rule in named.items() if selection.scan else ():
        if not Rule(rule.source, (name,)).matches(*known):
            hint, advice = suggestion(name, known, noun="installed plugins"), how_to_install(known_pack(name))
            remedy = "" if rule in selection.block else advice or "Install what offers it."
            slot = Candidate(PluginRecord(name), pack_name(name))
            slot.become(PluginState.FAILED, f"not installed. {hint} {remedy}".rstrip())
            yield slot


# Loading and running --------------------------------------------------------------------------------------------


class IsolatedRun(NamedTuple):
    """How plugin code ended: a value or an error; `notes` say what else it did."""

    value: Any = None
    error: BaseException | None = None
    notes: tuple[str, ...] = ()


def isolated(action: Callable[[], Any]) -> IsolatedRun:
    """Run `action`; whatever it raises is in the outcome, SystemExit included. Only a real Ctrl-C passes through.

    What it prints goes to standard error, for a host may speak a protocol on standard output; `sys.path` is restored.
    """
    spill = _Spill()
    path, entries = sys.path, list(sys.path)
    value, error = None, None
    try:
        with redirect_stdout(spill):
            value = action()
    except BaseException as raised:  # noqa: BLE001 - a plugin may raise anything, and must break nothing else
        pass_interrupt(raised)
        error = raised
    notes = ["printed to standard output (shown on standard error instead)"] if spill.used else []
    if sys.path is not path or sys.path != entries:
        notes.append("changed sys.path (restored)")
        sys.path = path
        path[:] = entries
    return IsolatedRun(value, error, tuple(notes))


class _Spill:
    """Stands in for standard output: standard error that remembers whether it was written to."""

    used = False

    def write(self, text: str) -> int:
        """Write to standard error, where there is one."""
        self.used = True
        return len(text) if sys.stderr is None else sys.stderr.write(text)

    def close(self) -> None:
        """Do nothing: standard error is not its own."""

    def __getattr__(self, name: str) -> Any:
        # For code that wants `buffer`, `encoding`, `reconfigure`; without a console (pythonw) there is none of them.
        return getattr(sys.stderr, name)


def load_plugin(entry_point: str) -> Any:
    """Import what an entry point names. Raises what the import raises."""
    from importlib import import_module

    path = entry_point.partition("[")[0]
    module, _, attributes = (part.strip() for part in path.partition(":"))
    try:
        plugin: Any = import_module(module)
    except ModuleNotFoundError as error:
        # Also a package on the way to it; anything else that is missing is missed by the plugin.
        if error.name and f"{module}.".startswith(f"{error.name}."):
            reason = f"its entry point leads to no module: there is no {error.name!r}; reinstall it"
            raise PluginError(reason) from error
        raise
    try:
        return attrgetter(attributes)(plugin) if attributes else plugin
    except AttributeError as error:
        raise PluginError(f"its entry point leads to nothing: {module!r} has no {attributes!r}") from error


def _remedy(module: str, distribution: str | None) -> str:
    """What to install for a module that is missing: what the pack itself requires, or a pack of ours; never a guess."""
    from importlib_metadata import distribution as installed
    from importlib_metadata import requires

    required = {line: re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in tried(requires, distribution or "") or ()}
    absent = {line: name for line, name in required.items() if name != "pegboard" and not tried(installed, name)}
    named = [name for name in absent.values() if normalise(name) == normalise(module)]
    known = known_pack(module) if module.startswith("pegboard_") else None
    wanted = named or ([known.distribution] if known else [name for line, name in absent.items() if ";" not in line])
    return f"; pip install {' '.join(sorted(wanted))}" if wanted else ""


def failure(error: BaseException, where: str, record: PluginRecord) -> str:
    """A plugin's failure as a sentence on one line."""
    if isinstance(error, PluginError | MissingSettingsError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name.partition(".")[0]
        return f"needs the module {missing!r} {where}, which is not installed{_remedy(missing, record.distribution)}"
    name = type(error).__name__
    message = " ".join(describe_exception(error).removeprefix(f"{name}: ").split())
    if len(message) > _LONGEST_REASON:
        message = f"{message[:_LONGEST_REASON]}..."
    return f"raised {name} {where}" + ("" if message == name else f": {message}")
