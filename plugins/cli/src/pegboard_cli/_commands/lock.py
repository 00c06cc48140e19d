"""`pegboard lock`: writes the lock file of the tools as they are, or compares two."""

from __future__ import annotations

from pathlib import Path

import click

from pegboard import PegboardError
from pegboard_cli._checks.changes import CLASSES, Change, changes_between, step_of
from pegboard_cli._checks.lockfile import LOCK, Lock
from pegboard_cli._options import ToolkitOptions, json_option, toolkit_options
from pegboard_cli._output import exits
from pegboard_cli._output.printing import clean, console, note, plain, print_json, print_table
from pegboard_cli._toolkit import opened
from pegboard_policy import unenforced

__all__ = ["command"]

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("lock")
@click.argument("old", required=False, type=_FILE)
@click.argument("new", required=False, type=_FILE)
@click.option("--lock-file", type=click.Path(path_type=Path), default=Path(LOCK), show_default=True, metavar="FILE")
@click.option("--diff", is_flag=True, help="Write nothing; say what has changed for callers since OLD.")
@click.option(
    "--fail-on", type=click.Choice(CLASSES), help="With --diff: exit with 1 for changes of this class, or a graver one."
)
@json_option
@toolkit_options
@click.pass_obj
def command(
    options: ToolkitOptions,
    old: Path | None,
    new: Path | None,
    lock_file: Path,
    diff: bool,
    fail_on: str | None,
    as_json: bool,
) -> int:
    """Write down names, schemas and versions as they are now.

    `pegboard doctor --locked` fails from then on if a tool comes, goes, or changes its description, schema or effects,
    or if a distribution has another version: a pack that was looked at once cannot change unseen.

    `pegboard lock --diff [OLD [NEW]]` compares two lock files, or OLD (else the lock file) and the tools as they are
    now. Each change is breaking, widening, text, or unproven, with a value that shows it. The last line says whether a
    release with all of them is a major, a minor or a patch one.
    """
    if diff:
        return _compare(options, old or lock_file, new, fail_on, as_json)
    if old is not None or fail_on is not None:
        raise click.UsageError("OLD, NEW and --fail-on are for `pegboard lock --diff`")
    lock = _present(options)
    kept = lock.write(lock_file)
    if kept is not None:
        note(f"{lock_file} was damaged; what stood there is in {kept}")
    if as_json:
        print_json({"file": str(lock_file), "tools": len(lock.tools), "distributions": dict(lock.distributions)})
    else:
        message = f"{lock_file}: {plain(len(lock.tools), 'tool')} of {plain(len(lock.distributions), 'distribution')}"
        click.echo(clean(message))
    return exits.OK


def _present(options: ToolkitOptions) -> Lock:
    # A program whose policy needs the lock file can be loaded before the file exists.
    with unenforced(), opened(options) as toolkit:
        return Lock.of(toolkit)


def _compare(options: ToolkitOptions, old: Path, new: Path | None, fail_on: str | None, as_json: bool) -> int:
    before = Lock.read(old)
    changes = _changes(before, _present(options) if new is None else Lock.read(new))
    if as_json:
        print_json({"changes": [each.to_dict() for each in changes], "step": step_of(changes)})
    else:
        _print(changes)
    grave = CLASSES[: CLASSES.index(fail_on) + 1] if fail_on in CLASSES else ()
    return exits.FAILED if any(each.kind in grave for each in changes) else exits.OK


def _changes(before: Lock, now: Lock) -> list[Change]:
    try:
        return changes_between(before, now)
    except ModuleNotFoundError as error:
        if error.name != "pegboard_schemas":
            raise
        message = "schemas are compared by pegboard-schemas, which is not installed: pip install 'pegboard-cli[diff]'"
        raise PegboardError(message) from None


def _print(changes: list[Change]) -> None:
    if not changes:
        click.echo("No tool has changed.")
        return
    ordered = sorted(changes, key=lambda each: CLASSES.index(each.kind))
    rows = [[each.kind, each.tool, each.path, each.reason] for each in ordered]
    print_table(console(), ["Class", "Tool", "Where", "What"], rows)
    click.echo(f"\nstep: {step_of(changes)}")
