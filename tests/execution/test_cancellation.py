"""Cancellation: in whatever state a call is and whatever ends it, it ends once, as cancelled, and nothing runs on."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import pytest

from pegboard import (
    CancelToken,
    ExecutionPolicy,
    Injector,
    Middleware,
    Status,
    ToolCall,
    Toolkit,
    ToolResult,
    hookimpl,
    tool,
)
from tests.support.interpreters import as_calls_run
from tests.support.waiting import PATIENCE, eventually, until, within

pytestmark = pytest.mark.usefixtures("path")


class Resource:
    """What a tool is given by an injector that takes its time."""


class Scene:
    """One toolkit, one tool and one call that will stand in some state."""

    def __init__(self, state: str, driver: str) -> None:
        self.state = state
        self.driver = driver
        self.there = threading.Event()
        self.go = threading.Event()  # ends what cannot be told to stop
        self.open = 0  # coroutines that have not yet cleaned up
        self.ran = 0
        self.policy = ExecutionPolicy(timeout=PATIENCE)
        options: dict[str, Any] = {}
        if state.startswith("approval"):
            options["approver"] = self.wait_later if "async" in state else self.wait
        if state == "queued":
            options["max_threads"] = 1
        self.toolkit = Toolkit(plugins=[Plugin(self)], **options)
        getattr(self, f"_{state.split(maxsplit=1)[0]}")()

    # What tools, approvers and others do: come there and stay --------------------------------------------------

    def wait(self, request: Any = None) -> bool:
        self.there.set()
        return self.go.wait(PATIENCE)

    def wait_for_token(self, token: CancelToken) -> str:
        self.there.set()
        token.wait(PATIENCE)
        return token.reason

    async def wait_later(self, request: Any = None) -> bool:
        self.open += 1
        asyncio.get_running_loop().call_soon(self.there.set)  # once it has suspended
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.001)  # cleaning up takes a while
            self.open -= 1
        return True

    # States ----------------------------------------------------------------------------------------------------

    def register(self, function: Any, **options: Any) -> None:
        self.toolkit.register(tool(**options)(function), name="target")

    def _pending(self) -> None:
        self.register(self._count)
        self.there.set()

    def _count(self) -> None:
        self.ran += 1

    def _approval(self) -> None:
        self.register(self._count, requires_approval=True)

    def _lock(self) -> None:
        holding = threading.Event()

        def hold() -> None:
            holding.set()
            self.go.wait(PATIENCE)

        self.toolkit.register(tool(locks="x")(hold), name="holder")
        self.register(self._count, locks="x")
        threading.Thread(target=self.toolkit.call_sync, args=("holder",), daemon=True).start()
        assert holding.wait(PATIENCE)
        self._when(lambda: self.toolkit.stats["waiting"] == 1)

    def _queued(self) -> None:
        working = threading.Event()

        def work() -> None:
            working.set()
            self.go.wait(PATIENCE)

        self.toolkit.register(tool(timeout=PATIENCE)(work), name="worker")
        self.register(self._count, timeout=PATIENCE)
        threading.Thread(target=self.toolkit.call_sync, args=("worker",), daemon=True).start()
        assert working.wait(PATIENCE)
        self._when(lambda: self.toolkit.stats["waiting"] == 1)

    def _thread(self) -> None:
        def target(token: CancelToken) -> str:
            return self.wait_for_token(token)

        self.register(target, timeout=PATIENCE)

    def _loop(self) -> None:
        async def target() -> None:
            await self.wait_later()

        self.register(target)

    def _backoff(self) -> None:
        def fail() -> None:
            raise ValueError("no")

        self.register(fail)
        self.policy = ExecutionPolicy(max_attempts=3, initial_backoff=PATIENCE, max_backoff=PATIENCE, jitter=False)
        self._when(lambda: self.toolkit.stats["waiting"] == 1)

    def _middleware(self) -> None:
        self.register(self._count)

    def _proceeding(self) -> None:
        self._loop()

    def _generator(self) -> None:
        def target() -> Iterator[str]:
            while not self.go.is_set():
                self.there.set()
                yield "x"
                self.go.wait(0.001)

        self.register(target, timeout=PATIENCE)

    def _draining(self) -> None:
        async def target() -> AsyncIterator[str]:
            yield "x"
            await self.wait_later()

        self.register(target)

    def _injector(self) -> None:
        def target(resource: Resource) -> None:
            self.ran += 1

        self.register(target)

    def _straight(self) -> None:
        self._loop()

    def _when(self, condition: Callable[[], bool]) -> None:
        def watch() -> None:
            if eventually(condition):
                self.there.set()

        threading.Thread(target=watch, daemon=True).start()

    # Running ---------------------------------------------------------------------------------------------------

    def begin(self) -> "Running":
        return Running(self)

    def close(self) -> None:
        self.go.set()
        within(self.toolkit.close)


class Plugin:
    """Middleware and an injector that stay where they are in some states."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    @hookimpl
    def provide_middleware(self) -> list[Middleware]:
        scene = self._scene

        def around(call: Any, proceed: Any) -> Any:
            if scene.state == "middleware":
                scene.wait()
            return proceed()

        async def around_later(call: Any, proceed: Any) -> Any:
            if scene.state == "middleware async":
                await scene.wait_later()
            return await proceed()

        if not scene.state.startswith(("middleware", "proceeding")):
            return []
        return [
            Middleware(around_later if "async" in scene.state else around, applies=lambda tool: tool.name != "other")
        ]

    @hookimpl
    def provide_injectors(self) -> list[Injector]:
        async def resource() -> AsyncIterator[Resource]:
            await self._scene.wait_later()
            yield Resource()

        return [Injector(Resource, resource)]


