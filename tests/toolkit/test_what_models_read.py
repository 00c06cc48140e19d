"""What a model reads when a call fails: a sentence or a few, what to do next, and nothing of the program's own API."""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pegboard
from pegboard import (
    Approval,
    Computed,
    ExecutionPolicy,
    Injected,
    Middleware,
    Status,
    Suspend,
    Tool,
    ToolError,
    Toolkit,
    ToolResult,
    hookimpl,
    tool,
)
from tests.support.waiting import within

LONGEST = 200


class Db: ...


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def ask(db: Injected[Db]) -> None:
    """Ask."""


def fail(how: str) -> Any:
    """Fail."""
    if how == "suspend":
        raise Suspend
    if how == "tool_error":
        raise ToolError("There is no such city; ask for another one.")
    if how == "conversion":
        endless: list[Any] = []
        endless.append(endless)
        return endless
    raise ValueError("kaputt")


@tool(requires_approval=lambda arguments: True)
def spend(amount: int) -> int:
    """Spend."""
    return amount


async def wait() -> None:
    """Wait."""
    await asyncio.sleep(10)


def board(**options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=(), **options)
    toolkit.create_group("off", active=False)
    toolkit.register(add, ask, fail, spend, wait, Tool.external("outside", "Runs elsewhere", {"type": "object"}))
    toolkit.register(add, name="inactive", group="off")
    toolkit.register(add, name="computed", presets={"b": Computed(lambda call: 1 // 0)})
    return toolkit


def approving(answer: Any) -> ToolResult:
    return board(approver=lambda request: answer).call_sync("spend", {"amount": 1})


def never() -> ToolResult:
    toolkit = board()
    toolkit.set_permission("add", "never")
    return toolkit.call_sync("add", {"a": 1})


def prompt() -> ToolResult:
    toolkit = board()
    toolkit.set_permission("add", "prompt")
    return toolkit.call_sync("add", {"a": 1})


def with_meta_tool() -> ToolResult:
    toolkit = board()
    toolkit.register_meta_tool()
    return toolkit.call_sync("inactive", {"a": 1})


def unknown_group() -> ToolResult:
    toolkit = board()
    toolkit.register_meta_tool()
    return toolkit.call_sync("reset_equipped_tools", {"to_activate": ["of"]})


def foreign() -> ToolResult:
    toolkit = board()
    return toolkit.session().call_sync(toolkit.prepare("add", {"a": 1}))


def stopped() -> ToolResult | None:
    call = board().prepare("add", {"a": 1})
    call.stop()
    return call.result


def closed() -> ToolResult:
    toolkit = board()
    toolkit.close()
    return toolkit.call_sync("wait")


def unreadable() -> ToolResult:
    toolkit = board()
    toolkit.register("no_such_module_at_all:tool", name="broken")
    return toolkit.call_sync("broken")


def forgetful() -> ToolResult:
    class Plugin:
        @hookimpl
        def provide_middleware(self) -> list[Middleware]:
            around: Any = lambda call, proceed: None  # noqa: E731 - a type checker would refuse it as an argument
            return [Middleware(around, name="forgetful")]

    toolkit = Toolkit(plugins=[Plugin()])
    toolkit.register(add)
    return toolkit.call_sync("add", {"a": 1})


def waits_for_itself() -> ToolResult:
    async def main() -> ToolResult:
        toolkit = board()
        call = toolkit.prepare("wait")
        running = asyncio.create_task(call.execute())
        await asyncio.sleep(0)
        result = call.execute_sync()
        running.cancel()
        return result

    return within(lambda: asyncio.run(main()))


def of_another_loop() -> ToolResult:
    async def main() -> ToolResult:
        toolkit, future = board(), asyncio.get_running_loop().create_future()

        async def answer() -> Any:
            return await future

        toolkit.register(answer)
        return toolkit.call_sync("answer")

    return within(lambda: asyncio.run(main()))


CASES: dict[str, Callable[[], ToolResult | None]] = {
    "not_found": lambda: board().call_sync("ad"),
    "no_name": lambda: board().call_sync(5),  # type: ignore[arg-type]
    "invalid": lambda: board().call_sync("add", {"a": "x", "c": 1}),
    "no_json": lambda: board(repair="max").call_sync("add", '{"a": '),
    "no_object": lambda: board().call_sync("add", "[1]"),
    "twice": lambda: board().call_sync("add", '{"a": 1, "a": 2}'),
    "missing_context": lambda: board().call_sync("ask"),
    "two_contexts": lambda: board().call_sync("ask", context=[Db(), Db()]),
    "bad_context": lambda: board().call_sync("ask", context={5: Db()}),
    "computed": lambda: board().call_sync("computed", {"a": 1}),
    "never": never,
    "prompt": prompt,
    "nobody": lambda: board().call_sync("spend", {"amount": 1}),
    "refused": lambda: approving(answer=False),
    "with_reason": lambda: approving(Approval.deny("it is too late")),
    "no_answer": lambda: approving(5),
    "inactive": lambda: board().call_sync("inactive", {"a": 1}),
    "with_meta_tool": with_meta_tool,
    "unknown_group": unknown_group,
    "raises": lambda: board().call_sync("fail", {"how": "raise"}),
    "tool_error": lambda: board().call_sync("fail", {"how": "tool_error"}),
    "suspended": lambda: board().call_sync("fail", {"how": "suspend"}),
    "conversion": lambda: board().call_sync("fail", {"how": "conversion"}),
    "external": lambda: board().call_sync("outside"),
    "timeout": lambda: board().call_sync("wait", policy=ExecutionPolicy(timeout=0.01)),
    "foreign": foreign,
    "stopped": stopped,
    "closed": closed,
    "unreadable": unreadable,
    "middleware": forgetful,
    "waits_for_itself": waits_for_itself,
    "of_another_loop": of_another_loop,
}


def words_of_the_api() -> Iterator[str]:
    """What a program writes and a model cannot; some names are words of the language too, and are left out."""
    yield from ("toolkit.", "await ", "pip install", "()", "approver", "context", "proceed", "execute")
    for cls in (pegboard.Toolkit, pegboard.Session, pegboard.ToolCall):
        yield from (name for name in dir(cls) if "_" in name.strip("_") and not name.startswith("_"))
    yield from (name for name in pegboard.__all__ if re.search(r"[a-z][A-Z]|_", name))


@pytest.mark.parametrize("case", CASES)
def test_no_text_names_the_programs_api(case: str) -> None:
    result = CASES[case]()
    assert result is not None
    assert result.status is not Status.SUCCESS
    text = result.text.replace("read_output", "")
    assert 0 < len(text) <= LONGEST
    assert "\n\n" not in text
    said = [word for word in words_of_the_api() if re.search(rf"(?<!\w){re.escape(word)}", text)]
    assert not said, f"{text!r} says {said}"


@pytest.mark.parametrize(
    ("case", "remedy"),
    [
        ("prompt", "approver="),
        ("nobody", "set_permission('spend', \"always\")"),
        ("never", "set_permission('add', \"always\")"),
        ("inactive", "update_groups(['off'], True)"),
        ("missing_context", "toolkit.session(...)"),
        ("two_contexts", "Inject("),
        ("no_answer", "True, False or an Approval"),
        ("foreign", "execute()"),
        ("middleware", "proceed()"),
        ("waits_for_itself", "await call.execute()"),
        ("of_another_loop", "await toolkit.call(...)"),
    ],
)
def test_what_the_program_may_do_is_in_the_details(case: str, remedy: str) -> None:
    result = CASES[case]()
    assert result is not None
    assert result.error is not None
    assert remedy in result.error.details["remedy"]


@pytest.mark.parametrize(("case", "reason"), [("unreadable", "no_such_module"), ("bad_context", "context keys")])
def test_and_why(case: str, reason: str) -> None:
    result = CASES[case]()
    assert result is not None
    assert result.error is not None
    assert reason in result.error.details["reason"]
