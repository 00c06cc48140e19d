"""Places to install packs into, and ways to run the command on them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import click.testing
import pytest

# Imported on first use, which a test's own path does not allow.
import rich.box
import rich.console
import rich.highlighter
import rich.padding
import rich.status
import rich.table
import rich.text  # noqa: F401

from pegboard_testing import fake_distribution
from tests.plugins.cli.command import Installation, Outcome
from tests.support.plugin_site import Site, fresh_site


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the user who runs the tests."""
    for name in [name for name in os.environ if name.startswith("PEGBOARD") or name in ("NO_COLOR", "COLUMNS")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No import is slow only because the machine has other things to do."""
    monkeypatch.setattr("pegboard_cli._checks.plugins.SLOW", 30.0)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def site(tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty place for packs, on the path of this process; everything that is installed is hidden."""
    with fresh_site(tmp_path / "site", monkeypatch) as site:
        fake_distribution(site.path, "pegboard", "0.1.0")  # hidden too, and plugins are measured by its version
        yield site


@pytest.fixture
def run(here: Path) -> Callable[..., Outcome]:
    """Run the command in this process: `run("tools", "--json")`."""

    def run(*arguments: str, stdin: str = "") -> Outcome:
        from pegboard_cli import main

        before = dict(os.environ)
        result = click.testing.CliRunner().invoke(main, list(arguments), input=stdin)
        os.environ.clear()  # a command hands options on in there, and no other command comes after it
        os.environ.update(before)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def installation(tmp_path: Path, here: Path) -> Installation:
    """A place for packs, and the real command in an interpreter of its own."""
    return Installation(tmp_path / "packs", here)
