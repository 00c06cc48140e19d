"""Reloading: a toolkit that runs takes in what was installed meanwhile, and lets go of what was removed."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pegboard._base.errors import PegboardError, describe_exception
from pegboard._model.plugin_record import PluginRecord, PluginState
from pegboard._model.program import PluginChanges
from pegboard._model.tool import Entry, Tool
from pegboard._plugins.loading import isolated
from pegboard._toolkit.live_sources import unfollow_packs
from pegboard._toolkit.register import fail_pack, follow_packs, hang_up_packs, read_anew
from pegboard._toolkit.session import Session
from pegboard._toolkit.state import Services, ToolkitState, forget_standard_tables


def reload_plugins(core: ToolkitState, session: Session) -> PluginChanges:
    """Bring the plugins up to what is installed now; if that raises, everything is as it was.

    Plugins that go on keep their tools, with presets, permissions and whatever sessions say of them.
    """
    before, names = core.services, set(core.registry.board.tools)
    records, packs = before.plugins.records, before.plugins.active_packs
    services = Services(before.plugins.anew())
    with core.registry.atomically():
        try:
            core.use(services)
            for pack in sorted(packs - services.plugins.active_packs):
                core.registry.drop_pack(pack)
            if services.handlers != before.handlers:
                _reread(core)
            hang_up_packs(core, session, services.plugins.active_packs - packs)
        except BaseException:
            core.use(before)
            raise
    for name, backend in before.backends.items():
        if backend not in (name, services.backends.get(name)):
            isolated(backend.close)
    # Beside the lock, and when nothing can be taken back any more: sources take their time, and run elsewhere.
    unfollow_packs(core, packs - core.plugins.active_packs)
    follow_packs(core, session, core.plugins.active_packs - packs)
    forget_standard_tables()
    _forget_modules(records, core.plugins.records)
    return _changes(records, core.plugins.records, names, set(core.registry.board.tools))


def _reread(core: ToolkitState) -> None:
    """Read every tool with the new tables. A pack whose tools cannot be read any more fails; the program's raise."""
    fresh: dict[Entry, Tool] = {}
    failed: dict[str, tuple[Tool, PegboardError]] = {}
    for tool in core.registry.board.tools.values():
        try:
            fresh[tool.entry] = read_anew(tool)
        except PegboardError as refused:
            if tool.pack is None:
                raise
            failed.setdefault(tool.pack, (tool, refused))
    core.registry.update(fresh)
    for pack, (tool, error) in sorted(failed.items()):
        fail_pack(core, pack, tool.origin, f"its tools cannot be used: {describe_exception(error)}", error)


def _forget_modules(before: Iterable[PluginRecord], after: Iterable[PluginRecord]) -> None:
    """Forget the modules of plugins that were uninstalled: installed again, they must not run the old code."""
    installed = {_module(record) for record in after}
    for gone in sorted({_module(record) for record in before} - installed - {""}):
        for name in [name for name in list(sys.modules) if name == gone or name.startswith(f"{gone}.")]:
            del sys.modules[name]


def _module(record: PluginRecord) -> str:
    return (record.entry_point or "").partition("[")[0].partition(":")[0].strip()


def _changes(
    before: Iterable[PluginRecord], after: Iterable[PluginRecord], old_names: set[str], new_names: set[str]
) -> PluginChanges:
    old, new = _known(before), _known(after)
    was, runs = ({key for key, each in known.items() if each.state is PluginState.ACTIVE} for known in (old, new))
    others = [new[key] for key in new if new[key] != old.get(key) and key not in was ^ runs]
    return PluginChanges(
        added=tuple(new[key] for key in new if key in runs - was),
        removed=tuple(old[key] for key in old if key in was - runs),
        changed=tuple(others),
        tools_added=tuple(sorted(new_names - old_names)),
        tools_removed=tuple(sorted(old_names - new_names)),
    )


def _known(records: Iterable[PluginRecord]) -> dict[tuple[str, str | None], PluginRecord]:
    """By plugin and distribution; of several copies of one distribution the one that is active."""
    ordered = sorted(records, key=lambda record: record.state is PluginState.ACTIVE)
    return {(record.name, record.distribution): record for record in ordered}
