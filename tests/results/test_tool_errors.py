"""Tools that fail, in every way there is: each call ends in its own result, and nothing else is touched."""

import asyncio
import gc
import json
import logging
import pickle
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest

from pegboard import (
    ExecutionPolicy,
    Secret,
    Status,
    Suspend,
    TextBlock,
    ToolError,
    Toolkit,
    ToolResult,
    tool,
)
from tests.support.interpreters import as_calls_run, printed
from tests.support.thinning import first
from tests.support.waiting import PATIENCE, eventually

pytestmark = pytest.mark.usefixtures("path")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class MuteByExit(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class Wordless(Exception):
    def __str__(self) -> Any:
        return 7  # noqa: PLE0307 - the mistake is the point


class Own(BaseException):
    pass


GROUP = ExceptionGroup("two things", [ValueError("first"), ExceptionGroup("inner", [TypeError("second")])])

# What a tool raises: the exception, its status, and what the model reads of it.
FAILURES: list[tuple[BaseException, Status, str]] = [
    (ValueError("Invalid input"), Status.ERROR, "Error: Invalid input"),
    (ValueError(), Status.ERROR, "Error: ValueError"),
    (KeyError("city"), Status.ERROR, "Error: KeyError: 'city'"),
    (SystemExit(2), Status.ERROR, "Error: SystemExit: 2"),
    (SystemExit(), Status.ERROR, "Error: SystemExit"),
    (KeyboardInterrupt(), Status.ERROR, "Error: KeyboardInterrupt"),
    (GeneratorExit(), Status.ERROR, "Error: GeneratorExit"),
    (StopAsyncIteration("no more"), Status.ERROR, "Error: no more"),
    (asyncio.CancelledError("mine"), Status.CANCELLED, "Error: the call was cancelled"),
    (TimeoutError("too slow"), Status.ERROR, "Error: too slow"),
    (MemoryError(), Status.ERROR, "Error: MemoryError"),
    (RecursionError("deep"), Status.ERROR, "Error: deep"),
    (Own("base"), Status.ERROR, "Error: Own: base"),
    (GROUP, Status.ERROR, "Error: two things: ValueError: first; ExceptionGroup: inner: TypeError: second"),
    (BaseExceptionGroup("all", [SystemExit(1)]), Status.ERROR, "Error: all: SystemExit: 1"),
    (Mute("x"), Status.ERROR, "Error: Mute (its message could not be read)"),
    (MuteByExit("x"), Status.ERROR, "Error: MuteByExit (its message could not be read)"),
    (Wordless("x"), Status.ERROR, "Error: Wordless (its message could not be read)"),
    (ToolError("Say it differently."), Status.ERROR, "Say it differently."),
    (Suspend("waiting for Ann"), Status.SUSPENDED, "waiting for Ann"),
]
KINDS = ["sync", "async", "async_late", "generator", "async_generator", "returns_awaitable"]


def failing(error: BaseException, kind: str) -> Callable[..., Any]:
    """A tool of some kind that raises `error`."""

    def sync() -> None:
        raise error

    async def straight() -> None:
        raise error

    async def late() -> None:
        await asyncio.sleep(0)
        raise error

    def generator() -> Iterator[str]:
        yield "a"
        raise error

    async def async_generator() -> Any:
        yield "a"
        raise error

    def returns_awaitable() -> Any:
        return late()

    several = (sync, straight, late, generator, async_generator, returns_awaitable)
    return dict(zip(KINDS, several, strict=True))[kind]


def ways(toolkit: Toolkit, name: str) -> Iterator[ToolResult]:
    """The results of every way to call a tool, on the fast path and off it."""
    policy = ExecutionPolicy(timeout=30)
    yield toolkit.call_sync(name)
    yield toolkit.call_sync(name, policy=policy)
    yield asyncio.run(toolkit.call(name))
    yield asyncio.run(toolkit.call(name, policy=policy))
    yield toolkit.prepare(name).execute_sync()
    yield from toolkit.call_many_sync([(name, {}), (name, {})])


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        yield made


class TestEveryKind:
    @pytest.mark.parametrize("kind", first(2, KINDS))
    @pytest.mark.parametrize(("error", "status", "text"), FAILURES, ids=lambda value: type(value).__name__)
    def test_is_a_result(self, toolkit: Toolkit, error: BaseException, status: Status, text: str, kind: str) -> None:
        toolkit.register(failing(error, kind), name="fails")
        for result in ways(toolkit, "fails"):
            assert result.status is status
            if status is Status.SUSPENDED:
                assert (result.text, result.error) == (text, None)
                continue
            assert result.error is not None
            if kind == "async_generator" and isinstance(error, StopAsyncIteration):
                assert "StopAsyncIteration" in result.text  # Python lets no other exception stand for it there
            else:
                yielded = "\nIts output until then:\na" if kind in ("generator", "async_generator") else ""
                assert result.text == text + yielded
                assert result.error.exception is error
            assert result.is_error
            assert result.value is None
            assert result.name == "fails"
            json.dumps(result.to_dict())
            assert pickle.loads(pickle.dumps(result)).text == result.text

    @pytest.mark.parametrize("kind", KINDS)
    def test_stop_iteration(self, toolkit: Toolkit, kind: str) -> None:
        # In coroutines and generators Python itself turns it into a RuntimeError.
        toolkit.register(failing(StopIteration("over"), kind), name="fails")
        for result in ways(toolkit, "fails"):
            assert result.status is Status.ERROR
            assert result.error is not None
            assert ("over" if kind == "sync" else "StopIteration") in result.error.message

    def test_stop_iteration_of_an_inline_tool(self, toolkit: Toolkit) -> None:
        toolkit.register(tool(backend="inline")(failing(StopIteration("over"), "sync")), name="fails")
        for result in ways(toolkit, "fails"):
            assert result.text == "Error: over"

    def test_deep_recursion(self, toolkit: Toolkit) -> None:
        def again(n: int = 0) -> int:
            return again(n + 1)

        toolkit.register(again)
        assert "maximum recursion depth" in toolkit.call_sync("again").text
        assert "maximum recursion depth" in asyncio.run(toolkit.call("again")).text

    def test_fault(self, toolkit: Toolkit) -> None:
        def fails() -> NoReturn:
            try:
                raise KeyError("cause")
            except KeyError as error:
                raise ValueError("Invalid input") from error

        toolkit.register(fails)
        fault = toolkit.call_sync("fails").error
        assert fault is not None
        assert (fault.kind, fault.message, fault.details) == ("exception", "Invalid input", {"type": "ValueError"})
        assert isinstance(fault.exception, ValueError)
        assert isinstance(fault.exception.__cause__, KeyError)


class TestMessages:
    @pytest.mark.parametrize("kind", [ValueError, ToolError])
    def test_fifty_megabytes_are_cut_and_say_so(self, toolkit: Toolkit, kind: type[Exception]) -> None:
        def fails() -> NoReturn:
            raise kind("start" + "x" * 50_000_000 + "end")

        toolkit.register(fails)
        result = toolkit.call_sync("fails")
        assert result.error is not None
        for text in (result.text, result.error.message):
            assert len(text) < 21_000
            assert "start" in text[:20]
            assert text.endswith("end")
            assert "characters cut here" in text
            assert "of 50000008" in text

    def test_a_group_of_thousands_is_short(self, toolkit: Toolkit) -> None:
        def fails() -> NoReturn:
            raise ExceptionGroup("many", [ValueError(f"number {n}") for n in range(10_000)])

        toolkit.register(fails)
        assert len(toolkit.call_sync("fails").text) < 1000

    def test_a_tool_error_without_words(self, toolkit: Toolkit) -> None:
        toolkit.register(failing(ToolError(), "sync"), name="fails")
        assert toolkit.call_sync("fails").text == "ToolError"

    def test_lone_surrogates_can_be_sent(self, toolkit: Toolkit) -> None:
        toolkit.register(failing(ValueError("\ud800"), "sync"), name="fails")
        json.dumps(toolkit.call_sync("fails").to_dict()).encode()


class TestWhenItIsRead:
    def test_a_result_says_what_was_wrong_then(self, toolkit: Toolkit) -> None:
        error = Own("then")

        def fail() -> None:
            raise error

        toolkit.register(fail)
        result = toolkit.call_sync("fail")
        error.args = ("now",)
        assert result.text == "Error: Own: then"
        assert result.content == (TextBlock("Error: Own: then"),)
        assert result.error is not None
        assert result.error is result.error
        assert result.error.message == "Own: then"
        assert result.error.details == {"type": "Own"}
        assert result.error.exception is error

    def test_a_dropped_result_lets_go_of_the_exception(self, toolkit: Toolkit) -> None:
        class Held(Exception):
            pass

        def hold() -> None:
            raise Held

        toolkit.register(hold)
        result = toolkit.call_sync("hold")
        assert result.error is not None
        assert result.error.exception is not None
        held = weakref.ref(result.error.exception)
        was_enabled = gc.isenabled()
        gc.disable()  # which would hide a cycle
        try:
            del result
            assert held() is None
        finally:
            if was_enabled:
                gc.enable()


class TestExposeErrors:
    def test_message(self) -> None:
        toolkit = Toolkit(plugins=(), expose_errors="message")
        toolkit.register(failing(ValueError("at /srv/db"), "sync"), name="fails")
        assert toolkit.call_sync("fails").text == "Error: at /srv/db"

    def test_redacted(self) -> None:
        toolkit = Toolkit(plugins=(), expose_errors="redacted")
        error = ValueError("at /srv/db")
        toolkit.register(failing(error, "sync"), name="fails")
        for result in ways(toolkit, "fails"):
            assert result.text == "Error: the tool failed"
            assert result.error is not None
            assert "/srv" not in result.error.message
            assert result.error.exception is error
        toolkit.close()

    def test_redacted_leaves_what_is_written_for_the_model(self) -> None:
        toolkit = Toolkit(plugins=(), expose_errors="redacted")
        toolkit.register(failing(ToolError("No such city."), "sync"), name="fails")
        assert toolkit.call_sync("fails").text == "No such city."

    def test_redacted_covers_results_that_cannot_be_converted(self) -> None:
        class Leaky:
            def __str__(self) -> str:
                raise ValueError("at /srv/db")

        toolkit = Toolkit(plugins=(), expose_errors="redacted")
        toolkit.register(lambda: Leaky(), name="leaks")  # noqa: PLW0108 - a class is no tool
        assert "/srv" not in toolkit.call_sync("leaks").text

    def test_redacted_covers_what_comes_before_the_tool(self) -> None:
        from pegboard import Computed

        def compute(call: Any) -> NoReturn:
            raise ValueError("at /srv/db")

        def use(token: str) -> str:
            return token

        def approver(request: Any) -> NoReturn:
            raise ValueError("at /srv/db")

        toolkit = Toolkit(plugins=(), expose_errors="redacted", approver=approver)
        toolkit.register(use, presets={"token": Computed(compute)})
        toolkit.register(tool(requires_approval=True)(lambda: 1), name="asks")
        for name in ("use", "asks"):
            result = toolkit.call_sync(name)
            assert result.is_error
            assert "/srv" not in result.text

    def test_traceback(self) -> None:
        toolkit = Toolkit(plugins=(), expose_errors="traceback")
        toolkit.register(failing(ValueError("Invalid input"), "sync"), name="fails")
        result = toolkit.call_sync("fails")
        assert result.text.startswith("Traceback")
        assert result.text.rstrip().endswith("ValueError: Invalid input")
        assert result.error is not None
        assert result.error.message == "Invalid input"

    def test_traceback_of_what_cannot_be_written(self) -> None:
        toolkit = Toolkit(plugins=(), expose_errors="traceback")
        for error in (Mute(), MuteByExit()):
            toolkit.register(failing(error, "sync"), name="fails", on_conflict="replace")
            assert type(error).__name__ in toolkit.call_sync("fails").text

    def test_an_unknown_mode(self) -> None:
        with pytest.raises(ValueError, match="expose_errors takes"):
            Toolkit(plugins=(), expose_errors="all")  # type: ignore[arg-type]


class TestLog:
    def test_the_full_exception(self, toolkit: Toolkit, caplog: pytest.LogCaptureFixture) -> None:
        toolkit.register(failing(ValueError("Invalid input"), "sync"), name="fails")
        with caplog.at_level(logging.INFO, logger="pegboard"):
            toolkit.call_sync("fails", call_id="c7")
        (record,) = caplog.records
        assert record.levelno == logging.INFO
        assert "c7" in record.getMessage()
        assert record.getMessage().endswith(": Invalid input")
        assert "Traceback" in caplog.text
        assert "ValueError: Invalid input" in caplog.text

    def test_success_is_debug(self, toolkit: Toolkit, caplog: pytest.LogCaptureFixture) -> None:
        toolkit.register(lambda: 1, name="works")
        with caplog.at_level(logging.INFO, logger="pegboard"):
            toolkit.call_sync("works")
        assert caplog.records == []
        with caplog.at_level(logging.DEBUG, logger="pegboard"):
            toolkit.call_sync("works")
        assert [record.levelno for record in caplog.records] == [logging.DEBUG]

    def test_secrets_are_masked(self, toolkit: Toolkit, caplog: pytest.LogCaptureFixture) -> None:
        def use(key: str) -> NoReturn:
            raise ValueError(f"bad key {key}")

        toolkit.register(use, presets={"key": Secret("s3cr3t-key-value")})
        with caplog.at_level(logging.DEBUG, logger="pegboard"):
            result = toolkit.call_sync("use")
        assert "s3cr3t" not in caplog.text
        assert "s3cr3t" not in json.dumps(result.to_dict())
        assert "bad key ***" in result.text

    def test_a_fresh_program_prints_nothing(self) -> None:
        script = (
            "from pegboard import Toolkit\n"
            "def fails() -> None: raise ValueError('x')\n"
            "t = Toolkit(plugins=()); t.register(fails); t.call_sync('fails'); t.close()\n"
        )
        assert printed(script, "-W", "error") == ""


class TestSiblings:
    @pytest.mark.parametrize("error", [case[0] for case in FAILURES], ids=lambda error: type(error).__name__)
    def test_are_unaffected(self, toolkit: Toolkit, error: BaseException) -> None:
        @tool
        async def fine(n: int) -> int:
            await asyncio.sleep(0.002)
            return n

        toolkit.register(fine)
        for kind in ("sync", "async", "async_late"):
            toolkit.register(failing(error, kind), name=kind)
        calls: list[Any] = [("fine", {"n": 0}), ("sync", {}), ("fine", {"n": 1}), ("async", {})]
        calls += [("async_late", {}), ("fine", {"n": 2})]
        for results in (asyncio.run(toolkit.call_many(calls)), toolkit.call_many_sync(calls)):
            assert [result.value for result in results] == [0, None, 1, None, None, 2]
        assert toolkit.call_sync("fine", {"n": 3}).value == 3


class TestTheCallerLeaves:
    def test_its_own_cancellation(self, toolkit: Toolkit) -> None:
        cleaned: list[str] = []

        async def wait() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cleaned.append("up")

        toolkit.register(wait)
        for policy in (None, ExecutionPolicy(timeout=30)):

            async def main(policy: ExecutionPolicy | None = policy) -> None:
                task = asyncio.create_task(toolkit.call("wait", policy=policy))
                await asyncio.sleep(0.005)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert task.cancelled()

            asyncio.run(main())
        assert cleaned == ["up", "up"]

    def test_its_own_timeout(self, toolkit: Toolkit) -> None:
        async def wait() -> None:
            await asyncio.Event().wait()

        toolkit.register(wait)

        async def main() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await toolkit.call("wait")

        asyncio.run(main())

    def test_a_tool_in_a_thread_is_told(self, toolkit: Toolkit) -> None:
        from pegboard import CancelToken

        told: list[bool] = []
        begun = threading.Event()

        def poll(token: CancelToken) -> None:
            begun.set()
            told.append(token.wait(10))

        async def later(token: CancelToken) -> None:
            begun.set()
            token.on_cancel(lambda: told.append(True))
            await asyncio.Event().wait()

        toolkit.register(poll, later)
        for name in ("poll", "later"):
            begun.clear()
            told.clear()

            async def main(name: str = name) -> None:
                task = asyncio.create_task(toolkit.call(name))
                await asyncio.to_thread(begun.wait, 10)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

            asyncio.run(main())
            assert eventually(lambda: told == [True])

    def test_a_cancelled_call_is_not_tried_again(self, toolkit: Toolkit) -> None:
        ran: list[int] = []

        async def fails() -> None:
            ran.append(1)
            raise ValueError("no")

        toolkit.register(fails)
        policy = ExecutionPolicy(max_attempts=3, initial_backoff=0.05, jitter=False)

        async def main() -> None:
            task = asyncio.create_task(toolkit.call("fails", policy=policy))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert ran == [1]


INTERRUPTED = """
import asyncio, os, signal, sys, threading, time
from pegboard import ExecutionPolicy, Toolkit, tool

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

def busy() -> None:
    interrupt()
    end = time.monotonic() + 600
    while time.monotonic() < end:
        pass

def sleepy() -> None:
    threading.Timer(0.1, interrupt).start()
    time.sleep(600)

async def later() -> None:
    threading.Timer(0.1, interrupt).start()
    await asyncio.sleep(600)

cleaned = []

async def idle() -> None:
    await asyncio.sleep(600)

async def cleans() -> None:
    threading.Timer(0.1, interrupt).start()
    try:
        await asyncio.sleep(600)
    finally:
        cleaned.append(1)

toolkit = Toolkit(plugins=())
toolkit.register(busy, sleepy, later, cleans, idle)
how, name = sys.argv[1:]
retry = ExecutionPolicy(max_attempts=5, retry_on=(BaseException,), initial_backoff=0.0)
try:
    if how == "sync":
        toolkit.call_sync(name)
    elif how == "retry":
        toolkit.call_sync(name, policy=retry)
    elif how == "many":
        toolkit.call_many_sync([(name, {}), ("idle", {})])
    else:
        asyncio.run(toolkit.call(name))
except KeyboardInterrupt:
    print("left")
else:
    print("stayed")
toolkit.close()
if name == "cleans":
    print(len(cleaned))
"""


class TestCtrlC:
    @pytest.mark.parametrize(
        ("how", "name"),
        first(
            3,
            [
                ("sync", "busy"),
                ("many", "later"),
                ("async", "cleans"),
                ("sync", "sleepy"),
                ("sync", "later"),
                ("retry", "busy"),
                ("async", "later"),
            ],
        ),
    )
    def test_a_real_one_leaves(self, path: str, how: str, name: str) -> None:
        command = [sys.executable, "-W", "error", "-c", as_calls_run(path) + INTERRUPTED, how, name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.stdout.split() == (["left", "1"] if name == "cleans" else ["left"]), done.stderr
        assert done.stderr == ""

    def test_one_that_a_tool_raises_stays(self, toolkit: Toolkit) -> None:
        toolkit.register(failing(KeyboardInterrupt("not real"), "sync"), name="fails")
        assert toolkit.call_sync("fails").text == "Error: KeyboardInterrupt: not real"

    def test_a_real_one_in_this_process(self, toolkit: Toolkit) -> None:
        def interrupted() -> None:
            signal.raise_signal(signal.SIGINT)

        toolkit.register(interrupted)
        with pytest.raises(KeyboardInterrupt):
            toolkit.call_sync("interrupted")
        with pytest.raises(KeyboardInterrupt):
            toolkit.prepare("interrupted").execute_sync()
