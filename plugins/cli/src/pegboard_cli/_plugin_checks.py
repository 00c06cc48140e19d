"""Checks of plugins: which are broken, hidden, slow, or change things without notice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from pegboard import PegboardError, PluginRecord, PluginState, Toolkit
from pegboard.inspection import Contribution, Plugins
from pegboard_cli._finding import Finding
from pegboard_cli._foreign import named

__all__ = ["SLOW", "check_backends", "check_commands", "check_diagnoses", "check_plugins", "check_sources"]

SLOW: Final = 0.5
"""Seconds after which an import is called slow."""


def check_plugins(plugins: Plugins) -> Iterator[Finding]:
    """Findings about every plugin, in their order, then about what could not be read."""
    raised = {id(each.record) for each in plugins.errors if not isinstance(each.exception, PegboardError | None)}
    for record in plugins.records:
        yield from _check(record, plugins.import_seconds.get(record.name, 0.0), raised=id(record) in raised)
    for sentence in plugins.unreadable:
        place = sentence.partition(": ")[0]
        yield Finding("error", "unreadable", place, sentence, "reinstall its distribution, or remove the directory")


def _check(record: PluginRecord, seconds: float, *, raised: bool) -> Iterator[Finding]:
    if record.state is PluginState.FAILED:
        yield Finding("error", "plugin-failed", record.label, record.reason, _remedy(record, raised=raised))
    elif record.state is PluginState.INCOMPATIBLE:
        fix = f"do as the message says, or run without it: PEGBOARD_BLOCK={record.name}"
        yield Finding("error", "plugin-incompatible", record.label, record.reason, fix)
    elif record.state is PluginState.SHADOWED:
        yield Finding("warning", "plugin-shadowed", record.label, record.reason, f"pip uninstall {record.distribution}")
    elif record.state is PluginState.ACTIVE:
        if record.reason:
            yield Finding("warning", "side-effect", record.label, record.reason, _without(record))
        if seconds > SLOW:
            yield _slow(record, seconds)
        for fault in record.faults.values():
            fix = "do as the message says, or tell its author; the pack's other tools work"
            yield Finding("error", "tool-refused", record.label, fault, fix)
        for each in record.not_offered:
            message = f"it does not offer {', '.join(each.names)}"
            yield Finding("note", "not-offered", record.label, message, str(each))


def _remedy(record: PluginRecord, *, raised: bool) -> str:
    """What fits the cause. No package is named but those that the pack's own metadata or Pegboard's table names."""
    missing = re.search(r"(?<=; )pip install [\w .-]+$", record.reason)
    if missing:
        return f"{missing.group()}, or run without it: PEGBOARD_BLOCK={record.name}"
    if record.distribution is None and record.entry_point is None:
        cause = "do as the message says"
    elif record.reason.startswith("needs the module "):
        cause = "install what has that module (its metadata does not say what), or tell its author"
    else:
        cause = "correct it if it is yours, or tell its author"
    where = "; pegboard plugins --traceback shows where it fails" if raised else ""
    return f"{cause}{where}; to run without it: PEGBOARD_BLOCK={record.name}"


def _without(record: PluginRecord) -> str:
    return f"tell its author, or run without it: PEGBOARD_BLOCK={record.name}"


def _slow(record: PluginRecord, seconds: float) -> Finding:
    module = (record.entry_point or "").partition(":")[0]
    return Finding(
        "warning",
        "slow-import",
        record.label,
        f"its import takes {seconds:.1f} s, every time a toolkit is put together",
        f"python -X importtime -c 'import {module}' shows why; heavy imports belong into functions or import strings",
    )


def check_sources(toolkit: Toolkit) -> Iterator[Finding]:
    """Remote servers and the like that are unavailable, or whose tools cannot all be used."""
    for source in toolkit.sources:
        for problem in source.problems:
            fix = "see to it there, or change what registers it: the program, or a section of the settings"
            yield Finding("warning" if source.tools else "error", "source", source.name, problem, fix)


def check_backends(plugins: Plugins) -> Iterator[Finding]:
    """Backends that run every tool which names none, or another, in place of Pegboard's own."""
    contributions = plugins.contributions("provide_backends")
    own = {each.value.name for each in contributions if each.builtin}
    for each in contributions:
        if not each.builtin and each.value.name in own:
            name = each.value.name
            which = "that names no backend, and every one " if name == "thread" else ""
            message = f"its backend {name!r} runs every tool {which}that names {name!r}, in place of Pegboard's own"
            fix = f"nothing, if it should; else its author gives it another name, or run without it: {_blocked(each)}"
            yield Finding("note", "backend-shadowed", str(each.origin), message, fix)


def _blocked(each: Contribution) -> str:
    return f"PEGBOARD_BLOCK={each.origin.plugin}"


def check_diagnoses(plugins: Plugins) -> Iterator[Finding]:
    """What backends say of where they run tools, by `diagnosis()`: the level, a sentence and what to do."""
    for each in plugins.contributions("provide_backends"):
        try:
            diagnosis = each.value.diagnosis() if hasattr(each.value, "diagnosis") else []
        except PegboardError as error:
            diagnosis = [
                ("error", str(error), f"correct the settings of {each.origin.plugin}, or start what they name")
            ]
        for level, message, fix in diagnosis:
            yield Finding(level, "backend", f"the backend {each.value.name}", message, fix)


def check_commands(plugins: Plugins) -> Iterator[Finding]:
    """Commands that stand under another name than their packs gave them."""
    contributions = plugins.contributions("provide_commands")
    found = named(contributions)
    counts = Counter(each.value.name for each in contributions)
    for name, each in sorted(found.items()):
        if name != each.value.name and each.value.replaces is None:
            rival = "another pack has" if counts[each.value.name] > 1 else "Pegboard itself has"
            message = f"its command {each.value.name!r} is called {name!r}, for {rival} one of that name"
            yield Finding("warning", "command-clash", str(each.origin), message, f"run it as: pegboard {name}")
