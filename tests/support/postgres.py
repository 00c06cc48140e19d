"""A PostgreSQL server of the tests' own: in a temporary folder, on a Unix socket there, and on no port."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import final

from tests.support.waiting import eventually

__all__ = ["PostgresServer", "postgres", "why_no_postgres"]

ACCOUNT = "nobody"
"""Who runs the server where the tests run as root, which PostgreSQL refuses."""
TOLD = ("-c", "fsync=off", "-c", "listen_addresses=", "-c", "max_connections=50", "-c", "shared_buffers=16MB")


def _programs() -> Path | None:
    """The folder of the server's programs, which Debian keeps off PATH."""
    if initdb := shutil.which("initdb"):
        return Path(initdb).parent
    if shutil.which("pg_ctlcluster") is None:
        return None
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def why_no_postgres() -> str:
    """Why there can be no server here; empty if there can be one."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed"
    if not hasattr(os, "geteuid"):
        return "no server is started on Windows"
    if _programs() is None:
        return "no PostgreSQL is installed: initdb is not on PATH, nor Debian's pg_ctlcluster"
    return ""


@final
class PostgresServer:
    """A server in a folder. `url` says where it is, `stop` and `start` do so at any time."""

    def __init__(self, folder: Path) -> None:
        programs = _programs()
        assert programs is not None
        self._programs = programs
        self._folder = folder
        self._data = folder / "data"
        self._user = ACCOUNT if os.geteuid() == 0 else None
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._run("initdb", "--pgdata", self._data, "--username", "owner", "--auth", "trust", "--encoding", "UTF8")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
        subprocess.run(
            command, user=self._user, check=True, timeout=120, cwd=self._folder, env=environment, capture_output=True
        )

    def url(self, user: str = "owner", password: str = "") -> str:
        """Where it is, for one of its roles."""
        return f"postgresql://{user}{password and f':{password}'}@/postgres?host={self._folder}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        import psycopg

        command = [str(self._programs / "postgres"), "-D", str(self._data), "-k", str(self._folder), *TOLD]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, user=self._user, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

        def answers() -> bool:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
            except psycopg.OperationalError:
                return False
            return True

        assert eventually(answers), (self._folder / "log").read_text("utf-8", "replace")

    def stop(self) -> None:
        """Stop it at once; connections break."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # a fast shutdown
            self._process.wait(60)
            self._process = None

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement as the owner."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    def empty(self) -> None:
        """Remove what tests have made."""
        self.execute("DROP TABLE IF EXISTS pegboard_conversations, pegboard_journal")


@contextmanager
def postgres() -> Iterator[PostgresServer]:
    """A server until the end of the block."""
    # A socket's path may have some hundred characters, which pytest's folders come close to.
    with tempfile.TemporaryDirectory(prefix="pegboard-pg-") as folder:
        server = PostgresServer(Path(folder))
        try:
            yield server
        finally:
            server.stop()