class Running:
    """The call of a scene on its way, and everything that can end it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.toolkit = scene.toolkit
        self.straight = scene.state == "straight"
        self.call: ToolCall = self.toolkit.prepare("target")
        self.left: list[Any] = []
        self._pool = ThreadPoolExecutor(1)
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.result: Future[Any] = self._pool.submit(self._sync if scene.driver == "sync" else self._async)
        if scene.state != "pending":
            assert scene.there.wait(PATIENCE), "the call never came there"

    def _sync(self) -> Any:
        if self.scene.state == "pending":
            assert self.scene.there.wait(PATIENCE)
            assert self.scene.go.wait(PATIENCE)
        if self.straight:
            return self.toolkit.call_sync("target")
        return self.call.execute_sync(policy=self.scene.policy)

    def _async(self) -> Any:
        async def main() -> Any:
            self._loop = asyncio.get_running_loop()
            if self.scene.state == "pending":
                await until(self.scene.go.is_set)
            run = self.toolkit.call("target") if self.straight else self.call.execute(policy=self.scene.policy)
            self._task = asyncio.create_task(run)
            try:
                return await self._task
            except asyncio.CancelledError as error:
                return error
            finally:
                self.left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

        return asyncio.run(main())

    def cancel_caller(self) -> None:
        assert self._loop is not None
        assert self._task is not None
        self._loop.call_soon_threadsafe(self._task.cancel)


STATES: Final = [
    "pending",
    "approval",
    "approval async",
    "lock",
    "queued",
    "thread",
    "loop",
    "backoff",
    "middleware",
    "middleware async",
    "proceeding",
    "proceeding async",
    "generator",
    "draining",
    "injector",
]
UNTOUCHABLE: Final = {("approval", "sync"), ("middleware", "sync")}
"""What blocks the caller's own thread: that cannot be ended. The call ends as cancelled when it comes back."""


@pytest.fixture
def scene(state: str, driver: str) -> Iterator[Scene]:
    made = Scene(state, driver)
    yield made
    made.close()


in_every_state = pytest.mark.parametrize("state", STATES)
with_both = pytest.mark.parametrize("driver", ["sync", "async"])


def check(scene: Scene, running: Running, result: Any) -> None:
    """It ended once, and nothing is left."""
    assert isinstance(result, ToolResult)
    assert result.status is Status.CANCELLED, result
    assert running.call.result is result
    assert running.call.status is Status.CANCELLED
    assert running.left == []
    assert scene.open == 0
    assert scene.ran == 0
    scene.go.set()
    assert eventually(lambda: scene.toolkit.stats["running"] == scene.toolkit.stats["waiting"] == 0)
    assert eventually(lambda: scene.toolkit.stats["abandoned_threads"] == 0)
    assert scene.toolkit.stats["tools"]["target"]["statuses"] == {"cancelled": 1}
    assert scene.ran == 0
    assert not scene.toolkit._core.engine.live
    again = running.call.execute_sync()
    assert again is result


