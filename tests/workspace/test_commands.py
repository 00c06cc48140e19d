"""The commands that the README promises are the ones that are run."""

import os
import re

import pytest

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


@pytest.mark.parametrize("session", ["lint", "types", "docs", "slow", "conformance", "lowest", "packs", "build"])
def test_checks_run_every_session(session: str) -> None:
    assert re.search(rf"^step nox -s .*\b{session}\b", CHECKS, re.MULTILINE)


def test_checks_are_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
