"""Registration: putting tools on the board, from packs and from the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve

from pegboard._base.effects import pass_interrupt, tried
from pegboard._base.errors import ConflictError, describe_exception
from pegboard._base.names import pack_name
from pegboard._board.board import OnConflict
from pegboard._model.plugin_record import Contribution
from pegboard._model.tool import Entry, Origin, Tool
from pegboard._toolkit.live_sources import Followed, is_live, leave
from pegboard._toolkit.state import Presets, ToolkitState, replaces
from pegboard._tools.collect import Collected, check_renamed, own_name
from pegboard._tools.definition import definition_of
from pegboard.extension import Offer

if TYPE_CHECKING:
    from pegboard._model.program import Toolset

_PROGRAM = Origin()
_NO_TERMS = Offer(None)
T = TypeVar("T")


def assemble(core: ToolkitState) -> None:
    """Register what active plugins offer, and the core's own tool for output that is kept."""
    live = register_packs(core)
    kept, name = core.engine.results.spill is not None, "read_output"
    if kept and not replaces(core.registry.find(name), name):
        core.registry.add([core.own_tool(name)], (), "raise")
    follow_packs(core, live)


def register_packs(core: ToolkitState, *, again: bool = False) -> list[Contribution]:
    """Register the tools of active plugins, or `again` what could not be read before, and now can.

    Live sources may take their time: they are returned, for `follow_packs`.
    """
    by_pack: dict[str, list[Contribution]] = {}
    live: list[Contribution] = []
    packs = core.plugins.packs
    for each in core.offered():
        if is_live(_terms(each)[0]):
            live.append(each)
        elif not again or packs[each.pack or ""].faults:
            by_pack.setdefault(each.pack or "", []).append(each)
    for offered in by_pack.values():
        _register_pack(core, offered)
    return live


def _terms(offered: Contribution) -> tuple[Any, Offer]:
    """What a pack offers: the source, and the terms of its registration."""
    value = offered.value
    return (value.source, value) if isinstance(value, Offer) else (value, _NO_TERMS)


def _register_pack(core: ToolkitState, offered: list[Contribution]) -> None:
    """Register what one pack offers; each thing that cannot be tools costs itself alone, and is told."""
    origin, pack = offered[0].origin, offered[0].pack or ""
    refused: dict[str, BaseException] = {}
    found: dict[str, Tool] = {}
    presets: Presets = {}
    toolsets: list[Toolset] = []
    for each in offered:
        source, terms = _terms(each)
        try:
            collected = core.collector.collect(source, terms, origin, pack, partial(fail_tool, core, origin), refused)
            if terms.presets:
                presets |= core.read_presets(terms, collected.tools, lenient=bool(refused))
            for tool in collected.tools:
                if found.setdefault(tool.name, tool) is not tool:
                    refused[tool.name] = ConflictError(f"it offers {tool.name!r} twice; give one another name")
            toolsets += collected.toolsets
        except BaseException as error:  # noqa: BLE001 - a pack's class or source may do anything
            pass_interrupt(error)
            refused[_label(source)] = error
    before, known = core.plugins.packs[pack].faults, core.registry.tools_of(pack)  # what was refused, and what was not
    unknown = [tool for name, tool in found.items() if name not in known]
    fresh = [tool for tool in unknown if not before or definition_of(tool).name in before]
    core.registry.add_pack(pack, fresh, toolsets)
    core.hold_presets(fresh, presets)
    core.plugins.find_faults(origin, {name: describe_exception(error) for name, error in refused.items()})


def _label(source: Any) -> str:
    """What a message calls something that cannot be tools."""
    name = tried(lambda: source.__name__)
    return name if isinstance(name, str) else type(source).__name__


def follow_packs(core: ToolkitState, live: Iterable[Contribution]) -> None:
    """Register the live sources of active plugins, and follow them from now on.

    All begin before the first is waited for, so that several that are slow take no longer than the slowest.
    """
    begun: list[tuple[Contribution, Followed]] = []
    for each in live:
        source, terms = _terms(each)
        offer = evolve(terms, source=source)
        followed = _step(core, each, partial(Followed, core, offer, "raise", each.pack, each.origin))
        if followed is not None:
            core.live.append(followed)
            begun.append((each, followed))
    for each, followed in begun:
        if _step(core, each, lambda followed=followed: (followed.begin(),)) is None:  # type: ignore[misc]
            core.live.remove(followed)
            _step(core, each, followed.stop)


def _step(core: ToolkitState, offered: Contribution, step: Callable[[], T]) -> T | None:
    """Take a step with what a pack offers; if it fails, these tools are missing, and that is told."""
    try:
        return step()
    except BaseException as error:  # noqa: BLE001 - a pack's source may do anything
        fail_tool(core, offered.origin, _label(_terms(offered)[0]), error)
        return None


