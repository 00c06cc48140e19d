"""One of several workers behind a balancer: `KEY`. It tells which process asks, and which one answers. A script."""

import os
import sys

from pegboard import Suspend, Toolkit, tool
from pegboard_mcp import Answers, serve_mcp


@tool
def asks(answers: Answers) -> str:
    """Ask twice."""
    for key in ("first", "second"):
        if key not in answers:
            raise Suspend(f"the {key} from {os.getpid()}?", key=key, again=True)
    return f"{answers['first']} {answers['second']} answered by {os.getpid()}"


@tool(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount} by {os.getpid()}"


@tool(read_only=True)
def who() -> int:
    """Who answers."""
    return os.getpid()


def main(key: str) -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(asks, pay, who)
        serve_mcp(toolkit, http="127.0.0.1:0", all_tools=True, stateless=True, state_keys=[key])


if __name__ == "__main__":
    main(*sys.argv[1:])
