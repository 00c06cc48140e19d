"""A board that is served by a process of its own; its tools do what tools should not do. Run as a script."""

import os
import subprocess
import sys
import time

from pegboard import Toolkit, tool
from pegboard_mcp import serve_mcp


@tool
def shout(text: str) -> str:
    """Print to stdout in every way there is."""
    print(text)
    sys.stdout.flush()
    os.write(1, b"raw\n")
    subprocess.run([sys.executable, "-c", "print('child', input() if False else '')"], check=True)
    return text


@tool
def read_stdin() -> str:
    """Read what is the protocol's."""
    return sys.stdin.readline()


@tool
def hang() -> str:
    """Block."""
    time.sleep(600)
    return "never"


@tool
def crash() -> str:
    """Raise what ends a program."""
    sys.exit("crashed")


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
async def echo(text: str) -> str:
    """Say it again."""
    return text


if __name__ == "__main__":
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(shout, read_stdin, hang, crash, add, echo)
        http = sys.argv[1] if len(sys.argv) > 1 else None
        serve_mcp(toolkit, http=http, all_tools=True, token=os.environ.get("TOKEN"))
    print("served", file=sys.stderr)