@in_every_state
@with_both
class TestStop:
    def test_ends_the_call(self, scene: Scene, state: str, driver: str) -> None:
        running = scene.begin()
        running.call.stop()
        if state == "pending" or (state, driver) in UNTOUCHABLE:
            scene.go.set()
        check(scene, running, running.result.result(PATIENCE))

    def test_twice(self, scene: Scene, state: str, driver: str) -> None:
        running = scene.begin()
        for _ in range(3):
            running.call.stop()
        if state == "pending" or (state, driver) in UNTOUCHABLE:
            scene.go.set()
        check(scene, running, running.result.result(PATIENCE))
        running.call.stop()


@pytest.mark.parametrize("state", STATES[1:])
@with_both
class TestClose:
    def test_ends_the_call(self, scene: Scene, state: str, driver: str) -> None:
        running = scene.begin()
        with ThreadPoolExecutor(1) as pool:
            closing = pool.submit(scene.toolkit.close)
            if (state, driver) not in UNTOUCHABLE:
                running.result.result(PATIENCE)
            scene.go.set()
            within(closing.result)
        check(scene, running, running.result.result(PATIENCE))


@pytest.mark.parametrize("state", STATES[1:])
@pytest.mark.parametrize("driver", ["async"])
class TestCallerCancelled:
    def test_ends_the_call(self, scene: Scene, state: str, driver: str) -> None:
        running = scene.begin()
        running.cancel_caller()
        assert isinstance(running.result.result(PATIENCE), asyncio.CancelledError)
        check(scene, running, running.call.result)


@pytest.mark.parametrize("sync", [True, False])
def test_nothing_begins_after_a_call_was_stopped_in_middleware(sync: bool) -> None:
    there, go, ended = threading.Event(), threading.Event(), threading.Event()
    ran: list[str] = []

    class Layers:
        @hookimpl
        def provide_middleware(self) -> list[Middleware]:
            def outer(call: Any, proceed: Any) -> Any:
                there.set()
                go.wait(PATIENCE)
                try:
                    return proceed()
                finally:
                    ended.set()

            async def inner(call: Any, proceed: Any) -> Any:
                ran.append("middleware")
                return await proceed()

            return [Middleware(outer, order=1), Middleware(inner, order=2)][: 1 if sync else 2]

    with Toolkit(plugins=[Layers()]) as toolkit:
        toolkit.register(lambda: ran.append("tool"), name="target")
        call = toolkit.prepare("target")

        def stop() -> None:
            assert there.wait(PATIENCE)
            call.stop()
            if sync:
                go.set()

        async def main() -> ToolResult:
            result = await call.execute()
            go.set()
            await until(ended.is_set)  # the thread goes on, and this loop is still there
            return result

        stopping = threading.Thread(target=stop)
        stopping.start()
        result = within(call.execute_sync if sync else lambda: asyncio.run(main()))
        stopping.join()
    assert result.status is Status.CANCELLED
    assert ran == []


class TestDeadline:
    @pytest.mark.parametrize("state", ["thread", "loop", "proceeding", "proceeding async", "generator", "draining"])
    @with_both
    def test_ends_what_runs(self, scene: Scene, state: str, driver: str) -> None:
        scene.policy = ExecutionPolicy(timeout=0.1)
        running = scene.begin()
        result = running.result.result(PATIENCE)
        assert result.status is Status.TIMEOUT, result
        assert running.call.result is result
        assert (running.left, scene.open) == ([], 0)
        scene.go.set()
        assert eventually(lambda: scene.toolkit.stats["abandoned_threads"] == 0)
        assert scene.toolkit.stats["tools"]["target"]["statuses"] == {"timeout": 1}

    @pytest.mark.parametrize("state", ["approval", "approval async", "lock", "queued"])
    @with_both
    def test_is_not_for_what_waits(self, scene: Scene, state: str, driver: str) -> None:
        scene.policy = ExecutionPolicy(timeout=0.01)
        running = scene.begin()
        assert not eventually(running.result.done, 0.1)
        running.call.stop()
        scene.go.set()
        assert running.result.result(PATIENCE).status is Status.CANCELLED


