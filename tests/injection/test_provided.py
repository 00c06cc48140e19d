"""What the program provides is found once for a session, and never in one call for another."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from pegboard import Emitter, Injected, Status, ToolCall, Toolkit, ToolResult


class Db:
    def __init__(self, name: str) -> None:
        self.name = name


class Cache(Db):
    pass


def read(db: Injected[Db], key: str, table: str) -> str:
    """Read."""
    return f"{db.name}.{table}.{key} in {threading.current_thread() is threading.main_thread()}"


async def read_later(db: Injected[Db], key: str, table: str) -> str:
    """Read."""
    return read(db, key, table)


Call = Callable[..., ToolResult]


@pytest.fixture(params=["plain", "loop", "loop, sync tool"])
def call(request: pytest.FixtureRequest) -> Call:
    """Calls in one of the ways that need no steps: `call(session, **options)`."""

    def run(session: Any, **options: Any) -> ToolResult:
        if request.param == "plain":
            return cast("ToolResult", session.call_sync("read", '{"key": "k"}', **options))
        name = "read" if "sync" in request.param else "read_later"
        return cast("ToolResult", asyncio.run(session.call(name, '{"key": "k"}', **options)))

    return run


def board(**options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=(), **options)
    toolkit.register(read, read_later, presets={name: {"table": "t"} for name in ("read", "read_later")})
    return toolkit


def source(result: ToolResult) -> str:
    assert result.status is Status.SUCCESS, result
    return str(result.value).partition(" ")[0]


def test_each_session_and_each_call_has_its_own(call: Call) -> None:
    with board(context=Db("wide")) as toolkit:
        session = toolkit.session(context=Db("narrow"))
        for _ in range(3):
            assert source(call(toolkit)) == "wide.t.k"
            assert source(call(session)) == "narrow.t.k"
            assert source(call(session, context=Db("call"))) == "call.t.k"
            assert source(call(toolkit, context=[Cache("subclass")])) == "subclass.t.k"
            assert source(call(toolkit, agent=Db("agent"))) == "agent.t.k"
            assert source(call(toolkit, agent=object(), context=())) == "wide.t.k"


def test_what_is_missing_is_looked_for_again(call: Call) -> None:
    with board() as toolkit:
        for _ in range(2):
            missing = call(toolkit)
            assert (missing.status, missing.error and missing.error.kind) == (Status.INVALID, "missing_context")
            assert source(call(toolkit, context=Db("call"))) == "call.t.k"


def test_a_context_that_cannot_be_read_is_no_fault_of_the_tool(call: Call) -> None:
    with board(context=Db("wide")) as toolkit:
        for _ in range(2):
            result = call(toolkit, context={3: "no name and no class"})
            assert (result.status, result.error and result.error.kind) == (Status.ERROR, "setup")
        assert source(call(toolkit)) == "wide.t.k"


def test_presets_are_those_of_now(call: Call) -> None:
    with board(context=Db("wide")) as toolkit:
        session = toolkit.session()
        assert source(call(session)) == "wide.t.k"
        for name in ("read", "read_later"):
            toolkit.set_presets(name, {"table": "new", "db": Db("preset")})
        assert source(call(session)) == source(call(toolkit)) == "preset.new.k"


def test_a_sync_tool_with_a_context_leaves_the_loop_alone() -> None:
    with board(context=Db("wide")) as toolkit:
        for _ in range(2):
            assert asyncio.run(toolkit.call("read", '{"key": "k"}')).value == "wide.t.k in False"


def test_what_belongs_to_the_call_is_never_kept() -> None:
    heard: list[Emitter] = []

    def report(call: ToolCall, emitter: Emitter, db: Injected[Db]) -> str:
        heard.append(emitter)
        return f"{call.id} {db.name}"

    with Toolkit(plugins=(), context=Db("wide")) as toolkit:
        toolkit.register(report)
        ids = [toolkit.call_sync("report", "{}", call_id=f"id-{n}").value for n in range(3)]
    assert ids == ["id-0 wide", "id-1 wide", "id-2 wide"]
    assert len({id(each) for each in heard}) == 3
