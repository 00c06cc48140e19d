"""Warm interpreters: processes forked from one that has loaded the SDK, which takes each a second of its own otherwise.

`warm_python()` is an executable in the place of `sys.executable`. Started, it has its standard streams, arguments,
environment and directory taken over by a fork, and ends as the fork does. Killing it kills the fork a moment later: the
end of its output is the end of both. Tests that are about a process itself start one of their own.
"""

from __future__ import annotations

import atexit
import gc
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

__all__ = ["warm_processes", "warm_python"]

LOADED: Final = ("mcp.server", "mcp.server.stdio", "mcp.client.stdio", "uvicorn", "pegboard_mcp._server.serving")
LAUNCHER: Final = """#!{python} -IS
import array, os, socket, sys
with socket.socket(socket.AF_UNIX) as forker:
    forker.connect({address!r})
    arguments = sys.argv[1:]
    variables = [f"{{name}}={{value}}" for name, value in os.environ.items()]
    sent = "\\0".join([os.getcwd(), str(len(arguments)), *arguments, *variables]).encode(errors="surrogateescape")
    streams = array.array("i", [0, 1, 2])
    forker.sendmsg([len(sent).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    forker.sendall(sent)
    for each in streams:
        os.close(each)
    status = forker.recv(1)
    os._exit(status[0] if status else 1)
"""
LONGEST: Final = 100
"""Characters of the path of an interpreter that the first line of a program may name on every system."""
_FORKERS: Final[list[subprocess.Popen[bytes]]] = []


@cache
def warm_python() -> str:
    """The path of an interpreter that begins warm, while this process runs; of this one where there is no such fork."""
    if not hasattr(os, "pidfd_open") or " " in sys.executable or len(sys.executable) > LONGEST:
        return sys.executable
    place = Path(tempfile.mkdtemp(prefix="warm"))
    launcher, address = place / "python", str(place / "forker")
    launcher.write_text(LAUNCHER.format(python=sys.executable, address=address), "utf-8")
    launcher.chmod(0o700)
    command = [sys.executable, "-m", "tests.support.warm", address]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert process.stdout is not None
    assert process.stdout.readline() == b"warm\n"
    _FORKERS.append(process)
    atexit.register(_end, process)
    return str(launcher)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.communicate()


def warm_processes() -> set[int]:
    """The process that the others are forked from, if there is one."""
    return {each.pid for each in _FORKERS}


# In the process that forks -------------------------------------------------------------------------------------------


def main(address: str) -> None:
    """Fork for every launcher that connects, until standard input ends."""
    for name in LOADED:
        import_module(name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        sys.stdout.write("warm\n")
        sys.stdout.flush()
        gc.collect()
        gc.freeze()
        while listening.fileno() in select.select([listening.fileno(), 0], [], [])[0]:
            connection, _ = listening.accept()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if os.fork() == 0:
                listening.close()
                return _watched(connection)
            connection.close()
    shutil.rmtree(Path(address).parent)
    return None


def _watched(launcher: socket.socket) -> None:
    """Run the program in a process of its own, which is killed with its launcher."""
    head, streams, _, _ = socket.recv_fds(launcher, 4, 3)
    sent = b""
    while len(sent) < int.from_bytes(head, "big"):
        sent += launcher.recv(65_536)
    program = os.fork()
    if program == 0:
        launcher.close()
        return _run(sent.decode(errors="surrogateescape").split("\0"), streams)
    for each in (0, 1, *streams):
        os.close(each)
    ended = os.pidfd_open(program)
    if ended not in select.select([ended, launcher.fileno()], [], [])[0]:
        os.kill(program, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    with suppress(OSError):
        launcher.sendall(bytes([status % 256]))
    os._exit(0)


def _run(sent: list[str], streams: list[int]) -> None:
    """Become the program, which ends as any other does."""
    os.setsid()
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    sys.stdin, sys.stdout, sys.stderr = (open(n, "r" if n == 0 else "w", closefd=False) for n in range(3))  # noqa: SIM115
    os.chdir(sent[0])
    count = int(sent[1])
    what, *arguments = sent[2 : 2 + count]
    os.environ.clear()
    os.environ.update(each.partition("=")[::2] for each in sent[2 + count :])
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if what in ("-c", "-m"):
        name, *arguments = arguments
        sys.argv = [what, *arguments]
        sys.path[0:0] = [sent[0]]
        if what == "-m":
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            exec(compile(name, "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = [what, *arguments]
        sys.path[0:0] = [str(Path(what).resolve().parent)]
        runpy.run_path(what, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
