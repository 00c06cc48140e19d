"""The toolkit that a command works with, made from the installed packs and the options."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Final

import click

from pegboard import Toolkit, UnknownNameError
from pegboard.inspection import Contribution, Plugins, plugins_of, program_toolkit, suggestion
from pegboard_cli import plugin
from pegboard_cli._options import ToolkitOptions
from pegboard_cli._output.printing import note

__all__ = ["Replaced", "hand_on", "known_name", "known_pack", "load_plugins", "opened", "settings_file", "spoken"]

FILE: Final = "pegboard.toml"
PATIENCE: Final = 2.0
"""Seconds after which a line is printed about plugins that take their time."""


def settings_file(options: ToolkitOptions) -> Path | None:
    """The file with the settings: the one that was named, else `pegboard.toml` in the current directory."""
    if options.config is not None:
        return options.config
    named = os.environ.get("PEGBOARD_CONFIG")
    if named:
        return Path(named)
    return Path(FILE) if Path(FILE).is_file() else None


@contextmanager
def opened(options: ToolkitOptions) -> Iterator[Toolkit]:
    """The toolkit of a command. What plugins and tools print meanwhile goes to standard error.

    Raises `PegboardError` saying what to change.
    """
    with redirect_stdout(sys.stderr):
        with _patience():
            toolkit = _program_toolkit(options) if options.toolkit else Toolkit(**_arguments(options))
        with toolkit:
            if not options.toolkit:
                for name in options.plugins or ():
                    known_pack(plugins_of(toolkit), name)
                _give_way(plugins_of(toolkit))
            yield toolkit


class Replaced(Exception):  # noqa: N818 - no failure: another command runs in the place of ours
    """A pack's command replaces the one that runs."""

    def __init__(self, contribution: Contribution) -> None:
        super().__init__(contribution.value.name)
        self.contribution = contribution


def _give_way(plugins: Plugins) -> None:
    """Raise `Replaced` if a pack replaces the command that runs, which is known once plugins are loaded.

    Raises `UsageError` if two do.
    """
    context = click.get_current_context(silent=True)
    name = None if context is None else context.info_name
    found = [each for each in plugins.contributions("provide_commands") if each.value.replaces == f"cli__{name}"]
    if len(found) > 1:
        rivals = " and ".join(str(each.origin) for each in found)
        raise click.UsageError(f"{rivals} both replace the command {name!r}; block one of them")
    if found:
        raise Replaced(found[0])


def load_plugins(options: ToolkitOptions, *, imports: bool = True, settings: bool = True) -> Plugins:
    """The plugins without their tools; `settings=False` ignores all settings, for when one of them is wrong."""
    arguments = _arguments(options)
    environ = dict(os.environ)
    if not settings:
        arguments["config"] = None
        hidden = [name for name in environ if name.startswith("PEGBOARD__") or name == "PEGBOARD_CONFIG"]
        for name in hidden:
            del environ[name]
    selection = arguments.pop("plugins", "installed")
    with redirect_stdout(sys.stderr), _patience():
        own = (plugin,) if imports else ()
        plugins = Plugins.load(selection=selection, environ=environ, imports=imports, builtin=own, **arguments)
    if imports:
        _give_way(plugins)
    return plugins


def hand_on(options: ToolkitOptions) -> None:
    """Put the options into the environment. A pack's command finds them there when it makes a toolkit."""
    if options.toolkit:
        raise click.UsageError("--toolkit is for Pegboard's own commands")
    _apply_settings(options)
    file = settings_file(options)
    if file is not None:
        _announce(options, file)
        os.environ["PEGBOARD_CONFIG"] = str(file)
    if options.plugins is not None:
        os.environ["PEGBOARD_PLUGINS"] = ",".join(options.plugins)
    if options.block:
        os.environ["PEGBOARD_BLOCK"] = ",".join([*options.block, *filter(None, [os.environ.get("PEGBOARD_BLOCK")])])


def spoken(text: str, options: ToolkitOptions) -> str:
    """A message of the library that names options in place of environment variables."""
    for setting in options.settings:
        text = text.replace(f"environment variable {_variable(setting)}", f"--settings {setting}")
    return text


def _arguments(options: ToolkitOptions) -> dict[str, Any]:
    _apply_settings(options)
    file = settings_file(options)
    if file is not None:
        _announce(options, file)
    arguments: dict[str, Any] = {"config": file, "block": options.block}
    if options.plugins is not None:
        arguments["plugins"] = options.plugins
    return arguments


def _apply_settings(options: ToolkitOptions) -> None:
    # Through the environment: text there is read as the type of the setting.
    os.environ.update({_variable(setting): value for setting, value in options.settings.items()})


def _variable(setting: str) -> str:
    pack, _, key = setting.partition(".")
    return f"PEGBOARD__{pack}__{key}".replace("-", "_").upper()


def _announce(options: ToolkitOptions, file: Path) -> None:
    # A file that the command line does not name decides what tools may do: its use must be visible.
    if not options.announced:
        note(f"settings from {file}")
        options.announced = True


def _program_toolkit(options: ToolkitOptions) -> Toolkit:
    if options.selects:
        raise click.UsageError("--toolkit takes a program's toolkit as it is; leave out options for packs or settings")
    return program_toolkit(options.toolkit or "")


@contextmanager
def _patience() -> Iterator[None]:
    def say() -> None:
        click.echo("pegboard: plugins are still loading; `pegboard plugins` will show which one is slow", err=True)

    timer = threading.Timer(PATIENCE, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


# Names from the command line: whether they exist -------------------------------------------------------------------


def _normal(name: str) -> str:
    """A pack's name in the form that is compared: `Acme_Paint` is `acme-paint`."""
    return name.lower().replace("_", "-").replace(".", "-")


def known_name(what: str, name: str, known: Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """The known name that `name` means. Raises `UnknownNameError` naming the known ones."""
    names = sorted(set(known))
    meant = {_normal(each): each for each in names} | {_normal(alias): each for alias, each in (aliases or {}).items()}
    if _normal(name) in meant:
        return meant[_normal(name)]
    raise UnknownNameError(f"there is no {what} {name!r}. {suggestion(name, names, noun=f'{what}s')}")


def known_pack(plugins: Plugins, name: str) -> str:
    """The installed plugin of that name, or of that distribution. Raises `UnknownNameError`."""
    found = {each.name: each.distribution for each in plugins.records if each.entry_point is not None}
    return known_name("plugin", name, found, {by: name for name, by in found.items() if by})
