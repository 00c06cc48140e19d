"""B14: what each feature of a call costs by itself, over the same `add`, from plain code and on a loop."""

from __future__ import annotations

import asyncio
import json
import threading
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from attrs import frozen

import pegboard
from pegboard import (
    CancelToken,
    Computed,
    Emitter,
    ExecutionPolicy,
    Injected,
    Locked,
    Middleware,
    Secret,
    TextBlock,
    ToolCall,
    Toolkit,
    tool,
)
from tests.benchmarks.floors import Client, Hop, Small
from tests.benchmarks.measuring import Clock, Figure, Pace, alternate, per_await, per_call

__all__ = ["BENCHMARKS", "CASES", "Case", "figure"]

TEXT = '{"a": 2, "b": 3}'
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
Options = Mapping[str, Any]
NONE: Options = types.MappingProxyType({})

CHEAP = 2.5, 2.0
SOME = 5.0, 3.0
STEPS = 12.0, 8.0
HOP = 1.5, None
FREE = None, None


@dataclass
class Sum:
    value: int


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def add_later(a: int, b: int) -> int:
    """Add."""
    return a + b


def add_with_call(a: int, b: int, call: ToolCall) -> int:
    """Add."""
    return a + b


async def add_with_call_later(a: int, b: int, call: ToolCall) -> int:
    """Add."""
    return a + b


def add_with_emitter(a: int, b: int, emitter: Emitter) -> int:
    """Add."""
    return a + b


async def add_with_emitter_later(a: int, b: int, emitter: Emitter) -> int:
    """Add."""
    return a + b


def add_with_token(a: int, b: int, token: CancelToken) -> int:
    """Add."""
    return a + b


async def add_with_token_later(a: int, b: int, token: CancelToken) -> int:
    """Add."""
    return a + b


def add_with_client(a: int, b: int, client: Injected[Client]) -> int:
    """Add."""
    return a + b


async def add_with_client_later(a: int, b: int, client: Injected[Client]) -> int:
    """Add."""
    return a + b


def add_to_dict(a: int, b: int) -> dict[str, int]:
    """Add."""
    return {"sum": a + b}


async def add_to_dict_later(a: int, b: int) -> dict[str, int]:
    """Add."""
    return {"sum": a + b}


def add_to_record(a: int, b: int) -> Sum:
    """Add."""
    return Sum(a + b)


async def add_to_record_later(a: int, b: int) -> Sum:
    """Add."""
    return Sum(a + b)


def add_to_blocks(a: int, b: int) -> list[TextBlock]:
    """Add."""
    return [TextBlock("sum"), TextBlock("5")]


async def add_to_blocks_later(a: int, b: int) -> list[TextBlock]:
    """Add."""
    return [TextBlock("sum"), TextBlock("5")]


def add_in_steps(a: int, b: int) -> Iterator[str]:
    """Add."""
    yield "5"


async def add_in_steps_later(a: int, b: int) -> AsyncIterator[str]:
    """Add."""
    yield "5"


class ByHand:
    name = "add"
    description = "Add."
    parameters = SCHEMA

    def call(self, call: ToolCall) -> int:
        """Add."""
        return int(call.arguments["a"] + call.arguments["b"])


class ByHandLater:
    name = "add"
    description = "Add."
    parameters = SCHEMA

    async def call(self, call: ToolCall) -> int:
        """Add."""
        return int(call.arguments["a"] + call.arguments["b"])


def around(call: ToolCall, proceed: Callable[[], Any]) -> Any:
    """Change nothing."""
    return proceed()


async def around_later(call: ToolCall, proceed: Callable[[], Awaitable[Any]]) -> Any:
    """Change nothing."""
    return await proceed()


def approve(request: Any) -> bool:
    """Say yes."""
    return True


async def approve_later(request: Any) -> bool:
    """Say yes."""
    return True


def hear(chunk: Any) -> None:
    """Do nothing with it."""


@frozen
class Case:
    """One feature: the tool, what its toolkit, its registration and each call are given, and the limits.

    `waits` says that a call has to wait for a thread or a loop, so that the floor is the bare hop.
    """

    work: str
    tool: Any
    limits: tuple[float | None, float | None]
    toolkit: Options = NONE
    registration: Options = NONE
    call: Options = NONE
    session: Options | None = None
    text: Any = TEXT
    waits: str = ""
    prepared: bool = False
    many: int = 0

    def run(self, toolkit: Toolkit, on_loop: bool) -> Callable[[], Any]:
        """What is measured: one call."""
        (name,) = toolkit.register(self.tool, **self.registration)
        caller: Any = toolkit if self.session is None else toolkit.session(**self.session)
        name = getattr(name, "name", name)
        if self.many:
            calls = [(name, self.text)] * self.many
            return partial(caller.call_many if on_loop else caller.call_many_sync, calls, **self.call)
        if self.prepared and on_loop:
            return lambda: caller.prepare(name, self.text).execute(**self.call)
        if self.prepared:
            return lambda: caller.prepare(name, self.text).execute_sync(**self.call)
        return partial(caller.call if on_loop else caller.call_sync, name, self.text, **self.call)


