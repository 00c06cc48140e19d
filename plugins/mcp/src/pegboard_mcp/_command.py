"""The command `pegboard serve`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import PegboardError
from pegboard_mcp._say import say

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

__all__ = ["run"]

TOKEN = "PEGBOARD_MCP_TOKEN"  # noqa: S105 - the name of a variable


def run(arguments: list[str]) -> int:
    """Serve the installed board. Returns 0 when the client or a signal ended it, 1 for what cannot be served."""
    asked = _parser().parse_args(arguments)
    try:
        return _serve(asked)
    except (PegboardError, OSError) as error:
        say(f"pegboard serve: {error}")
        return 1


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser

    parser = ArgumentParser(prog="pegboard serve", description="Serve the board as an MCP server.")
    parser.add_argument("--stdio", action="store_true", help="over stdin and stdout; what is done by default")
    parser.add_argument("--http", metavar="HOST:PORT", help="over HTTP, at http://HOST:PORT/mcp; port 0: a free one")
    parser.add_argument("--tools", action="append", metavar="NAMES", help="serve these tools: names or patterns, a,b*")
    parser.add_argument("--groups", action="append", metavar="NAMES", help="serve the tools of these groups")
    parser.add_argument("--all", action="store_true", help="serve all tools, not only those that say they only read")
    parser.add_argument("--mcp", action="append", metavar="FILE", help="register the servers of an mcpServers file too")
    parser.add_argument("--config", metavar="FILE", help="the board's settings")
    parser.add_argument("--token-file", metavar="FILE", help=f"the bearer token for --http; or say it in {TOKEN}")
    return parser


def _serve(asked: Namespace) -> int:
    from pegboard import Toolkit
    from pegboard_mcp._config import load_mcp_config
    from pegboard_mcp._serving import serve_mcp

    if asked.stdio and asked.http:
        raise PegboardError("--stdio and --http exclude each other")
    token = Path(asked.token_file).read_text("utf-8").strip() if asked.token_file else os.environ.get(TOKEN)
    with _stray_output_to_stderr():
        toolkit = Toolkit(config=asked.config)
        for path in asked.mcp or ():
            for name, server in load_mcp_config(path).items():
                toolkit.register(server, prefix=f"{name}__")
    with toolkit:
        for problem in toolkit.problems:
            say(f"pegboard serve: {problem}")
        serve_mcp(
            toolkit,
            http=asked.http,
            tools=_names(asked.tools),
            groups=_names(asked.groups),
            all_tools=asked.all,
            token=token or None,
        )
    return 0


def _names(given: list[str] | None) -> list[str] | None:
    if given is None:
        return None
    return [name.strip() for each in given for name in each.split(",") if name.strip()]


@contextmanager
def _stray_output_to_stderr() -> Iterator[None]:
    """What plugins print while they are loaded must not stand on stdout: there the protocol speaks."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
