"""Words for whoever looks at the terminal: on stderr, for stdout may be the protocol's."""

import sys

__all__ = ["say"]


def say(message: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
