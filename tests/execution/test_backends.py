"""Backends of plugins: what they get, what they may say, and how their jobs end."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard import (
    Emitter,
    ExecutionPolicy,
    Injected,
    Job,
    Middleware,
    RegistrationError,
    Secret,
    Status,
    Tool,
    ToolCall,
    Toolkit,
    ToolResult,
    builtin,
    hookimpl,
    tool,
)
from pegboard.inspection import Plugins

Call = Callable[..., ToolResult]


def plain(toolkit: Toolkit, *call: Any, **options: Any) -> ToolResult:
    return toolkit.call_sync(*call, **options)


def looped(toolkit: Toolkit, *call: Any, **options: Any) -> ToolResult:
    return asyncio.run(toolkit.call(*call, **options))


both = pytest.mark.parametrize("call", [plain, looped])


class Spy:
    """A plugin's backend that looks at what it gets."""

    name = "spy"

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.futures: list[Future[Any]] = []
        self.pool = ThreadPoolExecutor(1)

    def submit(self, job: Job) -> Future[Any]:
        self.jobs.append(job)
        self.futures.append(self.pool.submit(job))
        return self.futures[-1]

    def close(self) -> None:
        self.pool.shutdown()


@pytest.fixture
def spy() -> Spy:
    return Spy()


class TestPluginBackend:
    @pytest.fixture
    def toolkit(self, spy: Spy) -> Iterator[Toolkit]:
        class Plugin:
            @hookimpl
            def provide_backends(self) -> list[Any]:
                return [spy]

        with Toolkit(plugins=[Plugin()]) as made:
            yield made

    @both
    def test_gets_a_job_that_it_can_call_or_take_apart(self, toolkit: Toolkit, spy: Spy, call: Call) -> None:
        @tool(backend="spy")
        def work(a: int, account: Injected[SimpleNamespace], emitter: Emitter, *, b: int = 2) -> Iterator[str]:
            """Work."""
            yield f"{a + b} {account.name}"

        toolkit.register(work, presets={"b": 5})
        ada = SimpleNamespace(name="Ada")
        result = call(toolkit, "work", {"a": 1}, policy=ExecutionPolicy(timeout=9), context=ada)
        assert result.text == "6 Ada"
        (job,) = spy.jobs
        (a, account, emitter), keywords = job.arguments()
        assert (a, account.name, keywords) == (1, "Ada", {"b": 5})
        assert isinstance(emitter, Emitter)
        assert job.function is work
        assert (job.timeout, job.call.name, set(job.shown)) == (9, "work", {"a"})
        assert not job.token.cancelled

    @both
    def test_that_takes_too_long_is_a_timeout(self, toolkit: Toolkit, spy: Spy, call: Call) -> None:
        gate = threading.Event()

        @tool(backend="spy")
        def wait() -> None:
            """Wait."""
            gate.wait(20)

        toolkit.register(wait)
        policy = ExecutionPolicy(timeout=0.05, max_attempts=3, initial_backoff=0)
        results = [call(toolkit, "wait", policy=policy)]
        assert (results[0].status, results[0].attempts) == (Status.TIMEOUT, 1)  # it runs on: no second one beside it
        second = call(toolkit, "wait", policy=ExecutionPolicy(timeout=0.05))
        assert (second.status, spy.futures[1].cancelled()) == (Status.TIMEOUT, True)
        gate.set()

    @both
    def test_can_be_stopped(self, toolkit: Toolkit, spy: Spy, call: Call) -> None:
        gate, began = threading.Event(), threading.Event()

        @tool(backend="spy")
        def wait() -> None:
            """Wait."""
            began.set()
            gate.wait(20)

        toolkit.register(wait)
        prepared = toolkit.prepare("wait")
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(call, toolkit, prepared)
            assert began.wait(20)
            prepared.stop()
            assert running.result(20).status is Status.CANCELLED
        gate.set()

    def test_gets_what_another_machine_needs(self, toolkit: Toolkit, spy: Spy) -> None:
        @tool(backend="spy", timeout=9)
        def work(day: date, secret: str = "") -> str:
            """Work."""
            return day.isoformat()

        toolkit.register(work, presets={"secret": Secret("s3cret")})
        heard: list[str] = []
        toolkit.call_sync("work", {"day": "2025-01-02"}, on_chunk=lambda chunk: heard.append(chunk.text))
        (job,) = spy.jobs
        assert (job.tool_id, job.tool.name, job.policy.timeout) == ((None, "work"), "work", 9)
        assert (job.json_arguments, job.typed) == ({"day": "2025-01-02"}, {"day": date(2025, 1, 2)})
        job.emit("far away")
        assert heard == ["far away"]

    def test_may_refuse_a_tool(self, toolkit: Toolkit, spy: Spy) -> None:
        def check(given: Tool) -> None:
            raise RegistrationError(f"{given.name} cannot travel")

        spy.check = check  # type: ignore[attr-defined]
        with pytest.raises(RegistrationError, match="work cannot travel"):
            toolkit.register(tool(backend="spy")(lambda: 1), name="work")

    @both
    def test_may_keep_the_time(self, toolkit: Toolkit, spy: Spy, call: Call) -> None:
        spy.keeps_time = True  # type: ignore[attr-defined]

        @tool(backend="spy")
        def late() -> None:
            """Be late."""
            time.sleep(0.05)
            raise spy.jobs[-1].timed_out()

        toolkit.register(late)
        result = call(toolkit, "late", policy=ExecutionPolicy(timeout=0.01))
        assert (result.status, result.duration >= 0.05) == (Status.TIMEOUT, True)

    def test_that_is_closed_runs_nothing_more(self, toolkit: Toolkit, spy: Spy) -> None:
        toolkit.register(tool(backend="spy")(lambda: 1), name="work")
        assert toolkit.call_sync("work").value == 1
        toolkit.close()
        result = toolkit.call_sync("work")
        assert (result.status, "closed" in result.text, len(spy.jobs)) == (Status.ERROR, True, 1)

    def test_is_closed_though_no_tool_was_called(self, spy: Spy) -> None:
        class Plugin:
            @hookimpl
            def provide_backends(self) -> list[Any]:
                return [spy]

        Toolkit(plugins=[Plugin()]).close()
        with pytest.raises(RuntimeError, match="after shutdown"):
            spy.pool.submit(print)


