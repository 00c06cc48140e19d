"""`pegboard search`: the tools that fit some words, best first, as a model would find them."""

from __future__ import annotations

import click

from pegboard.inspection import tool_index
from pegboard_cli._commands.tools import print_tools
from pegboard_cli._options import ToolkitOptions, json_option, toolkit_options
from pegboard_cli._output import exits
from pegboard_cli._output.printing import console, note, plain, print_json
from pegboard_cli._output.tool_data import ordered, summary
from pegboard_cli._toolkit import opened

__all__ = ["command"]


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="How many at most.")
@json_option
@toolkit_options
@click.pass_obj
def command(options: ToolkitOptions, words: tuple[str, ...], limit: int, as_json: bool) -> int:
    """Find tools by words.

    Best first. The words are looked up in the names, descriptions and parameters of all tools, as `search_tools` does
    for a model.
    """
    with opened(options) as toolkit:
        tools = {tool.name: tool for tool in ordered(toolkit)}
        best = tool_index(tools.values()).search(" ".join(words), limit)
        found = [summary(tools[name], load=True) for name in best]
    if as_json:
        print_json(found)
    elif found:
        print_tools(console(), found)
    else:
        note(f"none of {plain(len(tools), 'tool')} fits; see: pegboard tools")
    return exits.OK
