"""What the figures rest on, as counts: Python function calls for each dispatch, and what a call never touches."""

import asyncio
import logging
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import copy_context
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pegboard import Toolkit, hookimpl
from tests.benchmarks.calls import board
from tests.benchmarks.features import CASES
from tests.benchmarks.figures import core_alone
from tests.benchmarks.floors import (
    BILL,
    BOTH_WRONG,
    FORECAST,
    ONE_WRONG,
    SCALARS,
    SEND,
    Client,
    by_hand,
    forecast,
    written,
)
from tests.benchmarks.measuring import quiet
from tests.support.interpreters import printed
from tests.support.profiling import profiled


@pytest.fixture(autouse=True)
def _core_alone() -> Iterator[None]:
    with core_alone():
        yield


OF_REFLECTION = ("/inspect.py", "/typing.py")


def counted(work: Callable[[], Any]) -> Counter[str]:
    """Which Python functions `work` calls, as `folder/file:function`, the tool and its plan included."""
    for level in (logging.DEBUG, logging.INFO):
        logging.getLogger("pegboard").isEnabledFor(level)  # found out once, and remembered until a level is set
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str) -> None:
        if event == "call":
            calls[f"{'/'.join(Path(frame.f_code.co_filename).parts[-2:])}:{frame.f_code.co_name}"] += 1

    profiled(work, count)
    return calls


class TestDispatch:
    @pytest.mark.parametrize(
        ("name", "text", "most"),
        [
            ("forecast", FORECAST, 10),
            # A dataclass for each item, and one for the bill.
            ("total", BILL, 10 + 21),
            # The first call has found the client and read the preset.
            ("send", SEND, 10),
        ],
    )
    def test_call_sync_is_few_python_calls(self, name: str, text: str, most: int) -> None:
        with board() as toolkit:
            call = partial(toolkit.call_sync, name, text)
            assert call().status == "success"
            calls = counted(call)
        assert calls.total() <= most, calls

    @pytest.mark.parametrize(
        ("name", "text", "status", "most"),
        [
            ("refuse", FORECAST, "error", 18),
            ("forecast", BOTH_WRONG, "invalid", 98),
            # Of 20 dataclasses, those before the wrong one are built twice.
            ("total", ONE_WRONG, "invalid", 98 + 152),
        ],
    )
    def test_failing_is_few_python_calls_too(self, name: str, text: str, status: str, most: int) -> None:
        with board() as toolkit:
            call = partial(toolkit.call_sync, name, text)
            assert call().status == status
            calls = counted(call)
        assert calls.total() <= most, calls

    def test_await_call_is_few_python_calls(self) -> None:
        async def measured(toolkit: Toolkit) -> Counter[str]:
            call = partial(toolkit.call, "forecast_later", FORECAST)
            assert (await call()).status == "success"
            return counted(partial(list, call().__await__()))

        with board() as toolkit:
            calls = asyncio.run(measured(toolkit))
        assert calls.total() <= 11, calls

    @pytest.mark.parametrize(
        ("case", "most"), [("lock", 57), ("approver", 69), ("generator", 67), ("middleware", 63), ("returned dict", 27)]
    )
    def test_a_feature_is_few_python_calls(self, case: str, most: int) -> None:
        (found,) = [each for each in CASES if each.work == case]
        with Toolkit(**found.toolkit) as toolkit:
            call = found.run(toolkit, on_loop=False)
            assert call().status == "success"
            calls = counted(call)
        assert calls.total() <= most, calls

    def test_context_of_a_call_is_looked_up_for_it_alone(self) -> None:
        with board() as toolkit:
            call = partial(toolkit.call_sync, "send", SEND)
            with_context = partial(call, context=Client())
            assert call().status == with_context().status == "success"
            assert "_tools/plan.py:provide" in counted(with_context)
            assert "_tools/plan.py:provide" not in counted(call)

    def test_await_call_of_a_sync_tool_is_few_python_calls(self) -> None:
        async def measured(toolkit: Toolkit) -> Counter[str]:
            call = partial(toolkit.call, "forecast", FORECAST)
            assert (await call()).status == "success"
            steps = call().__await__()
            begun = counted(lambda: next(steps).add_done_callback(str, context=copy_context()))
            with pytest.raises(StopIteration) as ended:  # this task was not cancelled, so the call ends in a result
                steps.throw(asyncio.CancelledError())
            assert ended.value.value.status == "cancelled"
            return begun

        with board() as toolkit:
            calls = asyncio.run(measured(toolkit))
        assert calls.total() <= 18, calls

    @pytest.mark.parametrize(("name", "text"), [("forecast", FORECAST), ("total", BILL), ("send", SEND)])
    def test_call_touches_no_hooks_and_no_reflection(self, name: str, text: str) -> None:
        with board() as toolkit:
            toolkit.call_sync(name, text)
            files = {called.partition(":")[0] for called in counted(partial(toolkit.call_sync, name, text))}
        assert not [f for f in files if f.startswith(("pluggy/", "_plugins/", "attr/")) or f.endswith(OF_REFLECTION)]

    def test_call_does_not_depend_on_the_number_of_tools(self) -> None:
        def calls(number: int) -> int:
            toolkit = Toolkit(plugins=())
            toolkit.register(*written(SCALARS, number))
            toolkit.call_sync("tool_7", FORECAST)
            return counted(partial(toolkit.call_sync, "tool_7", FORECAST)).total()

        assert calls(10) == calls(500)


