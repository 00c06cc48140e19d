"""The workers of this process: a pool of sandboxes, begun on first use, ended with its last user, new after a fork."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import signal
import sys
import threading
from contextlib import suppress
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, cast, final

from pegboard import ToolError

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontySession

__all__ = ["Worker", "workers"]

MOST: Final = 64
"""Programs that run at once in a process; further ones wait for `PATIENCE` seconds."""
PATIENCE: Final = 30.0
RUNS: Final = 500
"""Programs that a worker process serves before a fresh one takes its place: what a program has grown it keeps."""
GRACE: Final = 0.5
"""Seconds that a worker has to end a program by itself when its time is up; then it is killed."""


@final
class Worker:
    """A sandbox for one program: `session` runs it, `kill` ends it from any thread."""

    def __init__(self, session: MontySession, pid: int | None) -> None:
        self.session = session
        self._pid = pid
        self._lock = threading.Lock()

    def kill(self) -> None:
        """End the process at once; a turn that runs there ends with an exception. The pool starts another one."""
        with self._lock:
            pid, self._pid = self._pid, None
        if pid is not None:
            with suppress(OSError):
                os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def close(self) -> None:
        """Give the process back to the pool."""
        with self._lock:  # a process that serves another program by then must not be killed
            self._pid = None
        workers.give_back(self)


@final
class Workers:
    """Begins the pool and ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: Monty | None = None
        self._users = 0
        self._busy: set[Worker] = set()
        self._of_parents: list[Any] = []
        self._library: Any = None

    @property
    def library(self) -> Any:
        """The client of the sandbox, loaded on first use."""
        if self._library is None:
            self._library = _library_anew() if self._of_parents else import_module("pydantic_monty")
        return self._library

    def retain(self) -> None:
        """Keep the pool until `release`."""
        with self._lock:
            self._users += 1

    def release(self) -> None:
        """End the pool if nothing else keeps it."""
        with self._lock:
            self._users -= 1
            pool = None if self._users > 0 or self._busy else self._pool
            self._pool = self._pool if pool is None else None
        if pool is not None:
            pool.__exit__(None, None, None)

    def checkout(self, **options: Any) -> Worker:
        """A worker for one program. Raises `ToolError` where all are busy for too long."""
        session = self._begun().checkout(**options)
        try:
            session.__enter__()
        except TimeoutError:
            raise ToolError(f"{MOST} programs run already; try again later") from None
        worker = Worker(session, session.worker_pid)
        with self._lock:
            self._busy.add(worker)
        return worker

    def give_back(self, worker: Worker) -> None:
        """Take a worker back."""
        with self._lock:
            self._busy.discard(worker)
        worker.session.__exit__(None, None, None)
        self.retain()
        self.release()  # it may have been the last

    def _begun(self) -> Monty:
        library = self.library
        with self._lock:
            if self._pool is None:
                self._pool = library.Monty(
                    min_processes=0,
                    max_processes=MOST,
                    checkout_timeout=PATIENCE,
                    max_checkouts_per_worker=RUNS,
                    feed_duration_limit_grace=GRACE,
                )
                self._pool.__enter__()
            return cast("Monty", self._pool)

    def end(self) -> None:
        """Kill what still runs and end the pool: the interpreter exits, and waits for no program."""
        with self._lock:
            busy, self._busy = self._busy, set()
            pool, self._pool = self._pool, None
        for worker in busy:
            worker.kill()
        if pool is not None:
            pool.__exit__(None, None, None)

    def forget(self) -> None:
        """Leave the workers to the parent: in a forked child the pool begins anew."""
        if self._library is not None:
            self._of_parents += [self._library, self._pool, *self._busy]  # to drop them would end them
        self._lock, self._library, self._pool, self._busy = threading.Lock(), None, None, set()


def _library_anew() -> Any:
    """A second copy of the client, for a forked child: threads that the first one waits for are the parent's."""
    name = "pydantic_monty._monty"
    old = import_module(name).__file__ or ""
    for each in [each for each in sys.modules if each.partition(".")[0] == "pydantic_monty"]:
        del sys.modules[each]
    with TemporaryDirectory() as folder:
        spec = importlib.util.spec_from_file_location(name, shutil.copy(old, folder))
        if spec is None or spec.loader is None:
            raise ImportError(f"{old} cannot be loaded a second time, after a fork")
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return import_module("pydantic_monty")


workers: Final = Workers()
atexit.register(workers.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.forget)
