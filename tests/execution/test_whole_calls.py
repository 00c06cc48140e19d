"""Middleware around whole calls: it hears of every call once, and changes nothing of how it runs."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard import Computed, EnteredCall, Middleware, Secret, Suspend, Toolkit, ToolResult, hookimpl, tool


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


def lambda_free() -> Callable[[], None]:
    """Make a tool that nobody else has."""

    def nothing() -> None:
        """Do nothing."""

    return nothing
