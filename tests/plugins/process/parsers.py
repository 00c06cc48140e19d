"""Functions that are called with limits: they have to lie in a module that another process can import."""

import os
import signal
import subprocess
import sys
import time
from typing import Any, NoReturn

CALLS: list[None] = []


def same(data: Any) -> Any:
    return data


def counted(data: Any) -> list[int]:
    """How often this was called in its process, which process that is, and its parent."""
    CALLS.append(None)
    return [len(CALLS), os.getpid(), os.getppid()]


def hoards(data: Any) -> NoReturn:
    kept = []
    while True:
        kept.append(bytearray(1 << 20))


def takes(size: int) -> int:
    return len(bytearray(size))


def spins(data: Any) -> NoReturn:
    while True:
        pass


def sleeps(seconds: float) -> None:
    time.sleep(seconds)


def crashes(number: int) -> None:
    os.kill(os.getpid(), number)


def leaves(data: Any) -> NoReturn:
    os._exit(3)


def refuses(text: str) -> NoReturn:
    raise ValueError(text)


def gives_an_object(data: Any) -> object:
    return object()


def talks(data: Any) -> str:
    print("to the parent?", flush=True)
    os.write(1, b"x" * 100_000)
    print("and here", file=sys.stderr, flush=True)
    return "done"


def starts_others(seconds: float) -> NoReturn:
    """Start a program and ignore signals that can be ignored."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.run(["sleep", str(seconds)], check=False)
    while True:
        pass