class TestBuiltIn:
    @pytest.fixture(params=["thread", "inline"])
    def named(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    def test_threads_and_the_caller_are_ordinary_backends(self, named: str) -> None:
        plugins = Plugins.load(selection=(), builtin=builtin.plugins())
        offered = {item.value.name: item.value for item in plugins.contributions("provide_backends")}
        assert sorted(offered) == ["inline", "thread"]
        job: Any = threading.current_thread
        thread = offered[named].submit(job).result(20)
        assert (thread is threading.current_thread()) is (named == "inline")
        with pytest.raises(ZeroDivisionError):
            offered[named].submit(lambda: 1 / 0).result(20)
        for backend in offered.values():
            backend.close()
        assert named == "inline" or not is_alive_after_all(thread)

    @both
    def test_a_pack_overrides_them_by_name(self, spy: Spy, call: Call, named: str) -> None:
        spy.name = named

        class Plugin:
            @hookimpl
            def provide_backends(self) -> list[Any]:
                return [spy]

        def where() -> str:
            return threading.current_thread().name

        def each() -> Iterator[str]:
            yield where()

        with Toolkit(plugins=[Plugin()], approver=lambda request: True) as toolkit:
            assert toolkit.problems == []
            toolkit.register(tool(backend=named)(where), tool(backend=named, requires_approval=True)(each))
            texts = [call(toolkit, name).text for name in ("where", "each")]
            assert all(text.startswith("ThreadPoolExecutor") for text in texts)
            assert [job.call.name for job in spy.jobs] == ["where", "each"]

    @both
    def test_tools_that_name_none_run_in_the_threads_of_the_overriding_pack(self, spy: Spy, call: Call) -> None:
        spy.name = "thread"

        class Plugin:
            @hookimpl
            def provide_backends(self) -> list[Any]:
                return [spy]

        with Toolkit(plugins=[Plugin()]) as toolkit:
            toolkit.register(lambda: threading.current_thread().name, name="where")
            assert call(toolkit, "where").text.startswith("ThreadPoolExecutor")

    @both
    def test_middleware_keeps_to_the_threads_of_the_toolkit(self, spy: Spy, call: Call) -> None:
        spy.name = "thread"
        seen: list[str] = []

        def around(call: ToolCall, proceed: Callable[[], Any]) -> Any:
            seen.append(threading.current_thread().name)
            return proceed()

        class Plugin:
            @hookimpl
            def provide_backends(self) -> list[Any]:
                return [spy]

            @hookimpl
            def provide_middleware(self) -> list[Middleware]:
                return [Middleware(around)]

        with Toolkit(plugins=[Plugin()]) as toolkit:
            toolkit.register(lambda: 1, name="one")
            assert call(toolkit, "one").value == 1
        assert len(spy.jobs) == 1
        assert not seen[0].startswith("ThreadPoolExecutor")


def is_alive_after_all(thread: threading.Thread) -> bool:
    thread.join(20)
    return thread.is_alive()
