"""Registration: putting tools on the board, from packs and from the program."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import partial
from typing import Any

from pegboard._board import OnConflict
from pegboard._collect import Registration
from pegboard._core import Core
from pegboard._errors import describe_exception
from pegboard._extension import TypeHandler
from pegboard._lazy import LazyDefinition
from pegboard._plugin_record import Contribution
from pegboard._presets import for_tools
from pegboard._session import Session
from pegboard._sources import Followed, follow, lenient_presets, unfollow
from pegboard._tool import Origin, Tool

__all__ = [
    "fail_pack",
    "hang_up_own",
    "hang_up_packs",
    "read_anew",
    "register",
    "register_type",
    "reread",
]

_NOTHING = Registration()


def hang_up_own(core: Core) -> None:
    """Hang up the tools of the core itself."""
    for source in core.own_tools:
        own = core.collector.collect(source, _NOTHING, Origin("pegboard"), None, _no_pack)
        core.registry.add(own.tools, (), "raise")


def hang_up_packs(core: Core, only: Container[str] | None = None) -> None:
    """Hang up the tools of active plugins, all or some; one whose tools cannot be read fails, the others hang."""
    by_plugin: dict[str, list[Contribution]] = {}
    for contribution in core.plugins.tools():
        if only is not None and contribution.pack not in only:
            continue
        by_plugin.setdefault(contribution.pack or "", []).append(contribution)
    for pack, contributions in by_plugin.items():
        _hang_up(core, pack, contributions)


def _hang_up(core: Core, pack: str, contributions: list[Contribution]) -> None:
    origin = contributions[0].origin
    failed = partial(fail_pack, core, pack, origin)
    try:
        found = [core.collector.collect(each.value, _NOTHING, origin, pack, failed) for each in contributions]
        tools = [tool for collected in found for tool in collected.tools]
        core.registry.add_pack(pack, tools, [collected.toolset for collected in found if collected.toolset])
    except Exception as error:  # noqa: BLE001 - a pack's class may do anything when it is made
        failed(f"its tools cannot be used: {describe_exception(error)}", error)


def fail_pack(core: Core, pack: str, origin: Origin, reason: str, error: BaseException | None) -> None:
    """Take a pack down: its tools, and whatever else it contributes."""
    core.registry.drop_pack(pack)
    if any(record.name == origin.plugin and record.state == "active" for record in core.plugins.records):
        core.plugins.fail(origin, reason, error)


def register(
    core: Core,
    session: Session,
    sources: Iterable[Any],
    registration: Registration,
    presets: Mapping[str, Any] | None,
    on_conflict: OnConflict,
) -> list[Tool]:
    """Register the program's objects, all or none; the tools as they hang there."""
    followed = follow(core, session, sources, registration, presets, on_conflict)
    try:
        return _register(core, session, sources, registration, presets, on_conflict, followed)
    except BaseException:
        unfollow(followed.values())
        raise


def _register(
    core: Core,
    session: Session,
    sources: Iterable[Any],
    registration: Registration,
    presets: Mapping[str, Any] | None,
    on_conflict: OnConflict,
    followed: Mapping[int, Followed],
) -> list[Tool]:
    packs = _packs(core)
    pack_of = [(source, _pack_of(packs, source) if packs else None) for source in sources]
    found = [
        followed[id(source)].collect()
        if id(source) in followed
        else core.collector.collect(source, registration, Origin(), pack, _no_pack)
        for source, pack in pack_of
    ]
    tools = [tool for collected in found for tool in collected.tools]
    for tool in tools:
        core.groups.check(tool.groups)
    names = [name for collected in found for name in collected.names]
    by_name = dict(zip(names, tools, strict=True))
    away = any(each.is_away for each in followed.values())
    given = lenient_presets(presets, by_name) if presets is None or away else for_tools(presets, by_name)
    # Read before anything hangs: a preset that does not fit must leave the board as it was.
    for name, tool in zip(names, tools, strict=True):
        if name in given:
            session.check_presets(tool, given[name])
    displaced = sorted({pack for _, pack in pack_of if pack is not None})
    toolsets = [each.toolset for each in found if each.toolset]
    added = core.registry.add(tools, toolsets, on_conflict, displaced)
    for name, hung in zip(names, added, strict=True):
        if hung is not None and name in given:
            session.set_presets(hung.name, given[name])
    core.live.extend(followed.values())
    for each in followed.values():
        ours = zip(tools, names, added, strict=True)
        each.hang({name: hung for tool, name, hung in ours if tool.origin is each.origin and hung is not None})
    return [session.seen(hung) for hung in added if hung is not None]


def _packs(core: Core) -> dict[str, str | None]:
    """The packs that contribute tools, by the top-level package that each comes from; the first of several counts."""
    packs: dict[str, str | None] = {}
    for contribution in core.plugins.tools():
        top = (contribution.origin.entry_point or "").partition(":")[0].partition(".")[0]
        if top:
            packs.setdefault(top, contribution.pack)
    return packs


def _pack_of(packs: Mapping[str, str | None], source: Any) -> str | None:
    """The pack whose own tools an object holds: `register(FileTools(dir))` takes the place of the pack's tools."""
    module = getattr(source if isinstance(source, type) else type(source), "__module__", "") or ""
    return packs.get(module.partition(".")[0])


def _no_pack(reason: str, error: BaseException | None) -> None:
    """A lazy tool that the program registered itself: its own error says everything."""


def register_type(core: Core, handler: TypeHandler) -> None:
    """Map a type for the program. If a tool that hangs cannot be read with it, this raises and changes nothing."""
    take_back = core.assembly.types.add(handler, Origin(), "program")
    try:
        reread(core)
    except BaseException:
        take_back()
        raise


def reread(core: Core) -> None:
    """Read every tool anew after a type or a converter changed. If that raises, the board stays as it was."""
    fresh = [tool.evolve(definition=read_anew(core, tool)) for tool in core.board.tools.values()]
    core.registry.update(fresh)


def read_anew(core: Core, tool: Tool) -> Any:
    """The definition of a tool, read with the tables as they are now. Raises `RegistrationError`."""
    definition: Any = tool.definition
    if isinstance(definition, LazyDefinition):
        definition.forget()
        return definition
    return definition.rebuilt(tool.name, tool.options, core.assembly)
