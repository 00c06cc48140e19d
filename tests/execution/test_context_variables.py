"""Context variables of the caller reach every kind of tool, and what a tool sets stays with it."""

import asyncio
import contextvars
from collections.abc import Iterator

import pytest

from pegboard import Toolkit, tool
from tests.support.calls import both

pytestmark = pytest.mark.usefixtures("path")

user = contextvars.ContextVar("user", default="nobody")


def test_reach_every_kind_of_tool(toolkit: Toolkit) -> None:
    def who() -> str:
        return user.get()

    async def later() -> str:
        await asyncio.sleep(0)
        return user.get()

    def drawn() -> Iterator[str]:
        yield user.get()

    toolkit.register(who, name="plain")
    toolkit.register(tool(timeout=60)(lambda: who()), name="thread")  # noqa: PLW0108 - `who` itself stays plain
    toolkit.register(later, drawn)

    def work() -> None:
        user.set("ann")
        for name in ("plain", "thread", "later", "drawn"):
            assert [result.value for result in both(toolkit, name)] == ["ann", "ann"], name
        assert [each.value for each in toolkit.call_many_sync([("plain", {}), ("thread", {}), ("later", {})])] == [
            "ann"
        ] * 3

    contextvars.copy_context().run(work)


def test_what_a_thread_sets_stays_there(toolkit: Toolkit) -> None:
    @tool(name="set", timeout=60)
    def change() -> None:
        user.set("bob")

    toolkit.register(change)
    toolkit.call_sync("set")
    asyncio.run(toolkit.call("set"))
    assert user.get() == "nobody"
