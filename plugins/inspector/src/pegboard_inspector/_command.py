"""The command `pegboard inspect`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING

from pegboard import PegboardError, Toolkit
from pegboard.inspection import program_toolkit, spelled_out
from pegboard_inspector._serving import serve

if TYPE_CHECKING:
    from argparse import ArgumentParser

__all__ = ["run"]


def run(arguments: list[str]) -> int:
    """Serve the page for the installed board, or a program's. Returns 0 when a signal ended it, 1 for an error."""
    options = _parser().parse_args(arguments)
    try:
        serve(partial(_toolkit, options.toolkit), options.port, target=options.toolkit)
    except (PegboardError, OSError) as error:
        print(f"pegboard inspect: {spelled_out(str(error))}", file=sys.stderr)  # noqa: T201 - a command says what is wrong
        return 1
    return 0


def _toolkit(target: str | None) -> Toolkit:
    with redirect_stdout(sys.stderr):  # what plugins print while they are loaded is not the address
        return Toolkit() if target is None else program_toolkit(target)


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser

    parser = ArgumentParser(prog="pegboard inspect", description="Look at the board in a browser, on this machine.")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="the port to serve at; 0, by default: a free one"
    )
    parser.add_argument("--toolkit", metavar="MODULE:NAME", help="the toolkit of a program, or of FILE.py[:NAME]")
    return parser
