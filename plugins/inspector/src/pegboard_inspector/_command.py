"""The command `pegboard inspect`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial, reduce
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard import PegboardError, Toolkit
from pegboard.inspection import spelled_out
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
        return Toolkit() if target is None else _program_toolkit(target)


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser

    parser = ArgumentParser(prog="pegboard inspect", description="Look at the board in a browser, on this machine.")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="the port to serve at; 0, by default: a free one"
    )
    parser.add_argument("--toolkit", metavar="MODULE:NAME", help="a program's own toolkit, or what returns one")
    return parser


def _program_toolkit(target: str) -> Toolkit:
    """The toolkit that `module:attribute` is, or returns. Raises `PegboardError` saying what is not there."""
    module, _, path = target.partition(":")
    if not (module and path):
        raise PegboardError(f"--toolkit takes MODULE:NAME, such as myprogram:toolkit, not {target!r}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = reduce(getattr, path.split("."), import_module(module))
        if not isinstance(found, Toolkit) and callable(found):
            found = found()
    except Exception as error:  # a program of the user's may raise anything
        raise PegboardError(f"--toolkit {target} cannot be had: {type(error).__name__}: {error}") from error
    if not isinstance(found, Toolkit):
        raise PegboardError(f"--toolkit {target} is a {type(found).__name__}; name a Toolkit, or what returns one")
    return found
