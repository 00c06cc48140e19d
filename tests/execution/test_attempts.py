"""How many attempts a result counts: runs of the function, and none for a call whose function never began."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from pegboard import CancelToken, ExecutionPolicy, Injected, Injector, Middleware, Status, Toolkit, ToolResult, hookimpl
from tests.support.waiting import within

pytestmark = pytest.mark.usefixtures("path")


class Db:
    """What the program did not provide."""


class Broken:
    """What cannot be opened."""


def opened() -> Any:
    raise OSError("no connection")


def add(a: int) -> int:
    """Add one."""
    return a + 1


def needs(db: Injected[Db]) -> str:
    """Need what is missing."""
    return "ran"


def opens(broken: Broken) -> str:
    """Need what cannot be opened."""
    return "ran"


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        made.register_injector(Injector(Broken, opened))
        made.create_group("off", active=False)
        made.register(add, needs, opens)
        made.register(add, name="asked")
        made.set_permission("asked", "prompt")
        made.register(add, name="never")
        made.set_permission("never", "never")
        made.register(add, name="inactive", group="off")
        yield made


def everywhere(toolkit: Toolkit, name: str, arguments: Any) -> Iterator[ToolResult]:
    yield toolkit.call_sync(name, arguments)
    yield within(lambda: asyncio.run(toolkit.call(name, arguments)))
    yield toolkit.prepare(name, arguments).execute_sync()
    yield from within(lambda: toolkit.call_many_sync([(name, arguments)]))


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [
        ("add", {"a": "x"}, Status.INVALID),
        ("add", "{", Status.INVALID),
        ("nope", {}, Status.NOT_FOUND),
        ("asked", {"a": 1}, Status.DENIED),
        ("never", {"a": 1}, Status.DENIED),
        ("inactive", {"a": 1}, Status.INACTIVE),
        ("needs", {}, Status.INVALID),
        ("opens", {}, Status.ERROR),
    ],
)
def test_a_call_whose_function_never_began_has_none(
    toolkit: Toolkit, name: str, arguments: Any, status: Status
) -> None:
    for result in everywhere(toolkit, name, arguments):
        assert (result.status, result.attempts) == (status, 0)


def test_a_call_that_ran_has_one(toolkit: Toolkit) -> None:
    for result in everywhere(toolkit, "add", {"a": 1}):
        assert (result.status, result.attempts) == (Status.SUCCESS, 1)


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_function_that_failed_ran(toolkit: Toolkit, attempts: int) -> None:
    def fail() -> None:
        raise ValueError("no")

    toolkit.register(fail)
    for result in [toolkit.call_sync("fail", policy=ExecutionPolicy(max_attempts=attempts, initial_backoff=0.0))]:
        assert (result.status, result.attempts) == (Status.ERROR, attempts)


def test_what_cannot_be_turned_into_a_result_ran(toolkit: Toolkit) -> None:
    class Odd:
        def __repr__(self) -> str:
            raise ValueError("no")

    toolkit.register(lambda: [Odd()], name="odd")
    for result in everywhere(toolkit, "odd", {}):
        assert (result.status, result.attempts) == (Status.ERROR, 1)


def test_a_call_stopped_before_it_began_has_none(toolkit: Toolkit) -> None:
    call = toolkit.prepare("add", {"a": 1})
    call.stop()
    assert call.result is not None
    assert (call.result.status, call.result.attempts) == (Status.CANCELLED, 0)


def test_a_context_that_cannot_be_read_begins_nothing(toolkit: Toolkit) -> None:
    result = toolkit.call_sync("add", {"a": 1}, context={3: Db()})
    assert (result.status, result.attempts) == (Status.ERROR, 0)


def test_middleware_that_answers_itself_begins_nothing() -> None:
    class Caching:
        @hookimpl
        def provide_middleware(self) -> list[Middleware]:
            return [Middleware(lambda call, proceed: ToolResult(call.id, call.name, Status.SUCCESS))]

    with Toolkit(plugins=[Caching()]) as toolkit:
        toolkit.register(add)
        for result in everywhere(toolkit, "add", {"a": 1}):
            assert (result.status, result.attempts) == (Status.SUCCESS, 0)


def test_a_second_attempt_that_cannot_begin_is_not_counted(toolkit: Toolkit) -> None:
    ran: list[int] = []

    class Flaky:
        """Opens once."""

    def once() -> Flaky:
        if ran:
            raise OSError("no connection")
        return Flaky()

    def fail(flaky: Flaky, token: CancelToken) -> None:
        ran.append(1)
        raise ValueError("no")

    toolkit.register_injector(Injector(Flaky, once))
    toolkit.register(fail)
    result = toolkit.call_sync("fail", policy=ExecutionPolicy(max_attempts=3, initial_backoff=0.0))
    assert (result.status, result.attempts, len(ran)) == (Status.ERROR, 1, 1)
