"""The backend as a toolkit sees it; Ray is loaded, and started, with the first job."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final, final

from pegboard import PegboardError, RegistrationError
from pegboard_ray._settings import REMEDY_FOR_SECRETS

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pegboard import Job, Tool
    from pegboard_ray._dispatch import Dispatcher
    from pegboard_ray._settings import Settings

__all__ = ["RayBackend"]

_FORKED: Final = "Ray does not survive a fork: let the first call of a tool with backend='ray' be made in the child"


@final
class RayBackend:
    """Runs sync tools in the workers of a Ray cluster, which are killed when a call has to end."""

    name = "ray"
    keeps_time = True
    remote = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._dispatcher: Dispatcher | None = None
        self._process = 0
        """The one that has the dispatcher."""
        self._closed = False

    def check(self, tool: Tool) -> None:
        """Raises `RegistrationError` for a tool that could never run in a worker."""
        from pegboard_ray._checks import check_remote

        check_remote(tool, self._settings.tools)

    def check_secret(self, tool: Tool, parameter: str) -> None:
        """Raises `RegistrationError` for a secret that would have to leave the program for a worker."""
        if not self._settings.secrets:
            raise RegistrationError(
                f'tool {tool.name!r} with backend="ray": the preset of {parameter!r} is a Secret, which may not leave '
                f"the program; {REMEDY_FOR_SECRETS}"
            )

    def submit(self, job: Job) -> Future[Any]:
        """Queue a job. Cancelling the future kills its worker. Raises RuntimeError when the backend is closed."""
        return self._made_dispatcher().submit(job)

    def run_here(self, job: Job) -> Any:
        """Run a job, for a thread that would only wait for it. A token that is set ends it."""
        return self._made_dispatcher().run_here(job)

    def _made_dispatcher(self) -> Dispatcher:
        with self._lock:
            if self._closed:
                raise RuntimeError("the Ray backend of this toolkit is closed")
            if self._dispatcher is None:
                from pegboard_ray._dispatch import Dispatcher

                self._process, self._dispatcher = os.getpid(), Dispatcher(self._settings)
            elif self._process != os.getpid():
                raise PegboardError(_FORKED)
            return self._dispatcher

    def diagnosis(self) -> list[tuple[str, str, str]]:
        """For `pegboard doctor`: what the cluster is, and which of its nodes have other packs."""
        from pegboard_ray._diagnosis import diagnosis

        return diagnosis(self._settings)

    def close(self) -> None:
        """End what runs; the last toolkit also ends a Ray that this pack has started. Returns when all has ended."""
        with self._lock:
            self._closed = True
            dispatcher = self._dispatcher if self._process == os.getpid() else None
        if dispatcher is not None:
            dispatcher.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "idle" if self._dispatcher is None else "running"
        return f"RayBackend({self._settings.address or 'on this machine'}, {state})"