class TestMemory:
    @pytest.mark.parametrize(("name", "text"), [("forecast", FORECAST), ("total", BILL), ("send", SEND)])
    def test_a_call_leaves_nothing_behind_but_its_result(self, name: str, text: str) -> None:
        number = 500
        with board() as toolkit, quiet():
            call = partial(toolkit.call_sync, name, text)
            results: list[Any] = [call() for _ in range(number)]
            before = sys.getallocatedblocks()
            for n in range(number):
                results[n] = call()
            again = sys.getallocatedblocks()
            results[:] = [None] * number
            assert again - before < number / 10, "calls leave something behind"
            # The result itself, its id, its duration and its value.
            assert (again - sys.getallocatedblocks()) / number < 4.1

    @pytest.mark.parametrize(("name", "text"), [("forecast", FORECAST), ("send", SEND)])
    def test_a_call_takes_less_memory_than_reading_its_arguments_by_hand(self, name: str, text: str) -> None:
        with board() as toolkit:
            assert peak(partial(toolkit.call_sync, name, text)) < peak(by_hand(forecast, FORECAST))


def peak(work: Callable[[], Any]) -> int:
    """The most that `work` has allocated at a time while it runs, in bytes."""
    tracemalloc.start()
    try:
        work()
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


class TestRegistration:
    def test_is_linear(self) -> None:
        def calls(number: int) -> int:
            toolkit = Toolkit(plugins=())
            functions = written(SCALARS, number)
            return counted(lambda: [toolkit.register(function) for function in functions]).total()

        calls(10)
        assert calls(400) <= 2.1 * calls(200)

    @pytest.mark.parametrize(("at_once", "most"), [(False, 73), (True, 55)])
    def test_is_few_python_calls(self, at_once: bool, most: int) -> None:
        toolkit = Toolkit(plugins=())
        first, *functions = written(SCALARS, 101)
        toolkit.register(first)  # reads the types once
        calls = counted(lambda: toolkit.register(*functions) if at_once else list(map(toolkit.register, functions)))
        assert calls.total() <= most * 100, calls

    def test_a_pack_that_knows_other_sources_costs_few_more(self) -> None:
        class Knows:
            @hookimpl
            def tools_from(self, source: Any) -> None:
                return None

        def calls(*plugins: Any) -> int:
            with Toolkit(plugins=plugins) as toolkit:
                first, *functions = written(SCALARS, 101)
                toolkit.register(first)
                return counted(lambda: toolkit.register(*functions)).total()

        # What each pack is asked runs isolated, by pluggy: some thirty calls for a function. The core is not asked.
        assert calls(Knows()) <= calls() + 35 * 100

    def test_a_session_is_few_python_calls(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            calls = counted(toolkit.session)
        assert calls.total() <= 8, calls

    def test_compiles_nothing(self) -> None:
        toolkit = Toolkit(plugins=())
        functions = written(SCALARS, 10)
        called = counted(lambda: toolkit.register(*functions))
        assert not [
            name
            for name in called
            if name.startswith(("_types/codegen.py:build", "_tools/docstrings.py", "_tools/plan.py"))
        ]
        toolkit.call_sync("tool_7", FORECAST)
        assert not toolkit._core.registry.find("tool_6").definition._plans  # type: ignore[union-attr]


FIRST_CALL = """
import sys
before = set(sys.modules)
import pegboard

@pegboard.tool
def forecast(city: str, days: int = 1) -> str:
    return city

toolkit = pegboard.Toolkit(plugins=())
toolkit.register(forecast)
assert toolkit.call_sync("forecast", '{"city": "Bern"}').status == "success"
print(*sorted(set(sys.modules) - before))
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that a first call loads."""
    return set(printed(FIRST_CALL).split())


class TestImports:
    @pytest.mark.parametrize(
        "module",
        [
            "asyncio",
            "base64",
            "cattrs",
            "concurrent.futures",
            "datetime",
            "decimal",
            "hashlib",
            "importlib_metadata",
            "ipaddress",
            "jsonschema",
            "logging",
            "pathlib",
            "random",
            "tomllib",
            "traceback",
            "uuid",
            "pegboard._tools.docstrings",
            "pegboard._arguments.examine",
        ],
    )
    def test_first_call_that_succeeds_does_without(self, module: str, loaded: set[str]) -> None:
        assert module not in loaded

    def test_first_call_loads_few_modules(self, loaded: set[str]) -> None:
        ours = sorted(name for name in loaded if name.startswith("pegboard"))
        assert len(ours) <= 98, ours
