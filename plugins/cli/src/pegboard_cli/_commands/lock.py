"""`pegboard lock`: writes the lock file of the tools as they are."""

from __future__ import annotations

from pathlib import Path

import click

from pegboard_cli._checks.lockfile import LOCK, Lock
from pegboard_cli._options import ToolkitOptions, json_option, toolkit_options
from pegboard_cli._output.printing import clean, note, plain, print_json
from pegboard_cli._toolkit import opened
from pegboard_policy import unenforced

__all__ = ["command"]


@click.command("lock")
@click.option("--lock-file", type=click.Path(path_type=Path), default=Path(LOCK), show_default=True, metavar="FILE")
@json_option
@toolkit_options
@click.pass_obj
def command(options: ToolkitOptions, lock_file: Path, as_json: bool) -> None:
    """Write down names, schemas and versions as they are now.

    `pegboard doctor --locked` fails from then on if a tool comes, goes, or changes its description, schema or effects,
    or if a distribution has another version: a pack that was looked at once cannot change unseen.
    """
    with (
        unenforced(),
        opened(options) as toolkit,
    ):  # a program whose policy needs the lock file can be loaded before the file exists
        lock = Lock.of(toolkit)
    kept = lock.write(lock_file)
    if kept is not None:
        note(f"{lock_file} was damaged; what stood there is in {kept}")
    if as_json:
        print_json({"file": str(lock_file), "tools": len(lock.tools), "distributions": dict(lock.distributions)})
    else:
        message = f"{lock_file}: {plain(len(lock.tools), 'tool')} of {plain(len(lock.distributions), 'distribution')}"
        click.echo(clean(message))
