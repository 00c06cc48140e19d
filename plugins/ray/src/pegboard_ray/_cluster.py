"""Ray as this process has it: started or joined with the first toolkit that needs it, and left with the last one."""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, final

import ray
from ray.experimental.internal_kv import _internal_kv_del, _internal_kv_get

from pegboard import PegboardError, describe_exception
from pegboard_ray import _worker
from pegboard_ray._order import NAMESPACE

if TYPE_CHECKING:
    from pegboard_ray._settings import Settings

__all__ = ["Cluster", "asked_of", "entered", "ids", "left", "offered"]

_AHEAD: Final = 16
"""Pieces of what a tool says that nobody has taken yet; then it waits."""
_FRESH: Final = 5.0
"""Seconds for which the nodes of a cluster are taken to be the same."""
_NAMES: Final = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}

_TOKEN: Final = secrets.token_hex(32)
"""Of every Ray that this process starts: Ray itself remembers it."""

_lock: Final = threading.Lock()
_users = 0
_ours = False
_local = False


@final
class Cluster:
    """A cluster as one toolkit uses it."""

    def __init__(self, runtime_env: Mapping[str, Any], is_local: bool) -> None:
        # What this pack did not start has an environment of its own, and tasks have to bring ours.
        common: dict[str, Any] = {"max_retries": 0, **({"runtime_env": dict(runtime_env)} if runtime_env else {})}
        self.is_local = is_local
        self._common = common
        self._streamed = {"num_returns": "streaming", "_generator_backpressure_num_objects": _AHEAD}
        self._made: dict[tuple[Any, bool], Any] = {}
        self._room: dict[Any, tuple[int, float]] = {}

    def start(self, parcel: bytes, shape: Any, options: Mapping[str, Any], *, streamed: bool) -> Any:
        """Give Ray a task: a reference to its answer, or what gives them."""
        key = shape, streamed
        if key not in self._made:
            function, more = (_worker.stream_call, self._streamed) if streamed else (_worker.run_calls, {})
            self._made[key] = ray.remote(function).options(name="pegboard", **self._common, **more, **options)
        return self._made[key].remote(parcel)

    def places(self, options: Mapping[str, Any]) -> bool:
        """Whether any node has what a task asks for, be it in use or not."""
        asked = asked_of(options)
        return any(all(node.get(name, 0) >= amount for name, amount in asked.items()) for node in offered().values())

    def at_once(self, shape: Any, options: Mapping[str, Any]) -> int:
        """How many of such tasks the nodes run at once, as of some seconds ago; 1 at least."""
        known, looked = self._room.get(shape, (0, -_FRESH))
        if time.monotonic() - looked >= _FRESH:
            asked = asked_of(options)
            rooms = (
                min((node.get(name, 0) // amount for name, amount in asked.items()), default=1)
                for node in offered().values()
            )
            known = max(1, int(sum(rooms)))
            self._room[shape] = known, time.monotonic()
        return known

    def note(self, task: str) -> str:
        """Whose time was up in a task, so that its worker ended itself; empty if that is not why it is gone."""
        with suppress(Exception):  # the cluster may be gone as a whole
            said = _internal_kv_get(task.encode(), namespace=NAMESPACE)
            if said is not None:
                _internal_kv_del(task.encode(), namespace=NAMESPACE)
                return str(said.decode())
        return ""


def asked_of(options: Mapping[str, Any]) -> dict[str, float]:
    """What a task with these options takes of a node, by the names of resources."""
    counted = {_NAMES[name]: amount for name, amount in options.items() if name in _NAMES}
    found = {"CPU": 1, **counted, **options.get("resources", {})}
    return {name: amount for name, amount in found.items() if amount}


def offered() -> dict[str, dict[str, float]]:
    """What each living node has, by its name and the beginning of its id."""
    return {_name(node): dict(node["Resources"]) for node in ray.nodes() if node["Alive"]}


def ids() -> dict[str, str]:
    """The whole id of each, by the same."""
    return {_name(node): node["NodeID"] for node in ray.nodes() if node["Alive"]}


def _name(node: Mapping[str, Any]) -> str:
    return f"{node['NodeManagerHostname']} ({node['NodeID'][:8]})"


def entered(settings: Settings) -> Cluster:
    """Use the Ray of this process, which is started or joined if there is none. Raises `PegboardError`."""
    global _users, _ours, _local  # noqa: PLW0603 - there is one Ray in a process
    with _lock:
        ours = not ray.is_initialized()
        if ours:
            try:
                _begin(settings)
            except Exception as error:
                raise PegboardError(_refusal(settings, error)) from error
            _ours, _local = True, settings.address is None
        _users += 1
        return Cluster({} if ours else settings.runtime_env, _ours and _local)


def left() -> None:
    """Use it no more; with its last user ends what this module has begun."""
    global _users, _ours  # noqa: PLW0603 - as above
    with _lock:
        _users -= 1
        if _users == 0 and _ours:
            _ours = False
            ray.shutdown()


def _begin(settings: Settings) -> None:
    told: dict[str, Any] = {
        "configure_logging": False,
        "log_to_driver": False,
        "runtime_env": settings.runtime_env or None,
        **settings.options,
    }
    logger = logging.getLogger("ray")
    level = logger.level
    logger.setLevel(logging.ERROR)  # that it has a token, and is started in a thread, is as it should be
    try:
        if settings.address is not None:
            ray.init(address=settings.address, **told)
            return
        with _environment():
            ray.init(address="local", include_dashboard=False, **told)
    finally:
        logger.setLevel(level)


@contextmanager
def _environment() -> Iterator[None]:
    """Around the start of a Ray on this machine, whose processes take it over.

    Its token is in there, for else Ray writes one into the home directory, and every cluster asks for it from then on.
    Workers import from where this program does. Nobody is told that Ray is used.
    """
    told = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": _TOKEN, **os.environ}
    told["PYTHONPATH"] = os.pathsep.join(filter(os.path.isdir, sys.path))
    names = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_USAGE_STATS_ENABLED", "PYTHONPATH")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update({name: told[name] for name in names if name in told})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _refusal(settings: Settings, error: Exception) -> str:
    what = "a local Ray could not be started" if settings.address is None else f"no Ray at {settings.address!r}"
    return f"{what}: {type(error).__name__}: {describe_exception(error)}"
