"""`pegboard tools`: the list of the tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from pegboard import Toolkit
from pegboard.inspection import plugins_of
from pegboard_cli._options import ToolkitOptions, completes, json_option, toolkit_options
from pegboard_cli._output.printing import Column, console, names, note, paged, plain, print_json, print_table
from pegboard_cli._output.tool_data import hint_words, ordered, parameter_words, summary
from pegboard_cli._toolkit import known_name, known_pack, opened

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command", "print_tools"]

_ROOM_FOR_ALL = 100


@click.command("tools")
@click.argument("text", required=False)
@click.option("--pack", help="Tools of this plugin or distribution.", shell_complete=completes("pack"))
@click.option("--group", help="Tools in this group.", shell_complete=completes("group"))
@click.option("--tag", help="Tools with this tag.", shell_complete=completes("tag"))
@click.option("--load", is_flag=True, help="Import what is named by import strings, to describe it too.")
@json_option
@toolkit_options
@click.pass_obj
def command(
    options: ToolkitOptions,
    text: str | None,
    pack: str | None,
    group: str | None,
    tag: str | None,
    load: bool,
    as_json: bool,
) -> None:
    """List the tools.

    TEXT keeps those that have it in their name or description. Nothing is imported for the list that the plugins do
    not import themselves, but --load, --group, --tag and TEXT need to look into every tool.
    """
    with opened(options) as toolkit:
        load = load or any((text, group, tag))
        found = [summary(tool, load=load) for tool in ordered(toolkit)]
        pack = pack and known_pack(plugins_of(toolkit), pack)
        group = group and known_name("group", group, {each.name for each in toolkit.groups} | _named(found, "groups"))
        tag = tag and known_name("tag", tag, _named(found, "tags"))
        kept = [each for each in found if _fits(each, text, pack, group, tag)]
        problems = list(_remarks(toolkit, kept, found))  # read before the connections of servers are closed
    if as_json:
        print_json(kept)
    elif kept:
        print_tools(console(), kept)
    for problem in problems:
        note(problem)


def _fits(data: dict[str, Any], text: str | None, pack: str | None, group: str | None, tag: str | None) -> bool:
    wanted = (text or "").casefold()
    return (
        (pack is None or pack == data["pack"])
        and (group is None or group in (data["groups"] or ()))
        and (tag is None or tag in (data["tags"] or ()))
        and (wanted in data["name"].casefold() or wanted in (data["description"] or "").casefold())
    )


def _named(found: list[dict[str, Any]], key: str) -> set[str]:
    return {name for each in found for name in each[key] or ()}


def _remarks(toolkit: Toolkit, kept: list[dict[str, Any]], found: list[dict[str, Any]]) -> Iterable[str]:
    if not found:
        yield "there are no tools; install a pack, such as: pip install pegboard-files"
    elif not kept:
        yield f"none of {plain(len(found), 'tool')} fits; packs with tools: {names(_packs(found))}"
    broken = [record.name for record in toolkit.plugins if record.state in ("failed", "incompatible")]
    if broken:
        yield f"{plain(len(broken), 'plugin')} cannot be used: {names(broken)}; see: pegboard doctor"
    lacking = [source.name for source in toolkit.sources if source.problems]
    if lacking:
        yield f"tools are missing of {plain(len(lacking), 'source')}: {names(lacking)}; see: pegboard doctor"


def _packs(found: list[dict[str, Any]]) -> list[str]:
    return sorted({each["pack"] or "the program" for each in found})


def print_tools(out: Console, kept: list[dict[str, Any]]) -> None:
    """Print a table of tools with their descriptions, through a pager if it is longer than the terminal."""
    wide = out.width >= _ROOM_FOR_ALL
    grouped = wide and any(each["groups"] for each in kept)
    columns: list[Column] = ["Tool", "Pack"]
    columns += ["Group"] if grouped else []
    columns += [("Parameters", {"ratio": 3, "min_width": 18}), ("Hints", {"max_width": 24})] if wide else []
    columns += [("Description", {"ratio": 5, "no_wrap": True, "overflow": "ellipsis"})]
    lines = []
    for each in kept:
        line = [each["name"], each["pack"] or "(program)"]
        line += [names(each["groups"] or ())] if grouped else []
        line += [parameter_words(each["parameters"]), hint_words(each)] if wide else []
        line += [each["problem"] if "problem" in each else (each["description"] or "").partition("\n")[0]]
        lines.append(line)
    with paged(out, len(lines)):
        print_table(out, columns, lines, expand=True)
        out.print(f"{plain(len(kept), 'tool')}", style="dim")
