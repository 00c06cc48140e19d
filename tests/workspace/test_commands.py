"""The commands that the README promises are the ones that are run."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from pegboard_bridges import FRAMEWORKS
from tests.support.thinning import first
from tests.workspace.project import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
CHECKS = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def command(session: str) -> str:
    """Return the README's command line that sets up and runs a session."""
    (line,) = re.findall(rf"^pip install .* && nox -s {session}$", README, re.MULTILINE)
    return str(line)


@pytest.mark.parametrize("session", ["demo", "tests"])
def test_readme_sets_up_and_runs_with_one_line(session: str) -> None:
    assert command(session) == f'pip install "nox[uv]" && nox -s {session}'


def test_checks_run_the_readme_test_command() -> None:
    assert f"\ntest_command='{command('tests')}'\n" in CHECKS
    assert '\nstep bash -c "$test_command"\n' in CHECKS


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder of programs that do nothing, but that `nox` notes its sessions and fails at `broken`."""
    programs = tmp_path / "bin"
    programs.mkdir()
    names = ["apt-get", "bwrap", "chromium", "espeak-ng", "pip", "python3.11", "python3.12", "tesseract", "valgrind"]
    scripts = dict.fromkeys(names, "exit 0")
    scripts["nox"] = 'echo "nox: $2"; test "$2" != "$BROKEN"'
    scripts["python3"] = 'test "$1" = -m && mkdir -p "$3/bin" && touch "$3/bin/activate" || echo 3.11'
    scripts["python3.13"] = "exit 1"
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    return programs


def run_checks(machine: Path, broken: str = "") -> tuple[int, list[str], str]:
    """Run the checks: how they ended, which sessions ran, and the table at the end."""
    environment = {"PATH": f"{machine}:/usr/bin:/bin", "BROKEN": broken, "TMPDIR": str(machine.parent)}
    done = subprocess.run([ROOT / ".ci" / "run"], env=environment, capture_output=True, text=True, check=False)
    sessions = re.findall(r"^nox: (.*)$", done.stdout, re.MULTILINE)
    return done.returncode, sessions, done.stdout.partition("== how long each step took\n")[2]


@pytest.mark.skipif(os.name == "nt", reason="the checks are a shell script")
class TestChecks:
    BRIDGES = tuple(f"bridges({name})" for name in sorted(FRAMEWORKS))
    SESSIONS = (
        *("lint", "types", "docs", "slow", "ray", "sdks", "conformance", "inspector", "lowest", "packs", "build"),
        *BRIDGES,
        "real-model",
    )

    def test_run_every_session_and_say_how_long_each_took(self, machine: Path) -> None:
        code, sessions, table = run_checks(machine)
        assert (code, sessions) == (0, ["tests", "tests-3.12", *self.SESSIONS])
        steps = re.findall(r"^ *\d+ s  (.*)$", table, re.MULTILINE)
        assert steps[1:] == [
            f"bash -c {command('tests')}",
            *(f"nox -s {session}" for session in ("tests-3.12", *self.SESSIONS)),
            "altogether",
        ]
        assert table.endswith("== all checks passed\n")

    def test_what_a_model_answers_decides_nothing(self, machine: Path) -> None:
        code, _, table = run_checks(machine, broken="real-model")
        assert code == 0
        assert "nox -s real-model (below its mark, which decides nothing)" in table

    @pytest.mark.parametrize("broken", first(1, ["types", "tests", "build"]))
    def test_one_that_fails_is_told_at_the_end_and_keeps_no_other_from_running(
        self, machine: Path, broken: str
    ) -> None:
        code, sessions, table = run_checks(machine, broken=broken)
        assert (code, sessions) == (1, ["tests", "tests-3.12", *self.SESSIONS])
        name = f"bash -c {command('tests')}" if broken == "tests" else f"nox -s {broken}"
        assert f" s  {name} (failed)\n" in table
        assert table.endswith(f"== failed\n    {name}\n")
        assert [path.name for path in machine.parent.iterdir()] == ["bin"], "something is left"

    def test_without_an_environment_nothing_runs(self, machine: Path) -> None:
        (machine / "python3").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        code, sessions, table = run_checks(machine)
        assert (code, sessions) == (1, [])
        assert "an environment for nox, and programs that tests need (failed)" in table
        assert table.endswith("== failed\n")


def test_checks_are_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
