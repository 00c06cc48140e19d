"""What the figures rest on, as counts: Python function calls for each dispatch, and what a call never touches."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pegboard import Toolkit
from tests.benchmarks.calls import board
from tests.benchmarks.floors import BILL, FORECAST, SCALARS, SEND, written


def counted(work: Callable[[], Any]) -> Counter[str]:
    """Which Python functions `work` calls, as `module file:function`, the tool and its plan included."""
    calls: Counter[str] = Counter()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            calls[f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}"] += 1

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


class TestDispatch:
    @pytest.mark.parametrize(
        ("name", "text", "most"),
        [
            ("forecast", FORECAST, 12),
            # A dataclass for each item, and one for the bill.
            ("total", BILL, 12 + 21),
            # The invocation, and the client found by its class.
            ("send", SEND, 12 + 5),
        ],
    )
    def test_call_sync_is_few_python_calls(self, name: str, text: str, most: int) -> None:
        with board() as toolkit:
            call = partial(toolkit.call_sync, name, text)
            assert call().status == "success"
            calls = counted(call)
        assert calls.total() <= most, calls

    def test_await_call_is_few_python_calls(self) -> None:
        async def measured(toolkit: Toolkit) -> Counter[str]:
            call = partial(toolkit.call, "forecast_later", FORECAST)
            assert (await call()).status == "success"
            return counted(partial(list, call().__await__()))

        with board() as toolkit:
            calls = asyncio.run(measured(toolkit))
        assert calls.total() <= 13, calls

    @pytest.mark.parametrize(("name", "text"), [("forecast", FORECAST), ("total", BILL), ("send", SEND)])
    def test_call_touches_no_hooks_and_no_reflection(self, name: str, text: str) -> None:
        with board() as toolkit:
            toolkit.call_sync(name, text)
            files = {called.partition(":")[0] for called in counted(partial(toolkit.call_sync, name, text))}
        assert files.isdisjoint({"_hooks.py", "_manager.py", "_callers.py", "inspect.py", "typing.py", "_make.py"})

    def test_call_does_not_depend_on_the_number_of_tools(self) -> None:
        def calls(number: int) -> int:
            toolkit = Toolkit(plugins=())
            toolkit.register(*written(SCALARS, number))
            toolkit.call_sync("tool_7", FORECAST)
            return counted(partial(toolkit.call_sync, "tool_7", FORECAST)).total()

        assert calls(10) == calls(500)


class TestRegistration:
    def test_is_linear(self) -> None:
        def calls(number: int) -> int:
            toolkit = Toolkit(plugins=())
            functions = written(SCALARS, number)
            return counted(lambda: [toolkit.register(function) for function in functions]).total()

        calls(10)
        assert calls(400) <= 2.1 * calls(200)

    def test_compiles_nothing(self) -> None:
        toolkit = Toolkit(plugins=())
        functions = written(SCALARS, 10)
        called = counted(lambda: toolkit.register(*functions))
        assert not [name for name in called if name.startswith(("_writer.py", "_docstrings.py", "_plan.py"))]
        toolkit.call_sync("tool_7", FORECAST)
        assert not toolkit._core.registry.find("tool_6").definition._plans  # type: ignore[union-attr]


FIRST_CALL = """
import sys
import pegboard

@pegboard.tool
def forecast(city: str, days: int = 1) -> str:
    return city

toolkit = pegboard.Toolkit(plugins=())
toolkit.register(forecast)
assert toolkit.call_sync("forecast", '{"city": "Bern"}').status == "success"
print(*sorted({name.partition(".")[0] for name in sys.modules}), *sorted(m for m in sys.modules if "pegboard" in m))
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that a first call leaves loaded."""
    run = subprocess.run([sys.executable, "-c", FIRST_CALL], check=True, stdout=subprocess.PIPE, text=True, timeout=60)
    return set(run.stdout.split())


class TestImports:
    @pytest.mark.parametrize(
        "module", ["jsonschema", "cattrs", "asyncio", "tomllib", "pegboard._explain", "pegboard._repair"]
    )
    def test_first_call_that_succeeds_does_without(self, module: str, loaded: set[str]) -> None:
        assert module not in loaded
