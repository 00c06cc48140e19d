"""Messages for the user at the terminal: on stderr, because stdout may carry the protocol."""

import sys

from pegboard.inspection import spelled_out

__all__ = ["say"]


def say(message: str) -> None:
    """Write a line to stderr; what a terminal would take for more than text is spelled out."""
    sys.stderr.write(f"{spelled_out(message)}\n")
    sys.stderr.flush()
