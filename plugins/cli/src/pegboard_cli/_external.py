"""Commands of packs, from the hook `provide_commands`. A broken command affects no other."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Final

import click

from pegboard import Command, PegboardError, PluginState
from pegboard.inspection import Contribution, Plugins, pack_that_gives
from pegboard_cli._options import ToolkitOptions
from pegboard_cli._output import exits
from pegboard_cli._output.printing import clean, note, print_traceback
from pegboard_cli._toolkit import Replaced, hand_on, load_plugins
from pegboard_cli.plugin import OWN, named

__all__ = ["Replaceable", "describe_commands", "find_command"]


class Replaceable(click.Command):
    """One of our own commands. If a pack's command `replaces` it, the pack's runs, with the same arguments.

    Ours reads the options before, for they may say which packs are loaded; it also answers `--help`.
    """

    def __init__(self, own: click.Command) -> None:
        super().__init__(own.name, **{name: getattr(own, name) for name in _KEPT})
        self._sent: list[str] = []

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Remember the arguments."""
        self._sent = list(args)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, or the one that replaces it."""
        options = ctx.ensure_object(ToolkitOptions)
        try:
            if self.name in _WITHOUT_TOOLKIT or ctx.params.get("new"):  # every other one makes a toolkit
                _load(options)
            return super().invoke(ctx)
        except Replaced as replaced:
            hand_on(options)
            return _run(replaced.contribution, self._sent, options)


_NOT_LOADED: Final = (PluginState.FOUND, PluginState.BLOCKED)
_WITHOUT_TOOLKIT: Final = ("completion", "new", "test-pack")
_KEPT: Final = ("context_settings", "callback", "params", "help", "epilog", "short_help", "add_help_option")


def find_command(name: str, options: ToolkitOptions) -> click.Command:
    """The command that a pack has under that name, or under `<pack>__<name>`. Raises `UsageError` if there is none."""
    plugins = _load(options)
    found = {} if plugins is None else _commands(plugins)
    contribution = found.get(name) or {f"{each.pack}__{each.value.name}": each for each in found.values()}.get(name)
    if contribution is not None:
        return _as_click(contribution, options)
    rivals = sorted(key for key, each in found.items() if each.value.name == name)
    if rivals:
        raise click.UsageError(f"{name!r} is a command of several packs; use one of: {', '.join(rivals)}")
    message = f"there is no command {name!r}.{_absent(name, plugins) or _nearest(name, found) + _missed(plugins)}"
    raise click.UsageError(message, click.get_current_context(silent=True))


def _absent(name: str, plugins: Plugins | None) -> str:
    """Why a command of a known pack is missing: the pack is not active."""
    pack = pack_that_gives(f"pegboard {name}")
    if pack is None:
        return ""
    record = next((each for each in plugins.records if each.name == pack.name), None) if plugins else None
    if record is None:
        return f" It comes with {pack.distribution}: pip install {pack.distribution}"
    if record.state in _NOT_LOADED:
        return f" It is a command of {record.label}, which is installed, but not selected: {record.reason}"
    return f" It is a command of {record.label}, which is {record.state}: {record.reason}"


def _nearest(name: str, found: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, sorted({*OWN, *found}), n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


def _missed(plugins: Plugins | None) -> str:
    """A hint at plugins whose commands are unknown, and which may have the command."""
    records = plugins.records if plugins else ()
    broken = [record.name for record in records if record.state is PluginState.FAILED]
    not_loaded = [record.name for record in records if record.state in _NOT_LOADED]
    sentences = [f" It may belong to a plugin that is broken: {', '.join(broken)}."] if broken else []
    if not_loaded:
        why = "`pegboard plugins` says why each is left out"
        sentences.append(f" It may belong to one that is installed, but not selected: {', '.join(not_loaded)}; {why}.")
    return "".join(sentences)


def describe_commands(options: ToolkitOptions) -> list[tuple[str, str]]:
    """Name and help of each command of a pack, for the help page."""
    plugins = _load(options)
    if plugins is None:
        return []
    found = sorted(_commands(plugins).items())
    return [(clean(name), clean(f"{each.value.help} ({each.origin})")) for name, each in found]


def _load(options: ToolkitOptions) -> Plugins | None:
    try:
        return load_plugins(options)
    except PegboardError as error:
        note(f"commands of packs are left out: {error}")
        return None


def _commands(plugins: Plugins) -> dict[str, Contribution]:
    return named(plugins.contributions("provide_commands"))


def _as_click(contribution: Contribution, options: ToolkitOptions) -> click.Command:
    command: Command = contribution.value

    @click.command(
        command.name,
        help=clean(command.help),
        add_help_option=False,  # the command's own
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def run(arguments: tuple[str, ...]) -> int:
        hand_on(options)
        return _run(contribution, list(arguments), options)

    return run


def _run(contribution: Contribution, arguments: list[str], options: ToolkitOptions) -> int:
    try:
        code = contribution.value.run(arguments)
    except (click.ClickException, PegboardError, SystemExit, BrokenPipeError):  # the last: its reader has stopped early
        raise
    except Exception as error:  # noqa: BLE001 - a pack's code may raise anything
        if options.traceback:
            print_traceback(error)
        hint = "" if options.traceback else "; `pegboard --traceback ...` shows where"
        note(
            f"the command {contribution.value.name!r} of {contribution.origin} raised "
            f"{type(error).__name__}: {error}{hint}"
        )
        return exits.FAILED
    return code if isinstance(code, int) else exits.OK
