"""A program that is killed leaves no server behind, not even one that blocks while it starts and ignores SIGTERM."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE, eventually

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there a server's processes end with the job")

SERVER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdin.readline()  # the first question: from then on the keeper knows of this process
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.replace(sys.argv[1] + ".new", sys.argv[1])
while True:
    time.sleep(1)
"""
PROGRAM = """
import os, signal, sys, threading, time
from pegboard import Toolkit
from pegboard_mcp import McpServer

def start():
    Toolkit(plugins=()).register(McpServer.stdio(sys.executable, ["-c", sys.argv[1], sys.argv[2]], connect_timeout=60))

threading.Thread(target=start, daemon=True).start()
while not os.path.exists(sys.argv[2]):
    time.sleep(0.02)
{ends}
"""


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.parametrize(
    "ends",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        pytest.param("os.kill(os.getpid(), signal.SIGTERM)", marks=pytest.mark.slow),
        pytest.param("os._exit(3)", marks=pytest.mark.slow),
    ],
)
def test_a_program_that_is_killed_leaves_no_server(tmp_path: Path, ends: str) -> None:
    started = tmp_path / "server"
    program = [sys.executable, "-c", PROGRAM.format(ends=ends), SERVER, str(started)]
    subprocess.run(program, capture_output=True, timeout=PATIENCE, check=False)
    server = int(started.read_text())
    try:
        assert eventually(lambda: not runs(server))
    finally:
        if runs(server):
            os.kill(server, signal.SIGKILL)
