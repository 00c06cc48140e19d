"""Registration: putting tools on the board, from packs and from the program."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from types import FunctionType
from typing import Any, TypeVar

from pegboard._base.errors import describe_exception
from pegboard._board.board import OnConflict
from pegboard._injection.presets import for_tools
from pegboard._model.plugin_record import Contribution
from pegboard._model.tool import Origin, Tool
from pegboard._toolkit.live_sources import Followed, follow, is_live, lenient_presets, unfollow, unfollow_packs
from pegboard._toolkit.session import Session
from pegboard._toolkit.state import ToolkitState
from pegboard._tools.collect import Registration
from pegboard._tools.definition import definition_of
from pegboard.extension import Offer, TypeHandler

__all__ = [
    "fail_pack",
    "follow_packs",
    "hang_up_own",
    "hang_up_packs",
    "read_anew",
    "register",
    "register_type",
    "reread",
]

_NOTHING = Registration()
_PROGRAM = Origin()
T = TypeVar("T")


def hang_up_own(core: ToolkitState) -> None:
    """Hang up the tools of the core itself."""
    for source in core.own_tools:
        own = core.collector.collect(source, _NOTHING, Origin("pegboard"), None, _no_pack)
        core.registry.add(own.tools, (), "raise")


def hang_up_packs(core: ToolkitState, session: Session, only: Container[str] | None = None) -> None:
    """Hang up the tools of active plugins, all or some; one whose tools cannot be read fails, the others hang.

    Those of live sources are for `follow_packs`: they may take their time.
    """
    by_plugin: dict[str, list[Contribution]] = {}
    for contribution in core.plugins.tools():
        if only is not None and contribution.pack not in only:
            continue
        by_plugin.setdefault(contribution.pack or "", []).append(contribution)
    for pack, contributions in by_plugin.items():
        _hang_up(core, session, pack, contributions)


def _hang_up(core: ToolkitState, session: Session, pack: str, contributions: list[Contribution]) -> None:
    origin = contributions[0].origin
    failed = partial(fail_pack, core, pack, origin)
    try:
        offers = [each.value for each in contributions if not is_live(_source(each.value))]
        found = [core.collector.collect(_source(each), _terms(each), origin, pack, failed) for each in offers]
        tools = [tool for collected in found for tool in collected.tools]
        core.registry.add_pack(pack, tools, [collected.toolset for collected in found if collected.toolset])
        for offer, collected in zip(offers, found, strict=True):
            if not isinstance(offer, Offer) or not offer.presets:
                continue
            named = dict(zip(collected.names, collected.tools, strict=True))
            for own, values in for_tools(offer.presets, named).items():
                session.set_presets(f"{pack}__{named[own].name}", values)
    except Exception as error:  # noqa: BLE001 - a pack's class may do anything when it is made
        failed(f"its tools cannot be used: {describe_exception(error)}", error)


def follow_packs(core: ToolkitState, session: Session, only: Container[str] | None = None) -> None:
    """Hang up the live sources of active plugins, all or some, and follow them from now on.

    All begin before anybody waits for one, so that several that are slow take no longer than the slowest.
    """
    begun = [
        (contribution, followed)
        for contribution in core.plugins.tools()
        if only is None or contribution.pack in only
        if (followed := _begun(core, session, contribution)) is not None
    ]
    for contribution, followed in begun:
        if followed in core.live:  # and its pack has not failed meanwhile
            _isolated(core, contribution, followed.begin)


def _begun(core: ToolkitState, session: Session, contribution: Contribution) -> Followed | None:
    if not is_live(_source(contribution.value)):
        return None
    offer = contribution.value if isinstance(contribution.value, Offer) else Offer(contribution.value)

    def begin() -> Followed:
        pack, origin = contribution.pack, contribution.origin
        return Followed(core, session, offer.source, _terms(offer), offer.presets, "raise", pack, origin)

    followed = _isolated(core, contribution, begin)
    if followed is not None:
        core.live.append(followed)
    return followed


def _isolated(core: ToolkitState, contribution: Contribution, step: Callable[[], T]) -> T | None:
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - a pack's source may do anything
        reason = f"its tools cannot be used: {describe_exception(error)}"
        fail_pack(core, contribution.pack or "", contribution.origin, reason, error)
        return None


def _source(value: Any) -> Any:
    """What a pack offers, with or without terms."""
    return value.source if isinstance(value, Offer) else value


def _terms(offer: Any) -> Registration:
    if not isinstance(offer, Offer):
        return _NOTHING
    return Registration(
        groups=(offer.group,) if isinstance(offer.group, str) else tuple(offer.group),
        enable=None if offer.enable is None else tuple(offer.enable),
        disable=tuple(offer.disable),
        prefix=offer.prefix,
        rename=offer.rename,
    )


def fail_pack(core: ToolkitState, pack: str, origin: Origin, reason: str, error: BaseException | None) -> None:
    """Take a pack down: its tools, and whatever else it contributes."""
    core.registry.drop_pack(pack)
    unfollow_packs(core, {pack})
    if any(record.name == origin.plugin and record.state == "active" for record in core.plugins.records):
        core.plugins.fail(origin, reason, error)


def register(
    core: ToolkitState,
    session: Session,
    sources: Iterable[Any],
    registration: Registration,
    presets: Mapping[str, Any] | None,
    on_conflict: OnConflict,
) -> list[Tool]:
    """Register the program's objects, all or none; the tools as they hang there."""
    live = [source for source in sources if is_live(source)]
    followed = follow(core, session, live, registration, presets, on_conflict) if live else {}
    try:
        return _register(core, session, sources, registration, presets, on_conflict, followed)
    except BaseException:
        unfollow(followed.values())
        raise


