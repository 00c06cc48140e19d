"""Retries: which failures are tried again, how long is waited, what the result tells of it."""

import asyncio
import http.client
import http.server
import json
import pickle
import random
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import (
    CancelToken,
    ExecutionPolicy,
    Injector,
    Secret,
    Status,
    Suspend,
    ToolError,
    Toolkit,
    ToolOutput,
    ToolResult,
    tool,
)
from pegboard._execution.drivers import Here, OnLoop
from tests.support.calls import CALLERS, both, each_caller
from tests.support.waiting import PATIENCE, eventually

pytestmark = pytest.mark.usefixtures("path")

SHORT = 0.05


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What was waited for, by a clock that does not go."""
    waits: list[float] = []

    async def at_once(self: Any, seconds: float) -> Any:
        waits.append(seconds)
        return None, None

    monkeypatch.setattr(OnLoop, "sleep", at_once)
    monkeypatch.setattr(Here, "sleep", at_once)
    return waits


class Failing:
    """Raises what it was given, one after the other, then returns."""

    def __init__(self, *errors: BaseException, value: Any = "done") -> None:
        self.errors = list(errors)
        self.value = value
        self.ran = 0

    def run(self) -> Any:
        self.ran += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.value

    def sync(self) -> Callable[[], Any]:
        return lambda: self.run()  # noqa: PLW0108 - a method would bring its own name

    def later(self) -> Callable[[], Any]:
        async def later() -> Any:
            await asyncio.sleep(0)
            return self.run()

        return later


def down(times: int) -> list[BaseException]:
    return [ConnectionError(f"down {n}") for n in range(1, times + 1)]


STEADY = ExecutionPolicy(jitter=False)


@each_caller
@pytest.mark.parametrize("kind", ["sync", "later"])
def test_a_tool_may_have_a_policy_of_its_own(toolkit: Toolkit, slept: list[float], caller: str, kind: str) -> None:
    failing = Failing(*down(2))
    toolkit.register(tool(policy=ExecutionPolicy(max_attempts=3, jitter=False))(getattr(failing, kind)()), name="fetch")
    result = CALLERS[caller](toolkit, "fetch")
    assert (result.value, result.attempts, slept) == ("done", 3, [1, 2])


class Busy(Exception):
    def __init__(self, retry_after: Any) -> None:
        super().__init__("busy")
        self.retry_after = retry_after


class TestRetryAfter:
    """An exception may say when to come back."""

    @each_caller
    @pytest.mark.parametrize("kind", ["sync", "later"])
    def test_the_longer_wait_counts(self, toolkit: Toolkit, slept: list[float], caller: str, kind: str) -> None:
        failing = Failing(Busy(7), Busy(0.5), Busy(None), Busy("soon"), Busy(-3))
        toolkit.register(getattr(failing, kind)(), name="fetch")
        result = CALLERS[caller](toolkit, "fetch", policy=ExecutionPolicy(max_attempts=6, jitter=False))
        assert (result.value, slept) == ("done", [7, 2, 4, 8, 16])

    def test_with_jitter_no_attempt_comes_too_early(self, toolkit: Toolkit, slept: list[float]) -> None:
        toolkit.register(Failing(Busy(7)).sync(), name="fetch")
        toolkit.call_sync("fetch", policy=ExecutionPolicy(max_attempts=2))
        assert slept == [7]

    @pytest.mark.parametrize(("asked", "longest"), [(30.1, 30.0), (float("inf"), 30.0), (float("inf"), float("inf"))])
    def test_what_is_too_long_is_not_waited_for(
        self, toolkit: Toolkit, slept: list[float], asked: float, longest: float
    ) -> None:
        failing = Failing(*[Busy(asked)] * 4)
        toolkit.register(failing.sync(), name="fetch")
        for result in both(toolkit, "fetch", policy=ExecutionPolicy(max_attempts=3, max_backoff=longest)):
            assert (result.status, result.attempts) == (Status.ERROR, 1)
        assert slept == []

    def test_a_tool_whose_time_is_up_may_say_that_it_must_not_run_again(self, toolkit: Toolkit) -> None:
        ran: list[str] = []

        async def job(final: bool) -> None:
            ran.append("begun")
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError as error:
                if final:
                    error.retry_after = float("inf")  # type: ignore[attr-defined]
                raise

        toolkit.register(job)
        policy = ExecutionPolicy(timeout=SHORT, max_attempts=3, initial_backoff=0)
        for final, attempts in ((True, 1), (False, 3)):
            for result in both(toolkit, "job", {"final": final}, policy=policy):
                assert (result.status, result.attempts, len(ran)) == (Status.TIMEOUT, attempts, attempts)
                ran.clear()


class TestBackoff:
    @each_caller
    @pytest.mark.parametrize("kind", ["sync", "later"])
    def test_the_seeds_sequence(self, toolkit: Toolkit, slept: list[float], caller: str, kind: str) -> None:
        failing = Failing(*down(7))
        toolkit.register(getattr(failing, kind)(), name="fetch")
        result = CALLERS[caller](toolkit, "fetch", policy=ExecutionPolicy(max_attempts=8, jitter=False))
        assert slept == [1, 2, 4, 8, 16, 30, 30]
        assert (result.value, result.attempts, failing.ran) == ("done", 8, 8)

    def test_no_wait_follows_the_last_attempt(self, toolkit: Toolkit, slept: list[float]) -> None:
        toolkit.register(Failing(*down(9)).sync(), name="fetch")
        for result in both(toolkit, "fetch", policy=ExecutionPolicy(max_attempts=3, jitter=False)):
            assert (result.status, result.attempts) == (Status.ERROR, 3)
        assert slept == [1, 2] * 2

    def test_the_clock_goes_on_meanwhile(self, toolkit: Toolkit) -> None:
        toolkit.register(Failing(*down(9)).sync(), name="fetch")
        policy = ExecutionPolicy(max_attempts=2, initial_backoff=0.05, jitter=False)
        for result in both(toolkit, "fetch", policy=policy):
            assert result.duration >= 0.05

    def test_jitter_spreads_over_the_whole_wait(self, toolkit: Toolkit, slept: list[float]) -> None:
        random.seed(7)
        policy = ExecutionPolicy(max_attempts=4, initial_backoff=8, backoff_multiplier=2, max_backoff=20)
        for n in range(100):
            toolkit.register(Failing(*down(3)).sync(), name=f"fetch{n}")
            toolkit.call_sync(f"fetch{n}", policy=policy)
        for position, bound in enumerate((8, 16, 20)):
            waits = slept[position::3]
            assert len(set(waits)) == 100
            assert 0 <= min(waits) < bound * 0.1
            assert bound * 0.9 < max(waits) <= bound

    @given(
        st.floats(0, 1e9), st.floats(1, 1e300), st.one_of(st.floats(0, 1e6), st.just(float("inf"))), st.integers(1, 500)
    )
    def test_of_any_policy(self, initial: float, multiplier: float, limit: float, attempt: int) -> None:
        policy = ExecutionPolicy(initial_backoff=initial, backoff_multiplier=multiplier, max_backoff=limit)
        wait = policy.backoff(attempt)
        exact = Fraction(initial) * Fraction(multiplier) ** (attempt - 1)
        expected = min(exact, Fraction(min(limit, 4_000_000)))
        assert wait == pytest.approx(float(expected), rel=1e-9)
        assert wait <= policy.backoff(attempt + 1) <= limit

    def test_a_worker_is_not_kept_meanwhile(self, toolkit: Toolkit) -> None:
        with Toolkit(plugins=(), max_threads=1) as narrow:
            narrow.register(Failing(*down(1)).sync(), name="fetch")
            narrow.register(lambda: "here", name="echo")

            async def main() -> str:
                policy = ExecutionPolicy(max_attempts=2, initial_backoff=60, jitter=False)
                waiting = asyncio.create_task(narrow.call("fetch", policy=policy))
                assert await asyncio.to_thread(eventually, lambda: narrow.stats["waiting"])
                echo = await asyncio.wait_for(narrow.call("echo"), PATIENCE)
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
                return echo.text

            assert asyncio.run(main()) == "here"


class TestStopping:
    POLICY = ExecutionPolicy(max_attempts=3, initial_backoff=3600, max_backoff=3600, jitter=False)

    def test_a_call_that_waits(self, toolkit: Toolkit) -> None:
        failing = Failing(*down(9))
        toolkit.register(failing.sync(), name="fetch")
        call = toolkit.prepare("fetch")
        box: list[ToolResult] = []
        caller = threading.Thread(target=lambda: box.append(call.execute_sync(policy=self.POLICY)))
        caller.start()
        assert eventually(lambda: toolkit.stats["waiting"] == 1)
        call.stop()
        caller.join(PATIENCE)
        (result,) = box
        assert (result.status, result.attempts, failing.ran) == (Status.CANCELLED, 1, 1)
        assert [each["error"] for each in result.metadata["retries"]] == ["down 1"]

    def test_a_call_that_waits_on_a_loop(self, toolkit: Toolkit) -> None:
        failing = Failing(*down(9))
        toolkit.register(failing.later(), name="fetch")

        async def main() -> ToolResult:
            call = toolkit.prepare("fetch")
            task = asyncio.create_task(call.execute(policy=self.POLICY))
            assert await asyncio.to_thread(eventually, lambda: toolkit.stats["waiting"])
            call.stop()
            return await asyncio.wait_for(task, PATIENCE)

        result = asyncio.run(main())
        assert (result.status, failing.ran) == (Status.CANCELLED, 1)

    def test_the_caller_leaves(self, toolkit: Toolkit) -> None:
        failing = Failing(*down(9))
        toolkit.register(failing.later(), name="fetch")

        async def main() -> Any:
            call = toolkit.prepare("fetch")
            task = asyncio.create_task(call.execute(policy=self.POLICY))
            assert await asyncio.to_thread(eventually, lambda: toolkit.stats["waiting"])
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return call.result

        result = asyncio.run(main())
        assert (result.status, failing.ran) == (Status.CANCELLED, 1)
        assert toolkit.stats["waiting"] == 0


class TestWhatTheResultTells:
    @each_caller
    def test_each_attempt_that_was_followed_by_another(self, toolkit: Toolkit, slept: list[float], caller: str) -> None:
        toolkit.register(Failing(ConnectionError("down"), KeyError("user")).sync(), name="fetch")
        result = CALLERS[caller](toolkit, "fetch", policy=ExecutionPolicy(max_attempts=5, jitter=False))
        assert result.metadata["retries"] == [
            {"attempt": 1, "type": "ConnectionError", "error": "down", "wait": 1.0},
            {"attempt": 2, "type": "KeyError", "error": "KeyError: 'user'", "wait": 2.0},
        ]
        assert result.attempts == 3
        assert json.loads(json.dumps(result.to_dict()))["metadata"]["retries"][0]["wait"] == 1.0
        assert pickle.loads(pickle.dumps(result)).metadata == result.metadata

    def test_the_last_error_is_the_results(self, toolkit: Toolkit, slept: list[float]) -> None:
        toolkit.register(Failing(*down(3)).sync(), name="fetch")
        result = toolkit.call_sync("fetch", policy=ExecutionPolicy(max_attempts=3))
        assert [each["error"] for each in result.metadata["retries"]] == ["down 1", "down 2"]
        assert [each["wait"] for each in result.metadata["retries"]] == slept
        assert result.error is not None
        assert result.error.message == "down 3"

    def test_nothing_where_nothing_was_tried_again(self, toolkit: Toolkit) -> None:
        toolkit.register(Failing(ValueError("x")).sync(), name="fetch")
        assert dict(toolkit.call_sync("fetch", policy=STEADY).metadata) == {}
        assert dict(toolkit.call_sync("fetch", policy=ExecutionPolicy(max_attempts=3)).metadata) == {}

    def test_the_model_learns_nothing_of_it(self, toolkit: Toolkit, slept: list[float]) -> None:
        toolkit.register(Failing(*down(2)).sync(), name="fetch")
        result = toolkit.call_sync("fetch", policy=ExecutionPolicy(max_attempts=3))
        assert (result.text, len(result.content)) == ("done", 1)
        assert result.notes == ()

    def test_beside_metadata_of_the_tool(self, toolkit: Toolkit, slept: list[float]) -> None:
        policy = ExecutionPolicy(max_attempts=2)
        toolkit.register(Failing(*down(1), value=ToolOutput("x", {"cached": True})).sync(), name="fetch")
        result = toolkit.call_sync("fetch", policy=policy)
        assert (result.metadata["cached"], len(result.metadata["retries"])) == (True, 1)
        toolkit.register(Failing(*down(1), value=ToolOutput("x", {"retries": "mine"})).sync(), name="own")
        assert toolkit.call_sync("own", policy=policy).metadata == {"retries": "mine"}

    def test_no_secret(self, toolkit: Toolkit, slept: list[float]) -> None:
        def use(key: str) -> None:
            raise ConnectionError(f"refused {key}")

        toolkit.register(use, presets={"key": Secret("s3cr3t-value")})
        result = toolkit.call_sync("use", policy=ExecutionPolicy(max_attempts=2))
        assert result.metadata["retries"][0]["error"] == "refused ***"
        assert "s3cr3t" not in str(result.to_dict())

    def test_no_more_than_the_model_may_see(self, slept: list[float]) -> None:
        with Toolkit(plugins=(), expose_errors="redacted") as toolkit:
            toolkit.register(Failing(ConnectionError("db.internal"), ToolError("busy")).sync(), name="fetch")
            policy = ExecutionPolicy(max_attempts=3, retry_on=(ConnectionError, ToolError))
            told = toolkit.call_sync("fetch", policy=policy).metadata["retries"]
            assert [(each["type"], each["error"]) for each in told] == [
                ("ConnectionError", "the tool failed"),
                ("ToolError", "busy"),
            ]

    def test_not_without_bounds(self, toolkit: Toolkit, slept: list[float]) -> None:
        toolkit.register(Failing(*(ValueError(f"{n}" * 5_000) for n in range(250))).sync(), name="fetch")
        result = toolkit.call_sync("fetch", policy=ExecutionPolicy(max_attempts=1_000))
        told = result.metadata["retries"]
        assert (result.attempts, len(told), told[-1]["attempt"]) == (251, 100, 250)
        assert all(len(each["error"]) < 1_200 for each in told)

    def test_timeouts(self, toolkit: Toolkit, slept: list[float]) -> None:
        begun: list[int] = []

        async def slow() -> str:
            begun.append(1)
            if len(begun) == 1:
                await asyncio.Event().wait()
            return "done"

        toolkit.register(slow)
        policy = ExecutionPolicy(timeout=SHORT, max_attempts=2, retry_on=(ConnectionError,), jitter=False)
        for caller in CALLERS.values():
            begun.clear()
            result = caller(toolkit, "slow", policy=policy)
            assert (result.value, len(begun)) == ("done", 2)
            assert result.metadata["retries"][0]["error"] == "timed out after 0.05 s"


class TestWhatIsTriedAgain:
    @each_caller
    @pytest.mark.parametrize(
        ("retry_on", "error", "ran"),
        [
            ((Exception,), ToolError("ask for fewer days"), 1),
            ((OSError, ToolError), ToolError("busy"), 2),
            ((OSError,), ConnectionResetError("gone"), 2),
            ((OSError,), ValueError("bad"), 1),
            ((), ValueError("bad"), 1),
            ((ConnectionError,), SystemExit(1), 1),
            ((Exception,), Suspend("later"), 1),
            ((BaseException,), SystemExit(3), 2),
            ((BaseException,), KeyboardInterrupt(), 1),
            ((Exception,), ExceptionGroup("both", [ValueError("a"), KeyError("b")]), 2),
            ((Exception,), StopIteration(), 2),
        ],
    )  # fmt: skip
    def test_by_its_class(
        self, toolkit: Toolkit, slept: list[float], caller: str, retry_on: Any, error: BaseException, ran: int
    ) -> None:
        failing = Failing(error)
        toolkit.register(failing.sync(), name="fetch")
        CALLERS[caller](toolkit, "fetch", policy=ExecutionPolicy(max_attempts=2, retry_on=retry_on))
        assert failing.ran == ran

    def test_a_kind_of_tool_error_that_the_policy_names(self, toolkit: Toolkit, slept: list[float]) -> None:
        class Busy(ToolError):
            pass

        for error, ran in ((Busy("busy"), 2), (ToolError("no"), 1)):
            failing = Failing(error)
            toolkit.register(failing.sync(), name=type(error).__name__)
            toolkit.call_sync(type(error).__name__, policy=ExecutionPolicy(max_attempts=2, retry_on=Busy))
            assert failing.ran == ran

    @pytest.mark.parametrize("value", [ValueError("returned"), ToolResult(status=Status.ERROR, content="no")])
    def test_what_is_returned_is_an_answer(self, toolkit: Toolkit, slept: list[float], value: Any) -> None:
        failing = Failing(value=value)
        toolkit.register(failing.sync(), name="fetch")
        result = toolkit.call_sync("fetch", policy=ExecutionPolicy(max_attempts=3))
        assert (result.status, failing.ran, slept) == (Status.ERROR, 1, [])

    def test_what_cannot_be_converted_is_not(self, toolkit: Toolkit, slept: list[float]) -> None:
        class Odd:
            def __repr__(self) -> str:
                raise ValueError("odd")

        failing = Failing(value=Odd())
        toolkit.register(failing.sync(), name="fetch")
        toolkit.call_sync("fetch", policy=ExecutionPolicy(max_attempts=3))
        assert failing.ran == 1

    def test_what_is_injected_is_made_anew(self, toolkit: Toolkit, slept: list[float]) -> None:
        events: list[str] = []

        class Database:
            pass

        class Connection:
            def __init__(self, number: int) -> None:
                self.number = number

        def connect() -> Iterator[Connection]:
            events.append("open")
            yield Connection(events.count("open"))
            events.append("close")

        toolkit.register_injector(Injector(Connection, connect))

        def query(connection: Connection) -> int:
            if connection.number < 3:
                raise ConnectionError("lost")
            return connection.number

        toolkit.register(query)
        for caller in CALLERS.values():
            events.clear()
            assert caller(toolkit, "query", policy=ExecutionPolicy(max_attempts=3)).value == 3
            assert events == ["open", "close"] * 3

    def test_a_stream_begins_again(self, toolkit: Toolkit, slept: list[float]) -> None:
        runs: list[int] = []

        def count() -> Iterator[str]:
            runs.append(1)
            yield f"{len(runs)}a"
            if len(runs) < 2:
                raise ConnectionError("lost")
            yield f"{len(runs)}b"

        toolkit.register(count)
        heard: list[str] = []
        policy = ExecutionPolicy(max_attempts=2)
        result = toolkit.call_sync("count", policy=policy, on_chunk=lambda chunk: heard.append(chunk.text))
        assert (heard, result.text) == (["1a", "2a", "2b"], "2a2b")

    def test_an_abandoned_attempt_is_told_that_its_caller_has_gone_on(
        self, toolkit: Toolkit, slept: list[float]
    ) -> None:
        tokens: list[CancelToken] = []

        @tool(idempotent=True)
        def poll(token: CancelToken) -> str:
            tokens.append(token)
            if len(tokens) == 1:
                token.wait(PATIENCE)
            return token.reason or "in time"

        toolkit.register(poll)
        for caller in CALLERS.values():
            tokens.clear()
            result = caller(toolkit, "poll", policy=ExecutionPolicy(timeout=SHORT, max_attempts=2))
            assert (result.value, result.attempts) == ("in time", 2)
            assert eventually(lambda: tokens[0].cancelled)
            assert (tokens[0].reason, tokens[1].cancelled) == ("timed out", False)
        assert eventually(lambda: toolkit.stats["abandoned_threads"] == 0)

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
    def test_hints_decide(
        self, toolkit: Toolkit, slept: list[float], hints: dict[str, Any], own: bool, ran: int
    ) -> None:
        failing = Failing(*down(9))
        policy = ExecutionPolicy(max_attempts=3)
        toolkit.register(tool(policy=policy if own else None, **hints)(failing.sync()), name="fetch")
        toolkit.call_sync("fetch", policy=None if own else policy)
        assert failing.ran == ran

    def test_bad_calls_are_never_retried(self) -> None:
        asked: list[Any] = []
        toolkit = Toolkit(plugins=(), approver=asked.append)
        toolkit.register(tool(requires_approval=True)(lambda: 1), name="asks")
        policy = ExecutionPolicy(max_attempts=3)
        assert toolkit.call_sync("asks", policy=policy).status is Status.DENIED
        assert len(asked) == 1
        assert toolkit.call_sync("asks", {"x": 1}, policy=policy).status is Status.INVALID

    @pytest.mark.parametrize(("idempotent", "ran"), [(None, 1), (False, 1), (True, 2)])
    def test_an_abandoned_thread_only_if_that_is_harmless(
        self, toolkit: Toolkit, slept: list[float], idempotent: bool | None, ran: int
    ) -> None:
        go = threading.Event()
        begun: list[Any] = []

        @tool(idempotent=idempotent)
        def wait() -> bool:
            begun.append(1)
            return go.wait(PATIENCE)

        toolkit.register(wait)
        result = toolkit.call_sync("wait", policy=ExecutionPolicy(timeout=SHORT, max_attempts=2))
        assert result.status is Status.TIMEOUT
        assert len(begun) == result.attempts == ran
        go.set()


class Server:
    """Answers on loopback as `script` says, one word for each request: `ok`, `503`, `drop` or `hang`."""

    def __init__(self) -> None:
        self.script: list[str] = []
        self.served: list[str] = []
        self.left: list[str] = []
        self.release = threading.Event()
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def _handler(self) -> Any:  # noqa: C901 - a class in a method, one method for each word
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                word = server.script.pop(0) if server.script else "ok"
                server.served.append(word)
                getattr(self, f"_{word}")()

            def _ok(self) -> None:
                self._answer(200, b"fine")

            def _503(self) -> None:
                self._answer(503, b"busy")

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _drop(self) -> None:
                self.close_connection = True

            def _hang(self) -> None:
                self.connection.settimeout(0.01)
                while not server.release.is_set():
                    try:
                        if self.connection.recv(1) == b"":
                            server.left.append(self.path)
                            break
                    except TimeoutError:
                        continue
                self.close_connection = True

            def log_message(self, *args: object) -> None:
                return

        return Handler

    def close(self) -> None:
        self.release.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(PATIENCE)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def download(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        error.close()
        raise


QUICK = ExecutionPolicy(max_attempts=4, initial_backoff=0.001, max_backoff=0.002)


class TestAgainstAServer:
    def board(self, toolkit: Toolkit, server: Server) -> None:
        def fetch() -> str:
            return download(server.url)

        async def fetch_later() -> str:
            return await asyncio.to_thread(download, server.url)

        toolkit.register(fetch, fetch_later)

    @each_caller
    @pytest.mark.parametrize("name", ["fetch", "fetch_later"])
    def test_flaky(self, toolkit: Toolkit, server: Server, name: str, caller: str) -> None:
        self.board(toolkit, server)
        server.script = ["503", "drop", "ok", "ok"]
        result = CALLERS[caller](toolkit, name, policy=QUICK)
        assert (result.value, result.attempts) == ("fine", 3)
        assert server.served == ["503", "drop", "ok"]
        assert [each["type"] for each in result.metadata["retries"]] == ["HTTPError", "RemoteDisconnected"]

    def test_down_for_good(self, toolkit: Toolkit, server: Server) -> None:
        self.board(toolkit, server)
        server.script = ["503"] * 9
        result = toolkit.call_sync("fetch", policy=QUICK)
        assert (result.status, result.attempts, server.served) == (Status.ERROR, 4, ["503"] * 4)
        assert "503" in result.text

    def test_only_what_the_policy_names(self, toolkit: Toolkit, server: Server) -> None:
        self.board(toolkit, server)
        server.script = ["drop", "503", "ok"]
        policy = ExecutionPolicy(max_attempts=5, retry_on=(ConnectionError,)).merged_over(QUICK)
        result = toolkit.call_sync("fetch", policy=policy)
        assert (result.status, server.served) == (Status.ERROR, ["drop", "503"])

    @each_caller
    def test_hanging(self, toolkit: Toolkit, server: Server, caller: str) -> None:
        self.board(toolkit, server)
        server.script = ["hang"]
        started = time.monotonic()
        result = CALLERS[caller](toolkit, "fetch", policy=ExecutionPolicy(timeout=0.2))
        assert time.monotonic() - started < PATIENCE / 2
        assert result.status is Status.TIMEOUT
        assert 0.2 <= result.duration < PATIENCE / 2
        assert toolkit.stats["abandoned_threads"] == 1
        server.release.set()  # a thread cannot be killed: it ends with the connection
        assert eventually(lambda: toolkit.stats["abandoned_threads"] == 0)

    def test_hanging_once(self, toolkit: Toolkit, server: Server) -> None:
        @tool(idempotent=True)
        def fetch() -> str:
            return download(server.url)

        toolkit.register(fetch)
        server.script = ["hang", "ok"]
        result = toolkit.call_sync("fetch", policy=ExecutionPolicy(timeout=0.2).merged_over(QUICK))
        assert (result.value, result.attempts) == ("fine", 2)
        assert toolkit.stats["abandoned_threads"] == 1
        server.release.set()
        assert eventually(lambda: toolkit.stats["abandoned_threads"] == 0)


class TestTheConnectionIsClosed:
    """Whatever ends the call: by a tool that honours its token, and by any async one."""

    def board(self, toolkit: Toolkit, server: Server) -> None:
        def fetch(token: CancelToken) -> str:
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            connection.connect()
            token.on_cancel(lambda: connection.sock.shutdown(socket.SHUT_RDWR))
            try:
                connection.request("GET", "/token")
                return connection.getresponse().read().decode()
            finally:
                connection.close()

        async def fetch_later() -> str:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            try:
                writer.write(b"GET /later HTTP/1.0\r\n\r\n")
                return (await reader.read()).decode()
            finally:
                writer.close()

        toolkit.register(fetch, fetch_later)
        server.script = ["hang"]

    @each_caller
    @pytest.mark.parametrize("name", ["fetch", "fetch_later"])
    def test_after_a_timeout(self, toolkit: Toolkit, server: Server, name: str, caller: str) -> None:
        self.board(toolkit, server)
        result = CALLERS[caller](toolkit, name, policy=ExecutionPolicy(timeout=0.1))
        assert result.status is Status.TIMEOUT
        assert eventually(lambda: server.left)
        assert eventually(lambda: toolkit.stats["abandoned_threads"] == 0)

    @pytest.mark.parametrize("name", ["fetch", "fetch_later"])
    def test_when_it_is_stopped(self, toolkit: Toolkit, server: Server, name: str) -> None:
        self.board(toolkit, server)
        call = toolkit.prepare(name)
        box: list[ToolResult] = []
        caller = threading.Thread(target=lambda: box.append(call.execute_sync(policy=ExecutionPolicy(timeout=60))))
        caller.start()
        assert eventually(lambda: server.served)
        call.stop()
        caller.join(PATIENCE)
        assert [result.status for result in box] == [Status.CANCELLED]
        assert eventually(lambda: server.left)

    @pytest.mark.parametrize("name", ["fetch", "fetch_later"])
    def test_when_the_caller_leaves(self, toolkit: Toolkit, server: Server, name: str) -> None:
        self.board(toolkit, server)

        async def main() -> None:
            task = asyncio.create_task(toolkit.call(name))
            assert await asyncio.to_thread(eventually, lambda: server.served)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(main())
        assert eventually(lambda: server.left)

    @pytest.mark.parametrize("name", ["fetch", "fetch_later"])
    @each_caller
    def test_when_the_toolkit_is_closed(self, toolkit: Toolkit, server: Server, name: str, caller: str) -> None:
        self.board(toolkit, server)
        box: list[ToolResult] = []
        thread = threading.Thread(target=lambda: box.append(CALLERS[caller](toolkit, name)))
        thread.start()
        assert eventually(lambda: server.served)
        started = time.monotonic()
        toolkit.close()
        assert eventually(lambda: server.left)
        thread.join(PATIENCE)
        assert time.monotonic() - started < PATIENCE / 2
        assert len(box) == 1
        assert box[0].is_error
