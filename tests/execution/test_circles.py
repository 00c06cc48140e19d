"""A call that has ended is freed at once: nothing of it waits for the garbage collector."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from pegboard import CancelToken, Emitter, ExecutionPolicy, ToolCall, Toolkit, tool
from tests.support.calls import CALLERS, each_caller
from tests.support.residue import held_in_circles
from tests.support.thinning import one_in


@tool(name="plain")
def plain(a: int) -> int:
    return a


@tool(name="timed", timeout=60)
def timed(a: int) -> int:
    return a


@tool(name="locked", locks=["a lock"])
def locked(a: int) -> int:
    return a


@tool(name="patient", policy=ExecutionPolicy(max_attempts=2))
def patient(a: int) -> int:
    return a


@tool(name="waits")
async def waits(a: int) -> int:
    await asyncio.sleep(0)
    return a


@tool(name="listens")
def listens(a: int, token: CancelToken) -> int:
    return a


@tool(name="reports")
def reports(a: int, emitter: Emitter, call: ToolCall) -> int:
    emitter.emit("a")
    return a


@tool(name="yields")
def yields(a: int) -> Iterator[str]:
    yield "a"


@tool(name="yields_later")
async def yields_later(a: int) -> AsyncIterator[str]:
    yield "a"
    await asyncio.sleep(0)


TOOLS = [plain, timed, locked, patient, waits, listens, reports, yields, yields_later]


@each_caller
@pytest.mark.parametrize("used", one_in(4, TOOLS), ids=lambda each: each.__name__)
def test_of_one_call(toolkit: Toolkit, used: object, caller: str) -> None:
    (made,) = toolkit.register(used)
    assert not held_in_circles(lambda: CALLERS[caller](toolkit, made.name, {"a": 1}))


@pytest.mark.parametrize("used", one_in(2, TOOLS), ids=lambda each: each.__name__)
def test_of_many(toolkit: Toolkit, used: object) -> None:
    (made,) = toolkit.register(used)
    assert not held_in_circles(lambda: asyncio.run(toolkit.call_many([(made.name, {"a": 1})] * 3)))
