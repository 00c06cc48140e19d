"""What programs leave behind: nothing, at exit, after a fork and in the long run."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pegboard import Toolkit
from pegboard_code import CodeMode
from tests.plugins.code.desk import Tools, coded, ran


def children() -> list[str]:
    """The worker processes of this process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        if rest.split()[1] == str(os.getpid()) and "monty" in name:
            found.append(stat.parent.name)
    return found


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

PROGRAM = """
import asyncio, os, sys, threading, time
from pegboard import Toolkit
from pegboard_code import CodeMode
import pydantic_monty


async def slow(i: int) -> int:
    await asyncio.sleep(0.01)
    return i


def made() -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(slow, CodeMode(toolkit, check=False))
    return toolkit


code = {"code": "import asyncio\\nawait asyncio.gather(*[slow(i=i) for i in range(5)])"}


def use(kind: str) -> None:
    toolkit = made()
    if kind == "plain":
        assert toolkit.call_sync("run_code", code).data == [0, 1, 2, 3, 4]
    elif kind == "loop":
        async def main() -> None:
            results = await asyncio.gather(*[toolkit.call("run_code", code) for _ in range(3)])
            assert all(result.data == [0, 1, 2, 3, 4] for result in results)
        asyncio.run(main())
    else:
        endless = {"code": "while True:\\n    pass"}
        threading.Thread(target=toolkit.call_sync, args=("run_code", endless), daemon=True).start()
        time.sleep(0.3)


# Each a process in which the sandbox was not begun, that ends as an interpreter does; only what was imported is shared.
made().prepare("run_code", code)
for kind in sys.argv[1].split(","):
    pid = os.fork()
    if pid == 0:
        use(kind)
        sys.exit(0)
    began = time.monotonic()
    _, status = os.waitpid(pid, 0)
    print(kind, os.waitstatus_to_exitcode(status), round(time.monotonic() - began, 1), flush=True)
"""


def exits(folder: Path, *kinds: str) -> None:
    """Processes that use code mode in these ways exit with 0, at once and in silence."""
    script = folder / "program.py"
    script.write_text(PROGRAM)
    run = subprocess.run(
        [sys.executable, str(script), ",".join(kinds)], capture_output=True, text=True, timeout=280, check=True
    )
    ended = [line.split() for line in run.stdout.splitlines()]
    assert [(kind, code) for kind, code, _ in ended] == [(kind, "0") for kind in kinds]
    assert max(float(seconds) for _, _, seconds in ended) < 10  # the time limit of the endless one is 30
    assert run.stderr == ""


@forks
def test_processes_exit_at_once_and_with_zero(tmp_path: Path) -> None:
    exits(tmp_path, "plain", "loop", "endless")


@forks
@pytest.mark.slow
def test_50_processes_exit_with_zero(tmp_path: Path) -> None:
    exits(tmp_path, *["plain", "loop"] * 25)


@linux
@pytest.mark.slow
def test_10_000_programs_leave_nothing() -> None:
    def state() -> tuple[int, int, int]:
        gc.collect()
        return len(children()), threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    def memory() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20

    async def together(toolkit: Toolkit, count: int) -> None:
        async def one(number: int) -> None:
            assert (await toolkit.call("run_code", {"code": f"await wait(seconds=0.0)\n{number}"})).data == number

        for first in range(0, count, 5):
            await asyncio.gather(*map(one, range(first, first + 5)))

    def some(toolkit: Toolkit, count: int) -> None:
        """As many programs, of three kinds."""
        for number in range(count // 2):
            assert ran(toolkit, f"print({number})\n(await get_weather(city='a'))['city']").data == "a"
        for number in range(count // 10):
            assert ran(toolkit, f"{number} / 0").is_error
        asyncio.run(together(toolkit, 2 * count // 5))

    with coded(Tools(), check=False) as toolkit:
        some(toolkit, 1_000)
        before, grown = state(), memory()
        for _ in range(9):
            some(toolkit, 1_000)
        assert state() == before
        assert memory() - grown < 20


@linux
def test_after_a_fork_both_go_on_and_the_last_toolkit_takes_the_workers_along() -> None:
    script = (
        "import os, sys, time\nfrom pegboard import Toolkit\nfrom pegboard_code import CodeMode\n"
        "from tests.plugins.code.test_processes import children\n"
        "def run(toolkit, code): return toolkit.call_sync('run_code', {'code': code}).data\n"
        "with Toolkit(plugins=()) as first:\n"
        "    first.register(CodeMode(first))\n"
        "    with Toolkit(plugins=()) as second:\n"
        "        second.register(CodeMode(second))\n"
        "        assert run(second, '1') == 1\n"
        "    assert children()\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n        assert run(first, '2') == 2\n        sys.exit(7)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7\n"
        "    assert run(first, '3') == 3\n"
        "deadline = time.monotonic() + 5\n"
        "while children() and time.monotonic() < deadline:\n    time.sleep(0.05)\n"
        "print(len(children()))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "0\n"


def test_filtering_10_000_rows_costs_a_fiftieth_of_the_text() -> None:
    with coded() as toolkit:
        whole = toolkit.call_sync("rows", {"n": 10_000}).text
        code = "rows = await rows(n=10000)\n[row['id'] for row in rows if row['size'] == 96][:20]"
        code = code.replace("rows = await", "found = await").replace("in rows if", "in found if")
        result = ran(toolkit, code)
        description = toolkit["run_code"].description
    assert len(result.data) == 20
    assert 50 * (len(code) + len(result.text) + len(description)) < len(whole) or len(description) < 6_000
    assert 50 * (len(code) + len(result.text)) < len(whole)


def test_code_mode_in_another_mode_of_one_process() -> None:
    """Two toolkits have their own code modes over one pool."""
    with Toolkit(plugins=()) as first, Toolkit(plugins=()) as second:
        first.register(lambda: 1, name="one")
        second.register(lambda: 2, name="two")
        first.register(CodeMode(first))
        second.register(CodeMode(second))
        assert ran(first, "await one()").data == 1
        assert ran(second, "await two()").data == 2
        assert ran(second, "await one()").is_error
