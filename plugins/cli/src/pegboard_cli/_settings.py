"""`pegboard settings`: what holds, and where it came from."""

from __future__ import annotations

from typing import Any

import attrs
import click

from pegboard.inspection import Setting, Settings, plugins_of
from pegboard_cli._board import opened, spoken
from pegboard_cli._json import dumps, loads
from pegboard_cli._options import BoardOptions, board_options, json_option
from pegboard_cli._output import console, print_json, print_table, text

__all__ = ["command"]


@click.command("settings")
@click.argument("pack", required=False)
@json_option
@board_options
@click.pass_obj
def command(options: BoardOptions, pack: str | None, as_json: bool) -> None:
    """Show settings and where each came from.

    Of every pack that has settings, or of PACK. Secret values are shown as ***.
    """
    wanted = None if pack is None else pack.replace("-", "_").lower()
    with opened(options) as toolkit:
        settings = plugins_of(toolkit).settings
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
    text_ = settings.redact(dumps(facts["value"], ensure_ascii=False, default=str))
    return facts | {"value": loads(text_)}


def _line(facts: dict[str, Any]) -> list[Any]:
    value = facts["value"]
    shown = value if value == "***" else dumps(value, ensure_ascii=False)
    return [f"{facts['section']}.{facts['key']}", shown, text(facts["source"], _style(facts["source"]))]


def _style(source: str) -> str:
    return "dim" if source == "default" else ""
