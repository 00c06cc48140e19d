"""`pegboard doctor`: what is wrong, and how to fix it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pegboard import PegboardError, Toolkit
from pegboard.inspection import plugins_of
from pegboard_cli._checks.finding import Finding
from pegboard_cli._checks.lockfile import LOCK, Lock, differences
from pegboard_cli._checks.plugins import (
    check_backends,
    check_commands,
    check_diagnoses,
    check_distributions,
    check_plugins,
    check_sources,
    check_types,
)
from pegboard_cli._checks.tools import check_tools
from pegboard_cli._options import ToolkitOptions, json_option, toolkit_options
from pegboard_cli._output import exits
from pegboard_cli._output.printing import console, joined, plain, print_json, text
from pegboard_cli._toolkit import load_plugins, opened, spoken

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["command"]

_STYLES: Final = {"error": "bold red", "warning": "yellow", "note": "dim"}
_DIFF: Final = {"+": "green", "-": "red", "@": "dim"}


@click.command("doctor")
@click.option("--locked", is_flag=True, help="Compare with pegboard.lock; any difference is an error.")
@click.option("--lock-file", type=click.Path(path_type=Path), default=Path(LOCK), show_default=True, metavar="FILE")
@click.option("--deep", is_flag=True, help="Try type handlers with many values; needs pegboard-testing.")
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@json_option
@toolkit_options
@click.pass_obj
def command(options: ToolkitOptions, locked: bool, lock_file: Path, deep: bool, strict: bool, as_json: bool) -> int:
    """Say what is wrong, and how to correct it.

    Broken, hidden and slow plugins, packs without an entry point, servers that are unavailable, clashing names, presets
    that a model may override, tools without descriptions, schemas that providers refuse, invisible characters, settings
    that no plugin has. Each with the command or line that corrects it. Exits with 1 if there are errors, with --strict
    also for warnings. Notes say what a pack would offer besides, and what it needs for that.
    """
    levels = list(_STYLES)
    findings = sorted(
        _findings(options, lock_file if locked else None, deep), key=lambda each: levels.index(each.level)
    )
    failed = any(each.level == "error" or (strict and each.level == "warning") for each in findings)
    if as_json:
        print_json([each.to_dict() for each in findings])
    else:
        _print(findings)
    return exits.FAILED if failed else exits.OK


def _findings(options: ToolkitOptions, lock_file: Path | None, deep: bool) -> list[Finding]:
    try:
        with opened(options) as toolkit:
            # The last check: the tools that it tries are registered meanwhile.
            return [*_check(toolkit, lock_file), *(_check_handlers(toolkit) if deep else ())]
    except PegboardError as error:
        message = spoken(str(error), options)
        broken = Finding("error", "board", "the board", message, "fix this first: the tools were not looked at")
        return [broken, *check_plugins(load_plugins(options, settings=False)), *check_distributions()]


def _check(toolkit: Toolkit, lock_file: Path | None) -> Iterator[Finding]:
    plugins = plugins_of(toolkit)
    # Tools, types and commands first: what they show of a plugin belongs to its own findings.
    of_tools = list(check_tools(toolkit))
    of_commands = list(check_commands(plugins))
    of_types = [*check_types(toolkit), *check_backends(plugins)]
    of_lock = [] if lock_file is None else list(_check_lock(toolkit, of_tools, lock_file))
    of_backends = check_diagnoses(plugins)
    yield from chain(
        check_plugins(plugins),
        check_distributions(),
        check_sources(toolkit),
        of_types,
        of_commands,
        of_tools,
        of_backends,
        of_lock,
    )


def _check_handlers(toolkit: Toolkit) -> Iterator[Finding]:
    """Type handlers that accept other values than their schemas do."""
    try:
        from pegboard_testing import check_types as try_types
    except ImportError:
        fix = "pip install 'pegboard-cli[deep]'"
        yield Finding("error", "deep", "types", "pegboard-testing is not installed, which tries type handlers", fix)
        return
    for each in try_types(toolkit):
        yield Finding("error", "type-handler", "types", each.what, each.remedy)


def _check_lock(toolkit: Toolkit, of_tools: list[Finding], file: Path) -> Iterator[Finding]:
    try:
        lock = Lock.read(file)
    except PegboardError as error:
        yield Finding("error", "lock", str(file), str(error), "restore it from version control, or: pegboard lock")
        return
    broken = {each.subject for each in of_tools if each.code == "tool-broken"}
    readable = {tool.name for tool in toolkit.all_tools} - broken
    yield from differences(lock, Lock.of(toolkit, only=readable), file)


def _print(findings: list[Finding]) -> None:
    out = console()
    for each in findings:
        heading = joined((each.level, _STYLES[each.level]), (f"  {each.subject}", "bold"), (f"  [{each.code}]", "dim"))
        out.print(heading, soft_wrap=True)
        for line in each.message.split("\n"):
            _print_indented(out, text(line, _DIFF.get(line[:1], "") if each.code == "lock-tool" else ""))
        _print_indented(out, joined(("fix: ", "cyan"), (each.fix, "")))
        out.print()
    errors = sum(each.level == "error" for each in findings)
    warnings = sum(each.level == "warning" for each in findings)
    if errors or warnings:
        out.print(f"{plain(errors, 'error')}, {plain(warnings, 'warning')}")
    else:
        out.print("Nothing is wrong.", style="green")


def _print_indented(out: Console, line: Text) -> None:
    from rich.padding import Padding

    if out.is_terminal:
        out.print(Padding(line, (0, 0, 0, 2), expand=False))
    else:  # whole lines, so that they can be searched
        out.print(joined(("  ", "")).append_text(line), soft_wrap=True)
