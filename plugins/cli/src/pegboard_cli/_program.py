"""The program: finds the command, and reports any error as one line on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import click

import pegboard
from pegboard import PegboardError, UnknownNameError
from pegboard_cli._options import ToolkitOptions, toolkit_options
from pegboard_cli._output import exits
from pegboard_cli._output.printing import clean, print_traceback

__all__ = ["Program", "main"]


class Program(click.Group):
    """Our own commands, then those of packs; plugins are loaded only for a command that is not ours."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of our own commands; those of packs have a section of their own in the help."""
        from pegboard_cli.plugin import OWN

        return sorted(OWN)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command of that name, imported now."""
        from pegboard_cli._external import Replaceable, find_command
        from pegboard_cli.plugin import OWN, click_command

        if name in OWN:
            return Replaceable(click_command(name))
        return find_command(name, ctx.ensure_object(ToolkitOptions))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands without importing ours, and ask the plugins for those of packs."""
        from pegboard_cli._external import describe_commands
        from pegboard_cli.plugin import OWN

        with formatter.section("Commands"):
            formatter.write_dl([(each.name, each.help) for each in OWN.values()])
        of_packs = describe_commands(ctx.ensure_object(ToolkitOptions))
        if of_packs:
            with formatter.section("Commands of packs"):
                formatter.write_dl(of_packs)

    def complete(self, kind: str, ctx: click.Context, incomplete: str) -> list[str]:
        """The names of a kind that a shell may complete."""
        from pegboard_cli._commands.completion import complete

        return complete(kind, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. A reader that stops early, as `head` does, is no failure."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return _closed()

    def main(self, args: Any = None, prog_name: str | None = None, *rest: Any, **extra: Any) -> Any:
        """Run a command and exit with its code (see the page on the command line)."""
        standalone = extra.pop("standalone_mode", True)
        options = extra.setdefault("obj", ToolkitOptions())
        code = guarded(lambda: super(Program, self).main(args, "pegboard", standalone_mode=False, **extra), options)
        if standalone:
            sys.exit(code)
        return code


def guarded(action: Callable[[], Any], options: ToolkitOptions) -> int:
    """The exit code of an action; an error is one line on standard error, with its traceback if that was asked for."""
    try:
        result = action()
        sys.stdout.flush()
        return result if isinstance(result, int) else exits.OK
    except (click.Abort, KeyboardInterrupt):
        click.echo("pegboard: interrupted", err=True)
        return exits.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help())
        return exits.OK
    except click.ClickException as error:
        return _complain(error, _usage(error), error.exit_code, options)
    except UnknownNameError as error:
        return _complain(error, str(error), exits.NOT_FOUND, options)
    except PegboardError as error:
        return _complain(error, str(error), exits.FAILED, options)
    except BrokenPipeError:
        return _closed()
    except OSError as error:
        return _complain(error, str(error), exits.FAILED, options)
    except Exception as error:  # noqa: BLE001 - whatever it is, a person at a terminal reads one line
        message = f"this is a fault of pegboard or of a pack: {type(error).__name__}: {error}; --traceback shows where"
        return _complain(error, message, exits.FAILED, options)


def _complain(error: Exception, message: str, code: int, options: ToolkitOptions) -> int:
    from pegboard_cli._toolkit import spoken

    if options.traceback:
        print_traceback(error)
    line = " ".join(clean(spoken(message, options)).split())
    click.echo(f"pegboard: {line}", err=True)
    return code


def _usage(error: click.ClickException) -> str:
    message = error.format_message().rstrip()
    context = getattr(error, "ctx", None)
    if not isinstance(error, click.UsageError) or context is None:
        return message
    end = "" if message.endswith((".", "?")) else "."
    return f"{message}{end} See: {context.command_path} --help"


def _closed() -> int:
    # Python would complain when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exits.OK


def _version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"pegboard {pegboard.__version__}")
        ctx.exit()


@click.command(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
@toolkit_options
def main() -> None:
    """List, call and check the tools of every installed pack, and start packs of your own.

    The options may also follow the command. `pegboard COMMAND --help` says more about one.
    """
