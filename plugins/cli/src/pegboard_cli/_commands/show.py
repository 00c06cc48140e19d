"""`pegboard show`: everything about one tool."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from pegboard import Tool, Toolkit
from pegboard_cli._options import ToolkitOptions, completes, json_option, toolkit_options
from pegboard_cli._output.printing import (
    Column,
    console,
    dumps,
    flow,
    json_lines,
    names,
    pairs,
    print_json,
    print_table,
    text,
)
from pegboard_cli._output.tool_data import example_of, full, hint_words, type_words
from pegboard_cli._toolkit import opened

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]


@click.command("show")
@click.argument("name", shell_complete=completes("tool"))
@json_option
@toolkit_options
@click.pass_obj
def command(options: ToolkitOptions, name: str, as_json: bool) -> None:
    """Show everything about one tool.

    What it does, its parameters and schema, where it comes from, and a call to begin with.
    """
    with opened(options) as toolkit:
        tool = toolkit[name]
        data = full(tool) | {"example": _example(toolkit, tool)}
    if as_json:
        print_json(data)
    else:
        _print(data)


def _example(toolkit: Toolkit, tool: Tool) -> dict[str, Any] | None:
    """Arguments that the tool accepts; None where none were found. Nothing is run."""
    example = example_of(tool)
    result = toolkit.prepare(tool.name, example).result
    return None if result is not None and result.status == "invalid" else example


def _print(data: dict[str, Any]) -> None:
    out = console()
    out.print(text(data["name"], "bold"))
    out.print(text(flow(data["description"]) or "(no description: a model will not know what it is for)"))
    out.print()
    out.print(pairs(_origin(data)))
    out.print()
    out.print(text("Parameters", "bold") if data["parameters"].get("properties") else text("No parameters"))
    if data["parameters"].get("properties"):
        _print_parameters(out, data["parameters"])
    for title, schema in (("Schema of the arguments", data["parameters"]), ("Schema of the result", data["returns"])):
        if schema:
            out.print(text(f"\n{title}", "bold"))
            out.print(json_lines(schema), soft_wrap=True)
    if data["example"] is not None:
        out.print(text("\nTry it", "bold"))
        out.print(text(_call(data["name"], data["example"])), soft_wrap=True)


def _origin(data: dict[str, Any]) -> list[tuple[str, str]]:
    where = f"{data['distribution']} {data['version']}" if data["distribution"] else "the program"
    plugin = f", plugin {data['pack']} ({data['entry_point']})" if data["entry_point"] else ""
    lines = {
        "From": where + plugin,
        "Source": data["source"] or "",
        "Other name": data["qualified_name"] if data["qualified_name"] != data["name"] else "",
        "Groups": names(data["groups"]),
        "Tags": names(data["tags"]),
        "Effects": hint_words(data),
        "Filled in": names(data["injected"]),
        "Schema hash": data["schema_hash"],
    }
    return [(label, value) for label, value in lines.items() if value]


def _print_parameters(out: Console, schema: dict[str, Any]) -> None:
    required = schema.get("required", ())
    lines = []
    for name, each in schema["properties"].items():
        default = dumps(each["default"], ensure_ascii=False) if "default" in each else ""
        needed = "required" if name in required else f"default {default}" if default else "optional"
        lines.append([name, type_words(each), needed, flow(each.get("description", ""))])
    columns: list[Column] = ["Name", ("Type", {"max_width": 30}), ("", {"max_width": 24}), "Description"]
    print_table(out, columns, lines)


def _call(name: str, example: dict[str, Any]) -> str:
    arguments = f" {shlex.quote(dumps(example, ensure_ascii=False))}" if example else ""
    return f"pegboard call {name}{arguments}"
