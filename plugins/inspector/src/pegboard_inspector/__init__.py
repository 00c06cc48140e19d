"""The inspector: one page, served on this machine alone, that shows the tools of a toolkit and calls them.

`pegboard inspect` starts it for what is installed, `inspect(toolkit)` for a program's own toolkit.
"""

# Loading the plugin loads nothing of the server.

from __future__ import annotations

from collections.abc import Callable, Iterable

from pegboard import Command, Toolkit, hookimpl

__all__ = ["inspect", "provide_commands"]


def inspect(toolkit: Toolkit | Callable[[], Toolkit], *, port: int = 0) -> None:
    """Serve the page on 127.0.0.1 until a signal ends it, and print its address.

    Raises `PegboardError` for a port that is taken.

    Args:
        toolkit: A toolkit, which stays open; or a function that makes one: then the page can reload packs by taking a
            new toolkit, and those are closed in the end.
        port: Port to listen on; 0 for a free one.
    """
    from pegboard_inspector._serving import serve

    serve(toolkit, port)


def _inspect(arguments: list[str]) -> int:
    from pegboard_inspector._command import run

    return run(arguments)


@hookimpl
def provide_commands() -> Iterable[Command]:
    """`pegboard inspect`."""
    return [Command("inspect", "Look at the board in a browser, and call its tools there.", _inspect)]
