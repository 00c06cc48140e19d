"""Tools for workers of a cluster, which find them by the import path of this module."""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pegboard import Emitter, tool


@tool(backend="ray", idempotent=True)
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(backend="ray")
def add_for_good(a: int, b: int) -> int:
    """Add, in a task of its own."""
    return a + b


@tool(backend="ray")
def count(n: int, emitter: Emitter) -> Iterator[str]:
    """Emit and yield in turn."""
    for number in range(n):
        emitter.emit(f"e{number}")
        yield f"y{number} "


@tool(backend="ray", timeout=0.5)
def sleep(seconds: float) -> str:
    """Take long."""
    time.sleep(seconds)
    return "slept"


@tool(backend="ray", resources={"num_gpus": 3, "unicorns": 1})
def greedy() -> str:
    """Ask for more than there is."""
    return "never"


@tool(backend="ray", resources={"num_cpus": 0, "first": 0.1})
def at_first() -> str:
    """Say which node this is."""
    return node()


@tool(backend="ray", resources={"num_cpus": 0, "second": 0.1})
def at_second() -> str:
    """Say which node this is."""
    return node()


@tool(backend="ray", idempotent=True)
def fall(number: int, place: str) -> int:
    """Double a number; of a hundred workers one is killed by it, the first time."""
    return double(number, place)


@tool(backend="ray")
def fall_for_good(number: int, place: str) -> int:
    """Double a number; of a hundred workers one is killed by it."""
    return double(number, place)


@tool(backend="ray", idempotent=True, resources={"num_cpus": 0, "both": 0.25})
def wait_anywhere(go: str, begun: str) -> str:
    """Wait for a file on either node."""
    return wait(go, begun)


@tool(backend="ray", resources={"num_cpus": 0, "both": 0.25})
def wait_for_good(go: str, begun: str) -> str:
    """Wait for a file on either node."""
    return wait(go, begun)


@tool(backend="ray")
def measure(key: str, unit: str = "m") -> dict[str, Any]:
    """Say how long a key is."""
    return {"length": len(key), "unit": unit}


@tool(backend="ray")
def weigh(thing: Any = None) -> int:
    """Say how long a thing's text is."""
    return len(str(thing))


@tool(backend="ray")
def span() -> dict[str, str]:
    """Say which span is the current one."""
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    return {"trace": f"{context.trace_id:032x}", "span": f"{context.span_id:016x}"}


@tool(backend="ray")
def dawdle(place: str) -> str:
    """Say that it has begun, and go on until it is ended."""
    return begin(place)


@tool(backend="ray", idempotent=True)
def dawdle_again(place: str) -> str:
    """The same, which may be done again."""
    return begin(place)


@tool(backend="ray", idempotent=True)
def task(number: int, place: str = "") -> str:
    """Say which task of Ray this is; a `place` gets a mark each time."""
    return told(number, place)


@tool(backend="ray", read_only=True)
def task_of_reading(number: int) -> str:
    """The same, of a tool that changes nothing."""
    return told(number)


@tool(backend="ray")
def task_for_good(number: int) -> str:
    """The same, of a tool that may not be run twice."""
    return told(number)


@tool(backend="ray", timeout=1.0)
def hold(seconds: int) -> str:
    """Keep the lock of the interpreter: no other thread of the worker runs meanwhile."""
    ctypes.PyDLL(None).sleep(seconds)
    return "held"


@tool(backend="ray")
def leave_traces(place: str) -> str:
    """Change what belongs to the whole process."""
    os.chdir(place)
    os.environ["LEFT_BEHIND"] = "1"
    os.environ.pop("HOME", None)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.alarm(1)
    return "left"


@tool(backend="ray")
def find_traces(seconds: float) -> dict[str, Any]:
    """Say what there is of the process, after some time."""
    time.sleep(seconds)
    return {
        "pid": os.getpid(),
        "folder": str(Path.cwd()),
        "variables": "LEFT_BEHIND" in os.environ,
        "home": "HOME" in os.environ,
        "handler": signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL,
    }


@tool(backend="ray", idempotent=True, timeout=2.0)
def doze(number: int, seconds: float, place: str) -> str:
    """Sleep, and say which task this is."""
    time.sleep(seconds)
    return told(number, place)


def told(number: int, place: str = "") -> str:
    """The task, after a mark."""
    import ray

    if place:
        Path(place, f"{number}-{time.monotonic_ns()}").touch()
    return str(ray.get_runtime_context().get_task_id())


def begin(place: str) -> str:
    """Leave a mark and wait."""
    Path(place, f"{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(120)
    return "it was not ended"


def node() -> str:
    """Its id."""
    import ray

    return str(ray.get_runtime_context().get_node_id())


def double(number: int, place: str) -> int:
    """What it comes to, if it does."""
    mark = Path(place, str(number))
    if number % 100 == 0 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def wait(go: str, begun: str) -> str:
    """Say where, once it may end."""
    here = node()
    Path(begun, f"{here}-{os.getpid()}").touch()
    end = time.monotonic() + 120
    while not Path(go).exists() and time.monotonic() < end:
        time.sleep(0.02)
    return here


TOOLS = [
    add,
    add_for_good,
    at_first,
    at_second,
    count,
    dawdle,
    dawdle_again,
    doze,
    fall,
    fall_for_good,
    find_traces,
    greedy,
    hold,
    leave_traces,
    measure,
    sleep,
    span,
    task,
    task_for_good,
    task_of_reading,
    wait_anywhere,
    wait_for_good,
    weigh,
]
