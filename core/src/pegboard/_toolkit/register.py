"""Registration: putting tools on the board, from packs and from the program."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve

from pegboard._base.effects import pass_interrupt
from pegboard._base.errors import CulpritError, PegboardError, RegistrationError, culprit, describe_exception
from pegboard._base.names import pack_name
from pegboard._board.board import OnConflict
from pegboard._injection.presets import Preset, for_tools
from pegboard._model.plugin_record import Contribution
from pegboard._model.tool import Entry, Origin, Tool
from pegboard._toolkit.live_sources import Followed, is_live, leave, unfollow_packs
from pegboard._toolkit.state import Services, ToolkitState, replaces
from pegboard._tools.collect import check_renamed
from pegboard._tools.definition import definition_of
from pegboard.extension import Offer

if TYPE_CHECKING:
    from pegboard._model.program import Toolset

_PROGRAM = Origin()
_NO_TERMS = Offer(None)
T = TypeVar("T")


def assemble(core: ToolkitState) -> None:
    """Hang up what active plugins offer, and the core's own tool for output that is kept."""
    live = hang_up_packs(core)
    kept, name = core.engine.results.spill is not None, "read_output"
    if kept and not replaces(core.registry.find(name), name):
        core.registry.add([core.own_tool(name)], (), "raise")
    follow_packs(core, live)


def hang_up_packs(core: ToolkitState, only: Container[str] | None = None) -> list[Contribution]:
    """Hang up the tools of active plugins, all or some; of the others what could not be read before, and now can.

    Live sources may take their time: they are returned, for `follow_packs`.
    """
    by_pack: dict[str, list[Contribution]] = {}
    live: list[Contribution] = []
    packs = core.plugins.packs
    for each in core.offered():
        is_new = only is None or each.pack in only
        if is_new and is_live(_terms(each)[0]):
            live.append(each)
        elif is_new or packs[each.pack or ""].faults:
            by_pack.setdefault(each.pack or "", []).append(each)
    for offered in by_pack.values():
        _isolated(core, offered[0], partial(_hang_up, core, offered))
    return live


def _terms(offered: Contribution) -> tuple[Any, Offer]:
    """What a pack offers: the source, and the terms on which it hangs."""
    value = offered.value
    return (value.source, value) if isinstance(value, Offer) else (value, _NO_TERMS)


def _hang_up(core: ToolkitState, offered: list[Contribution]) -> None:
    """Hang up what one pack offers, without the tools that cannot be any."""
    origin, pack = offered[0].origin, offered[0].pack or ""
    refused: dict[str, BaseException] = {}
    how = origin, pack, partial(fail_tool, core, pack, origin), refused
    found = [(terms, core.collector.collect(source, terms, *how)) for source, terms in map(_terms, offered)]
    blamed = next((error for error in refused.values() if _to_blame(core, error)), None)
    if blamed is not None:
        raise blamed
    before = core.plugins.packs[pack].faults  # these were refused, and the others hang
    tools = [tool for _, each in found for tool in each.tools if not before or definition_of(tool).name in before]
    core.registry.add_pack(pack, tools, [toolset for _, collected in found for toolset in collected.toolsets])
    core.plugins.find_faults(origin, {name: describe_exception(error) for name, error in refused.items()})
    for terms, collected in found:
        if terms.presets:
            for own, values in for_tools(terms.presets, collected.by_name, lenient=bool(refused)).items():
                tool = collected.by_name[own]
                if tool in tools:
                    core.hold_presets(tool, core.check_presets(tool, values))


def follow_packs(core: ToolkitState, live: Iterable[Contribution]) -> None:
    """Hang up the live sources of active plugins, and follow them from now on.

    All begin before anybody waits for one, so that several that are slow take no longer than the slowest.
    """
    begun: list[Followed] = []
    for each in live:
        source, terms = _terms(each)
        offer = evolve(terms, source=source)
        followed = _isolated(core, each, partial(Followed, core, offer, "raise", each.pack, each.origin))
        if followed is not None:
            core.live.append(followed)
            begun.append(followed)
    for followed in begun:
        if followed in core.live:  # and its pack has not failed meanwhile
            _isolated(core, followed, followed.begin)


def _isolated(core: ToolkitState, offered: Contribution | Followed, step: Callable[[], T]) -> T | None:
    """Take a step for a pack that is active; it fails where the step does."""
    pack = offered.pack or ""

    def contained() -> T | None:
        try:
            return step() if pack in core.plugins.active_packs else None
        except BaseException as error:  # a pack's class or source may do anything
            pass_interrupt(error)
            if _to_blame(core, error):
                raise
            fail_pack(core, pack, offered.origin, f"its tools cannot be used: {describe_exception(error)}", error)
            return None

    return blaming(core, contained)


def fail_tool(core: ToolkitState, pack: str, origin: Origin, name: str, error: BaseException) -> None:
    """Take down a pack's tool that cannot be one, and say so. What else fails, takes down its whole pack."""
    reason, to_blame = describe_exception(error), _to_blame(core, error)
    if to_blame is None and culprit(error):
        return  # who is to blame has failed meanwhile: read anew, this is a tool
    if to_blame or not isinstance(error, RegistrationError):
        fail_pack(core, pack, origin, f"its tool {name!r} cannot be used: {reason}", error)
        return
    of_pack = [(shown, tool) for shown, tool in core.registry.board.tools.items() if tool.pack == pack]
    core.registry.remove([shown for shown, tool in of_pack if definition_of(tool).name == name])
    core.plugins.find_faults(origin, {**core.plugins.packs[pack].faults, name: reason})