def _each(work: str, sync: Any, later: Any, limits: tuple[float | None, float | None], **options: Any) -> list[Case]:
    return [Case(work, sync, limits, **options), Case(f"{work}, async", later, limits, **options)]


def _declared(**options: Any) -> tuple[Any, Any]:
    return tool(**options)(_copied(add)), tool(**options)(_copied(add_later))


def _copied(function: Any) -> Any:
    copy = types.FunctionType(function.__code__, function.__globals__, function.__name__)
    copy.__annotations__, copy.__doc__ = dict(function.__annotations__), function.__doc__
    return copy


def _surrounded(middleware: Callable[..., Any], times: int = 1) -> Options:
    """A toolkit's plugins with that middleware."""
    module = types.ModuleType("surrounding")
    module.provide_middleware = pegboard.hookimpl(lambda: [Middleware(middleware)] * times)  # type: ignore[attr-defined]
    return {"plugins": [module]}


ONE, ONE_LATER = _surrounded(around), _surrounded(around_later)
ASKING, ASKING_LATER = _declared(requires_approval=True)

COMPUTED: Options = {"presets": {"a": Computed(lambda call: 2)}}

CASES: tuple[Case, ...] = (
    *_each("plain", add, add_later, FREE),
    *_each("Secret preset", add, add_later, CHEAP, registration={"presets": {"a": Secret(2)}}, text='{"b": 3}'),
    *_each("Locked", add, add_later, CHEAP, registration={"presets": {"a": Locked(2)}}, text='{"b": 3}'),
    *_each("max_attempts=2", *_declared(policy=ExecutionPolicy(max_attempts=2)), CHEAP),
    *_each("max_output", *_declared(max_output=1000), CHEAP),
    *_each("ToolCall", add_with_call, add_with_call_later, CHEAP),
    *_each("Emitter", add_with_emitter, add_with_emitter_later, CHEAP),
    *_each("session", add, add_later, CHEAP, session={}),
    *_each("group", add, add_later, CHEAP, registration={"group": "sums"}),
    *_each("context at toolkit", add_with_client, add_with_client_later, CHEAP, toolkit={"context": [Client()]}),
    *_each("context at session", add_with_client, add_with_client_later, CHEAP, session={"context": [Client()]}),
    Case("timeout of an async tool", _declared(timeout=30)[1], CHEAP),
    *_each("context at call", add_with_client, add_with_client_later, SOME, call={"context": [Client()]}),
    Case("Computed", add, SOME, registration=COMPUTED, text='{"b": 3}'),
    # It may block, so that it runs off the loop.
    Case("Computed, async", add_later, HOP, registration=COMPUTED, text='{"b": 3}', waits="worker"),
    *_each("CancelToken", add_with_token, add_with_token_later, SOME),
    *_each("returned dict", add_to_dict, add_to_dict_later, SOME),
    *_each("returned dataclass", add_to_record, add_to_record_later, SOME),
    *_each("returned blocks", add_to_blocks, add_to_blocks_later, SOME),
    *_each("lock", *_declared(locks=["sum"]), STEPS),
    *_each("group limit", add, add_later, STEPS, registration={"group": "few"}),
    *_each("max_concurrency", add, add_later, STEPS, toolkit={"max_concurrency": 4}),
    *_each("on_chunk", add, add_later, STEPS, call={"on_chunk": hear}),
    Case("approver", ASKING, STEPS, {"approver": approve}),
    Case("approver, async", ASKING_LATER, STEPS, {"approver": approve_later}),
    *_each("tool by hand", ByHand(), ByHandLater(), STEPS),
    Case("middleware", add, STEPS, toolkit=ONE),
    Case("middleware, async", add_later, STEPS, toolkit=ONE_LATER),
    Case("three middlewares", add, FREE, toolkit=_surrounded(around, 3)),
    Case("three middlewares, async", add_later, FREE, toolkit=_surrounded(around_later, 3)),
    *_each("generator", add_in_steps, add_in_steps_later, STEPS),
    *_each("prepare and execute", add, add_later, STEPS, prepared=True),
    *_each("repaired argument", add, add_later, STEPS, text='{"a": 2, "b": "3"}'),
    Case("call_many of 1, async", add_later, (4.0, 3.0), many=1),
    Case("call_many of 10, async", add_later, FREE, many=10),
    Case("call_many of 1,000, async", add_later, FREE, many=1000),
    Case("sync tool awaited", add, HOP, waits="worker"),
    Case("  with a lock", _declared(locks=["sum"])[0], HOP, waits="worker"),
    Case("  with an async middleware", add, HOP, toolkit=ONE_LATER, waits="worker"),
    Case("  that yields", add_in_steps, HOP, waits="worker"),
    Case("sync middleware, async tool awaited", add_later, HOP, toolkit=ONE, waits="worker and back"),
    Case("sync approver, async tool", ASKING_LATER, HOP, {"approver": approve}, waits="worker"),
    Case("call_sync with a timeout", _declared(timeout=30)[0], HOP, waits="worker of plain code"),
    Case("call_sync of an async tool", add_later, HOP, waits="loop"),
    Case("  of one that yields", add_in_steps_later, HOP, waits="loop"),
    Case(
        "async approver, sync tool",
        ASKING,
        HOP,
        {"approver": approve_later},
        waits="loop",
    ),
    Case("async middleware, call_sync of a sync tool", add, HOP, ONE_LATER, waits="loop and worker"),
)

