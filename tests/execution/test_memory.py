"""Memory stays flat however many calls are made: each kind of call leaves nothing behind."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from types import ModuleType
from typing import Any, ClassVar

import pytest
from attrs import define

from pegboard import (
    CancelToken,
    Chunk,
    Computed,
    Emitter,
    ExecutionPolicy,
    Injected,
    Injector,
    Middleware,
    Secret,
    Suspend,
    ToolCall,
    Toolkit,
    ToolResult,
    hookimpl,
    tool,
)
from pegboard._execution.timers import GRACE
from tests.support.measuring import least

CALLS = 200_000
FEW = 500
TEXT = '{"a": 1}'


class Client:
    """What the program provides."""


@tool
def plain(a: int) -> int:
    return a


@tool
async def later(a: int) -> int:
    return a


@tool
async def suspends(a: int) -> int:
    await asyncio.sleep(0)
    return a


@tool
def fails(a: int) -> int:
    raise ValueError(f"not {a}")


@tool
def told(a: int, call: ToolCall, token: CancelToken) -> str:
    return call.id


@tool
def reports(a: int, emitter: Emitter) -> int:
    emitter.emit("half")
    return a


@tool
def yields(a: int) -> Iterator[str]:
    yield "half"
    yield "whole"


@tool
async def yields_later(a: int) -> AsyncIterator[str]:
    yield "half"
    await asyncio.sleep(0)
    yield "whole"


@tool(exclusive=True)
def alone(a: int) -> int:
    return a


@tool(locks=["a lock"])
async def locked(a: int) -> int:
    await asyncio.sleep(0)
    return a


@tool(requires_approval=True)
def asks(a: int) -> int:
    return a


@tool(timeout=60)
def timed(a: int) -> int:
    return a


@tool(timeout=60)
async def timed_later(a: int) -> int:
    await asyncio.sleep(0)
    return a


@tool(timeout=0.000001)
async def too_slow(a: int) -> int:
    await asyncio.sleep(60)
    return a


attempts = count()


@tool(policy=ExecutionPolicy(max_attempts=2, initial_backoff=0))
def retried(a: int) -> int:
    if next(attempts) % 2 == 0:
        raise ConnectionError("again")
    return a


@tool
def provided(a: int, client: Injected[Client]) -> int:
    return a


@tool
def waits_for_a_person(a: int) -> int:
    raise Suspend("a person")


@tool(max_output=100)
def long(a: int) -> str:
    return "x" * 1000


@define
class Place:
    """Where one kind of call is made."""

    toolkit: Toolkit
    runner: asyncio.Runner
    numbers: Iterator[int]
    rest: float = 0.0  # in seconds: for what ends a little later than the calls

    def repeat(self, make: Callable[[], Any]) -> Callable[[int], None]:
        """Calls from plain code."""

        def repeat(times: int) -> None:
            for _ in range(times):
                make()

        return repeat

    def on_loop(self, make: Callable[[], Awaitable[Any]], at_once: int = 1) -> Callable[[int], None]:
        """Calls that are awaited."""

        async def repeat(times: int) -> None:
            for _ in range(0, times, at_once):
                await make()
            await asyncio.sleep(self.rest)

        return lambda times: self.runner.run(repeat(times))

    def call(self, used: Any, sent: Any = TEXT, status: str = "success", **terms: Any) -> Callable[[int], None]:
        """Calls from plain code of one tool."""
        (made,) = self.toolkit.register(used, **terms)

        def call() -> None:
            assert self.toolkit.call_sync(made.name, sent).status == status

        return self.repeat(call)

    def await_(self, used: Any, sent: Any = TEXT, status: str = "success", **terms: Any) -> Callable[[int], None]:
        """Awaited calls of one tool."""
        (made,) = self.toolkit.register(used, **terms)

        async def call() -> None:
            assert (await self.toolkit.call(made.name, sent)).status == status

        return self.on_loop(call)

    def session_per_call(self) -> Callable[[int], None]:
        self.toolkit.register(plain, provided)
        self.toolkit.create_group("some")

        def call() -> None:
            session = self.toolkit.session(context=[Client()], presets={"plain": {"a": 2}}, groups=["some"])
            session.set_permission("plain", "always")
            assert (session.call_sync("plain").value, session.call_sync("provided", TEXT).value) == (2, 1)

        return self.repeat(call)

    def view_per_call(self) -> Callable[[int], None]:
        self.toolkit.register(plain)
        return self.repeat(lambda: self.toolkit.view(include=["plain"], prefix="my_").call_sync("my_plain", TEXT))

    def prepared(self) -> Callable[[int], None]:
        self.toolkit.register(plain)
        return self.repeat(lambda: self.toolkit.prepare("plain", TEXT).execute_sync())

    def prepared_and_dropped(self) -> Callable[[int], None]:
        self.toolkit.register(plain)
        return self.repeat(lambda: self.toolkit.prepare("plain", TEXT))

    def resumed(self) -> Callable[[int], None]:
        self.toolkit.register(waits_for_a_person)

        def call() -> None:
            prepared = self.toolkit.prepare("waits_for_a_person", TEXT)
            assert prepared.execute_sync().status == "suspended"
            assert self.toolkit.resume(prepared, 1).value == 1

        return self.repeat(call)

    def timed_out(self) -> Callable[[int], None]:
        """A loop has no way to take back the look at a task that was cancelled; it ends when the time has come."""
        self.rest = GRACE / 2  # such a look is due after a quarter of it
        return self.await_(too_slow, status="timeout")

    def cancelled(self) -> Callable[[int], None]:
        self.toolkit.register(suspends)

        async def call() -> None:
            task = asyncio.ensure_future(self.toolkit.call("suspends", TEXT))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        return self.on_loop(call)

    def many(self) -> Callable[[int], None]:
        self.toolkit.register(suspends)
        return self.on_loop(lambda: self.toolkit.call_many([("suspends", TEXT)] * 10), 10)

    def chunks(self) -> Callable[[int], None]:
        self.toolkit.register(yields)
        heard: list[Chunk] = []

        def call() -> None:
            self.toolkit.call_sync("yields", TEXT, on_chunk=heard.append)
            heard.clear()

        return self.repeat(call)

    def unknown_names(self) -> Callable[[int], None]:
        """A model may make up any number of names."""
        return self.repeat(lambda: self.toolkit.call_sync(f"no_such_{next(self.numbers)}", TEXT))

    def registered_and_removed(self) -> Callable[[int], None]:
        def call() -> None:
            self.toolkit.register(plain)
            self.toolkit.set_presets("plain", {"a": 1})
            assert self.toolkit.call_sync("plain", {}).value == 1
            self.toolkit.unregister("plain")

        return self.repeat(call)


def pack(**hooks: Any) -> ModuleType:
    made = ModuleType("acme")
    for name, function in hooks.items():
        setattr(made, name, hookimpl(function))
    return made


def around(call: ToolCall, proceed: Callable[[], ToolResult]) -> ToolResult:
    return proceed()


async def around_later(call: ToolCall, proceed: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
    return await proceed()


async def approve_later(request: Any) -> bool:
    return True


def client() -> Iterator[Client]:
    yield Client()


async def client_later() -> AsyncIterator[Client]:
    yield Client()
    await asyncio.sleep(0)


def with_middleware(function: Any) -> dict[str, Any]:
    return {"plugins": [pack(provide_middleware=lambda settings: [Middleware(function)])]}


def with_injector(function: Any) -> dict[str, Any]:
    return {"plugins": [pack(provide_injectors=lambda settings: [Injector(Client, function)])]}


class ByHand:
    name, description = "by_hand", "What it is given."
    parameters: ClassVar = {"type": "object", "properties": {"a": {"type": "integer"}}}

    def call(self, call: ToolCall) -> Any:
        return call.arguments["a"]


Kind = tuple[Callable[[Place], Callable[[int], None]], dict[str, Any]]
KINDS: dict[str, Kind] = {
    "sync": (lambda place: place.call(plain), {}),
    "async": (lambda place: place.await_(later), {}),
    "suspended coroutine": (lambda place: place.await_(suspends), {}),
    "sync from a loop": (lambda place: place.await_(plain), {}),
    "async from plain code": (lambda place: place.call(suspends), {}),
    "Secret": (lambda place: place.call(plain, "{}", presets={"a": Secret(1)}), {}),
    "Computed": (lambda place: place.call(plain, "{}", presets={"a": Computed(lambda call: 1)}), {}),
    "repaired": (lambda place: place.call(plain, '{"a": "1"}'), {}),
    "refused": (lambda place: place.call(plain, '{"a": [1]}', "invalid"), {}),
    "no JSON": (lambda place: place.call(plain, '{"a": ', "invalid"), {"repair": "off"}),
    "unknown names": (Place.unknown_names, {}),
    "error": (lambda place: place.call(fails, status="error"), {}),
    "ToolCall": (lambda place: place.call(told), {}),
    "Emitter": (lambda place: place.call(reports), {}),
    "on_chunk": (Place.chunks, {}),
    "generator": (lambda place: place.call(yields), {}),
    "async generator": (lambda place: place.await_(yields_later), {}),
    "exclusive": (lambda place: place.call(alone), {}),
    "lock": (lambda place: place.await_(locked), {}),
    "max_concurrency": (lambda place: place.await_(suspends), {"max_concurrency": 2}),
    "middleware": (lambda place: place.call(plain), with_middleware(around)),
    "async middleware": (lambda place: place.await_(suspends), with_middleware(around_later)),
    "approver": (lambda place: place.call(asks), {"approver": lambda request: True}),
    "async approver": (lambda place: place.await_(asks), {"approver": approve_later}),
    "approver that refuses": (lambda place: place.call(asks, status="denied"), {"approver": lambda request: False}),
    "timeout": (lambda place: place.call(timed), {}),
    "timeout of a coroutine": (lambda place: place.await_(timed_later), {}),
    "timeout that passes": (Place.timed_out, {}),
    "retry": (lambda place: place.call(retried), {}),
    "injector": (lambda place: place.call(provided), with_injector(client)),
    "async injector": (lambda place: place.await_(provided), with_injector(client_later)),
    "prepared": (Place.prepared, {}),
    "prepared and dropped": (Place.prepared_and_dropped, {}),
    "suspended and resumed": (Place.resumed, {}),
    "cancelled": (Place.cancelled, {}),
    "session per call": (Place.session_per_call, {}),
    "view per call": (Place.view_per_call, {}),
    "call_many": (Place.many, {}),
    "tool by hand": (lambda place: place.call(ByHand()), {}),
    "cut output": (lambda place: place.call(long), {}),
    "registered and removed": (Place.registered_and_removed, {}),
}
DEAR = {"registered and removed"}
"""What takes ten times as long as a call, for a tool is read each time."""


@contextmanager
def calling(kind: str) -> Iterator[Callable[[int], None]]:
    """Makes so many calls of a kind; what is made once has been made."""
    make, terms = KINDS[kind]
    options: dict[str, Any] = {"plugins": (), **terms}
    with ExitStack() as opened:
        arguments: dict[str, Any] = {"plugins": ()} | options
        toolkit = opened.enter_context(Toolkit(**arguments))
        run = make(Place(toolkit, opened.enter_context(asyncio.Runner()), count()))
        run(100)
        yield run


def blocks() -> int:
    """How many pieces of memory Python has handed out."""
    gc.collect()
    return sys.getallocatedblocks()


def tables() -> int:
    """The bytes of all containers: one that grows holds something, though it may hold nothing new."""
    return sum(map(sys.getsizeof, gc.get_objects()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_few_calls_leave_nothing(kind: str) -> None:
    with calling(kind) as run:

        def growth() -> float:
            before = blocks()
            run(FEW)
            return (blocks() - before) / FEW

        assert least(growth, enough=0.1) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_calls_leave_nothing(kind: str) -> None:
    calls = CALLS // 10 if kind in DEAR else CALLS
    with calling(kind) as run:
        run(calls // 100)
        pieces, held = blocks(), tables()
        run(calls)
        assert (blocks() - pieces) / calls < 0.01
        assert (tables() - held) / calls < 1
