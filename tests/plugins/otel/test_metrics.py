"""The metric says what `toolkit.stats` says."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from attrs import define
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider

from pegboard import ExecutionPolicy, Suspend, ToolError, Toolkit, tool
from pegboard_otel import _record
from pegboard_otel._record import MAX_VALUES
from tests.plugins.otel import conventions
from tests.plugins.otel.conftest import Collected, provide
from tests.plugins.otel.test_spans import Ann, add, fail, later

Board = Callable[..., Toolkit]
TWICE = ExecutionPolicy(max_attempts=2, initial_backoff=0.0)


@tool(requires_approval=True)
def ask(word: str) -> str:
    """Ask before it runs."""
    return word


@tool(timeout=0.001)
async def slow() -> None:
    """Take longer than it may."""
    await asyncio.sleep(60)


@tool(policy=TWICE)
def retried(seen: list[int]) -> int:
    """Fail, and then perhaps not."""
    if sum(seen) != len(seen):
        raise ConnectionError("not yet")
    return 1


@tool(policy=ExecutionPolicy(max_attempts=2, initial_backoff=0.0, timeout=0.001))
async def late(word: str) -> str:
    """Take longer than it may, twice."""
    await asyncio.sleep(60)
    return word


def refuse() -> None:
    """Tell the model what is wrong."""
    raise ToolError("no")


def suspend() -> None:
    """Wait for a person."""
    raise Suspend("later")


def leave() -> None:
    """Raise what is no error of a tool."""
    raise SystemExit(1)


TOOLS = (add, fail, later, ask, slow, retried, late, refuse, suspend, leave)
CALLS: list[tuple[str, Any]] = [
    ("add", {"a": 1}),
    ("add", {"a": "1"}),
    ("add", {"a": "x"}),
    ("add", "{"),
    ("fail", {"word": "x"}),
    ("later", {}),
    ("ask", {"word": "yes"}),
    ("ask", {"word": "no"}),
    ("slow", {}),
    ("retried", {"seen": [1]}),
    ("retried", {"seen": [0]}),
    ("late", {"word": "x"}),
    ("refuse", {}),
    ("suspend", {}),
    ("leave", {}),
    ("inactive", {}),
    ("made_up", {}),
]


async def running(toolkit: Toolkit) -> None:
    while not toolkit.stats["running"]:  # noqa: ASYNC110  # no event tells of it
        await asyncio.sleep(0)


async def left(toolkit: Toolkit) -> None:
    """Call, and leave while the call runs."""
    task = asyncio.create_task(toolkit.call("left", {"seconds": 60}))
    await running(toolkit)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def stopped(toolkit: Toolkit) -> None:
    """Call, and stop the call while it runs."""
    call = toolkit.prepare("later", {"seconds": 60})
    task = asyncio.create_task(call.execute())
    await running(toolkit)
    call.stop()
    assert (await task).status == "cancelled"


WAYS: dict[str, Callable[[Toolkit, str, Any], Any]] = {
    "sync": lambda toolkit, name, sent: toolkit.call_sync(name, sent, agent=Ann()),
    "loop": lambda toolkit, name, sent: asyncio.run(toolkit.call(name, sent)),
    "prepared": lambda toolkit, name, sent: toolkit.prepare(name, sent).execute_sync(),
    "many": lambda toolkit, name, sent: asyncio.run(toolkit.call_many([(name, sent), (name, sent)])),
    "never": lambda toolkit, name, sent: toolkit.prepare(name, sent).stop(),
    "left": lambda toolkit, name, sent: asyncio.run(left(toolkit)),
    "stopped": lambda toolkit, name, sent: asyncio.run(stopped(toolkit)),
}


@define
class Counted:
    """What was counted of each tool by its name: calls, errors and seconds."""

    calls: Counter[str]
    statuses: Counter[tuple[str, str]]
    seconds: Counter[str]


def by_metric(collected: Collected) -> Counted:
    found = Counted(Counter(), Counter(), Counter())
    for metric, point in collected.points:
        assert (metric.name, metric.unit) == (conventions.METRIC["name"], conventions.METRIC["unit"])
        assert type(metric.data).__name__.lower() == conventions.METRIC["instrument"]
        error, name = point.attributes.get("error.type"), point.attributes["gen_ai.tool.name"]
        conventions.check(conventions.METRIC, point.attributes, failed=error is not None)
        found.calls[name] += point.count
        found.seconds[name] += point.sum
        if error is not None:  # a class says that the tool raised it
            found.statuses[name, error if error.islower() else "error"] += point.count
    return found


def by_stats(toolkit: Toolkit) -> Counted:
    found = Counted(Counter(), Counter(), Counter())
    for name, counted in toolkit.stats["tools"].items():
        found.calls[name] += counted["calls"]
        found.seconds[name] += counted["seconds"]
        for status, number in counted["statuses"].items():
            if status not in ("success", "suspended"):
                found.statuses[name, status] += number
    return found


@given(st.lists(st.tuples(st.sampled_from(CALLS), st.sampled_from(sorted(WAYS))), max_size=20))
def test_the_same_numbers(drawn: list[tuple[tuple[str, Any], str]]) -> None:
    """However calls are made and however they end: well, in errors, denied, too late, at the second try, cancelled."""
    collected = Collected()
    metrics = MeterProvider([collected.reader])

    def approve(asked: Any) -> bool:
        return bool(asked.arguments["word"] == "yes")

    with pytest.MonkeyPatch.context() as patch, Toolkit(plugins=["otel"], approver=approve) as toolkit:
        provide(patch, None, metrics)
        toolkit.register(*TOOLS)
        toolkit.create_group("away", active=False)
        toolkit.register(later, name="inactive", group="away")
        toolkit.register(later, name="left")
        for (name, sent), way in drawn:
            WAYS[way](toolkit, name, sent)
        metered, counted = by_metric(collected), by_stats(toolkit)
    metrics.shutdown()
    assert (metered.calls, metered.statuses) == (counted.calls, counted.statuses)
    # A caller that left takes no result with a duration in it: the pack measures these itself, from outside.
    assert metered.seconds.pop("left", 0.0) >= counted.seconds.pop("left", 0.0)
    assert metered.seconds == pytest.approx(counted.seconds)


class TestSeries:
    """There is a limit to them, whatever a program makes up as it runs."""

    @staticmethod
    def made(number: int) -> type[Exception]:
        return type(f"Error{number}", (Exception,), {})

    def test_classes_of_errors(self, board: Board, collected: Collected) -> None:
        def fail_with(number: int) -> None:
            raise self.made(number)

        toolkit = board(fail_with)
        for number in range(MAX_VALUES + 200):
            toolkit.call_sync("fail_with", {"number": number})
        toolkit.call_sync("fail_with", {"number": "x"})
        counts = {point.attributes["error.type"]: point.count for _, point in collected.points}
        assert len(counts) == MAX_VALUES + 2
        assert (counts[self.made(0).__name__], counts["_OTHER"], counts["invalid"]) == (1, 200, 1)
        # Spans are no series: each names its own.
        names = {dict(span.attributes or {})["error.type"] for span in collected.spans}
        assert len(names) == MAX_VALUES + 201

    @pytest.mark.slow
    def test_names_of_agents_in_many_toolkits(self, board: Board, collected: Collected) -> None:
        @define
        class Agent:
            name: str

        for number in range(MAX_VALUES + 50):
            with Toolkit(plugins=["otel"]) as toolkit:
                toolkit.register(add)
                toolkit.call_sync("add", {"a": 1}, agent=Agent(f"agent {number}"))
        counts = {point.attributes["gen_ai.agent.name"]: point.count for _, point in collected.points}
        assert len(counts) == MAX_VALUES + 1
        assert counts["_OTHER"] == 50

    def test_all_of_them(self, board: Board, collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_record, "MAX_SERIES", 30)
        toolkit = board()
        for number in range(50):
            toolkit.register(add, name=f"add_{number}")
            toolkit.call_sync(f"add_{number}", {"a": 1})
            toolkit.call_sync("add_0", {"a": 1})
        found = {frozenset(dict(point.attributes).items()): point.count for _, point in collected.points}
        assert len(found) == 31
        assert found[frozenset({("otel.metric.overflow", True)})] == 20
        assert sum(found.values()) == 100


def test_without_traces(board: Board, collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry import metrics

    provide(monkeypatch, None, metrics.get_meter_provider())
    toolkit = board(add)
    assert toolkit.call_sync("add", {"a": 1}).value == 1
    assert toolkit.call_sync("made_up").status == "not_found"
    assert [point.count for _, point in collected.points] == [1]
    assert not collected.spans
