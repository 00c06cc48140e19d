"""The command `pegboard inspect`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import partial
from importlib.util import find_spec
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from pegboard import PegboardError, Toolkit
from pegboard.inspection import program_toolkit, spelled_out
from pegboard_inspector._serving import serve

if TYPE_CHECKING:
    from argparse import ArgumentParser

__all__ = ["run", "toolkit_of"]


def run(arguments: list[str]) -> int:
    """Serve the page for the installed board, a program's, or MCP servers. Returns 0 when a signal ended it, else 1."""
    options = _parser().parse_args(arguments)
    try:
        servers = _servers(options.mcp or [])  # what is wrong is an error at once
        title = ", ".join(each.name for each in servers) if servers and options.toolkit is None else None
        make = partial(toolkit_of, options.toolkit, options.mcp or [])
        serve(make, options.port, target=options.toolkit, title=title)
    except (PegboardError, OSError) as error:
        print(f"pegboard inspect: {spelled_out(str(error))}", file=sys.stderr)  # noqa: T201 - a command says what is wrong
        return 1
    return 0


def toolkit_of(target: str | None, mcp: Sequence[str]) -> Toolkit:
    """The toolkit that is looked at. Raises `PegboardError` for what names none."""
    with redirect_stdout(sys.stderr):  # what plugins print while they are loaded is not the address
        if not mcp:
            return Toolkit() if target is None else program_toolkit(target)
        # Beside the servers alone there is what shows their tools as a model gets them.
        dialects = ["dialects"] if find_spec("pegboard_dialects") else []
        toolkit = Toolkit(plugins=dialects) if target is None else program_toolkit(target)
        servers = _servers(mcp)
        for server in servers:
            server.log_level = "debug"
            prefix = f"{re.sub('[^A-Za-z0-9_-]+', '_', server.name)}__" if target or len(servers) > 1 else ""
            toolkit.register(server, prefix=prefix)
        return toolkit


def _servers(mcp: Sequence[str]) -> list[Any]:
    """The MCP servers that are named, no two by one name. Raises `PegboardError` for what names none."""
    if not mcp:
        return []
    try:
        from pegboard_mcp import servers_named
    except ModuleNotFoundError:
        raise PegboardError("--mcp needs pegboard-mcp; install it: pip install pegboard-mcp") from None
    found: dict[str, Any] = {}
    for name, server in (each for target in mcp for each in servers_named(target).items()):
        free = next(each for each in chain((name,), (f"{name}_{number}" for number in count(2))) if each not in found)
        server.name, found[free] = free, server
    return list(found.values())


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser

    parser = ArgumentParser(prog="pegboard inspect", description="Look at the board in a browser, on this machine.")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="the port to serve at; 0, by default: a free one"
    )
    parser.add_argument("--toolkit", metavar="MODULE:NAME", help="the toolkit of a program, or of FILE.py[:NAME]")
    parser.add_argument(
        "--mcp",
        action="append",
        metavar="SERVER",
        help="an MCP server: 'COMMAND ...', a URL, or a FILE.json of mcpServers; alone, or beside a program's tools",
    )
    return parser