def _register(
    core: ToolkitState,
    session: Session,
    sources: Iterable[Any],
    registration: Registration,
    presets: Mapping[str, Any] | None,
    on_conflict: OnConflict,
    followed: Mapping[int, Followed],
) -> list[Tool]:
    packs = _packs(core, sources)
    found = [
        followed[id(source)].collect()
        if id(source) in followed
        else core.collector.collect(source, registration, _PROGRAM, packs.get(id(source)), _no_pack)
        for source in sources
    ]
    tools = [tool for collected in found for tool in collected.tools]
    for tool in tools:
        if tool.groups:
            core.groups.check(tool.groups)
    names = [name for collected in found for name in collected.names]
    if registration.rename is not None and not followed:  # a live source may have such a tool later
        registration.check_renamed(names)
    given = {} if presets is None else _given(presets, dict(zip(names, tools, strict=True)), followed.values())
    # Read before anything hangs: a preset that does not fit must leave the board as it was.
    for name, tool in zip(names, tools, strict=True) if given else ():
        if name in given:
            session.check_presets(tool, given[name])
    displaced = sorted(set(packs.values()))
    added = core.registry.add(tools, [each.toolset for each in found if each.toolset], on_conflict, displaced)
    if displaced:
        unfollow_packs(core, displaced)
    for name, hung in zip(names, added, strict=True) if given else ():
        if hung is not None and name in given:
            session.set_presets(hung.name, given[name])
    core.live.extend(followed.values())
    for each in followed.values():
        ours = zip(tools, names, added, strict=True)
        each.hang({name: hung for tool, name, hung in ours if tool.origin is each.origin and hung is not None})
    return [session.seen(hung) for hung in added if hung is not None]


def _given(
    presets: Mapping[str, Any], by_name: Mapping[str, Tool], followed: Iterable[Followed]
) -> dict[str, Mapping[str, Any]]:
    if any(each.is_away for each in followed):
        return lenient_presets(presets, by_name)
    return for_tools(presets, by_name)


def _packs(core: ToolkitState, sources: Iterable[Any]) -> dict[int, str]:
    """The packs whose own tools some objects hold, by the identity of the object."""
    # A function belongs to no pack, and looking at the packs takes as long as reading it.
    objects = [source for source in sources if type(source) is not FunctionType]
    packs = _packs_by_package(core) if objects else {}
    return {id(source): pack for source in objects if packs and (pack := _pack_of(packs, source)) is not None}


def _packs_by_package(core: ToolkitState) -> dict[str, str | None]:
    """The packs that contribute tools, by the top-level package that each comes from; the first of several counts."""
    packs: dict[str, str | None] = {}
    for contribution in core.plugins.tools():
        top = (contribution.origin.entry_point or "").partition(":")[0].partition(".")[0]
        if top:
            packs.setdefault(top, contribution.pack)
    return packs


def _pack_of(packs: Mapping[str, str | None], source: Any) -> str | None:
    """The pack whose own tools an object holds: `register(FileTools(dir))` takes the place of the pack's tools.

    A live source holds tools of somebody else, whichever pack it is made with.
    """
    if is_live(source):
        return None
    module = getattr(source if isinstance(source, type) else type(source), "__module__", "") or ""
    return packs.get(module.partition(".")[0])


def _no_pack(reason: str, error: BaseException | None) -> None:
    """A lazy tool that the program registered itself: its own error says everything."""


def register_type(core: ToolkitState, handler: TypeHandler) -> None:
    """Map a type for the program. If a tool that hangs cannot be read with it, this raises and changes nothing."""
    take_back = core.assembly.types.add(handler, Origin(), "program")
    try:
        reread(core)
    except BaseException:
        take_back()
        raise


def reread(core: ToolkitState) -> None:
    """Read every tool anew after a type or a converter changed. If that raises, the board stays as it was."""
    fresh = [read_anew(tool) for tool in core.board.tools.values()]
    core.registry.update(fresh)


def read_anew(tool: Tool) -> Tool:
    """The tool, read with the tables as they are now. Raises `RegistrationError`."""
    return tool.evolve(definition=definition_of(tool).renewed())
