"""Registration: putting tools on the board, from packs and from the program."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve

from pegboard._base.errors import describe_exception
from pegboard._board.board import OnConflict
from pegboard._injection.presets import Preset, for_tools
from pegboard._model.tool import Origin, Tool
from pegboard._toolkit.live_sources import Followed, is_live, unfollow, unfollow_packs
from pegboard._toolkit.session import Session
from pegboard._toolkit.state import ToolkitState
from pegboard._tools.collect import check_renamed
from pegboard._tools.definition import definition_of
from pegboard.extension import Offer, TypeHandler

if TYPE_CHECKING:
    from pegboard._model.program import Toolset

_PROGRAM = Origin()
T = TypeVar("T")


def hang_up_packs(core: ToolkitState, session: Session, only: Container[str] | None = None) -> None:
    """Hang up the tools of active plugins, all or some; one whose tools cannot be read fails, the others hang.

    Those of live sources are for `follow_packs`: they may take their time.
    """
    by_pack: dict[tuple[str, Origin], list[Offer]] = {}
    for pack, origin, offer in _offers(core, only):
        by_pack.setdefault((pack, origin), []).extend([] if is_live(offer.source) else [offer])
    for (pack, origin), offers in by_pack.items():
        _isolated(core, pack, origin, partial(_hang_up, core, session, pack, origin, offers))


def _offers(core: ToolkitState, only: Container[str] | None) -> list[tuple[str, Origin, Offer]]:
    """What the packs offer, all or some, each with its terms."""
    return [
        (each.pack or "", each.origin, each.value if isinstance(each.value, Offer) else Offer(each.value))
        for each in core.offered()
        if only is None or each.pack in only
    ]


def _hang_up(core: ToolkitState, session: Session, pack: str, origin: Origin, offers: list[Offer]) -> None:
    failed = partial(fail_pack, core, pack, origin)
    found = [core.collector.collect(offer.source, offer, origin, pack, failed) for offer in offers]
    tools = [tool for collected in found for tool in collected.tools]
    core.registry.add_pack(pack, tools, [toolset for collected in found for toolset in collected.toolsets])
    for offer, collected in zip(offers, found, strict=True):
        for own, values in for_tools(offer.presets, collected.by_name).items():
            tool = collected.by_name[own]
            session.hold_presets(tool, session.check_presets(tool, values))


def follow_packs(core: ToolkitState, session: Session, only: Container[str] | None = None) -> None:
    """Hang up the live sources of active plugins, all or some, and follow them from now on.

    All begin before anybody waits for one, so that several that are slow take no longer than the slowest.
    """
    begun: list[tuple[str, Origin, Followed]] = []
    for pack, origin, offer in _offers(core, only):
        if is_live(offer.source):
            followed = _isolated(core, pack, origin, partial(Followed, core, session, offer, "raise", pack, origin))
            if followed is not None:
                core.live.append(followed)
                begun.append((pack, origin, followed))
    for pack, origin, followed in begun:
        if followed in core.live:  # and its pack has not failed meanwhile
            _isolated(core, pack, origin, followed.begin)


def _isolated(core: ToolkitState, pack: str, origin: Origin, step: Callable[[], T]) -> T | None:
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - a pack's class or source may do anything
        fail_pack(core, pack, origin, f"its tools cannot be used: {describe_exception(error)}", error)
        return None


def fail_pack(core: ToolkitState, pack: str, origin: Origin, reason: str, error: BaseException | None) -> None:
    """Take a pack down: its tools, and whatever else it contributes."""
    core.registry.drop_pack(pack)
    unfollow_packs(core, {pack})
    if any(record.name == origin.plugin and record.state == "active" for record in core.plugins.records):
        core.plugins.fail(origin, reason, error)


def register(core: ToolkitState, session: Session, offer: Offer, on_conflict: OnConflict) -> list[Tool]:
    """Register the program's objects, the offer's `source` holding all, all or none; the tools as they hang there."""
    # All begin before anybody waits for one.
    live = {
        id(source): Followed(core, session, evolve(offer, source=source), on_conflict)
        for source in offer.source
        if type(source) is not FunctionType and is_live(source)
    }
    try:
        return _register(core, session, offer, on_conflict, live)
    except BaseException:
        unfollow(live.values())
        raise


def _register(
    core: ToolkitState, session: Session, offer: Offer, on_conflict: OnConflict, live: Mapping[int, Followed]
) -> list[Tool]:
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
    presets = _presets(session, offer, names, tools, live.values()) if offer.presets else []
    displaced = sorted(set(packs.values()))
    added = core.registry.add(tools, toolsets, on_conflict, displaced)
    if displaced:
        unfollow_packs(core, displaced)
    for hung, values in zip(added, presets, strict=bool(presets)):
        if hung is not None and values:
            session.hold_presets(hung, values)
    core.live.extend(live.values())
    for each in live.values():
        ours = zip(tools, names, added, strict=True)
        each.hang({name: hung for tool, name, hung in ours if tool.origin is each.origin and hung is not None})
    return [session.seen(hung) for hung in added if hung is not None]


def _presets(
    session: Session, offer: Offer, names: list[str], tools: list[Tool], live: Iterable[Followed]
) -> list[dict[str, Preset]]:
    """The presets of each tool. Raises `RegistrationError` for one that does not fit."""
    named = list(zip(names, tools, strict=True))
    given = for_tools(offer.presets, dict(named), lenient=any(each.is_away for each in live))
    return [session.check_presets(tool, given.get(name, {})) for name, tool in named]


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


def register_type(core: ToolkitState, handler: TypeHandler) -> None:
    """Map a type for the program. If a tool that hangs cannot be read with it, this raises and changes nothing."""
    take_back = core.assembly.types.add(handler, Origin(), "program")
    try:
        reread(core)
    except BaseException:
        take_back()
        raise
    core.handlers.append(("types", handler, Origin(), "program"))


def reread(core: ToolkitState) -> None:
    """Read every tool anew after a type or a converter changed. If that raises, the board stays as it was."""
    core.registry.update({tool.entry: read_anew(tool) for tool in core.registry.board.tools.values()})


def read_anew(tool: Tool) -> Tool:
    """The tool, read with the tables as they are now. Raises `RegistrationError`."""
    return tool.evolve(definition=definition_of(tool).renewed())
