"""Our own commands. They come through the hook of packs, and work where no plugin can be loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from pegboard import Command, hookimpl

if TYPE_CHECKING:
    from pegboard.inspection import Contribution

__all__ = ["OWN", "click_command", "named", "provide_commands"]

_HELP: Final = {
    "call": "Call a tool.",
    "completion": "Complete names at a shell.",
    "doctor": "Say what is wrong, and how to correct it.",
    "lock": "Write down names, schemas and versions as they are now.",
    "new": "Start a pack of your own.",
    "plugins": "List plugins and what became of each.",
    "schema": "Print what a model sees of the tools.",
    "search": "Find tools by words.",
    "settings": "Show settings and where each came from.",
    "show": "Show everything about one tool.",
    "test-pack": "Try a pack's wheel in fresh environments.",
    "tools": "List the tools.",
    "types": "List type handlers, or say which one maps a type.",
}


def click_command(name: str) -> click.Command:
    """One of our own, imported now, from the module of its name."""
    command: click.Command = import_module(f"pegboard_cli._commands.{name.replace('-', '_')}").command
    return command


def _run(name: str, arguments: list[str]) -> int:
    from pegboard_cli._options import ToolkitOptions

    code = click_command(name).main(arguments, f"pegboard {name}", standalone_mode=False, obj=ToolkitOptions())
    return code if isinstance(code, int) else 0


OWN: Final = {name: Command(name, line, partial(_run, name)) for name, line in _HELP.items()}


def named(contributions: Iterable[Contribution]) -> dict[str, Contribution]:
    """Commands of packs by name. A name that is ours, or that two packs use, becomes `<pack>__<name>`, as for tools."""
    everything = [each for each in contributions if not each.builtin]
    taken = Counter([*OWN, *(each.value.name for each in everything)])
    return {
        each.value.name if taken[each.value.name] == 1 else f"{each.pack}__{each.value.name}": each
        for each in everything
    }


@hookimpl
def provide_commands() -> Iterable[Command]:
    """A pack's command that `replaces` one of these, as `cli__tools`, runs in its place."""
    return OWN.values()
