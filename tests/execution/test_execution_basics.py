"""Execution: deadlines, retries, locks, approval, external tools, threads and what is left of them."""

import asyncio
import contextvars
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pegboard import (
    Approval,
    ApprovalRequest,
    CancelToken,
    Chunk,
    Emitter,
    ExecutionPolicy,
    Middleware,
    PegboardError,
    SettingsError,
    Status,
    Suspend,
    Tool,
    ToolCall,
    Toolkit,
    ToolResult,
    hookimpl,
    tool,
)

PATIENCE = 10.0
SHORT = 0.03
QUICK = {"initial_backoff": 0.001, "max_backoff": 0.002}


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        yield made


def both(toolkit: Toolkit, name: str, sent: Any = None, **options: Any) -> Iterator[ToolResult]:
    """The results from plain code and from a loop."""
    yield toolkit.call_sync(name, sent, **options)
    yield asyncio.run(toolkit.call(name, sent, **options))


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def noting(seen: list[Any], answer: Any, of: Callable[[Any], Any] = lambda given: given) -> Callable[..., Any]:
    """A function that remembers what it was given, and answers the same to everybody."""

    def note(given: Any = None) -> Any:
        seen.append(of(given))
        return answer() if callable(answer) else answer

    return note


class TestTimeout:
    def test_of_an_async_tool(self, toolkit: Toolkit) -> None:
        cleaned: list[int] = []

        @tool(timeout=SHORT)
        async def wait() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cleaned.append(1)

        toolkit.register(wait)
        for result in both(toolkit, "wait"):
            assert result.status is Status.TIMEOUT
            assert result.text == f"Error: timed out after {SHORT:g} s"
            assert result.error is not None
            assert result.error.kind == "timeout"
            assert SHORT <= result.duration < 2
        assert cleaned == [1, 1]
        assert toolkit.stats["abandoned_threads"] == 0

    def test_of_a_sync_tool_leaves_its_thread(self, toolkit: Toolkit) -> None:
        go = threading.Event()
        toolkit.register(tool(timeout=SHORT)(lambda: go.wait(PATIENCE)), name="wait")
        for count, result in enumerate(both(toolkit, "wait"), start=1):
            assert result.status is Status.TIMEOUT
            assert toolkit.stats["abandoned_threads"] == count
        go.set()
        wait_for(lambda: toolkit.stats["abandoned_threads"] == 0)

    def test_an_abandoned_thread_can_hear_of_it(self, toolkit: Toolkit) -> None:
        told: list[str] = []

        @tool(timeout=SHORT)
        def poll(token: CancelToken) -> None:
            token.wait(PATIENCE)
            told.append(token.reason)

        toolkit.register(poll)

        async def main() -> int:
            result = await toolkit.call("poll")
            assert result.status is Status.TIMEOUT
            await asyncio.sleep(0.01)  # nothing may strike the caller afterwards
            task = asyncio.current_task()
            assert task is not None
            return task.cancelling()

        assert toolkit.call_sync("poll").status is Status.TIMEOUT
        assert asyncio.run(main()) == 0
        wait_for(lambda: len(told) == 2)
        assert told == ["timed out", "timed out"]

    def test_of_generators(self, toolkit: Toolkit) -> None:
        def slow() -> Iterator[str]:
            yield "a"
            time.sleep(4 * SHORT)
            yield "b"

        async def slow_later() -> Any:
            yield "a"
            await asyncio.Event().wait()

        toolkit.register(slow, slow_later)
        for name in ("slow", "slow_later"):
            for result in both(toolkit, name, policy=ExecutionPolicy(timeout=SHORT)):
                assert result.status is Status.TIMEOUT

    def test_the_default_does_not_move_a_sync_tool(self, toolkit: Toolkit) -> None:
        def where() -> int:
            return threading.get_ident()

        toolkit.register(where)
        here = threading.get_ident()
        assert toolkit.call_sync("where").value == here
        assert toolkit.call_sync("where", policy=ExecutionPolicy(max_attempts=2)).value == here
        assert toolkit.call_sync("where", policy=ExecutionPolicy(timeout=5)).value != here

    def test_one_that_a_tool_raises_itself_is_an_error(self, toolkit: Toolkit) -> None:
        async def raises() -> None:
            raise TimeoutError("the server is slow")

        toolkit.register(raises)
        for result in both(toolkit, "raises"):
            assert (result.status, result.text) == (Status.ERROR, "Error: the server is slow")

    def test_queueing_does_not_count(self) -> None:
        ran: list[int] = []

        @tool(timeout=0.3)
        def work(n: int) -> int:
            time.sleep(0.12)
            ran.append(n)
            return n

        with Toolkit(plugins=(), max_threads=1) as toolkit:
            toolkit.register(work)
            results = toolkit.call_many_sync([("work", {"n": n}) for n in range(5)])  # 0.6 s one after the other
            assert [result.status for result in results] == [Status.SUCCESS] * 5
            assert sorted(ran) == [0, 1, 2, 3, 4]
            with ThreadPoolExecutor(5) as pool:
                plain = [pool.submit(toolkit.call_sync, "work", {"n": n}) for n in range(5)]
                assert {future.result(PATIENCE).status for future in plain} == {Status.SUCCESS}

    def test_hung_tools_starve_nobody(self) -> None:
        go = threading.Event()
        with Toolkit(plugins=(), max_threads=4) as toolkit:
            toolkit.register(tool(timeout=SHORT)(lambda: go.wait(PATIENCE)), name="hang")
            toolkit.register(lambda: "here", name="echo")

            async def main() -> ToolResult:
                await toolkit.call_many(["hang"] * 20)
                return await asyncio.wait_for(toolkit.call("echo"), 2)

            assert asyncio.run(main()).value == "here"
            assert toolkit.stats["abandoned_threads"] == 20
            go.set()
            wait_for(lambda: toolkit.stats["abandoned_threads"] == 0)

    def test_abandoned_threads_are_capped(self) -> None:
        from pegboard._execution.threads import WorkerPool

        go = threading.Event()
        pool = WorkerPool(2, max_abandoned=3)
        for _ in range(3):
            begun: list[Any] = []
            ticket = pool.submit(noting(begun, lambda: go.wait(PATIENCE)), lambda outcome: None)
            wait_for(begun.copy)
            assert pool.abandon(ticket)
        with pytest.raises(RuntimeError, match="3 threads hang"):
            pool.submit(lambda: None, lambda outcome: None)
        go.set()
        wait_for(lambda: pool.abandoned == 0)
        pool.submit(lambda: None, lambda outcome: None)
        pool.close()


