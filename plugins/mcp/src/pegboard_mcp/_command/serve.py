"""The command `pegboard serve`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import PegboardError
from pegboard_mcp._command.install import CLIENTS, entry, shown, written
from pegboard_mcp._wire.terminal import say, stray_output_to_stderr

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

__all__ = ["run"]

TOKEN = "PEGBOARD_MCP_TOKEN"  # noqa: S105 - the name of a variable
_FILES = ("--config", "--token-file", "--state-key-file", "--mcp")


def run(arguments: list[str]) -> int:
    """Serve the installed packs, or a program's toolkit. Returns 0 when the client or a signal ended it, else 1."""
    options = _parser().parse_args(arguments)
    try:
        if options.stdio and options.http:
            raise PegboardError("--stdio and --http exclude each other")
        if options.target and options.config:
            raise PegboardError("--config is for the installed board; a program's toolkit has its own settings")
        if options.server_json is not None:
            return _list(options)
        if options.url or options.env:
            raise PegboardError("--url and --env are for --server-json")
        return _install(options, arguments) if options.install else _serve(options)
    except (PegboardError, OSError, ValueError) as error:
        say(f"pegboard serve: {error}")
        return 1


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser

    parser = ArgumentParser(
        prog="pegboard serve",
        description="Serve the board as an MCP server.",
        # An abbreviation such as `--inst` would be copied into the entry, and the client would print entries for ever.
        allow_abbrev=False,
    )
    parser.add_argument("target", nargs="?", metavar="PROGRAM", help="MODULE:NAME or FILE.py[:NAME] of a toolkit")
    parser.add_argument("--stdio", action="store_true", help="over stdin and stdout; what is done by default")
    parser.add_argument("--http", metavar="HOST:PORT", help="over HTTP, at http://HOST:PORT/mcp; port 0: a free one")
    parser.add_argument("--tools", action="append", metavar="NAMES", help="serve these tools: names or patterns, a,b*")
    parser.add_argument("--groups", action="append", metavar="NAMES", help="serve the tools of these groups")
    parser.add_argument("--all", action="store_true", help="serve all tools, not only those that say they only read")
    parser.add_argument("--mcp", action="append", metavar="FILE", help="register the servers of an mcpServers file too")
    parser.add_argument("--config", metavar="FILE", help="the board's settings")
    parser.add_argument("--name", metavar="NAME", default="pegboard", help="what the server calls itself")
    parser.add_argument("--token-file", metavar="FILE", help=f"the bearer token for --http; or say it in {TOKEN}")
    parser.add_argument("--stateless", action="store_true", help="keep no connections: one of several workers")
    parser.add_argument(
        "--state-key-file", metavar="FILE", help="keys that workers share, a line each; the first seals"
    )
    parser.add_argument("--install", choices=CLIENTS, help="print the entry for a client instead of serving")
    parser.add_argument("--write", action="store_true", help="with --install: write it into the client's file")
    parser.add_argument(
        "--server-json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="print, or write, what the registry of MCP servers is to know of the published program instead of serving",
    )
    parser.add_argument("--url", metavar="URL", help="with --server-json: the public address of the server")
    parser.add_argument(
        "--env",
        action="append",
        metavar="NAME",
        help="with --server-json: a variable that it needs; its value is not read",
    )
    return parser


def _list(options: Namespace) -> int:
    """Print, or write, the `server.json` of the server. Checks first that it can be served."""
    from pegboard_mcp._command.registry import server_json, shown_or_written

    listed = server_json(options, TOKEN if os.environ.get(TOKEN) else "")
    _check(options)
    sys.stdout.write(shown_or_written(listed, options.server_json))
    return 0


def _install(options: Namespace, arguments: list[str]) -> int:
    """Print, or write, the entry by which a client starts this server.

    Checks first that it can be served: a client would show the error in a log at most.
    """
    _check(options)
    value = entry(
        options.install,
        _elsewhere(options, arguments),
        http=options.http,
        imports_from=str(Path.cwd()) if options.target and not _is_file(options.target) else None,
    )
    if options.write:
        say(f"written to {written(options.install, options.name, value)}")
    else:
        sys.stdout.write(f"{shown(options.install, options.name, value)}\n")
    return 0


def _check(options: Namespace) -> None:
    """Say what a host will see of a program. Raises `PegboardError` or `OSError` for what cannot be served.

    No server of a file is started.
    """
    from pegboard.inspection import program_toolkit
    from pegboard_mcp._server.selection import Selection
    from pegboard_mcp._settings import load_mcp_config

    for path in options.mcp or ():
        load_mcp_config(path)
    _secrets(options)
    if options.target is None:
        return
    with stray_output_to_stderr(), program_toolkit(options.target) as toolkit:
        if not options.mcp:  # whose tools may be named as well
            say(Selection(toolkit, _names(options.tools), _names(options.groups), options.all).summary(toolkit))


def _secrets(options: Namespace) -> tuple[str | None, list[str]]:
    """The token and the keys, from their files. Raises `OSError` for one that cannot be read."""
    token = Path(options.token_file).read_text("utf-8").strip() if options.token_file else os.environ.get(TOKEN)
    return token or None, Path(options.state_key_file).read_text("utf-8").split() if options.state_key_file else []


def _is_file(target: str) -> bool:
    # A module's name may have `.py` in it too: `board.pytools:toolkit`.
    return target.endswith(".py") or ".py:" in target


def _elsewhere(options: Namespace, arguments: list[str]) -> list[str]:
    """The arguments with absolute paths, so that they hold in any directory, and without those about installing."""
    kept = [each for each in arguments if each not in ("--write", "--install", f"--install={options.install}")]
    if "--install" in arguments:
        kept.remove(options.install)
    files = [options.config, options.token_file, options.state_key_file, *(options.mcp or ())]
    whole = {each: str(Path(each).resolve()) for each in files if each}
    if options.target and _is_file(options.target):
        path, mark, name = options.target.rpartition(".py:")
        whole[options.target] = (
            f"{Path(path + '.py').resolve()}:{name}" if mark else str(Path(options.target).resolve())
        )
    joined = {f"{option}={each}": f"{option}={whole[each]}" for each in whole for option in _FILES}
    return [whole.get(each) or joined.get(each, each) for each in kept]


def _serve(options: Namespace) -> int:
    from pegboard import Toolkit
    from pegboard.inspection import program_toolkit
    from pegboard_mcp._command.settled import settled
    from pegboard_mcp._server.serving import serve_mcp
    from pegboard_mcp._settings import load_mcp_config

    token, keys = _secrets(options)
    with stray_output_to_stderr():
        toolkit = Toolkit(config=options.config) if options.target is None else program_toolkit(options.target)
        behind = [server for path in options.mcp or () for server in load_mcp_config(path).values()]
        for server in behind:
            toolkit.register(server, prefix=f"{server.name}__")
    with toolkit:
        with stray_output_to_stderr():
            beside = settled(toolkit)
            beside["prompts"] = [*beside.get("prompts", ()), *behind]
        for problem in toolkit.problems:
            say(f"pegboard serve: {problem}")
        serve_mcp(
            toolkit,
            http=options.http,
            tools=_names(options.tools),
            groups=_names(options.groups),
            all_tools=options.all,
            token=token,
            name=options.name,
            stateless=options.stateless,
            state_keys=keys,
            **beside,
        )
    return 0


def _names(given: list[str] | None) -> list[str] | None:
    if given is None:
        return None
    return [name.strip() for each in given for name in each.split(",") if name.strip()]
