"""How commands are started, on every platform: what is told to the system."""

import marshal
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pegboard_shell import Limits
from pegboard_shell._running.direct import DirectProcess, killer
from pegboard_shell._running.process import Launch, can_supervise, supervisor_arguments
from pegboard_shell._running.run import Outcome, Run
from pegboard_shell._surroundings import shell_arguments
from tests.plugins.shell.helpers import gone, unique_seconds
from tests.support.waiting import PATIENCE, given_time


def launch(folder: Path, *argv: str) -> Launch:
    return Launch(argv, str(folder), {"PATH": os.defpath}, grace=0.2)


class TestOptions:
    def test_everywhere(self, tmp_path: Path) -> None:
        for windows in (False, True):
            options = launch(tmp_path, "x").options(windows=windows)
            assert options["cwd"] == str(tmp_path)
            assert options["env"] == {"PATH": os.defpath}
            assert options["stdin"] is subprocess.DEVNULL
            assert options["close_fds"] is True
            assert "shell" not in options

    def test_posix_has_its_own_session(self, tmp_path: Path) -> None:
        options = launch(tmp_path, "x").options(windows=False)
        assert options["start_new_session"] is True
        assert "creationflags" not in options

    def test_windows_has_its_own_group_and_no_console(self, tmp_path: Path) -> None:
        options = launch(tmp_path, "x").options(windows=True)
        assert options["creationflags"] == 0x200 | 0x08000000
        assert "start_new_session" not in options


class TestCommandLines:
    def test_supervisor(self, tmp_path: Path) -> None:
        limits = Limits(cpu=3).by_resource()
        plan: dict[str, Any] = {"landlock": {"rules": []}}
        told = supervisor_arguments(Launch(("/bin/ls", "-l"), str(tmp_path), {}, limits, 1.5, plan, monitor=True))
        assert told[:4] == [sys.executable, "-I", "-S", "-c"]
        assert Path(told[5], "supervisor.py").is_file()
        assert marshal.loads(bytes.fromhex(told[6])) == {
            "grace": 1.5,
            "limits": {"RLIMIT_CORE": 0, "RLIMIT_CPU": 3, "RLIMIT_FSIZE": 2 * 1024**3},
            "confinement": {"landlock": {"rules": []}},
            "monitor": True,
        }
        assert told[7:] == ["/bin/ls", "-l"]

    def test_shells(self) -> None:
        assert shell_arguments({}, windows=False) == ("/bin/sh", "-c")
        assert shell_arguments({"COMSPEC": r"D:\cmd.exe"}, windows=True) == (r"D:\cmd.exe", "/d", "/s", "/c")
        assert shell_arguments({}, windows=True)[0].endswith("cmd.exe")

    def test_killer_of_windows_takes_the_tree(self) -> None:
        assert killer(7) == ["taskkill", "/PID", "7", "/T", "/F"]

    def test_frozen_programs_have_no_interpreter_for_a_supervisor(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert can_supervise() == (os.name == "posix")
        monkeypatch.setattr(sys, "frozen", True, raising=False)
        assert not can_supervise()


@pytest.mark.skipif(os.name != "posix", reason="sh")
class TestDirect:
    """Without a supervisor, as in a frozen program."""

    @staticmethod
    def end(folder: Path, script: str, timeout: float) -> Outcome:
        run = Run(lambda: DirectProcess(launch(folder, "/bin/sh", "-c", script)), timeout, 0.2, 1000)
        return run.begin().result(PATIENCE)

    def test_ends_by_itself(self, tmp_path: Path) -> None:
        outcome = self.end(tmp_path, "echo out; echo err >&2; exit 7", PATIENCE)
        assert (outcome.stdout.text(), outcome.stderr.text()) == ("out\n", "err\n")
        assert os.waitstatus_to_exitcode(outcome.status or 0) == 7

    @pytest.mark.slow
    def test_is_ended_with_its_group(self, tmp_path: Path) -> None:
        seconds = unique_seconds()
        script = f"trap '' TERM; echo up; sleep {seconds} & sleep {seconds}"
        outcome = given_time(partial(self.end, tmp_path, script), lambda outcome: outcome.stdout.text())
        assert outcome.timed_out
        assert outcome.stdout.text() == "up\n"
        assert gone(seconds)

    def test_what_holds_the_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        seconds = unique_seconds()
        outcome = self.end(tmp_path, f"sleep {seconds} & echo done", 2 * PATIENCE)
        assert outcome.stdout.text() == "done\n"
        assert gone(seconds)

    def test_output_without_end(self, tmp_path: Path) -> None:
        outcome = given_time(partial(self.end, tmp_path, "yes"), lambda outcome: outcome.stdout.cut)
        assert outcome.timed_out
        assert outcome.stdout.cut > 0

    def test_program_that_is_not_there(self, tmp_path: Path) -> None:
        outcome = Run(lambda: DirectProcess(launch(tmp_path, "/nothing")), 1, 0.2, 1000).begin().result(PATIENCE)
        assert outcome.error == 2

    def test_windows_kills_the_tree_at_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As far as can be shown here: what is passed to the system, and that the command itself has ended."""
        told: list[list[str]] = []
        monkeypatch.setattr(subprocess, "run", lambda command, **options: told.append(command))
        process = DirectProcess(launch(tmp_path, "/bin/sh", "-c", "exec sleep 597"), windows=True)
        outcome = Run(lambda: process, 0.2, 0.2, 1000).begin().result(PATIENCE)
        assert outcome.timed_out
        assert told == [killer(process._process.pid)]
        assert process._process.poll() == -9
