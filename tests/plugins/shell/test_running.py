"""Every command comes to an end, and so does whatever it started."""

import asyncio
import contextlib
import os
import random
import re
import statistics
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from pegboard import Status, ToolResult
from pegboard_shell import Limits, ShellTools
from pegboard_shell._running import process
from pegboard_shell._running import run as running
from tests.plugins.shell.helpers import (
    SANDBOXES,
    baseline,
    gone,
    output,
    processes,
    run,
    unique_seconds,
    use_sandbox,
)
from tests.support.interpreters import printed
from tests.support.waiting import PATIENCE, eventually, given_time, until, within

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked for in /proc")

GRACE = 0.3


@pytest.fixture(params=SANDBOXES)
def tools(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ShellTools:
    """A shell proper, which can do all the mischief; in each sandbox that there is."""
    use_sandbox(request.param, monkeypatch)
    return open_shell(tmp_path)


def open_shell(folder: Path, **options: object) -> ShellTools:
    settings = {"shell": True, "approve": lambda request: True, "grace": GRACE} | options
    return ShellTools(folder, **settings)  # type: ignore[arg-type]  # they are as varied as the parameters


@pytest.fixture
def unconfined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ShellTools:
    use_sandbox("none", monkeypatch)
    return open_shell(tmp_path)


MISCHIEF = {
    "sleeps": "sleep {s}",
    "a child that holds the pipe": "sleep {s} & sleep {s}",
    "a daemon": "setsid sleep {s} & sleep {s}",
    "a daemon's daemon": "(setsid sh -c 'setsid sleep {s} & exit' &) ; sleep {s}",
    "ignores TERM": "trap '' TERM; sleep {s} & while :; do sleep 0.05; done",
    "ignores everything": "trap '' TERM INT HUP QUIT; setsid sleep {s} & sleep {s}; sleep {s}",
    "stopped": "sleep {s} & kill -STOP $!; kill -STOP $$; sleep {s}",
    "writes without end": "sleep {s} & yes {s}",
    "reads": "cat; sleep {s}",
    "closes its output": "exec >&- 2>&-; sleep {s}",
    "breeds": "for i in 1 2 3 4 5; do (setsid sleep {s} &) ; done; sleep {s}",
}


class TestTimeout:
    def test_nothing_survives_it(self, tools: ShellTools) -> None:
        """Whatever a command does to stay alive, alone or beside others."""
        told = {unique_seconds(): mischief for mischief in MISCHIEF.values()}

        async def torture() -> list[ToolResult]:
            calls = [tools.execute_shell_command(mischief.format(s=s), 0.3) for s, mischief in told.items()]
            return await asyncio.gather(*calls)

        results = within(lambda: asyncio.run(torture()))  # the commands take ten times as long
        for result, (seconds, mischief) in zip(results, told.items(), strict=True):
            assert result.status is Status.TIMEOUT, mischief
            assert result.data["left_running"] == 0, mischief
            assert gone(seconds), mischief

    def test_partial_output_is_in_the_result(self, tools: ShellTools) -> None:
        result = given_time(
            partial(run, tools, "echo start; echo oops >&2; sleep 597"), lambda result: "oops" in result.data["stderr"]
        )
        assert result.status is Status.TIMEOUT
        assert result.is_error
        assert result.data["stdout"] == "start\n"
        assert result.data["stderr"].startswith("oops\n")
        assert result.data["timed_out"] is True
        assert result.error is not None
        assert result.error.kind == "timeout"
        assert re.search(r"timed out after [\d.]+ s", result.text)
        assert "<stdout>start</stdout>" in result.text

    def test_a_command_can_clean_up(self, tools: ShellTools, tmp_path: Path) -> None:
        """Whatever stands around it, TERM comes first and reaches the command itself."""
        script = "trap 'echo bye > mark; exit 3' TERM; echo up; while :; do sleep 0.01; done"
        mark = tmp_path / "mark"
        result = given_time(partial(run, tools, script), lambda result: mark.exists())
        assert mark.read_text(encoding="utf-8") == "bye\n"
        assert result.data["exit_code"] == 3


class TestEnd:
    """A command ends, and leaves something behind."""

    @pytest.mark.parametrize("left", ["sleep {s} &", "setsid sleep {s} &", "(setsid sh -c 'setsid sleep {s} &' &)"])
    def test_what_is_left_behind_is_ended_at_once(self, tools: ShellTools, left: str) -> None:
        seconds = unique_seconds()
        result = within(lambda: run(tools, f"{left.format(s=seconds)}\necho done"))
        assert output(result) == "done\n"
        assert gone(seconds)

    def test_what_is_left_behind_and_ignores_term(self, tools: ShellTools) -> None:
        seconds = unique_seconds()
        result = run(tools, f"(trap '' TERM; setsid sleep {seconds} &) ; echo done")
        assert output(result) == "done\n"
        assert gone(seconds)

    def test_output_of_the_last_moment_is_there(self, unconfined: ShellTools) -> None:
        for _ in range(8):
            assert output(run(unconfined, "echo one; echo two >&2; printf three")) == "one\nthree"

    def test_exit_code(self, tools: ShellTools) -> None:
        result = run(tools, "exit 7")
        assert result.status is Status.SUCCESS
        assert (result.data["exit_code"], result.data["signal"]) == (7, None)

    def test_signal(self, tools: ShellTools) -> None:
        result = run(tools, "kill -9 $$")
        assert result.status is Status.SUCCESS
        assert (result.data["exit_code"], result.data["signal"]) == (-9, "SIGKILL")

    def test_input_is_empty(self, tools: ShellTools) -> None:
        assert output(run(tools, "cat; echo end")) == "end\n"

    def test_signals_are_as_a_program_expects_them(self, unconfined: ShellTools) -> None:
        """Python ignores SIGPIPE, and what is ignored would be inherited."""
        ignored = int(output(run(unconfined, "grep SigIgn /proc/self/status")).split()[1], 16)
        # 32 and 33 are the C library's own: what posix_spawn starts, as Python 3.13 does, has them ignored.
        assert ignored & ~(1 << 31 | 1 << 32) == 0

    def test_no_descriptor_is_inherited(self, tools: ShellTools) -> None:
        look = "for n in 0 1 2 3 4 5 6 7 8 9; do if [ -e /proc/$$/fd/$n ]; then echo $n; fi; done"
        with Path(os.devnull).open() as file:
            os.set_inheritable(file.fileno(), True)
            assert output(run(tools, look)).split() == ["0", "1", "2"]


class TestCancellation:
    def test_cancelled_task_leaves_nothing(self, tools: ShellTools) -> None:
        seconds = unique_seconds()

        async def cancel() -> None:
            task = asyncio.create_task(tools.execute_shell_command(f"setsid sleep {seconds} & sleep {seconds}"))
            await until(lambda: processes(seconds))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert gone(seconds)

        asyncio.run(cancel())

    def test_loop_that_ends_leaves_nothing(self, unconfined: ShellTools) -> None:
        seconds = unique_seconds()

        async def forget() -> None:
            task = asyncio.ensure_future(unconfined.execute_shell_command(f"sleep {seconds}"))
            await until(lambda: processes(seconds))
            del task

        asyncio.run(forget())
        assert gone(seconds)

    def test_close_stops_what_runs(self, unconfined: ShellTools) -> None:
        seconds = unique_seconds()
        results: list[ToolResult] = []
        thread = threading.Thread(target=lambda: results.append(run(unconfined, f"echo up; sleep {seconds}")))
        thread.start()
        assert eventually(lambda: processes(seconds))
        unconfined.close()
        thread.join(PATIENCE)
        assert [result.status for result in results] == [Status.CANCELLED]
        assert gone(seconds)
        assert output(run(unconfined, "echo again")) == "again\n"

    def test_program_that_is_killed_leaves_nothing(self, tmp_path: Path) -> None:
        seconds = unique_seconds()
        script = f"""
            import asyncio
            from pegboard_shell import ShellTools
            tools = ShellTools(".", shell=True, approve=lambda request: True)
            asyncio.run(tools.execute_shell_command("setsid sleep {seconds} & sleep {seconds}"))
        """
        with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path) as host:
            assert eventually(lambda: len([line for line in processes(seconds) if line.startswith("sleep")]) == 2)
            host.kill()
        assert gone(seconds)

    @pytest.mark.parametrize("script", ["sleep {s} & kill -9 $PPID; sleep {s}", "kill -9 $PPID; sleep {s} & sleep {s}"])
    def test_supervisor_that_is_killed(self, unconfined: ShellTools, script: str) -> None:
        """By the command itself, for instance, and at once: its group goes with it, and the call comes back."""
        seconds = unique_seconds()
        result = run(unconfined, script.format(s=seconds), PATIENCE)
        assert result.data["left_running"] == 1  # that is unknown
        assert gone(seconds)

    @pytest.mark.slow
    def test_supervisor_that_is_stopped(self, unconfined: ShellTools, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(running, "_PATIENCE", 0.4)
        seconds = unique_seconds()
        script = f"setsid sleep {seconds} & kill -STOP $PPID; sleep {seconds}"
        result = within(
            lambda: given_time(partial(run, unconfined, script), lambda result: result.data["left_running"])
        )
        assert result.status is Status.TIMEOUT
        assert result.data["left_running"] == 1  # as far as was known when the call came back
        assert gone(seconds)


def use_supervisor(folder: Path, monkeypatch: pytest.MonkeyPatch, *changes: tuple[str, str]) -> None:
    """Run commands under a supervisor that lacks something."""
    script = Path(process.SUPERVISOR, "supervisor.py").read_text(encoding="utf-8")
    for there, instead in changes:
        assert script.count(there) == 1
        script = script.replace(there, instead)
    (folder / "supervisor.py").write_text(script, encoding="utf-8")
    monkeypatch.setattr(process, "SUPERVISOR", str(folder))


class TestWithoutAdoption:
    """Where processes cannot be adopted nor listed, as on macOS: the group of the command is ended."""

    @pytest.fixture
    def tools(self, unconfined: ShellTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ShellTools:
        nothing = (
            ('PROC = "/proc"', 'PROC = "/no/such/folder"'),
            ("LIBC.prctl(PR_SET_CHILD_SUBREAPER", "print(0"),
        )
        use_supervisor(tmp_path, monkeypatch, *nothing)
        return unconfined

    def test_what_is_left_behind_is_ended(self, tools: ShellTools) -> None:
        seconds = unique_seconds()
        assert output(run(tools, f"sleep {seconds} & echo done")).endswith("done\n")
        assert gone(seconds)

    @pytest.mark.parametrize("mischief", ["sleeps", "a child that holds the pipe", "ignores TERM", "stopped"])
    def test_timeout(self, tools: ShellTools, mischief: str) -> None:
        seconds = unique_seconds()
        result = run(tools, MISCHIEF[mischief].format(s=seconds), 0.3)
        assert result.status is Status.TIMEOUT
        assert gone(seconds)


def test_kernel_that_does_not_list_children(
    unconfined: ShellTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then all processes are looked through."""
    use_supervisor(tmp_path, monkeypatch, ("self/task/{me}/children", "self/task/{me}/no_such_thing"))
    seconds = unique_seconds()
    result = run(unconfined, MISCHIEF["a daemon's daemon"].format(s=seconds), 0.3)
    assert (result.status, result.data["left_running"]) == (Status.TIMEOUT, 0)
    assert gone(seconds)


class TestLimits:
    def test_they_hold(self, tmp_path: Path) -> None:
        limits = {"cpu": 100, "memory": 2**30, "file_size": 5120, "open_files": 77}
        tools = open_shell(tmp_path, sandbox="none", limits=limits)
        found = output(run(tools, "ulimit -c; ulimit -t; ulimit -v; ulimit -f; ulimit -n"))
        assert found.split() == ["0", "100", "1048576", "10", "77"]

    def test_file_that_grows_too_large(self, tmp_path: Path) -> None:
        tools = open_shell(tmp_path, limits=Limits(file_size=1000))
        run(tools, "yes > large")
        assert (tmp_path / "large").stat().st_size <= 1000

    def test_none_is_raised(self, unconfined: ShellTools, tmp_path: Path) -> None:
        tools = open_shell(tmp_path, sandbox="none", limits={"open_files": 10**9})
        assert int(output(run(tools, "ulimit -n"))) < 10**9

    @pytest.mark.parametrize("limits", [{"cpu": -1}, {"colour": 1}])
    def test_what_cannot_be_meant_is_refused(self, tmp_path: Path, limits: dict[str, int]) -> None:
        with pytest.raises((ValueError, TypeError)):
            ShellTools(tmp_path, limits=limits)


def test_output_without_end_is_kept_in_bounds(unconfined: ShellTools) -> None:
    result = given_time(
        partial(run, unconfined, "yes 0123456789"), lambda result: result.data["bytes"]["stdout"] > 10**6
    )
    assert result.status is Status.TIMEOUT
    assert result.data["truncated"] is True
    assert len(result.data["stdout"]) < 70_000
    assert result.data["bytes"]["stdout"] > 10**6


async def end_at_random(tools: ShellTools, rng: random.Random, seconds: str) -> float:
    """One timeout or cancellation at a random moment; how late the call came back, in seconds."""
    command = MISCHIEF[rng.choice(sorted(MISCHIEF))].format(s=seconds)
    moment = rng.uniform(0.01, 0.4)
    cancelled = rng.random() < 0.5
    began = time.monotonic()
    if cancelled:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(tools.execute_shell_command(command), moment)
    else:
        result = await tools.execute_shell_command(command, moment)
        assert result.status is Status.TIMEOUT
        assert result.data["left_running"] == 0
    return time.monotonic() - began - moment


def torment(tools: ShellTools, times: int) -> tuple[int, list[float]]:
    """How many commands left a process, and how late each call came back; some run beside each other."""
    rng = random.Random(20261122)
    survivors: int = 0
    late: list[float] = []

    async def several(told: list[str]) -> list[float]:
        return await asyncio.gather(*(end_at_random(tools, rng, seconds) for seconds in told))

    while times > 0:
        told = [unique_seconds() for _ in range(min(times, rng.randint(1, 8)))]
        late += asyncio.run(several(told))
        survivors += sum(not gone(seconds) for seconds in told)
        times -= len(told)
    return survivors, late


def in_time(late: list[float], tools: ShellTools) -> bool:
    """Whether calls came back about when they were to: most of them, since a machine may stand still for a while."""
    return statistics.median(late) < 2 * GRACE + 20 * baseline(tools) and max(late) < PATIENCE


def test_random_timeouts_and_cancellations(unconfined: ShellTools) -> None:
    survivors, late = torment(unconfined, 12)
    assert survivors == 0
    assert len(late) == 12
    assert in_time(late, unconfined)


@pytest.mark.slow
def test_many_random_timeouts_and_cancellations(tools: ShellTools) -> None:
    survivors, late = torment(tools, 500)
    print(f"{survivors} survivors; the latest came back {max(late):.2f} s after its moment")
    assert survivors == 0
    assert in_time(late, tools)


MEASURED = """
import asyncio, re
from pathlib import Path
from pegboard_shell import ShellTools

def peak():
    # Not getrusage, which goes on counting from the program that this one was started by.
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

tools = ShellTools(".", allow=["true", "yes"], max_output={cap})
asyncio.run(tools.execute_shell_command("true"))
before = peak()
result = asyncio.run(tools.execute_shell_command("yes", {seconds}))
print(peak() - before, result.data["bytes"]["stdout"], result.status)
"""


@pytest.mark.slow
def test_memory_for_output_without_end(tmp_path: Path) -> None:
    cap = 1024 * 1024
    script = MEASURED.format(cap=cap, seconds=3)
    grown, written, status = printed(script, cwd=tmp_path).split()
    print(f"{int(written) / 2**20:.0f} MiB were written, and {int(grown) / 1024:.1f} MiB of memory taken")
    assert status == "timeout"
    assert int(grown) * 1024 < cap + 16 * 1024 * 1024
    assert int(written) > 10 * 2**20
