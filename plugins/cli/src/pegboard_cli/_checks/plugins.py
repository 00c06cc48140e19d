"""Checks of plugins: which are broken, hidden, slow or no plugins, and what they change without notice."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import ipaddress
import json
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from difflib import SequenceMatcher
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pegboard import PegboardError, PluginRecord, PluginState, Toolkit, qualified_name
from pegboard.inspection import Contribution, Plugins
from pegboard_cli._checks.finding import Finding
from pegboard_cli.plugin import named

__all__ = [
    "SLOW",
    "check_backends",
    "check_commands",
    "check_diagnoses",
    "check_distributions",
    "check_plugins",
    "check_sources",
    "check_types",
]

SLOW: Final = 0.5
"""Seconds after which an import is called slow."""


def check_plugins(plugins: Plugins) -> Iterator[Finding]:
    """Findings about every plugin, in their order, then about what could not be read."""
    raised = {id(each.record) for each in plugins.errors if not isinstance(each.exception, PegboardError | None)}
    for record in plugins.records:
        yield from _check(record, plugins.import_seconds.get(record.name, 0.0), raised=id(record) in raised)
    left_out = [record.name for record in plugins.records if record.state is PluginState.FOUND]
    if left_out:
        message = f"installed and not selected: {', '.join(left_out)}"
        fix = "nothing, if it should be so; else name them where plugins are selected: pegboard plugins says where"
        yield Finding("note", "not-selected", "plugins", message, fix)
    for sentence in plugins.unreadable:
        place = sentence.partition(": ")[0]
        yield Finding("error", "unreadable", place, sentence, "reinstall its distribution, or remove the directory")


def _check(record: PluginRecord, seconds: float, *, raised: bool) -> Iterator[Finding]:
    if record.state is PluginState.FAILED and _is_unknown(record):
        yield Finding("error", "plugin-unknown", record.name, record.reason, _correction(record))
    elif record.state is PluginState.FAILED:
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


def _is_unknown(record: PluginRecord) -> bool:
    """Whether it is a name alone, which nothing installed has."""
    return record.reason.startswith("not installed. ") and record.distribution is None and record.entry_point is None


def _correction(record: PluginRecord) -> str:
    missing = re.search(r"pip install [\w.-]+", record.reason)
    correction = (
        "correct or remove the name in plugins= or block=, where the program, a settings file or an option has it"
    )
    return f"{missing.group()}, or {correction}" if missing else correction


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


# Type handlers -----------------------------------------------------------------------------------------------------


class _Choice(enum.Enum):
    ONE = 1


_BUILTIN: Final[tuple[Any, ...]] = (
    *(str, int, float, bool, bytes, None, list, tuple, set, frozenset, dict),
    *(dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID, decimal.Decimal, Path, re.Pattern),
    *(ipaddress.IPv4Address, ipaddress.IPv6Address, _Choice, Literal["a"], int | str),
)
_CALLED: Final = {_Choice: "enums", Literal["a"]: "Literal[...]", int | str: "unions"}


def check_types(toolkit: Toolkit) -> Iterator[Finding]:
    """Packs that map one type, handlers that fail, and packs that map what Pegboard maps itself."""
    for problem in toolkit.types.problems:
        message, _, fix = problem.rpartition("; ")
        yield Finding("warning", "type-overlap" if " both map " in message else "type-problem", "types", message, fix)
    shadowing: dict[str, list[str]] = defaultdict(list)
    for annotation in _BUILTIN:
        _, origin, hidden = toolkit.types.handler_for(annotation)
        if hidden and origin.distribution is not None:
            shadowing[str(origin)].append(_CALLED.get(annotation) or qualified_name(annotation))
    for pack, names in sorted(shadowing.items()):
        message = f"it maps {', '.join(names)} for every tool, in place of Pegboard's own mapping"
        fix = 'nothing, if it should; to keep Pegboard\'s own, in the settings: [pegboard.types] "{}" = "pegboard"'
        yield Finding("note", "type-shadowed", pack, message, fix.format(names[0]))


# Distributions that require Pegboard and are no plugin: an entry point is missing, or in another group -------------

GROUP: Final = "pegboard"
"""The group of entry points, and the distribution that a pack requires."""

_REQUIRED: Final = re.compile(rf"\s*{GROUP}\s*(?:\[[^]]*\])?\s*(?:[^\w.;\s-][^;]*)?(;.*)?", re.IGNORECASE)
_ALIKE: Final = 0.85
# Distributions of this project that are libraries or programs, and no plugins.
_NO_PLUGINS: Final = ("pegboard-cli", "pegboard-net", "pegboard-schemas", "pegboard-testing")
# Of one distribution; a pack has its hooks in one of its first modules.
_MOST_MODULES: Final = 300
_LARGEST: Final = 1_000_000


def check_distributions() -> Iterator[Finding]:
    """Findings about what requires Pegboard without an entry point of its group, sorted. Nothing is imported."""
    found: dict[str, Distribution] = {}
    for distribution in distributions():
        with suppress(Exception):  # damaged metadata may raise anything; what it hides of plugins is another finding
            found.setdefault(distribution.name.lower(), distribution)
    for name, distribution in sorted(found.items()):
        with suppress(Exception):
            if _requires_pegboard(distribution) and name not in _NO_PLUGINS:
                yield from _check_distribution(distribution)


def _requires_pegboard(distribution: Distribution) -> bool:
    matches = map(_REQUIRED.fullmatch, distribution.requires or ())
    return any(match and "extra" not in (match[1] or "") for match in matches)


def _check_distribution(distribution: Distribution) -> Iterator[Finding]:
    points = list(distribution.entry_points)
    if any(point.group == GROUP for point in points):
        return
    subject = f"{distribution.name} {distribution.version}"
    meant = [point for point in points if _means_ours(point.group)]
    for point in meant:
        message = f"its entry point {point.name!r} is in the group {point.group!r}, which is never looked at"
        yield Finding("warning", "entry-point-group", subject, message, _to_write(point.name, point.value))
    if meant:
        return
    module = _module_with_hooks(distribution)
    if module is None:
        fix = f"nothing, if it only uses Pegboard; a pack declares its module below [project.entry-points.{GROUP}]"
        yield Finding("note", "no-entry-point", subject, f"it requires {GROUP} and offers no plugin", fix)
    else:
        message = f"its module {module} implements hooks and no entry point names it, so it is never loaded"
        name = module.rpartition(".")[2].removeprefix(f"{GROUP}_")
        yield Finding("warning", "no-entry-point", subject, message, _to_write(name, module))


def _means_ours(group: str) -> bool:
    first = re.split(r"[._-]", group.lower())[0]
    return SequenceMatcher(None, first, GROUP).ratio() >= _ALIKE


def _to_write(name: str, value: str) -> str:
    return f'its pyproject.toml needs, below [project.entry-points.{GROUP}]: {name} = "{value}"; then reinstall it'


def _module_with_hooks(distribution: Distribution) -> str | None:
    for root, path in _modules(distribution):
        with suppress(OSError):
            if path.stat().st_size <= _LARGEST and "hookimpl" in path.read_text(encoding="utf-8", errors="replace"):
                parts = path.relative_to(root).with_suffix("").parts
                return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
    return None


def _modules(distribution: Distribution) -> Iterator[tuple[Path, Path]]:
    """Modules with the folder that they are imported from, those nearest to it first; the source of an editable one."""
    folder = Path(str(distribution.locate_file("")))
    files = [Path(str(distribution.locate_file(file))) for file in distribution.files or () if file.suffix == ".py"]
    source = _source(distribution)
    if source is not None:
        folder = source / "src" if (source / "src").is_dir() else source
        files = [path for each in sorted(folder.glob("*")) if _is_importable(each) for path in _python_files(each)]
    # An editable one of some build tools has a finder of its own beside it.
    inside = [path for path in files if path.is_relative_to(folder) and not path.name.startswith("__editable__")]
    for path in sorted(inside, key=lambda path: (len(path.parts), path))[:_MOST_MODULES]:
        yield folder, path


def _is_importable(path: Path) -> bool:
    return path.suffix == ".py" or (path / "__init__.py").is_file()


def _python_files(path: Path) -> list[Path]:
    return [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))


def _source(distribution: Distribution) -> Path | None:
    """The folder of an editable installation, after `direct_url.json` (PEP 610)."""
    text = distribution.read_text("direct_url.json")
    found = json.loads(text) if text else {}
    if not found.get("dir_info", {}).get("editable"):
        return None
    return Path(url2pathname(urlsplit(found["url"]).path))
