"""Middleware around whole calls: it hears of every call once, and changes nothing of how it runs."""

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard import (
    Computed,
    EnteredCall,
    Guard,
    Middleware,
    Secret,
    Status,
    Suspend,
    ToolCall,
    Toolkit,
    ToolResult,
    Verdict,
    hookimpl,
    tool,
)
from tests.support.calls import call_and_cancel


class Watching:
    """A plugin that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.calls: list[EnteredCall] = []
        self.told: list[tuple[str, dict[str, Any]]] = []

    def around(self, call: EnteredCall, proceed: Callable[[], Any]) -> Any:
        self.calls.append(call)
        name = "" if call.tool is None else call.tool.name
        try:
            result = proceed()
        except BaseException as error:
            self.heard.append((name, type(error).__name__))
            raise
        return self._end(name, result) if isinstance(result, ToolResult) else self._later(name, result)

    async def _later(self, name: str, result: Any) -> ToolResult:
        try:
            while not isinstance(result, ToolResult):
                result = await result
        except BaseException as error:
            self.heard.append((name, type(error).__name__))
            raise
        return self._end(name, result)

    def _end(self, name: str, result: ToolResult) -> ToolResult:
        self.heard.append((name, result.status.value))
        return result

    @hookimpl
    def provide_middleware(self) -> list[Middleware]:
        return [Middleware(self.around, whole=True, told=lambda what, details: self.told.append((what, dict(details))))]


@pytest.fixture
def watching() -> Watching:
    return Watching()


def add(a: int, b: int = 0) -> int:
    """Add."""
    return a + b


async def later(seconds: float = 0.0) -> str:
    """Take its time."""
    await asyncio.sleep(seconds)
    return "late"


def board(watching: Watching, *tools: Any, **options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=[watching], **options)
    toolkit.register(*(tools or (add, later)))
    return toolkit


CALLS: list[tuple[str, Any, tuple[str, str]]] = [
    ("add", {"a": 1}, ("add", "success")),
    ("add", {"a": "x"}, ("add", "invalid")),
    ("add", "{", ("add", "invalid")),
    ("later", None, ("later", "success")),
    ("made_up", {}, ("", "not_found")),
]


@pytest.mark.parametrize(("name", "sent", "heard"), CALLS)
class TestOnce:
    def test_sync(self, watching: Watching, name: str, sent: Any, heard: Any) -> None:
        board(watching).call_sync(name, sent)
        assert watching.heard == [heard]

    def test_on_a_loop(self, watching: Watching, name: str, sent: Any, heard: Any) -> None:
        asyncio.run(board(watching).call(name, sent))
        assert watching.heard == [heard]

    def test_with_a_listener(self, watching: Watching, name: str, sent: Any, heard: Any) -> None:
        asyncio.run(board(watching).call(name, sent, on_chunk=print))
        assert watching.heard == [heard]

    @pytest.mark.parametrize("on_loop", [False, True])
    def test_prepared(self, watching: Watching, name: str, sent: Any, heard: Any, on_loop: bool) -> None:
        call = board(watching).prepare(name, sent)
        for _ in range(2):
            if on_loop:
                asyncio.run(call.execute())
            else:
                call.execute_sync()
        assert watching.heard == [heard]

    def test_in_a_batch(self, watching: Watching, name: str, sent: Any, heard: Any) -> None:
        board(watching).call_many_sync([(name, sent), (name, sent)])
        assert watching.heard == [heard, heard]


class TestWhatItHears:
    def test_the_call(self, watching: Watching) -> None:
        ann = SimpleNamespace(name="Ann")
        toolkit = board(watching, agent=ann)
        toolkit.call_sync("add", {"a": 1})
        toolkit.prepare("add", {"a": 1}).execute_sync(agent=None)
        said = [(call.tool and call.tool.name, call.arguments, call.agent) for call in watching.calls]
        assert said == [("add", {"a": 1}, ann), ("add", {"a": 1}, ann)]

    def test_of_calls_that_never_run(self, watching: Watching) -> None:
        toolkit = board(watching)
        toolkit.prepare("add", {"a": 1}).stop()
        toolkit.suspend(toolkit.prepare("add", {"a": 1}))
        toolkit.set_permission("add", "never")
        toolkit.prepare("add", {"a": 1})
        toolkit.call_sync("add", {"a": 1})
        assert watching.heard == [("add", "cancelled"), ("add", "suspended"), ("add", "denied"), ("add", "denied")]

    def test_a_caller_who_leaves(self, watching: Watching) -> None:
        async def leave() -> None:
            task = asyncio.create_task(board(watching).call("later", {"seconds": 60}))
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])

        asyncio.run(leave())
        assert watching.heard == [("later", "CancelledError")]

    def test_one_that_is_suspended_is_heard_once(self, watching: Watching) -> None:
        def wait() -> None:
            """Wait."""
            raise Suspend("later")

        toolkit = board(watching, wait)
        toolkit.resume(toolkit.call_sync("wait").call_id, 1)
        assert watching.heard == [("wait", "suspended")]

    def test_approval(self, watching: Watching) -> None:
        toolkit = board(watching, tool(requires_approval=True)(lambda_free()), approver=lambda asked: False)
        toolkit.call_sync("nothing")
        assert watching.told == [("approval", {"answer": "denied"})]
        assert watching.heard == [("nothing", "denied")]

    def test_the_id_and_the_parent_of_a_call(self, watching: Watching) -> None:
        toolkit = board(watching)
        toolkit.call_sync("add", {"a": 1}, call_id="c1")
        toolkit.call_sync("made_up", call_id="c2")
        toolkit.call_sync(ToolCall("c3", "add", {"a": 1}, {"parent": "c1"}))
        result = toolkit.call_sync("add", {"a": 1})
        found = [(call.call_id, call.parent) for call in watching.calls]
        assert found == [("c1", None), ("c2", None), ("c3", "c1"), (result.call_id, None)]

    @pytest.mark.parametrize("permission", ["never", "prompt", None])
    def test_a_denial_by_a_guard(self, watching: Watching, permission: Any) -> None:
        class Strict:
            @hookimpl
            def provide_guards(self) -> list[Guard]:
                return [Guard(lambda tool: None, check=lambda call: Verdict(permission=permission))]

        toolkit = Toolkit(plugins=[watching, Strict()], approver=lambda request: True)
        toolkit.register(add)
        toolkit.call_sync("add", {"a": 1})
        denied, approved = [("denial", {"by": "guard"})], [("approval", {"answer": "approved"})]
        assert watching.told == {"never": denied, "prompt": approved, None: []}[permission]

    def test_the_answer_of_a_suspended_call(self, watching: Watching) -> None:
        def ask() -> str:
            """Ask a person."""
            raise Suspend("may I?")

        toolkit = board(watching, ask)
        call = toolkit.prepare("ask")
        call.execute_sync()
        result = toolkit.resume(call.id, "yes")
        assert watching.told == [("resumed", {"call": call, "result": result})]

    def test_the_answer_that_a_tool_goes_on_with(self, watching: Watching) -> None:
        def ask(key: str) -> str:
            """Ask a person, twice."""
            raise Suspend("may I?", resume=again)

        def again(answer: str) -> str:
            raise Suspend("really?", resume=f"{answer} {{}}".format)

        toolkit = board(watching, ask)
        toolkit.set_presets("ask", {"key": Secret("hunter2")})
        call = toolkit.prepare("ask")
        call.execute_sync()
        toolkit.resume(call.id, "yes")
        assert watching.told == []  # it waits again
        result = toolkit.resume(call.id, "hunter2")
        assert watching.told == [("resumed", {"call": call, "result": result})]
        assert "hunter2" not in repr(watching.told)

    @pytest.mark.parametrize("secret", [Secret("hunter2"), Secret(Computed(lambda call: "hunter2"))])
    def test_a_call_knows_its_secrets_once_it_has_run(self, secret: Any) -> None:
        shown: list[Any] = []

        class Inner:
            @hookimpl
            def provide_middleware(self) -> list[Middleware]:
                def around(call: ToolCall, proceed: Callable[[], Any]) -> Any:
                    result = proceed()
                    shown.append(None if call.redact is None else call.redact("key hunter2"))
                    return result

                return [Middleware(around)]

        toolkit = Toolkit(plugins=[Inner()])
        toolkit.register(add)
        toolkit.register(lambda key: "in", name="login", description="Log in.")
        toolkit.set_presets("login", {"key": secret})
        toolkit.call_sync("login")
        toolkit.call_sync("add", {"a": 1})
        assert shown == ["key ***", None]
        assert ToolCall("c1", "add").redact is None

    def test_secrets(self, watching: Watching) -> None:
        toolkit = Toolkit(plugins=[watching])
        toolkit.register(add, presets={"add": {"b": Secret(1234567)}})
        toolkit.register(add, name="computed", presets={"b": Secret(Computed(lambda call: 1234567))})
        toolkit.call_sync("add", {"a": 1})
        toolkit.call_sync("computed", {"a": 1})
        first, second = watching.calls
        assert first.redact is not None
        assert first.redact("it is 1234567") == "it is ***"
        assert second.redact is None

    def test_order(self) -> None:
        said: list[str] = []

        class Nested:
            @hookimpl
            def provide_middleware(self) -> list[Middleware]:
                def named(name: str) -> Callable[[Any, Any], Any]:
                    def around(call: EnteredCall, proceed: Callable[[], Any]) -> Any:
                        said.append(name)
                        return proceed()

                    return around

                return [Middleware(named("inner"), order=2, whole=True), Middleware(named("outer"), whole=True)]

        toolkit = Toolkit(plugins=[Nested()])
        toolkit.register(add)
        assert toolkit.call_sync("add", {"a": 1}).value == 1
        assert said == ["outer", "inner"]


class Failing:
    """A plugin whose middleware around whole calls fails, before or after the call itself, or gives no result."""

    def __init__(self, when: str, error: BaseException | None = None) -> None:
        self._when = when
        self._error = error or ValueError("no room")

    def around(self, call: EnteredCall, proceed: Callable[[], Any]) -> Any:
        if self._when == "before":
            raise self._error
        result = proceed()
        if isinstance(result, ToolResult):
            return self._after(result)
        return self._later(result)

    async def _later(self, result: Any) -> Any:
        while not isinstance(result, ToolResult):
            result = await result
        return self._after(result)

    def _after(self, result: ToolResult) -> Any:
        if self._when == "nothing":
            return None
        raise self._error

    @hookimpl
    def provide_middleware(self) -> list[Middleware]:
        return [Middleware(self.around, whole=True)]


def everywhere(toolkit: Toolkit, name: str, sent: Any) -> Iterator[ToolResult]:
    """The result of a call, made in every way."""

    async def streamed() -> list[ToolResult]:
        return [event async for event in toolkit.stream([(name, sent)]) if isinstance(event, ToolResult)]

    yield toolkit.call_sync(name, sent)
    yield asyncio.run(toolkit.call(name, sent))
    yield asyncio.run(toolkit.call(name, sent, on_chunk=lambda chunk: None))
    for on_loop in (False, True):
        call = toolkit.prepare(name, sent)
        result = asyncio.run(call.execute()) if on_loop else call.execute_sync()
        assert call.result is result
        assert call.status is result.status
        assert call.execute_sync() is result
        yield result
    yield from toolkit.call_many_sync([(name, sent), (name, sent)])
    yield from asyncio.run(toolkit.call_many([(name, sent), (name, sent)]))
    yield from asyncio.run(streamed())


class TestThatFails:
    @pytest.mark.parametrize("when", ["before", "after", "nothing"])
    @pytest.mark.parametrize(("name", "sent"), [(name, sent) for name, sent, _ in CALLS])
    def test_is_an_error_result_everywhere(self, when: str, name: str, sent: Any) -> None:
        toolkit = Toolkit(plugins=[Failing(when)])
        toolkit.register(add, later)
        for result in everywhere(toolkit, name, sent):
            assert result.error is not None
            assert (result.status, result.error.kind) == (Status.ERROR, "middleware")
            reason = "not a ToolResult" if when == "nothing" else "no room"
            assert f"what the program has put around {name} failed: " in result.text
            assert reason in result.text

    @pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError(), KeyboardInterrupt(), StopIteration()])
    @pytest.mark.parametrize("when", ["before", "after"])
    def test_whatever_it_raises(self, when: str, error: BaseException) -> None:
        toolkit = Toolkit(plugins=[Failing(when, error)])
        toolkit.register(add)
        for result in everywhere(toolkit, "add", {"a": 1}):
            assert result.status is Status.ERROR

    def test_is_counted_once(self) -> None:
        for when in ("before", "after"):
            toolkit = Toolkit(plugins=[Failing(when)])
            toolkit.register(add)
            toolkit.call_sync("add", {"a": 1})
            toolkit.prepare("add", {"a": 1}).execute_sync()
            assert toolkit.stats["tools"]["add"]["calls"] == 2
            assert toolkit.stats["running"] == 0

    def test_the_callers_own_cancellation_leaves(self) -> None:
        toolkit = Toolkit(plugins=[Failing("after")])
        toolkit.register(later)
        call_and_cancel(toolkit, "later", {"seconds": 60})

    def test_shows_no_more_than_other_errors(self) -> None:
        toolkit = Toolkit(plugins=[Failing("before")], expose_errors="redacted")
        toolkit.register(add)
        result = toolkit.call_sync("add", {"a": 1})
        assert result.text == "Error: what the program has put around add failed"

    def test_a_prepared_call_that_it_answers_itself_has_that_result(self) -> None:
        class Answering:
            @hookimpl
            def provide_middleware(self) -> list[Middleware]:
                return [Middleware(lambda call, proceed: ToolResult("1", "add", content="cached"), whole=True)]

        toolkit = Toolkit(plugins=[Answering()])
        toolkit.register(add)
        call = toolkit.prepare("add", {"a": 1})
        assert call.execute_sync() is call.result is call.execute_sync()


def lambda_free() -> Callable[[], None]:
    """Make a tool of one test alone."""

    def nothing() -> None:
        """Do nothing."""

    return nothing