def fail_tool(core: ToolkitState, origin: Origin, name: str, error: BaseException) -> None:
    """Remove a pack's tool that turns out to be none, and say so."""
    pass_interrupt(error)
    pack = pack_name(origin.plugin or "")
    of_pack = [tool for tool in core.registry.board.tools.values() if tool.pack == pack]
    core.registry.remove([tool for tool in of_pack if definition_of(tool).name == name])
    core.plugins.find_faults(origin, {**core.plugins.packs[pack].faults, name: describe_exception(error)})


def register(core: ToolkitState, offer: Offer, on_conflict: OnConflict) -> list[Tool]:
    """Register the program's objects, which are the offer's `source`, all or none; the tools as registered."""
    packs = _packs(core, offer.source)
    # All begin before the first is waited for.
    live = {
        id(source): Followed(core, evolve(offer, source=source), on_conflict)
        for source in offer.source
        if type(source) is not FunctionType and is_live(source)
    }

    def add(read: tuple[Collected, Presets]) -> list[tuple[Tool, Tool | None]]:
        collected, presets = read
        added = core.registry.add(collected.tools, collected.toolsets, on_conflict, packs.values())
        if presets:
            core.hold_presets(added, presets)
        return list(zip(collected.tools, added, strict=True))

    try:
        registered = core.assembly.as_of_now(lambda: _read(core, offer, live, packs), add)
    except BaseException:
        leave(core, list(live.values()))
        raise
    if packs:
        leave(core, [each for each in core.live if each.pack in packs.values()])
    core.live.extend(live.values())
    for each in live.values():
        own = [(own_name(tool), placed) for tool, placed in registered if tool.origin is each.origin]
        each.follow({name: placed for name, placed in own if placed is not None})
    return [placed for _, placed in registered if placed is not None]


def _read(
    core: ToolkitState, offer: Offer, live: Mapping[int, Followed], packs: Mapping[int, str]
) -> tuple[Collected, Presets]:
    """The tools of the program's sources, and their presets. Raises `RegistrationError`."""
    tools: list[Tool] = []
    toolsets: list[Toolset] = []
    for source in offer.source:
        if id(source) in live:
            found = live[id(source)].collect()
        else:
            found = core.collector.collect(source, offer, _PROGRAM, packs.get(id(source)))
        tools += found.tools
        toolsets += found.toolsets
    brought = {group.name for each in live.values() for group in each.groups}
    for tool in tools:
        if tool.groups:
            core.groups.check(name for name in tool.groups if name not in brought)
    if offer.rename is not None and not live:  # a live source may have such a tool later
        check_renamed(offer, map(own_name, tools))
    # Before anything is registered: a preset that does not fit must leave the board as it was.
    lenient = any(each.is_unavailable for each in live.values())
    presets = core.read_presets(offer, tools, lenient=lenient) if offer.presets else {}
    return Collected(tuple(tools), tuple(toolsets)), presets


def _packs(core: ToolkitState, sources: Iterable[Any]) -> dict[int, str]:
    """The packs whose own tools some objects hold, by the identity of the object.

    `register(FileTools(dir))` takes the place of the pack's tools: the class is in the package that the pack comes
    from. A live source holds tools of another program, whichever pack it is made with.
    """
    # A function belongs to no pack, and looking takes as long as reading it.
    objects = [source for source in sources if type(source) is not FunctionType]
    if not objects:
        return {}
    by_package: dict[str, str] = {}
    for contribution in core.offered():
        package = _package(contribution.origin.entry_point)
        if package and contribution.pack is not None:
            by_package.setdefault(package, contribution.pack)  # the first of several counts
    found: dict[int, str] = {}
    for source in objects:
        cls = source if isinstance(source, type) else type(source)
        pack = by_package.get(_package(getattr(cls, "__module__", None)))
        if pack is not None and not is_live(source):
            found[id(source)] = pack
    return found


def _package(path: str | None) -> str:
    """The top-level package of a module or an entry point."""
    return (path or "").partition(":")[0].partition(".")[0]


def extend(core: ToolkitState, table: str, handler: Any) -> None:
    """Add a handler of the program's to a table. If a registered tool cannot be read with it, this changes nothing."""
    change(core, lambda: getattr(core.assembly, table).add(handler, Origin(), "program"))
    register_packs(core, again=True)


def change(core: ToolkitState, add: Callable[[], Callable[[], object]]) -> None:
    """Change a table and read every tool anew. If that raises, what `add` gives takes it back."""
    fresh: dict[Entry, Tool | None] = {}
    with core.extending:
        with core.assembly.changing:
            take_back = add()
            core.assembly.edition += 1
        try:
            for tool in core.registry.board.tools.values():
                fresh[tool.entry] = tool.evolve(definition=definition_of(tool).rebuilt(core.assembly))
            core.registry.update(fresh)
        except BaseException:
            take_back()
            raise