# What has to be awaited although the tool is not async, and the other way round.
_ON_LOOP = {"": None, "worker": True, "worker and back": True, "worker of plain code": False, "loop": False}


def is_on_loop(case: Case) -> bool:
    """Whether the call is awaited."""
    known = _ON_LOOP.get(case.waits, False)
    return "async" in case.work if known is None else known


def figure(case: Case, pace: Pace) -> Figure:
    """Measure one row."""
    with ExitStack() as open_:
        toolkit = open_.enter_context(Toolkit(**case.toolkit))
        toolkit.create_group("sums", active=True)
        toolkit.create_group("few", active=True, max_concurrency=4)
        runner = open_.enter_context(asyncio.Runner())
        on_loop = is_on_loop(case)
        subject = case.run(toolkit, on_loop)
        result = runner.run(subject()) if on_loop else subject()
        first = result[0] if case.many else result
        assert first.status == "success", first
        if case.waits:
            clocks = _hop(case.waits, runner, pace, open_), _clock(subject, on_loop, runner, pace, perf_counter)
        else:
            clocks = _clock(_floor(case, on_loop), on_loop, runner, pace), _clock(subject, on_loop, runner, pace)
        return Figure.of("B14", case.work, alternate(*clocks, pace.rounds).rounds, *case.limits)


def _clock(work: Callable[[], Any], on_loop: bool, runner: asyncio.Runner, pace: Pace, *now: Clock) -> Clock:
    if on_loop:
        return per_await(work, pace.seconds, runner, *now)
    return per_call(work, pace.seconds, *now)


def _floor(case: Case, on_loop: bool) -> Callable[[], Any]:
    """F1 of `add`: read the text, call the function, keep the answer; as many times as calls are made at once."""
    loads, provided = json.loads, ({"a": 2} if '"a"' not in case.text else {})
    text = case.text.replace('"3"', "3")

    def by_hand() -> Small:
        return Small("add", "success", add(**loads(text), **provided))

    async def later() -> Small:
        return Small("add", "success", await add_later(**loads(text), **provided))

    async def together() -> list[Small]:
        return await asyncio.gather(*(later() for _ in range(case.many)))

    if case.many > 1:
        return together
    return later if on_loop else by_hand


def _hop(kind: str, runner: asyncio.Runner, pace: Pace, open_: ExitStack) -> Clock:
    """The bare way to a worker thread or to a loop and back."""
    hop = Hop()
    open_.callback(hop.close)
    if kind == "worker":
        return per_await(hop, pace.seconds, runner, perf_counter)
    if kind == "worker and back":
        return per_await(hop.back, pace.seconds, runner, perf_counter)
    if kind == "worker of plain code":
        return per_call(hop.blocking, pace.seconds, perf_counter)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    open_.callback(thread.join)
    open_.callback(loop.call_soon_threadsafe, loop.stop)

    async def nothing() -> None: ...

    inner = hop if kind == "loop and worker" else nothing
    return per_call(lambda: asyncio.run_coroutine_threadsafe(inner(), loop).result(), pace.seconds, perf_counter)


def _features(pace: Pace) -> Iterator[Figure]:
    for case in CASES:
        yield figure(case, pace)


BENCHMARKS = {"B14": _features}
