"""`pegboard call`: runs a tool as a model would."""

from __future__ import annotations

import re
import shlex
import sys
from typing import Any

import click

from pegboard import Session, Tool, Toolkit, ToolResult
from pegboard_cli._options import ToolkitOptions, completes, json_option, toolkit_options
from pegboard_cli._output import exits
from pegboard_cli._output.forms import interrupts_questions
from pegboard_cli._output.live import Approver, Live
from pegboard_cli._output.printing import clean, console, json_lines, loads, note, print_json, print_traceback
from pegboard_cli._toolkit import opened

__all__ = ["command"]


@click.command("call")
@click.argument("name", shell_complete=completes("tool"))
@click.argument("arguments", required=False, metavar="[JSON|-]")
@click.option("--arg", "pairs", multiple=True, metavar="NAME=VALUE", help="One argument; may be repeated.")
@click.option("--yes", is_flag=True, help="Approve the call beforehand.")
@json_option
@toolkit_options
@click.pass_obj
def command(
    options: ToolkitOptions, name: str, arguments: str | None, pairs: tuple[str, ...], yes: bool, as_json: bool
) -> int:
    """Call a tool.

    Arguments are a JSON object, or - to read one from standard input, or --arg NAME=VALUE, where a value is text if
    the parameter takes text, else JSON. The result goes to standard output, everything else to standard error.

    Exit codes: 0 success, 1 error, 3 invalid arguments, 4 no such tool, 5 inactive, 6 denied, 7 timeout, 8 cancelled,
    9 suspended, 130 interrupted.
    """
    if arguments is not None and pairs:
        raise click.UsageError("arguments come as JSON or as --arg, not both")
    if arguments is not None and re.match(r"[A-Za-z_]\w*=", arguments):
        raise click.UsageError(f"{arguments!r} is not JSON; write --arg {shlex.quote(arguments)}")
    sent = sys.stdin.read() if arguments == "-" else arguments
    live = Live(sys.stdout, quiet=as_json)
    with opened(options) as toolkit:
        given = _from_pairs(toolkit, name, pairs) if pairs else sent
        result = _run(toolkit, name, given, live, Approver(live, approved=yes))
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result, live)
    if options.traceback and result.error is not None and result.error.exception is not None:
        print_traceback(result.error.exception)
    return exits.of_status(result.status)


def _run(toolkit: Toolkit, name: str, arguments: Any, live: Live, approver: Approver) -> ToolResult:
    session = _session(toolkit, name, approver)
    live.begin(_find(toolkit, name), name)
    try:
        with interrupts_questions():
            return session.call_sync(name, arguments, on_chunk=live.chunk)
    finally:
        live.end()


def _find(toolkit: Toolkit, name: str) -> Tool | None:
    return toolkit[name] if name in toolkit else None  # noqa: SIM401 - a toolkit is no mapping and has no get


def _session(toolkit: Toolkit, name: str, approver: Approver) -> Session:
    """A session for a person: a tool that the command line names needs no group activated first."""
    tool = _find(toolkit, name)
    groups = () if tool is None else tool.groups or tool.options.groups
    known = {group.name for group in toolkit.groups}
    for group in groups:
        if group not in known:
            toolkit.create_group(group)
    return toolkit.session(approver=approver, groups=[*toolkit.active_groups, *groups])


def _from_pairs(toolkit: Toolkit, name: str, pairs: tuple[str, ...]) -> dict[str, Any]:
    tool = _find(toolkit, name)
    properties = {} if tool is None else tool.parameters.get("properties", {})
    arguments = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} has no value; write --arg NAME=VALUE")
        arguments[key] = value if _takes_text(properties.get(key, {})) else _from_json(value)
    return arguments


def _takes_text(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "string" or (
        "enum" in schema and all(isinstance(value, str) for value in schema["enum"])
    )


def _from_json(value: str) -> Any:
    try:
        return loads(value)
    except ValueError:
        return value  # otherwise the tool's schema explains better what is expected


def _print(result: ToolResult, live: Live) -> None:
    for remark in result.notes:
        note(f"note: {remark}")
    if result.error is not None:
        # What was shown while the tool ran is not shown again below the error.
        message = f"Error: {result.error.message}" if live.wrote and "partial" in result.metadata else result.text
        click.echo(clean(message), err=True)
        for kind in ("reason", "remedy"):  # these are for the program, and here the user is the program
            if result.error.details.get(kind, message) not in message:
                note(f"{kind}: {result.error.details[kind]}")
    elif not live.showed(result.text):
        _print_value(result)
    for block in (*result.content, *result.attachments):
        if not block.text and block.kind not in ("text", "data"):
            note(f"the result holds {block!r}; --json prints it")


def _print_value(result: ToolResult) -> None:
    if not sys.stdout.isatty():
        click.echo(result.text)  # unchanged: the output is a file or a pipe
    elif _is_json(result):
        console().print(json_lines(result.data), soft_wrap=True)
    else:
        click.echo(clean(result.text))


def _is_json(result: ToolResult) -> bool:
    """Whether the text for the model is the data, and not a text of the tool's own beside it."""
    if not isinstance(result.data, dict | list):
        return False
    try:
        return bool(loads(result.text) == result.data)
    except ValueError:
        return False
