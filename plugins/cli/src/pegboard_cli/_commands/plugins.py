"""`pegboard plugins`: what is installed and what became of it."""

from __future__ import annotations

from typing import Any, Final

import click

from pegboard import NotOffered, PluginState, SettingsError
from pegboard.inspection import Plugins, plugins_of
from pegboard_cli._options import ToolkitOptions, json_option, toolkit_options
from pegboard_cli._output import exits
from pegboard_cli._output.printing import Column, clean, console, note, pairs, plain, print_json, print_table, text
from pegboard_cli._toolkit import load_plugins, opened

__all__ = ["command", "plugin_data"]

_STYLES: Final = {
    PluginState.ACTIVE: "green",
    PluginState.FAILED: "bold red",
    PluginState.INCOMPATIBLE: "red",
    PluginState.SHADOWED: "yellow",
}

_FEW: Final = 3
_ROOM_FOR_REASONS: Final = 120


@click.command("plugins")
@click.option("--no-load", is_flag=True, help="Import nothing; say what is known without it.")
@json_option
@toolkit_options
@click.pass_obj
def command(options: ToolkitOptions, no_load: bool, as_json: bool) -> int:
    """List plugins and what became of each.

    Every plugin has a state: active, found (not selected), blocked, incompatible, shadowed or failed, and a reason.
    With --traceback, the tracebacks of failed ones follow on standard error. Exits with 1 if the settings are wrong.
    """
    plugins, wrong = _load(options, imports=not no_load)
    data = plugin_data(plugins)
    if as_json:
        print_json(data)
    else:
        _print(data["plugins"])
    for sentence in plugins.unreadable:
        note(sentence)
    if options.traceback:
        for failure in filter(lambda each: each.traceback, plugins.errors):
            click.echo(clean(f"\n{failure.record.label}:\n{failure.traceback}"), err=True)
    if wrong is not None:
        raise wrong
    return exits.OK


def _load(options: ToolkitOptions, *, imports: bool) -> tuple[Plugins, SettingsError | None]:
    """The plugins. If the settings are wrong they are ignored: the list is needed most when something is wrong."""
    try:
        if not imports:
            return load_plugins(options, imports=False), None
        with opened(options) as toolkit:
            plugins = plugins_of(toolkit)
            plugins.contributions("provide_commands")  # the one hook that a toolkit does not call
            return plugins, None
    except SettingsError as error:
        return load_plugins(options, imports=imports, settings=False), error


def plugin_data(plugins: Plugins) -> dict[str, Any]:
    """The data of every plugin, and of metadata that could not be read."""
    seconds = plugins.import_seconds
    records = [
        {
            "name": record.name,
            "distribution": record.distribution,
            "version": record.version,
            "entry_point": record.entry_point,
            "state": record.state.value,
            "reason": "; ".join(
                filter(None, [record.reason, *record.faults.values(), *map(_not_offered, record.not_offered)])
            ),
            "import_seconds": round(seconds[record.name], 4) if _imported(record.state, record.name, seconds) else None,
        }
        for record in plugins.records
    ]
    return {"plugins": records, "unreadable": list(plugins.unreadable)}


def _not_offered(tools: NotOffered) -> str:
    """In a table cell: `pegboard doctor` has all the names."""
    few = len(tools.names) <= _FEW
    return f"{', '.join(tools.names) if few else f'{len(tools.names)} tools'}: {tools}"


def _imported(state: PluginState, name: str, seconds: dict[str, float]) -> bool:
    return name in seconds and state in (PluginState.ACTIVE, PluginState.FAILED)


def _print(records: list[dict[str, Any]]) -> None:
    out = console()
    if not records:
        out.print("No plugins are installed. To begin with: pip install pegboard-files")
        return
    roomy = out.width >= _ROOM_FOR_REASONS
    columns: list[Column] = ["Plugin", "Distribution", "Version", "State"]
    columns += [("Reason", {"ratio": 1})] if roomy else []
    lines = [
        [
            each["name"],
            each["distribution"] or "",
            each["version"] or "",
            text(each["state"], _STYLES.get(each["state"], "dim")),
            *([each["reason"]] if roomy else []),
        ]
        for each in records
    ]
    reasons = [(each["name"], each["reason"]) for each in records if each["reason"]]
    print_table(out, columns, lines, expand=roomy and bool(reasons))
    active = sum(each["state"] == PluginState.ACTIVE for each in records)
    out.print(f"{plain(len(records), 'plugin')}, {active} active", style="dim")
    if reasons and not roomy:
        out.print()
        out.print(pairs(reasons))
