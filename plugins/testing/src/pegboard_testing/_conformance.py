"""Conformance: what every pack should be, checked in one call."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from pegboard import Tool, Toolkit, UnknownNameError
from pegboard.inspection import HookName, Plugins, plugins_of
from pegboard_testing._findings import Finding, message
from pegboard_testing._probe import probe, reference_to
from pegboard_testing._secret_checks import check_secrets
from pegboard_testing._tool_checks import check_documentation, check_examples, check_names, check_schema
from pegboard_testing._toolkits import isolated_toolkit, without_environment
from pegboard_testing._type_checks import check_types

__all__ = ["BUDGET", "assert_conforms", "conformance"]

BUDGET: Final = 40
"""Modules that loading a pack may import beyond the core's: enough for its own, too few for any heavy library."""

_COMMANDS: tuple[HookName, ...] = ("provide_commands",)


def assert_conforms(
    plugin: Any,
    *,
    budget: int = BUDGET,
    settings: Mapping[str, Any] | None = None,
    context: Any = (),
    run_examples: bool = True,
) -> None:
    """Raise AssertionError with everything that is wrong with this pack, each with its remedy.

    Checked are: that it loads without a word, its hooks, how many modules loading imports (in a fresh interpreter);
    that names are legal for every provider, that tools and parameters are documented, that schemas are valid and the
    same in every process; that type handlers accept what their schemas accept; that declared examples run and results
    are JSON; that secrets of the settings show nowhere.

    Raises `UnknownNameError` for a name that is not installed.

    Args:
        plugin: A module, a plugin object, or the name of an installed plugin.
        budget: Most modules that loading may import beyond the core's; 40 by default.
        settings: The pack's section of the settings. None for none.
        context: Objects that tools get by type when examples run.
        run_examples: Whether declared examples run.
    """
    found = conformance(plugin, budget=budget, settings=settings, context=context, run_examples=run_examples)
    if found:
        raise AssertionError(message(_label(plugin), found))


def conformance(
    plugin: Any,
    *,
    budget: int = BUDGET,
    settings: Mapping[str, Any] | None = None,
    context: Any = (),
    run_examples: bool = True,
) -> list[Finding]:
    """What `assert_conforms` complains about, as data.

    Args:
        plugin: A module, a plugin object, or the name of an installed plugin.
        budget: Most modules that loading may import beyond the core's; 40 by default.
        settings: The pack's section of the settings. None for none.
        context: Objects that tools get by type when examples run.
        run_examples: Whether declared examples run.
    """
    plugin = _found(plugin) if isinstance(plugin, str) else plugin
    with without_environment():
        return list(_check(plugin, budget, dict(settings or {}), context, run_examples=run_examples))


def _check(
    plugin: Any, budget: int, settings: Mapping[str, Any], context: Any, *, run_examples: bool
) -> Iterator[Finding]:
    pack = _pack(plugin)
    section = {pack: settings} if settings else {}
    with isolated_toolkit(plugin, settings=section, approver=lambda _: True) as toolkit:
        for hook in _COMMANDS:
            plugins_of(toolkit).contributions(hook)
        broken = [Finding("loading", problem, "see what it says") for problem in toolkit.problems]
        yield from broken
        if pack not in plugins_of(toolkit).active_packs:
            return
        for tool in toolkit.all_tools:
            yield from _check_tool(tool)
        yield from check_types(toolkit, pack)
        yield from _check_stability(toolkit, plugin, section)
        for tool in toolkit.all_tools if run_examples else ():
            yield from check_examples(toolkit, tool, context)
        cls = plugins_of(toolkit).settings_type(pack)
    yield from _check_process(plugin, section, budget)
    if cls is not None:
        yield from check_secrets(plugin, pack, cls, settings)


def _check_tool(tool: Tool) -> Iterable[Finding]:
    return (*check_names(tool), *check_documentation(tool), *check_schema(tool))


def _pack(plugin: Any) -> str:
    with Toolkit(plugins=[plugin]) as toolkit:
        return next(iter(plugins_of(toolkit).packs))


def _found(name: str) -> Any:
    """The name under which a toolkit finds an installed plugin. Raises `UnknownNameError`."""
    records = Plugins.load(imports=False).records
    names = sorted({each for record in records for each in (record.name, record.distribution) if each})
    if _normalised(name) not in map(_normalised, names):
        close = get_close_matches(name, names)
        hint = f"Did you mean {close[0]!r}?" if close else f"Installed plugins: {', '.join(names) or 'none'}"
        raise UnknownNameError(f"no plugin {name!r} is installed. {hint}")
    return name


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _label(plugin: Any) -> str:
    return plugin if isinstance(plugin, str) else str(getattr(plugin, "__name__", type(plugin).__name__))


def _check_stability(toolkit: Toolkit, plugin: Any, section: Mapping[str, Any]) -> Iterator[Finding]:
    with isolated_toolkit(plugin, settings=section) as again:
        first, second = ({tool.name: tool.schema_hash for tool in each.all_tools} for each in (toolkit, again))
    if first != second:
        changed = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
        remedy = "make names, descriptions and schemas from what does not change, and sort what is a set"
        yield Finding("stability", f"a second toolkit has other schemas for {', '.join(changed)}", remedy)


def _check_process(plugin: Any, section: Mapping[str, Any], budget: int) -> Iterator[Finding]:
    reference = reference_to(plugin)
    if reference is None:
        return
    found = probe(reference, section)
    if found.failure:
        remedy = "load it in a new interpreter to see why"
        yield Finding("import", f"it cannot be loaded on its own: {found.failure}", remedy)
        return
    if len(set(found.schemas)) > 1:
        remedy = "sort what is a set before names, descriptions and schemas are made from it"
        yield Finding("stability", "schemas differ between processes with different hash seeds", remedy)
    if len(found.imported) > budget:
        yield Finding("import", *_over_budget(found.imported, budget))


def _over_budget(imported: Iterable[str], budget: int) -> tuple[str, str]:
    counted = Counter(name.partition(".")[0] for name in imported)
    worst = ", ".join(f"{name} ({count})" for name, count in sorted(counted.items(), key=lambda n: (-n[1], n[0]))[:5])
    what = f"loading it imports {sum(counted.values())} modules, and {budget} are the most: {worst}"
    return what, 'import what is heavy inside functions, or offer tools as import strings "package.module:function"'
