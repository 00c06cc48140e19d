"""`pegboard settings`: the settings in force, and where each comes from."""

from __future__ import annotations

import re
from typing import Any, Final

import attrs
import click

from pegboard.inspection import Setting, Settings, plugins_of
from pegboard_cli._options import ToolkitOptions, completes, json_option, toolkit_options
from pegboard_cli._output.printing import console, dumps, loads, print_json, print_table, text
from pegboard_cli._toolkit import known_pack, opened, spoken

__all__ = ["command"]

MASK: Final = "***"
_LOGIN: Final = re.compile(r"(?<=://)[^/?#\s@\"]+(?=@)")
"""User and password in a URL, which may be an address in any setting."""


@click.command("settings")
@click.argument("pack", required=False, shell_complete=completes("section"))
@json_option
@toolkit_options
@click.pass_obj
def command(options: ToolkitOptions, pack: str | None, as_json: bool) -> None:
    """Show settings and where each came from.

    Of every pack that has settings, or of PACK. Secret values are shown as ***.
    """
    with opened(options) as toolkit:
        plugins = plugins_of(toolkit)
        wanted = None if pack is None else known_pack(plugins, pack).replace("-", "_").lower()
        settings = plugins.settings
        found = [_data(each, settings, options) for each in settings.effective() if wanted in (None, each.section)]
    if as_json:
        print_json(found)
    elif not found:
        console().print(f"{pack or 'No active plugin'} has no settings.")
    else:
        print_table(console(), ("Setting", "Value", "From"), map(_line, found))


def _data(setting: Setting, settings: Settings, options: ToolkitOptions) -> dict[str, Any]:
    data = attrs.asdict(setting, recurse=False) | {"source": spoken(setting.source, options)}
    # A value that is a secret of one setting is masked in all of them.
    written = _LOGIN.sub(MASK, dumps(data["value"], default=str))
    return data | {"value": settings.redact.deep(loads(written))}


def _line(data: dict[str, Any]) -> list[Any]:
    value = data["value"]
    shown = value if value == MASK else dumps(value, ensure_ascii=False)
    return [f"{data['section']}.{data['key']}", shown, text(data["source"], _style(data["source"]))]


def _style(source: str) -> str:
    return "dim" if source == "default" else ""
