"""`pegboard schema`: what a model sees."""

from __future__ import annotations

from typing import Any

import click

from pegboard import Session, Toolkit
from pegboard_cli._options import ToolkitOptions, json_option, toolkit_options
from pegboard_cli._output.printing import console, json_lines, print_json
from pegboard_cli._toolkit import opened

__all__ = ["command"]


@click.command("schema")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--dialect", metavar="NAME", help="A provider's own format, such as openai; packs bring these.")
@json_option
@toolkit_options
@click.pass_obj
def command(options: ToolkitOptions, names: tuple[str, ...], dialect: str | None, as_json: bool) -> None:
    """Print what a model sees of the tools.

    Of all that are offered, or of those that are named. JSON in any case, in colours at a terminal: a list with name,
    description and parameters of each tool, or what a provider takes with --dialect.
    """
    with opened(options) as toolkit:
        found = _schemas(_chosen(toolkit, names), dialect)
    if as_json:
        print_json(found)
    else:
        console().print(json_lines(found), soft_wrap=True)


def _chosen(toolkit: Toolkit, names: tuple[str, ...]) -> Toolkit | Session:
    if not names:
        return toolkit
    return toolkit.view(include=[toolkit[name].name for name in names])


def _schemas(board: Toolkit | Session, dialect: str | None) -> list[Any]:
    if dialect is not None:
        return board.schemas(dialect)
    return [schema.to_dict() for schema in board.schemas()]
