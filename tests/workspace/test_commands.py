"""The commands that the README promises are the ones that are run."""

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from pegboard_bridges import FRAMEWORKS
from tests.support.thinning import first
from tests.workspace.project import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
CHECKS = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


# What no bare machine has.
PROGRAMS = ("bwrap", "chromium", "espeak-ng", "pg_ctlcluster", "tesseract", "valgrind")
# What pytest prints of a test that failed.
FAILED = "FAILED tests/test_it.py::test_that_it_works - AssertionError"


def command(session: str) -> str:
    """Return the README's command line that sets up and runs a session."""
    (line,) = re.findall(rf"^pip install .* && nox -s {session}$", README, re.MULTILINE)
    return str(line)


@pytest.mark.parametrize("session", ["demo", "tests"])
def test_readme_sets_up_and_runs_with_one_line(session: str) -> None:
    assert command(session) == f'pip install "nox[uv]" && nox -s {session}'


@pytest.mark.parametrize(("session", "name"), [("demo", "demo_command"), ("tests", "test_command")])
def test_checks_run_the_readme_commands_before_and_after_programs_are_installed(session: str, name: str) -> None:
    assert f"\n{name}='{command(session)}'\n" in CHECKS
    before, _, after = CHECKS.partition("\nstep install_programs\n")
    assert f'\nstep bare "${name}"' in before
    assert f'step bash -c "${name}"\n' in after


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder of programs that do nothing, but that `nox` notes its sessions and fails at `broken`."""
    programs = tmp_path / "bin"
    programs.mkdir()
    names = ["apt-get", *PROGRAMS, "pip", "python3.11", "python3.12"]
    scripts = dict.fromkeys(names, "exit 0")
    found = f'for each in {" ".join(PROGRAMS)}; do command -v $each >/dev/null && echo "found: $each"; done'
    scripts["nox"] = f'echo "nox: $2"; {found}; test "$2" != "$BROKEN" || {{ echo "{FAILED}"; exit 1; }}'
    scripts["python3"] = 'test "$1" = -m && mkdir -p "$3/bin" && touch "$3/bin/activate" || echo 3.11'
    scripts["python3.13"] = "exit 1"
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    return programs


class Checked(NamedTuple):
    """How the checks ended, which sessions ran, the table at the end, and all that was printed."""

    code: int
    sessions: list[str]
    table: str
    output: str


def run_checks(machine: Path, broken: str = "") -> Checked:
    """Run the checks on a machine with these programs."""
    environment = {"PATH": f"{machine}:/usr/bin:/bin", "BROKEN": broken, "TMPDIR": str(machine.parent)}
    done = subprocess.run([ROOT / ".ci" / "run"], env=environment, capture_output=True, text=True, check=False)
    sessions = re.findall(r"^nox: (.*)$", done.stdout, re.MULTILINE)
    table = done.stdout.partition("== how long each step took\n")[2]
    return Checked(done.returncode, sessions, table, done.stdout)


@pytest.mark.skipif(os.name == "nt", reason="the checks are a shell script")
class TestChecks:
    BRIDGES = tuple(f"bridges({name})" for name in sorted(FRAMEWORKS))
    BOTH = ("demo", "tests")
    SESSIONS = (
        *("lint", "types", "docs", "slow", "ray", "sdks", "conformance", "inspector", "lowest", "packs", "build"),
        *BRIDGES,
        "real-model",
    )

    def test_run_every_session_and_say_how_long_each_took(self, machine: Path) -> None:
        code, sessions, table, _ = run_checks(machine)
        assert (code, sessions) == (0, [*self.BOTH, "demo", "tests-3.12", *self.SESSIONS])
        steps = re.findall(r"^ *\d+ s  (.*)$", table, re.MULTILINE)
        assert steps[1:] == [
            *(f"bare {command(session)}" for session in self.BOTH),
            "install_programs",
            f"bash -c {command('demo')}",
            *(f"nox -s {session}" for session in ("tests-3.12", *self.SESSIONS)),
            "altogether",
        ]
        assert table.endswith("== all checks passed\n")

    def test_the_tests_run_again_with_the_programs_where_there_is_no_other_python(self, machine: Path) -> None:
        (machine / "python3.12").unlink()
        _, sessions, table, _ = run_checks(machine)
        assert sessions == [*self.BOTH, *self.BOTH, *self.SESSIONS]
        assert f" s  bash -c {command('tests')}\n" in table

    def test_nothing_that_a_bare_machine_lacks_is_found_at_first(self, machine: Path) -> None:
        steps = run_checks(machine).output.split("\n== ")
        first, last = (
            [step for step in steps if step.startswith(begin)] for begin in ("bare pip install", "bash -c pip install")
        )
        assert (len(first), len(last)) == (2, 1)
        assert not any("found: " in step for step in first)
        assert all(f"found: {program}\n" in step for step in last for program in PROGRAMS)

    def test_what_a_model_answers_decides_nothing(self, machine: Path) -> None:
        code, _, table, _ = run_checks(machine, broken="real-model")
        assert code == 0
        assert "nox -s real-model (below its mark, which decides nothing)" in table

    @pytest.mark.parametrize("broken", first(1, ["types", "tests", "build"]))
    def test_one_that_fails_is_told_at_the_end_and_keeps_no_other_from_running(
        self, machine: Path, broken: str
    ) -> None:
        code, sessions, table, _ = run_checks(machine, broken=broken)
        assert (code, sessions) == (1, [*self.BOTH, "demo", "tests-3.12", *self.SESSIONS])
        name = f"bare {command('tests')}" if broken == "tests" else f"nox -s {broken}"
        assert f" s  {name} (failed)\n" in table
        assert table.endswith(f"== failed\n    {name}\n{FAILED}\n")
        assert [path.name for path in machine.parent.iterdir()] == ["bin"], "something is left"

    def test_without_an_environment_nothing_runs(self, machine: Path) -> None:
        (machine / "python3").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        code, sessions, table, _ = run_checks(machine)
        assert (code, sessions) == (1, [])
        assert "an environment for nox (failed)" in table
        assert table.endswith("== failed\n")


def test_checks_are_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