class TestStraightCalls:
    """Calls without a `ToolCall`: they cannot be stopped, but their callers can be cancelled and toolkits closed."""

    @pytest.mark.parametrize("state", ["straight"])
    @with_both
    def test_close(self, scene: Scene, driver: str) -> None:
        running = scene.begin()
        within(scene.toolkit.close)
        assert running.result.result(PATIENCE).status is Status.CANCELLED
        assert (running.left, scene.open) == ([], 0)

    @pytest.mark.parametrize("state", ["straight"])
    @pytest.mark.parametrize("driver", ["async"])
    def test_the_caller(self, scene: Scene, driver: str) -> None:
        running = scene.begin()
        running.cancel_caller()
        assert isinstance(running.result.result(PATIENCE), asyncio.CancelledError)
        assert (running.left, scene.open) == ([], 0)
        assert scene.toolkit.stats["tools"]["target"]["statuses"] == {"cancelled": 1}

    def test_close_leaves_no_mark_on_the_caller(self) -> None:
        toolkit = Toolkit(plugins=())
        begun = threading.Event()

        async def wait() -> None:
            begun.set()
            await asyncio.Event().wait()

        def block() -> None:
            begun.set()
            threading.Event().wait(0.2)

        toolkit.register(wait, block)

        async def main() -> list[Any]:
            seen: list[Any] = []
            for name in ("wait", "block"):
                with Toolkit(plugins=()) as toolkit:
                    toolkit.register(wait, block)
                    begun.clear()
                    threading.Thread(target=lambda toolkit=toolkit: begun.wait(PATIENCE) and toolkit.close()).start()
                    seen.append((await toolkit.call(name)).status)
                    await asyncio.sleep(0.01)
                    task = asyncio.current_task()
                    assert task is not None
                    seen.append(task.cancelling())
            return seen

        assert within(lambda: asyncio.run(main())) == [Status.CANCELLED, 0, Status.CANCELLED, 0]


CTRL_C: Final = """
import asyncio, os, signal, threading
from pegboard import Toolkit, tool
toolkit = Toolkit(plugins=())
begun, ended = [], []
async def wait() -> None:
    begun.append(1)
    if len(begun) == 3:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0.05)
        ended.append(1)
toolkit.register(wait)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", len(ended), toolkit.stats["running"])
toolkit.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal to itself")
@pytest.mark.parametrize(
    "call", ["toolkit.call_many_sync([('wait', {})] * 3)", "asyncio.run(toolkit.call_many([('wait', {})] * 3))"]
)
def test_ctrl_c_leaves_after_the_tools_have_cleaned_up(path: str, call: str) -> None:
    assert signal.SIGINT
    script = as_calls_run(path) + CTRL_C.replace("{call}", call)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("interrupted 3 0", "", 0)


class TestSwallowed:
    """A tool that swallows the caller's cancellation does not hold the caller."""

    @pytest.mark.parametrize("options", [{}, {"exclusive": True}], ids=["straight", "steps"])
    @pytest.mark.parametrize("answer", ["returns", "raises"])
    @pytest.mark.parametrize("way", ["call", "batch"])
    def test_the_caller_leaves(self, options: dict[str, Any], answer: str, way: str) -> None:
        begun: list[str] = []
        started = asyncio.Event()

        @tool(**options)
        async def stubborn() -> str:
            """Survive."""
            begun.append("stubborn")
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if answer == "raises":
                    raise LookupError("no") from None
            return "survived"

        @tool
        async def after() -> None:
            """Never begin."""
            begun.append("after")

        async def leave(toolkit: Toolkit) -> None:
            work: Any = (
                toolkit.call("stubborn") if way == "call" else toolkit.call_many([("stubborn", {}), ("after", {})])
            )
            task = asyncio.ensure_future(work)
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        async def check() -> None:
            async with Toolkit(plugins=(), parallel=False) as toolkit:
                toolkit.register(stubborn, after)
                await leave(toolkit)
                assert begun == ["stubborn"]
                assert toolkit.stats["tools"]["stubborn"]["calls"] == 1
                assert toolkit.stats["running"] == 0

        within(lambda: asyncio.run(check()))


@pytest.mark.parametrize("options", [{}, {"locks": "x"}], ids=["alone", "locked"])
def test_a_cancellation_that_meets_the_outcome_is_not_lost(options: dict[str, Any]) -> None:
    """A task that was told to cancel ends as cancelled, though the thread has just answered; and is woken once."""
    answered = threading.Event()

    @tool(**options)
    def work() -> None:
        """Answer at once."""
        answered.set()

    async def check() -> None:
        async with Toolkit(plugins=()) as toolkit:
            toolkit.register(work)
            for n in range(100):
                answered.clear()
                task = asyncio.ensure_future(toolkit.call("work"))
                await asyncio.sleep(0)
                if n % 2:
                    assert answered.wait(PATIENCE)
                asked = task.cancel()
                await asyncio.wait([task])
                assert asked
                assert task.cancelled()
            assert (await toolkit.call("work")).status is Status.SUCCESS

    within(lambda: asyncio.run(check()))
