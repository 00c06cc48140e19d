"""Run the suite in both eras; what it stands on is installed at the first time."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins.mcp import peers
from tests.workspace.project import ROOT

HERE = Path(__file__).parent
ERAS = ("2025-11-25", "2026-07-28")
CLIENT = "tests.plugins.mcp.conformance.client"


def passes(command: list[str], seconds: float) -> bool:
    """Whether a run of the suite ends in time, and well."""
    try:
        return subprocess.run(command, check=False, timeout=seconds, cwd=ROOT).returncode == 0
    except subprocess.TimeoutExpired:
        print(f"== not done after {seconds:g} seconds", flush=True)
        return False


def client_scenarios(suite: list[str], era: str) -> list[str]:
    """Every scenario of the suite for a client of that era."""
    listed = subprocess.run(
        [*suite, "list", "--client", "--spec-version", era], check=True, timeout=60, capture_output=True, text=True
    )
    return re.findall(r"^ +- (\S+)", listed.stdout, re.MULTILINE)


def main() -> int:
    """The number of runs that did not end as the baselines expect."""
    try:
        node, suite = peers.node(), peers.node_peer("conformance", "dist/index.js")
    except pytest.skip.Exception as reason:
        print(f"== skipped: {reason}")
        return 0
    failed = 0
    board = subprocess.Popen([sys.executable, str(HERE / "board.py"), "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    try:
        assert board.stderr is not None
        found = re.search(r"http://\S+", board.stderr.readline())
        assert found is not None
        for era in ERAS:
            command = [node, suite, "server", "--url", found.group(), "--suite", "all", "--spec-version", era]
            command += ["--expected-failures", str(HERE / f"expected-{era}.yml")]
            failed += not passes(command, 600)
            scenarios = client_scenarios([node, suite], era)
            failed += not scenarios
            for scenario in scenarios:
                client = f"{sys.executable} -m {CLIENT}"
                command = [node, suite, "client", "--command", client, "--scenario", scenario, "--spec-version", era]
                passed = passes(command, 120)
                print(f"== client {era} {scenario}: {'passed' if passed else 'FAILED'}", flush=True)
                failed += not passed
    finally:
        board.terminate()
        board.wait(10)
    print(f"== {failed} runs ended otherwise than expected")
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