class Flaky:
    """Fails some times, then works."""

    def __init__(self, failures: int, error: BaseException | None = None) -> None:
        self.ran = 0
        self.failures = failures
        self.error = error or ValueError("not yet")

    def __call__(self) -> int:
        self.ran += 1
        if self.ran <= self.failures:
            raise self.error
        return self.ran


class TestRetries:
    def test_until_it_works(self, toolkit: Toolkit) -> None:
        for kind in ("sync", "async"):
            flaky = Flaky(2)
            toolkit.register(_as(kind, flaky), name=kind)
            result = toolkit.call_sync(kind, policy=ExecutionPolicy(max_attempts=5, **QUICK))
            assert (result.value, result.attempts, flaky.ran) == (3, 3, 3)

    def test_until_the_attempts_are_used_up(self, toolkit: Toolkit) -> None:
        flaky = Flaky(9)
        toolkit.register(flaky, name="flaky", description="Fail.")
        for result in both(toolkit, "flaky", policy=ExecutionPolicy(max_attempts=3, **QUICK)):
            assert (result.status, result.attempts) == (Status.ERROR, 3)
        assert flaky.ran == 6

    @pytest.mark.parametrize(
        ("hints", "own", "ran"),
        [
            ({}, False, 3),
            ({"idempotent": True}, False, 3),
            ({"idempotent": False}, False, 1),
            ({"destructive": True}, False, 1),
            ({"idempotent": False, "destructive": True}, True, 3),
        ],
    )
    def test_hints_decide(self, toolkit: Toolkit, hints: dict[str, Any], own: bool, ran: int) -> None:
        flaky = Flaky(9)
        policy = ExecutionPolicy(max_attempts=3, **QUICK)
        toolkit.register(tool(policy=policy if own else None, **hints)(_as("sync", flaky)), name="flaky")
        toolkit.call_sync("flaky", policy=None if own else policy)
        assert flaky.ran == ran

    @pytest.mark.parametrize(
        ("error", "ran"),
        [
            (ConnectionError("x"), 3),
            (ValueError("x"), 1),
            (Suspend("x"), 1),
            (SystemExit(1), 1),
            (KeyboardInterrupt(), 1),
        ],
    )
    def test_retry_on(self, toolkit: Toolkit, error: BaseException, ran: int) -> None:
        flaky = Flaky(9, error)
        toolkit.register(flaky, name="flaky", description="Fail.")
        toolkit.call_sync("flaky", policy=ExecutionPolicy(max_attempts=3, retry_on=(ConnectionError,), **QUICK))
        assert flaky.ran == ran

    def test_bad_calls_are_never_retried(self, toolkit: Toolkit) -> None:
        asked: list[Any] = []
        toolkit = Toolkit(plugins=(), approver=noting(asked, False))
        toolkit.register(tool(requires_approval=True)(lambda: 1), name="asks")
        policy = ExecutionPolicy(max_attempts=3, **QUICK)
        assert toolkit.call_sync("asks", policy=policy).status is Status.DENIED
        assert len(asked) == 1
        assert toolkit.call_sync("asks", {"x": 1}, policy=policy).status is Status.INVALID

    def test_timeouts_are_retried(self, toolkit: Toolkit) -> None:
        ran: list[int] = []

        async def slow() -> str:
            ran.append(1)
            if len(ran) < 3:
                await asyncio.Event().wait()
            return "done"

        toolkit.register(slow)
        policy = ExecutionPolicy(timeout=SHORT, max_attempts=3, retry_on=(ConnectionError,), **QUICK)
        result = toolkit.call_sync("slow", policy=policy)
        assert (result.value, result.attempts) == ("done", 3)

    @pytest.mark.parametrize(("idempotent", "ran"), [(None, 1), (False, 1), (True, 2)])
    def test_an_abandoned_thread_only_if_that_is_harmless(
        self, toolkit: Toolkit, idempotent: bool | None, ran: int
    ) -> None:
        go = threading.Event()
        begun: list[Any] = []

        @tool(idempotent=idempotent)
        def wait() -> bool:
            begun.append(1)
            return go.wait(PATIENCE)

        toolkit.register(wait)
        result = toolkit.call_sync("wait", policy=ExecutionPolicy(timeout=SHORT, max_attempts=2, **QUICK))
        assert result.status is Status.TIMEOUT
        assert len(begun) == result.attempts == ran
        go.set()

    def test_backoff_grows_to_its_limit(self) -> None:
        policy = ExecutionPolicy(initial_backoff=1, backoff_multiplier=3, max_backoff=10)
        assert [policy.backoff(n) for n in (1, 2, 3, 4, 10_000)] == [1, 3, 9, 10, 10]

    def test_backoff_is_waited_for_with_jitter(self, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[tuple[float, float]] = []

        def uniform(low: float, high: float) -> float:
            asked.append((low, high))
            return 0.0

        monkeypatch.setattr(random, "uniform", uniform)
        toolkit.register(Flaky(9), name="flaky", description="Fail.")
        policy = ExecutionPolicy(max_attempts=3, initial_backoff=50, max_backoff=80)
        started = time.perf_counter()
        toolkit.call_sync("flaky", policy=policy)
        assert asked == [(0, 50), (0, 80)]
        assert time.perf_counter() - started < 5
        steady = ExecutionPolicy(max_attempts=2, initial_backoff=0.05, jitter=False)
        assert toolkit.call_sync("flaky", policy=steady).duration >= 0.05
        assert len(asked) == 2


def _as(kind: str, function: Callable[[], Any]) -> Callable[..., Any]:
    async def later() -> Any:
        await asyncio.sleep(0)
        return function()

    return later if kind == "async" else (lambda: function())  # noqa: PLW0108 - an object would bring its own signature


class TestPolicy:
    def test_call_beats_tool_beats_session_beats_toolkit(self) -> None:
        flaky = Flaky(99)
        toolkit = Toolkit(plugins=(), policy=ExecutionPolicy(max_attempts=2, **QUICK))
        toolkit.register(tool(policy=ExecutionPolicy(max_attempts=4))(_as("sync", flaky)), name="own")
        toolkit.register(_as("sync", flaky), name="bare")
        session = toolkit.session(policy=ExecutionPolicy(max_attempts=3))
        assert toolkit.call_sync("bare").attempts == 2
        assert session.call_sync("bare").attempts == 3
        assert session.call_sync("own").attempts == 4
        assert session.call_sync("own", policy=ExecutionPolicy(max_attempts=5)).attempts == 5

    def test_merges_field_by_field(self) -> None:
        call, wide = ExecutionPolicy(timeout=1), ExecutionPolicy(timeout=9, max_attempts=3)
        merged = call.merged_over(wide)
        assert (merged.timeout, merged.max_attempts, merged.max_backoff) == (1, 3, 30.0)
        assert wide.timeout == 9

    def test_a_given_default_is_given(self) -> None:
        assert ExecutionPolicy(max_attempts=1).merged_over(ExecutionPolicy(max_attempts=5)).max_attempts == 1

    def test_timeout_beats_policy_of_the_same_tool(self, toolkit: Toolkit) -> None:
        @tool(timeout=SHORT, policy=ExecutionPolicy(timeout=60))
        async def wait() -> None:
            await asyncio.Event().wait()

        toolkit.register(wait)
        assert toolkit.call_sync("wait").status is Status.TIMEOUT

    @pytest.mark.parametrize(
        "options",
        [{"timeout": 0}, {"timeout": -1}, {"timeout": "1"}, {"max_attempts": 0}, {"backoff_multiplier": 0.5},
         {"initial_backoff": float("nan")}, {"max_backoff": True}, {"retry_on": (1,)}],
    )  # fmt: skip
    def test_what_cannot_be_meant_is_refused(self, options: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=next(iter(options))):
            ExecutionPolicy(**options)

    def test_retry_on_takes_one_class_or_a_list(self) -> None:
        assert ExecutionPolicy(retry_on=OSError).retry_on == (OSError,)
        assert hash(ExecutionPolicy(retry_on=[OSError])) == hash(ExecutionPolicy(retry_on=(OSError,)))

    def test_no_limit_at_all(self, toolkit: Toolkit) -> None:
        toolkit.register(lambda: 1, name="one")
        for timeout in (None, float("inf"), 1e12):
            for result in both(toolkit, "one", policy=ExecutionPolicy(timeout=timeout)):
                assert result.value == 1


class Overlap:
    """Counts how many are inside at once."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self._lock = threading.Lock()

    def enter(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def leave(self) -> None:
        with self._lock:
            self.inside -= 1

    def sync(self) -> None:
        self.enter()
        time.sleep(0.003)
        self.leave()

    async def later(self) -> None:
        self.enter()
        await asyncio.sleep(0.003)
        self.leave()


class TestLocks:
    def test_exclusive(self, toolkit: Toolkit) -> None:
        for kind in ("sync", "later"):
            overlap = Overlap()
            toolkit.register(tool(exclusive=True)(_method(overlap, kind)), name=kind)
            asyncio.run(toolkit.call_many([kind] * 6))
            toolkit.call_many_sync([kind] * 6)
            assert overlap.most == 1

    def test_named_locks_are_shared(self, toolkit: Toolkit) -> None:
        overlap = Overlap()
        toolkit.register(tool(locks="db")(_method(overlap, "sync")), name="a")
        toolkit.register(tool(locks=["db", "file"])(_method(overlap, "later")), name="b")
        toolkit.register(tool(locks=["file", "db"])(_method(overlap, "later")), name="c")

        def plain() -> None:
            for name in ("a", "b", "c"):
                toolkit.call_sync(name)

        def in_loop() -> None:
            asyncio.run(toolkit.call_many(["a", "b", "c"] * 3))

        with ThreadPoolExecutor(3) as pool:
            futures: list[Future[Any]] = [pool.submit(plain), pool.submit(in_loop)]
            for future in futures:
                future.result(PATIENCE)
        assert overlap.most == 1

    def test_others_overlap(self, toolkit: Toolkit) -> None:
        overlap = Overlap()
        toolkit.register(_method(overlap, "later"), name="free")
        asyncio.run(toolkit.call_many(["free"] * 6))
        assert overlap.most == 6

    def test_a_tool_keeps_its_locks_when_it_calls_another(self, toolkit: Toolkit) -> None:
        @tool(locks="db")
        def inner() -> str:
            return "in"

        @tool(locks="db")
        async def outer() -> str:
            return (await toolkit.call("inner")).text + toolkit.call_sync("inner").text

        toolkit.register(inner, outer)
        for result in both(toolkit, "outer"):
            assert result.value == "inin"

    def test_a_cancelled_waiter_does_not_open_the_lock(self, toolkit: Toolkit) -> None:
        overlap = Overlap()
        go = asyncio.Event()

        @tool(exclusive=True)
        async def hold() -> None:
            overlap.enter()
            await go.wait()
            overlap.leave()

        toolkit.register(hold)

        async def main() -> None:
            tasks = [asyncio.create_task(toolkit.call("hold")) for _ in range(4)]
            await asyncio.sleep(0.01)
            tasks[1].cancel()
            tasks[2].cancel()
            await asyncio.sleep(0.01)
            assert overlap.most == 1
            go.set()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert [isinstance(each, ToolResult) for each in results] == [True, False, False, True]
            assert overlap.most == 1
            assert (await toolkit.call("hold")).status is Status.SUCCESS

        asyncio.run(main())

    def test_a_blocked_loop_is_an_error_not_a_deadlock(self, toolkit: Toolkit) -> None:
        @tool(exclusive=True)
        async def hold() -> str:
            await asyncio.sleep(0.01)
            return "held"

        toolkit.register(hold)

        async def main() -> tuple[ToolResult, ToolResult]:
            running = asyncio.create_task(toolkit.call("hold"))
            await asyncio.sleep(0)
            return toolkit.call_sync("hold"), await running

        blocking, held = _in_time(lambda: asyncio.run(main()))
        assert blocking.status is Status.ERROR
        assert "await toolkit.call" in blocking.text
        assert held.value == "held"

    def test_a_failing_tool_gives_them_back(self, toolkit: Toolkit) -> None:
        @tool(exclusive=True, timeout=SHORT)
        async def fail(how: str) -> str:
            if how == "raise":
                raise SystemExit(1)
            if how == "hang":
                await asyncio.Event().wait()
            return how

        toolkit.register(fail)
        for how in ("raise", "hang", "fine"):
            for result in both(toolkit, "fail", {"how": how}):
                assert result.is_error is (how != "fine")


def _method(overlap: Overlap, kind: str) -> Callable[..., Any]:
    async def later() -> None:
        await overlap.later()

    def sync() -> None:
        overlap.sync()

    return later if kind == "later" else sync


def _in_time(work: Callable[[], Any]) -> Any:
    box: list[Any] = []
    thread = threading.Thread(target=lambda: box.append(work()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "deadlock"
    return box[0]


class TestApproval:
    def make(self, approver: Any = None, **options: Any) -> tuple[Toolkit, list[Any]]:
        ran: list[Any] = []

        @tool(requires_approval=options.pop("requires_approval", True))
        def delete(path: str, deep: bool = False) -> str:
            ran.append((path, deep))
            return path

        toolkit = Toolkit(plugins=(), approver=approver, **options)
        toolkit.register(delete)
        return toolkit, ran

    @pytest.mark.parametrize("asynchronous", [False, True])
    @pytest.mark.parametrize(
        ("answer", "status"),
        [
            (True, Status.SUCCESS),
            (Approval.approve(), Status.SUCCESS),
            (False, Status.DENIED),
            (Approval.deny("too risky"), Status.DENIED),
            (None, Status.DENIED),
            ("yes", Status.DENIED),
            (1, Status.DENIED),
        ],
    )
    def test_answers(self, answer: Any, status: Status, asynchronous: bool) -> None:
        async def later(request: ApprovalRequest) -> Any:
            await asyncio.sleep(0)
            return answer

        toolkit, ran = self.make(later if asynchronous else lambda request: answer)
        for result in both(toolkit, "delete", {"path": "/a"}):
            assert result.status is status
            if isinstance(answer, Approval) and answer.reason:
                assert "too risky" in result.text
        assert len(ran) == (2 if status is Status.SUCCESS else 0)
        toolkit.close()

    def test_the_request(self) -> None:
        seen: list[ApprovalRequest] = []
        toolkit, _ = self.make(noting(seen, True))
        toolkit.call_sync("delete", '{"path": "/a"}', call_id="c1")
        (request,) = seen
        assert (request.tool.name, request.call_id, request.arguments) == ("delete", "c1", {"path": "/a"})
        assert "prompt" in request.reason

    def test_edit_runs_with_the_edited_arguments(self) -> None:
        toolkit, ran = self.make(lambda request: Approval.edit({"path": "/b", "deep": True}))
        call = toolkit.prepare("delete", {"path": "/a"})
        result = call.execute_sync()
        assert ran == [("/b", True)]
        assert result.value == "/b"
        assert call.arguments == {"path": "/b", "deep": True}
        assert any("edited" in note for note in result.notes)

    def test_an_edit_is_checked_like_any_call(self) -> None:
        toolkit, ran = self.make(lambda request: Approval.edit({"path": "/b", "deeep": True}))
        result = toolkit.call_sync("delete", {"path": "/a"})
        assert result.status is Status.INVALID
        assert "deeep" in result.text
        assert ran == []

    def test_what_an_approver_does_to_the_request_changes_nothing(self) -> None:
        def tamper(request: Any) -> bool:
            request.arguments["path"] = "/etc"
            return True

        toolkit, ran = self.make(tamper)
        toolkit.call_sync("delete", {"path": "/a"})
        assert ran == [("/a", False)]

    def test_nobody_to_ask(self) -> None:
        toolkit, ran = self.make()
        result = toolkit.call_sync("delete", {"path": "/a"})
        assert result.status is Status.DENIED
        assert "approver=" in result.text
        assert "set_permission('delete', \"always\")" in result.text
        assert ran == []

    def test_an_approver_that_fails(self) -> None:
        def fail(request: Any) -> bool:
            raise SystemExit("no terminal")

        toolkit, ran = self.make(fail)
        for result in both(toolkit, "delete", {"path": "/a"}):
            assert result.status is Status.DENIED
            assert "no terminal" in result.text
            assert result.error is not None
            assert isinstance(result.error.exception, SystemExit)
        assert ran == []
        toolkit.close()

    def test_a_predicate(self) -> None:
        asked: list[str] = []
        toolkit, ran = self.make(
            noting(asked, False, lambda request: request.reason),
            requires_approval=lambda arguments: (
                "outside of /tmp" if not arguments["path"].startswith("/tmp") else False
            ),
        )
        assert toolkit.call_sync("delete", {"path": "/tmp/a"}).status is Status.SUCCESS
        assert toolkit.call_sync("delete", {"path": "/etc"}).status is Status.DENIED
        assert asked == ["outside of /tmp"]
        assert ran == [("/tmp/a", False)]

    @pytest.mark.parametrize("error", [KeyError("x"), SystemExit(1)])
    def test_a_predicate_that_fails_lets_nothing_through(self, error: BaseException) -> None:
        def predicate(arguments: Any) -> bool:
            raise error

        toolkit, ran = self.make(requires_approval=predicate)
        assert toolkit.call_sync("delete", {"path": "/a"}).status is Status.DENIED
        assert ran == []

    def test_bad_arguments_are_not_asked_about(self) -> None:
        asked: list[Any] = []
        toolkit, _ = self.make(asked.append)
        assert toolkit.call_sync("delete", {}).status is Status.INVALID
        assert asked == []

    def test_a_session_has_its_own(self) -> None:
        toolkit, ran = self.make(lambda request: False)
        session = toolkit.session(approver=lambda request: True)
        assert session.call_sync("delete", {"path": "/a"}).status is Status.SUCCESS
        assert toolkit.call_sync("delete", {"path": "/b"}).status is Status.DENIED
        assert ran == [("/a", False)]

    def test_time_for_thinking_is_not_the_tools(self) -> None:
        async def slowly(request: Any) -> bool:
            await asyncio.sleep(3 * SHORT)
            return True

        toolkit, _ = self.make(slowly)
        for result in both(toolkit, "delete", {"path": "/a"}, policy=ExecutionPolicy(timeout=SHORT)):
            assert result.status is Status.SUCCESS
            assert result.duration < 3 * SHORT
        toolkit.close()


class TestPermissions:
    def make(self, **options: Any) -> Toolkit:
        toolkit = Toolkit(plugins=(), **options)
        toolkit.register(lambda: 1, name="free")
        toolkit.register(tool(requires_approval=True)(lambda: 2), name="asks")
        return toolkit

    def test_defaults(self) -> None:
        assert self.make().permissions == {"asks": "prompt", "free": "always"}

    def test_each(self) -> None:
        toolkit = self.make()
        toolkit.set_permission("asks", "always")
        assert toolkit.call_sync("asks").value == 2
        toolkit.set_permission("free", "prompt")
        assert toolkit.call_sync("free").status is Status.DENIED
        toolkit.set_permission("free", "never")
        call = toolkit.prepare("free")
        assert call.status is Status.DENIED
        assert "not permitted" in toolkit.call_sync("free").text
        assert "free" in [each.name for each in toolkit.tools]

    def test_what_does_not_exist(self) -> None:
        with pytest.raises(PegboardError, match="free"):
            self.make().set_permission("fre", "never")
        with pytest.raises(ValueError, match="sometimes"):
            self.make().set_permission("free", "sometimes")

    def test_are_kept_in_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        first = self.make(permissions=path)
        first.set_permission("free", "never")
        first.set_permission("asks", "always")
        assert json.loads(path.read_text()) == {"asks": "always", "free": "never"}
        second = self.make(permissions=str(path))
        assert second.permissions == {"asks": "always", "free": "never"}
        assert second.call_sync("free").status is Status.DENIED
        assert [each.name for each in tmp_path.iterdir()] == ["permissions.json"]

    @pytest.mark.parametrize("text", ["{", "[]", '{"free": "sometimes"}', '{"free": 1}', "\xff"])
    def test_a_file_that_cannot_be_read_is_named(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "permissions.json"
        path.write_text(text, encoding="latin-1")
        with pytest.raises(SettingsError, match=r"permissions\.json"):
            self.make(permissions=path)

    def test_of_a_session_do_not_leak(self) -> None:
        toolkit = self.make()
        session = toolkit.session()
        session.set_permission("free", "never")
        assert session.call_sync("free").status is Status.DENIED
        assert toolkit.call_sync("free").value == 1


class TestSuspended:
    def test_external_tools_wait_for_their_answer(self, toolkit: Toolkit) -> None:
        schema = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
        toolkit.register(Tool.external("ask_human", "Ask.", schema))
        result = toolkit.call_sync("ask_human", '{"question": "why?"}', call_id="c1")
        assert result.status is Status.SUSPENDED
        assert not result.is_error
        (call,) = toolkit.pending
        assert (call.id, call.name, call.arguments) == ("c1", "ask_human", {"question": "why?"})
        answer = toolkit.resume("c1", {"because": 1})
        assert (answer.status, answer.call_id, answer.name) == (Status.SUCCESS, "c1", "ask_human")
        assert (answer.text, answer.data) == ('{"because": 1}', {"because": 1})
        assert toolkit.pending == []
        assert call.result is answer

    def test_bad_arguments_of_an_external_tool(self, toolkit: Toolkit) -> None:
        toolkit.register(Tool.external("ask", "", {"type": "object", "properties": {}, "additionalProperties": False}))
        assert toolkit.call_sync("ask", {"x": 1}).status is Status.INVALID
        assert toolkit.pending == []

    @pytest.mark.parametrize("kind", ["sync", "async"])
    @pytest.mark.parametrize("prepared", [True, False])
    def test_a_tool_that_suspends(self, toolkit: Toolkit, kind: str, prepared: bool) -> None:
        def ask(n: int) -> int:
            raise Suspend("ask Ann", ticket=7)

        async def ask_later(n: int) -> int:
            raise Suspend("ask Ann", ticket=7)

        toolkit.register({"sync": ask, "async": ask_later}[kind], name="ask")
        if prepared:
            result = toolkit.prepare("ask", '{"n": 1}', call_id="c1").execute_sync()
        elif kind == "sync":
            result = toolkit.call_sync("ask", '{"n": 1}', call_id="c1")
        else:
            result = asyncio.run(toolkit.call("ask", '{"n": 1}', call_id="c1"))
        assert (result.status, result.text) == (Status.SUSPENDED, "ask Ann")
        (call,) = toolkit.pending
        assert (call.arguments, call.typed, call.status) == ({"n": 1}, {"n": 1}, Status.SUSPENDED)
        assert toolkit.resume("c1", 5).value == 5
        assert call.execute_sync().value == 5
        assert asyncio.run(call.execute()).value == 5

    def test_resume_with_an_error(self, toolkit: Toolkit) -> None:
        toolkit.register(Tool.external("ask", "", {"type": "object", "properties": {}}))
        toolkit.call_sync("ask", call_id="c1")
        result = toolkit.resume("c1", ValueError("nobody answered"))
        assert (result.status, result.text) == (Status.ERROR, "Error: nobody answered")

    def test_unknown_ids_name_what_is_owed(self, toolkit: Toolkit) -> None:
        toolkit.register(Tool.external("ask", "", {"type": "object", "properties": {}}))
        with pytest.raises(PegboardError, match="'c9'; owed: none"):
            toolkit.resume("c9", 1)
        toolkit.call_sync("ask", call_id="c2")
        toolkit.call_sync("ask", call_id="c1")
        with pytest.raises(PegboardError, match="'c9'; owed: c1, c2"):
            toolkit.resume("c9", 1)
        toolkit.resume("c1", 1)
        with pytest.raises(PegboardError, match="'c1'; owed: c2"):
            toolkit.resume("c1", 1)

    def test_what_one_session_owes_is_not_anothers(self, toolkit: Toolkit) -> None:
        toolkit.register(Tool.external("ask", "", {"type": "object", "properties": {}}))
        ann, bob = toolkit.session(), toolkit.session()
        ann.call_sync("ask", call_id="c1")
        assert bob.pending == []
        with pytest.raises(PegboardError, match="owed: none"):
            bob.resume("c1", 1)
        assert ann.resume("c1", 1).value == 1


user = contextvars.ContextVar("user", default="nobody")


class TestContextVariables:
    def test_reach_every_kind_of_tool(self, toolkit: Toolkit) -> None:
        def who() -> str:
            return user.get()

        async def later() -> str:
            await asyncio.sleep(0)
            return user.get()

        def drawn() -> Iterator[str]:
            yield user.get()

        toolkit.register(who, name="plain")
        toolkit.register(tool(timeout=5)(lambda: who()), name="thread")  # noqa: PLW0108 - `who` itself stays plain
        toolkit.register(later, drawn)

        def work() -> None:
            user.set("ann")
            for name in ("plain", "thread", "later", "drawn"):
                assert [result.value for result in both(toolkit, name)] == ["ann", "ann"], name
            assert [each.value for each in toolkit.call_many_sync(["plain", "thread", "later"])] == ["ann"] * 3

        contextvars.copy_context().run(work)

    def test_what_a_thread_sets_stays_there(self, toolkit: Toolkit) -> None:
        @tool(name="set", timeout=5)
        def change() -> None:
            user.set("bob")

        toolkit.register(change)
        toolkit.call_sync("set")
        asyncio.run(toolkit.call("set"))
        assert user.get() == "nobody"


class TestOnChunk:
    KINDS = ["sync", "async", "generator", "async_generator"]  # noqa: RUF012 - a table

    def register(self, toolkit: Toolkit, count: int = 50) -> None:
        texts = [str(n) for n in range(count)]

        def sync(emitter: Emitter) -> None:
            for text in texts:
                emitter.emit(text)

        async def later(emitter: Emitter) -> None:
            for text in texts:
                emitter.emit(text)
                await asyncio.sleep(0)

        def generator() -> Iterator[str]:
            yield from texts

        async def async_generator() -> Any:
            for text in texts:
                yield text

        for name, function in zip(self.KINDS, (sync, later, generator, async_generator), strict=True):
            toolkit.register(function, name=name)

    @pytest.mark.parametrize("kind", KINDS)
    def test_in_order_and_before_the_result(self, toolkit: Toolkit, kind: str) -> None:
        self.register(toolkit)
        got: list[str] = []
        toolkit.call_sync(kind, on_chunk=lambda chunk: got.append(chunk.text))
        assert got == [str(n) for n in range(50)]
        got.clear()

        async def main() -> list[str]:
            await toolkit.call(kind, on_chunk=lambda chunk: got.append(chunk.text))
            return list(got)

        assert asyncio.run(main()) == [str(n) for n in range(50)]

    @pytest.mark.parametrize("kind", KINDS)
    def test_of_an_async_caller_on_the_thread_of_its_loop(self, toolkit: Toolkit, kind: str) -> None:
        self.register(toolkit)
        threads: set[int] = set()

        def listen(chunk: Chunk) -> None:
            threads.add(threading.get_ident())
            asyncio.get_running_loop()

        async def main() -> None:
            await toolkit.call(kind, on_chunk=listen)
            await toolkit.call_many([kind] * 3, on_chunk=listen)
            assert len([event async for event in toolkit.stream([kind] * 3)]) == 153

        asyncio.run(main())
        assert threads == {threading.get_ident()}

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("error", [ValueError("deaf"), SystemExit(1)])
    @pytest.mark.filterwarnings("error")
    def test_a_listener_that_raises_is_harmless(self, toolkit: Toolkit, kind: str, error: BaseException) -> None:
        self.register(toolkit, 3)

        def listen(chunk: Chunk) -> None:
            raise error

        for result in both(toolkit, kind, on_chunk=listen):
            assert result.status is Status.SUCCESS

    def test_blocks_are_chunks_too(self, toolkit: Toolkit) -> None:
        from pegboard import LinkBlock

        block = LinkBlock("https://example.org")
        toolkit.register(_emits(block))
        got: list[Chunk] = []
        toolkit.call_sync("emits", on_chunk=got.append)
        assert got[0].content is block

    def test_nobody_listens(self, toolkit: Toolkit) -> None:
        self.register(toolkit)
        for kind in self.KINDS:
            for result in both(toolkit, kind):
                assert result.status is Status.SUCCESS


def _emits(block: Any) -> Callable[..., None]:
    def emits(emitter: Emitter) -> None:
        emitter.emit(block)

    return emits


class TestMiddleware:
    def board(self, around: Any, **options: Any) -> Toolkit:
        class Plugin:
            @hookimpl
            def provide_middleware(self) -> list[Middleware]:
                return [Middleware(around)]

        toolkit = Toolkit(plugins=[Plugin()], **options)
        toolkit.register(lambda: "tool", name="one")
        return toolkit

    def test_sync_middleware_needs_no_second_thread(self) -> None:
        with self.board(lambda call, proceed: proceed(), max_threads=1) as toolkit:
            results = _in_time(lambda: asyncio.run(toolkit.call_many(["one"] * 4)))
            assert [each.value for each in results] == ["tool"] * 4

    def test_a_cached_result_becomes_one_of_the_call(self) -> None:
        cached = ToolResult("old", "other", content="from the cache")
        with self.board(lambda call, proceed: cached) as toolkit:
            for result in both(toolkit, "one", call_id="new"):
                assert (result.call_id, result.name, result.text) == ("new", "one", "from the cache")
        assert (cached.call_id, cached.duration) == ("old", 0.0)

    def test_one_that_returns_something_else(self) -> None:
        with self.board(lambda call, proceed: None) as toolkit:
            assert "NoneType" in toolkit.call_sync("one").text


class TestClose:
    def test_leaves_no_thread_and_no_task(self) -> None:
        before = set(threading.enumerate())
        begun, cancelled = threading.Event(), list[int]()

        async def wait() -> None:
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                cancelled.append(1)

        toolkit = Toolkit(plugins=())
        toolkit.register(wait)
        toolkit.register(tool(timeout=5)(lambda: 1), name="thread")
        toolkit.call_many_sync(["thread"] * 10)
        asyncio.run(toolkit.call_many(["thread"] * 10))
        box: list[ToolResult] = []
        caller = threading.Thread(target=lambda: box.append(toolkit.call_sync("wait")))
        caller.start()
        assert begun.wait(PATIENCE)
        toolkit.close()
        caller.join(PATIENCE)
        assert box[0].status is Status.CANCELLED
        assert cancelled == [1]
        assert set(threading.enumerate()) <= before

    def test_twice_and_without_having_run(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.close()
        toolkit.close()

    def test_waits_for_sync_tools(self) -> None:
        done: list[int] = []
        toolkit = Toolkit(plugins=())

        @tool(timeout=5)
        def work() -> None:
            time.sleep(0.05)
            done.append(1)

        toolkit.register(work)
        caller = threading.Thread(target=lambda: toolkit.call_sync("work"))
        caller.start()
        wait_for(lambda: toolkit.stats["running"] == 1)
        time.sleep(0.01)
        toolkit.close()
        assert done == [1]
        caller.join(PATIENCE)

    def test_calls_afterwards_end_in_results(self) -> None:
        async def later() -> int:
            return 1

        toolkit = Toolkit(plugins=())
        toolkit.register(later)
        toolkit.register(tool(timeout=5)(lambda: 1), name="thread")
        toolkit.close()
        for result in [toolkit.call_sync("later"), *toolkit.call_many_sync(["later", "thread"])]:
            assert result.status is Status.ERROR
            assert "closed" in result.text

    def test_context_managers(self) -> None:
        async def main() -> Toolkit:
            async with Toolkit(plugins=()) as toolkit:
                toolkit.register(tool(timeout=5)(lambda: 1), name="thread")
                assert (await toolkit.call("thread")).value == 1
            return toolkit

        before = set(threading.enumerate())
        toolkit = asyncio.run(main())
        assert toolkit.call_sync("thread").is_error
        assert set(threading.enumerate()) <= before

    def test_a_hung_tool_does_not_hold_it_up(self) -> None:
        go = threading.Event()
        toolkit = Toolkit(plugins=())
        toolkit.register(tool(timeout=SHORT)(lambda: go.wait(PATIENCE)), name="hang")
        toolkit.register(tool(timeout=5)(lambda: 1), name="fine")
        toolkit.call_many_sync(["hang", "hang", "fine"])
        started = time.monotonic()
        toolkit.close()
        assert time.monotonic() - started < 2
        go.set()


class TestStats:
    def test_counts(self, toolkit: Toolkit) -> None:
        toolkit.register(lambda: 1, name="one")
        toolkit.register(Flaky(99), name="fails", description="Fail.")
        for _ in both(toolkit, "one"):
            pass
        toolkit.call_sync("one", {"x": 1})
        toolkit.call_sync("fails")
        stats = toolkit.stats
        assert stats["tools"]["one"]["calls"] == 3
        assert stats["tools"]["one"]["statuses"] == {"invalid": 1, "success": 2}
        assert stats["tools"]["fails"]["statuses"] == {"error": 1}
        assert stats["running"] == 0
        json.dumps(stats)


SCRIPTS = {
    "unclosed": """
toolkit.call_sync("later"); toolkit.call_sync("thread")
asyncio.run(toolkit.call_many(["later", "thread", "plain"]))
""",
    "closed": """
toolkit.call_sync("later"); toolkit.call_sync("thread"); toolkit.close()
""",
    "hung": """
print(toolkit.call_sync("hang").status.value)
""",
    "at exit": """
import atexit
@atexit.register
def late():
    print([each.status.value in ("success", "error") for each in toolkit.call_many_sync(["later", "thread", "plain"])])
""",
    "in a late thread": """
def late():
    threading.main_thread().join()
    for name in ("later", "thread", "plain"):
        assert toolkit.call_sync(name).status.value in ("success", "error")
    assert len(toolkit.call_many_sync(["later", "thread"])) == 2
    print("late")
threading.Thread(target=late).start()
""",
    "cancelled": """
async def main():
    task = asyncio.create_task(toolkit.call("wait"))
    await asyncio.sleep(0.01)
    task.cancel()
asyncio.run(main())
""",
    "still running": """
def call(): toolkit.call_sync("wait")
threading.Thread(target=call, daemon=True).start()
import time; time.sleep(0.05)
""",
}
PRELUDE = """
import asyncio, threading
from pegboard import Toolkit, tool
toolkit = Toolkit(plugins=())
async def later() -> int:
    await asyncio.sleep(0)
    return 1
async def wait() -> None:
    await asyncio.Event().wait()
toolkit.register(later, wait)
toolkit.register(lambda: 1, name="plain")
toolkit.register(tool(timeout=5)(lambda: 1), name="thread")
toolkit.register(tool(timeout=0.02)(lambda: threading.Event().wait(60)), name="hang")
"""
PRINTED = {"hung": "timeout", "at exit": "[True, True, True]", "in a late thread": "late"}


class TestShutdown:
    @pytest.mark.parametrize("script", SCRIPTS)
    def test_the_interpreter_ends_cleanly_and_at_once(self, script: str) -> None:
        started = time.monotonic()
        command = [sys.executable, "-W", "error", "-X", "dev", "-c", PRELUDE + SCRIPTS[script]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert done.stderr == ""
        assert (done.returncode, done.stdout.strip()) == (0, PRINTED.get(script, ""))
        assert time.monotonic() - started < 8


def test_a_call_is_itself_for_hand_written_tools(toolkit: Toolkit) -> None:
    class Handwritten:
        name = "own"
        description = "Own."
        parameters = {"type": "object", "properties": {"x": {"type": "integer"}}}  # noqa: RUF012 - as users write it

        def call(self, call: ToolCall) -> str:
            call.log("seen")
            return f"{call.id} {call.arguments['x']}"

    toolkit.register(Handwritten())
    result = toolkit.call_sync("own", {"x": 1}, call_id="c1")
    assert (result.text, result.logs) == ("c1 1", ("seen",))
