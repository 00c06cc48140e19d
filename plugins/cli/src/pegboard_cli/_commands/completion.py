"""`pegboard completion`: what a shell needs to complete commands, options, and names of tools, packs and settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from pegboard import PegboardError, Toolkit
from pegboard.inspection import plugins_of, write_file
from pegboard_cli._options import ToolkitOptions
from pegboard_cli._toolkit import opened

__all__ = ["command", "complete"]

_VARIABLE: Final = "_PEGBOARD_COMPLETE"
_SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command("completion")
@click.argument("action", type=click.Choice(["install", "show"]))
@click.option("--shell", type=click.Choice([*_SHELLS]), help="Another shell than that of SHELL.")
def command(action: str, shell: str | None) -> None:
    """Complete names at a shell.

    Commands, options, and the names of tools, packs, groups and settings. `install` writes the script for the shell,
    and for bash and zsh a line into its start-up file; a second run changes nothing. `show` prints the script.
    """
    shell = shell or _running()
    script = _script(shell)
    if action == "show":
        click.echo(script, nl=False)
        return
    for path, text, appended in _files(shell, script):
        click.echo(f"{_write(path, text, appended=appended)} {path}")
    click.echo("New shells complete `pegboard`; a tab shows what there is.")


def _running() -> str:
    name = Path(os.environ.get("SHELL", "")).name
    if name not in _SHELLS:
        raise click.UsageError(f"SHELL says {name or 'nothing'!r}; choose one with --shell: {', '.join(_SHELLS)}")
    return name


def _script(shell: str) -> str:
    program = click.get_current_context().find_root().command
    return _SHELLS[shell](program, {}, "pegboard", _VARIABLE).source().strip() + "\n"


def _files(shell: str, script: str) -> Iterable[tuple[Path, str, bool]]:
    """The files to write, the text for each, and whether the text is one line of a larger file."""
    home = Path.home()
    if shell == "fish":
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        yield folder / "fish" / "completions" / "pegboard.fish", script, False
        return
    path = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "pegboard" / f"completion.{shell}"
    yield path, script, False
    start = home if shell == "bash" else Path(os.environ.get("ZDOTDIR") or home)
    setup = "autoload -Uz compinit && compinit; " if shell == "zsh" else ""
    yield start / f".{shell}rc", f"[ -r '{path}' ] && {{ {setup}. '{path}'; }}  # pegboard completion\n", True


def _write(path: Path, text: str, *, appended: bool) -> str:
    """Make sure that a file has this text, and print what was done."""
    before = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
    if (text in before) if appended else (text == before):
        return "unchanged:"
    gap = "" if not before or before.endswith("\n") else "\n"
    if appended:
        with path.open("a", encoding="utf-8") as file:
            file.write(gap + text)
        return "line added to"
    write_file(path, text, "the completion")
    return "written:"


# Completing ------------------------------------------------------------------------------------------------------


def complete(kind: str, ctx: click.Context, incomplete: str) -> list[str]:
    """The names of that kind that begin as the word does; a list of several is completed at its end."""
    before, comma, last = incomplete.rpartition(",")
    try:
        with opened(ctx.ensure_object(ToolkitOptions)) as toolkit:
            names = sorted(set(_NAMES[kind](toolkit)))
    except (PegboardError, click.ClickException, OSError):
        return []  # the command prints what is wrong when it runs
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


_NAMES: Final[dict[str, Callable[[Toolkit], Iterable[str]]]] = {
    "tool": lambda toolkit: (tool.name for tool in toolkit.all_tools),
    "group": lambda toolkit: (group.name for group in toolkit.groups),
    "tag": lambda toolkit: (tag for tool in toolkit.all_tools for tag in tool.tags),
    "pack": lambda toolkit: (each.name for each in plugins_of(toolkit).records if each.entry_point),
    "section": lambda toolkit: (each.section for each in plugins_of(toolkit).settings.effective()),
    "setting": lambda toolkit: (f"{each.section}.{each.key}=" for each in plugins_of(toolkit).settings.effective()),
}