def fail_pack(core: ToolkitState, pack: str, origin: Origin, reason: str, error: BaseException | None) -> None:
    """Take a pack down: its tools, and whatever else it contributes; or the one whose code is behind the error."""
    fault = _to_blame(core, error)
    if fault is not None:
        pack, origin, reason = pack_name(fault.origin.plugin), fault.origin, str(fault)
    core.registry.drop_pack(pack)
    unfollow_packs(core, {pack})
    core.plugins.fail(origin, reason, error)
    handlers = core.services.handlers
    core.use(Services(core.plugins))
    if core.services.handlers != handlers:
        _reread(core)


def blaming(core: ToolkitState, step: Callable[[], T]) -> T:
    """Take a step, and again without each plugin whose code fails in it while it reads what is somebody else's."""
    while True:
        try:
            return step()
        except BaseException as error:
            if _to_blame(core, error) is None:
                raise
            fail_pack(core, "", _PROGRAM, "", error)


def _to_blame(core: ToolkitState, error: BaseException | None) -> CulpritError | None:
    """The failure of an active plugin's code behind an exception."""
    fault = culprit(error)
    return fault if fault and pack_name(fault.origin.plugin or "") in core.plugins.active_packs else None


def register(core: ToolkitState, offer: Offer, on_conflict: OnConflict) -> list[Tool]:
    """Register the program's objects, the offer's `source` holding all, all or none; the tools as they hang there."""
    # All begin before anybody waits for one.
    live = {
        id(source): Followed(core, evolve(offer, source=source), on_conflict)
        for source in offer.source
        if type(source) is not FunctionType and is_live(source)
    }
    try:
        return blaming(core, partial(_register, core, offer, on_conflict, live))
    except BaseException:
        leave(core, list(live.values()))
        raise


def _register(core: ToolkitState, offer: Offer, on_conflict: OnConflict, live: Mapping[int, Followed]) -> list[Tool]:
    packs = _packs(core, offer.source)
    tools: list[Tool] = []
    names: list[str] = []
    toolsets: list[Toolset] = []
    for source in offer.source:
        if id(source) in live:
            found = live[id(source)].collect()
        else:
            found = core.collector.collect(source, offer, _PROGRAM, packs.get(id(source)))
        tools += found.tools
        names += found.names
        toolsets += found.toolsets
    for tool in tools:
        if tool.groups:
            core.groups.check(tool.groups)
    if offer.rename is not None and not live:  # a live source may have such a tool later
        check_renamed(offer, names)
    # Read before anything hangs: a preset that does not fit must leave the board as it was.
    presets = _presets(core, offer, names, tools, live.values()) if offer.presets else []
    displaced = sorted(set(packs.values()))
    added = core.registry.add(tools, toolsets, on_conflict, displaced)
    if displaced:
        unfollow_packs(core, displaced)
    for hung, values in zip(added, presets, strict=bool(presets)):
        if hung is not None and values:
            core.hold_presets(hung, values)
    core.live.extend(live.values())
    for each in live.values():
        ours = zip(tools, names, added, strict=True)
        each.hang({name: hung for tool, name, hung in ours if tool.origin is each.origin and hung is not None})
    return [hung for hung in added if hung is not None]


def _presets(
    core: ToolkitState, offer: Offer, names: list[str], tools: list[Tool], live: Iterable[Followed]
) -> list[dict[str, Preset]]:
    """The presets of each tool. Raises `RegistrationError` for one that does not fit."""
    named = list(zip(names, tools, strict=True))
    given = for_tools(offer.presets, dict(named), lenient=any(each.is_away for each in live))
    return [core.check_presets(tool, given.get(name, {})) for name, tool in named]


def _packs(core: ToolkitState, sources: Iterable[Any]) -> dict[int, str]:
    """The packs whose own tools some objects hold, by the identity of the object.

    `register(FileTools(dir))` takes the place of the pack's tools: the class is in the package that the pack comes
    from. A live source holds tools of somebody else, whichever pack it is made with.
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
    """Add a handler of the program's to a table. If a tool that hangs cannot be read with it, this changes nothing."""
    reread_after(core, getattr(core.assembly, table).add(handler, Origin(), "program"))
    core.handlers.append((table, handler, Origin(), "program"))
    hang_up_packs(core, ())


def reread_after(core: ToolkitState, take_back: Callable[[], object]) -> None:
    """Read every tool anew after a table changed. If that raises, the board and the table stay as they were."""
    try:
        core.registry.update({tool.entry: read_anew(core, tool) for tool in core.registry.board.tools.values()})
    except BaseException:
        take_back()
        raise


def read_anew(core: ToolkitState, tool: Tool) -> Tool:
    """The tool, read with the tables as they are now. Raises `RegistrationError`."""
    return tool.evolve(definition=definition_of(tool).rebuilt(core.assembly.within(tool.pack)))


def _reread(core: ToolkitState) -> None:
    """Read every tool with the new tables. A pack's that cannot be read any more goes; the program's raise."""
    blaming(core, partial(_read_all, core))
    hang_up_packs(core, ())


def _read_all(core: ToolkitState) -> None:
    fresh: dict[Entry, Tool] = {}
    failed: list[tuple[str, Tool, PegboardError]] = []
    for tool in core.registry.board.tools.values():
        try:
            fresh[tool.entry] = read_anew(core, tool)
        except PegboardError as refused:
            if tool.pack is None or culprit(refused):
                raise
            failed.append((tool.pack, tool, refused))
    core.registry.update(fresh)
    for pack, tool, error in failed:
        fail_tool(core, pack, tool.origin, definition_of(tool).name, error)
