"""Options that say which toolkit a command works with. They come before or after the command's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from attrs import define, field

__all__ = ["ToolkitOptions", "completes", "json_option", "toolkit_options", "traceback_option"]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@define
class ToolkitOptions:
    """Which toolkit a command works with. A value after the command's name overrides one before it."""

    config: Path | None = None
    plugins: tuple[str, ...] | None = None
    block: tuple[str, ...] = ()
    settings: dict[str, str] = field(factory=dict, repr=False)
    toolkit: str | None = None
    traceback: bool = False
    announced: bool = False

    @property
    def selects(self) -> bool:
        """Whether an option says how the toolkit is made."""
        return bool(self.config or self.block or self.settings) or self.plugins is not None


def _remember(attribute: str, convert: Callable[[Any], Any]) -> Callable[..., None]:
    def callback(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        options = ctx.ensure_object(ToolkitOptions)
        if value not in (None, (), False):
            setattr(options, attribute, convert(value))

    return callback


def _names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _pairs(values: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in values:
        path, equals, value = text.partition("=")
        pack, dot, key = path.partition(".")
        if not (equals and dot and pack.strip() and key.strip()):
            raise click.BadParameter(f"{path!r} names no setting; write --settings PACK.KEY=VALUE")
        pairs[f"{pack.strip()}.{key.strip()}"] = value
    return pairs


def completes(kind: str) -> Callable[..., list[str]]:
    """The shell completion of a parameter: names of that kind, read from the toolkit."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        program: Any = ctx.find_root().command
        names: list[str] = program.complete(kind, ctx, incomplete)
        return names

    return complete


def traceback_option(command: Decorated) -> Decorated:
    """`--traceback`: show where an error comes from."""
    remember = _remember("traceback", bool)
    option = click.option(
        "--traceback", is_flag=True, expose_value=False, callback=remember, help="Show tracebacks of errors."
    )
    return option(command)


def json_option(command: Decorated) -> Decorated:
    """`--json`: one JSON document on standard output."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(command)


_TOOLKIT: Final[tuple[tuple[str, Callable[[Any], Any], dict[str, Any]], ...]] = (
    (
        "config",
        Path,
        {
            "type": click.Path(exists=True, dir_okay=False),
            "metavar": "FILE",
            "help": "Settings file; else PEGBOARD_CONFIG, else pegboard.toml here.",
        },
    ),
    (
        "plugins",
        _names,
        {"metavar": "A,B", "help": "Load these plugins alone.", "shell_complete": completes("pack")},
    ),
    (
        "block",
        _names,
        {
            "metavar": "A,B",
            "help": "Leave these plugins out; * stands for anything.",
            "shell_complete": completes("pack"),
        },
    ),
    (
        "settings",
        _pairs,
        {
            "multiple": True,
            "metavar": "PACK.KEY=VALUE",
            "help": "Set something; may be repeated.",
            "shell_complete": completes("setting"),
        },
    ),
    ("toolkit", str, {"metavar": "MODULE:NAME", "help": "Look at the toolkit of a program, or of FILE.py[:NAME]."}),
)


def toolkit_options(command: Decorated) -> Decorated:
    """The options that say which toolkit: plugins, settings, or the toolkit of a program."""
    for name, convert, settings in reversed(_TOOLKIT):
        option = click.option(f"--{name}", expose_value=False, callback=_remember(name, convert), **settings)
        command = option(command)
    return traceback_option(command)
