"""A pack's tool and the program's have one name: the alias of the pack's, `acme__near`, always means the pack's."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pegboard import Status, Toolkit, ToolResult, tool
from tests.support.waiting import within
from tests.toolkit.test_offers import pack

TERMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "approval": {"requires_approval": True},
    "sometimes": {"requires_approval": lambda arguments: True},
    "exclusive": {"exclusive": True},
    "lock": {"locks": "x"},
    "timeout": {"timeout": 60.0},
}
WAYS: dict[str, Callable[[Toolkit, str], ToolResult]] = {
    "call_sync": lambda toolkit, name: toolkit.call_sync(name),
    "call": lambda toolkit, name: within(lambda: asyncio.run(toolkit.call(name))),
    "prepare": lambda toolkit, name: toolkit.prepare(name).execute_sync(),
    "call_many": lambda toolkit, name: toolkit.call_many_sync([(name, {})])[0],
}


def board(kind: str, **terms: Any) -> Toolkit:
    """A toolkit on which pack `acme` and the program both offer `near`."""

    @tool(name="near", **terms)
    def offered() -> str:
        return "pack"

    @tool(name="near", **terms)
    async def offered_later() -> str:
        await asyncio.sleep(0)
        return "pack"

    toolkit = Toolkit(
        plugins=[pack("acme", offered if kind == "sync" else offered_later)], approver=lambda request: True
    )
    toolkit.register(lambda: "program", name="near")
    return toolkit


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("way", WAYS)
def test_an_alias_calls_the_tool_that_it_names(way: str, terms: str, kind: str) -> None:
    with board(kind, **TERMS[terms]) as toolkit:
        assert [WAYS[way](toolkit, name).value for name in ("acme__near", "near")] == ["pack", "program"]


def test_what_is_decided_anew_is_the_same_tool() -> None:
    """While the approver is asked, the program registers another tool: the call goes on with the one that it named."""
    with board("sync", requires_approval=True) as toolkit:

        def approver(request: Any) -> bool:
            toolkit.register(lambda: "other", name=f"other_{len(toolkit)}")
            return True

        result = toolkit.session(approver=approver).call_sync("acme__near")
        assert (result.status, result.value) == (Status.SUCCESS, "pack")
