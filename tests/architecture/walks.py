"""Which files of the core run for one action: what a reader would have to open to follow it.

Python code that the interpreter enters counts, whatever calls it; a file counts once. Modules are loaded before, so
that the top level of a module is no part of a walk.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

from pegboard import Toolkit, ToolResult
from tests.support.profiling import profiled

SOURCE: Final = str(Path(sys.modules["pegboard"].__file__ or "").parent) + "/"
ARGUMENTS: Final = '{"a": 1, "b": 2}'
WRONG: Final = '{"a": "one", "b": 2}'


def walk(action: Callable[[], object]) -> list[str]:
    """Run an action; name the files of the core that it enters on this thread, in the order of their first call."""
    files: dict[str, None] = {}

    def enter(frame: FrameType, event: str) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(SOURCE):
            files.setdefault(path.removeprefix(SOURCE))

    profiled(action, enter)
    return list(files)


def fresh_add() -> Callable[[int, int], int]:
    """Make a function that no toolkit has seen."""

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return add


def call(toolkit: Toolkit) -> ToolResult:
    """Call the tool as a framework does: arguments as the model wrote them."""
    return toolkit.call_sync("add", ARGUMENTS)


async def doze(a: int) -> int:
    """Suspend once."""
    await asyncio.sleep(0)
    return a


def suspended(toolkit: Toolkit) -> list[str]:
    """Walk a warm call of a tool that suspends, on an event loop."""

    async def once() -> None:
        await toolkit.call("doze", '{"a": 1}')  # not returned: a task may ask for the repr of what it returns

    with asyncio.Runner() as runner:
        runner.run(once())
        return walk(lambda: runner.run(once()))


def walks() -> dict[str, list[str]]:
    """Take the walks that have a limit in `rooms.WALKS`, by the same names."""
    with Toolkit(plugins=()) as other:  # loads what is loaded at first use
        other.register(fresh_add())
        assert call(other).value == 3
    made: list[Toolkit] = []
    add = fresh_add()
    taken = {"toolkit": walk(lambda: made.append(Toolkit(plugins=())))}
    with made[0] as toolkit:
        taken["registration"] = walk(lambda: toolkit.register(add))
        taken["first call"] = walk(lambda: call(toolkit))
        taken["warm call"] = walk(lambda: call(toolkit))
        toolkit.call_sync("add", WRONG)
        taken["refused call"] = walk(lambda: toolkit.call_sync("add", WRONG))
        toolkit.register(doze)
        taken["suspended call"] = suspended(toolkit)
    return taken
