"""`pegboard settings`: what holds, and where it came from."""

from __future__ import annotations

import re
from typing import Any, Final

import attrs
import click

from pegboard.inspection import Setting, Settings, plugins_of
from pegboard_cli._board import known_pack, opened, spoken
from pegboard_cli._options import BoardOptions, board_options, completes, json_option
from pegboard_cli._output.printing import console, dumps, loads, print_json, print_table, text

__all__ = ["command"]

MASK: Final = "***"
_LOGIN: Final = re.compile(r"(?<=://)[^/?#\s@\"]+(?=@)")
"""User and password in a URL, which may be an address in any setting."""


@click.command("settings")
@click.argument("pack", required=False, shell_complete=completes("section"))
@json_option
@board_options
@click.pass_obj
def command(options: BoardOptions, pack: str | None, as_json: bool) -> None:
    """Show settings and where each came from.

    Of every pack that has settings, or of PACK. Secret values are shown as ***.
    """
    with opened(options) as toolkit:
        plugins = plugins_of(toolkit)
        wanted = None if pack is None else known_pack(plugins, pack).replace("-", "_").lower()
        settings = plugins.settings
        found = [_facts(each, settings, options) for each in settings.effective() if wanted in (None, each.section)]
    if as_json:
        print_json(found)
    elif not found:
        console().print(f"{pack or 'No active plugin'} has no settings.")
    else:
        print_table(console(), ("Setting", "Value", "From"), map(_line, found))


def _facts(setting: Setting, settings: Settings, options: BoardOptions) -> dict[str, Any]:
    facts = attrs.asdict(setting, recurse=False) | {"source": spoken(setting.source, options)}
    # Nothing that was given out as a secret may show, whichever setting it ended up in.
    written = _LOGIN.sub(MASK, dumps(facts["value"], default=str))
    return facts | {"value": settings.redact.deep(loads(written))}


def _line(facts: dict[str, Any]) -> list[Any]:
    value = facts["value"]
    shown = value if value == MASK else dumps(value, ensure_ascii=False)
    return [f"{facts['section']}.{facts['key']}", shown, text(facts["source"], _style(facts["source"]))]


def _style(source: str) -> str:
    return "dim" if source == "default" else ""
