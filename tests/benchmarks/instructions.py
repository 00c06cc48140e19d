"""Instructions of a call over those of its floor, counted by valgrind in one run.

A count of instructions hardly changes from run to run, however busy the machine is. Floors and calls run one after
another, each in a thread of its own, for valgrind counts by thread. `python -m tests.benchmarks.instructions` prints
the ratios.
"""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Final

from pegboard import Toolkit
from tests.benchmarks.calls import board
from tests.benchmarks.floors import (
    BILL,
    FORECAST,
    SEND,
    Client,
    bill_by_hand,
    by_hand,
    forecast,
    later_by_hand,
    send,
)
from tests.benchmarks.journals import caching_board

__all__ = ["NAMES", "ratios"]

ROUNDS: Final = 500
NAMES: Final = ("B1", "B2", "B3", "B4", "B17")
ROOT: Final = Path(__file__).parents[2]


def pairs(toolkit: Toolkit, caching: Toolkit) -> list[tuple[Callable[[], Any], Callable[[], Any]]]:
    """Floor and call of each of `NAMES`."""
    return [
        (by_hand(forecast, FORECAST), partial(toolkit.call_sync, "forecast", FORECAST)),
        (partial(awaited, later_by_hand), partial(awaited, partial(toolkit.call, "forecast_later", FORECAST))),
        (bill_by_hand(BILL), partial(toolkit.call_sync, "total", BILL)),
        (by_hand(send, SEND, client=Client(), key="secret enough"), partial(toolkit.call_sync, "send", SEND)),
        (by_hand(forecast, FORECAST), partial(caching.call_sync, "reading", FORECAST)),
    ]


def awaited(start: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """What a coroutine returns that never suspends."""
    try:
        start().send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it has suspended")


def perform() -> None:
    """What valgrind watches: each piece of work in the next thread."""
    gc.disable()
    with board() as toolkit, caching_board() as caching:
        threads = [begun(work) for pair in pairs(toolkit, caching) for work in pair]
        for thread, go in threads:
            go.set()
            thread.join()


def begun(work: Callable[[], Any]) -> tuple[threading.Thread, threading.Event]:
    """A thread that waits for its turn; all of them live at once, so that each has a number of its own."""
    go = threading.Event()

    def run() -> None:
        go.wait()
        for _ in range(ROUNDS):
            work()

    for _ in range(20):  # plans are compiled, and the interpreter has specialised its code
        work()
    thread = threading.Thread(target=run)
    thread.start()
    return thread, go


def ratios() -> dict[str, float]:
    """Instructions of each call over those of its floor. Raises CalledProcessError where valgrind fails."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={folder}/counts"]
        command = ["valgrind", *options, sys.executable, "-m", "tests.benchmarks.instructions", "perform"]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PEGBOARD_BLOCK": "otel"}
        subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True, timeout=300)
        counts = [_total(Path(folder, f"counts-{number + 2:02}")) for number in range(2 * len(NAMES))]
    return {name: counts[2 * n + 1] / counts[2 * n] for n, name in enumerate(NAMES)}


def _total(report: Path) -> int:
    found = re.search(r"^totals: (\d+)", report.read_text(), re.MULTILINE)
    assert found is not None, f"valgrind wrote no total into {report.name}"
    return int(found[1])


if __name__ == "__main__":
    if sys.argv[1:] == ["perform"]:
        perform()
    else:
        print("\n".join(f"{name}  {ratio:.3f} x" for name, ratio in ratios().items()))
