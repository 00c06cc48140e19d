"""Ray in this process: started, joined or found for the first toolkit that needs it, released with the last one."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, final

import ray
from ray._private import services
from ray._private import worker as driver

from pegboard import PegboardError, describe_exception
from pegboard_ray._cluster import Cluster

if TYPE_CHECKING:
    from pegboard_ray._settings import Settings

__all__ = ["acquired", "released"]

_LOOKS: Final = 1.0
"""Seconds between two looks at whether the cluster is there."""
_CONNECTING: Final = 5.0
"""Seconds that the head of a cluster has for taking a connection."""
_JOINING: Final = 20.0
"""Seconds that joining a cluster may take."""
_SILENCE: Final = 20.0
"""Seconds that the head of a cluster may take no connection, for it may start again; after 60 Ray ends the program."""
_OURS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What keeps this process from connecting, whatever listens."""
_HEAD: Final = "head"
_NODE: Final = "raylet"

_TOKEN: Final = secrets.token_hex(32)
"""Of every Ray that this process starts: Ray itself remembers it."""

_lock: Final = threading.Lock()
_kept: _Keeper | None = None
_late: _Keeper | None = None
"""One that no caller waits for any more, while Ray still tries to join a cluster."""
_SHUT: Final = "the program has shut it down"


def acquired(settings: Settings, lose: Callable[[str], object] = lambda reason: None) -> Cluster:
    """Use the Ray of this process, which is started or joined if there is none. Raises `PegboardError`.

    `lose` is called with the reason, in another thread, if the cluster ends.
    """
    global _kept, _late  # noqa: PLW0603 - there is one Ray in a process
    with _lock:
        if _kept is not None and _kept.is_lost:
            _kept.end()
            _kept = None
        if _kept is None:
            if _late is not None and _late.is_late:
                _late.wait()
                _late.end()
            _late = _Keeper(settings)
            _late.wait()
            _kept, _late = _late, None
        else:
            _kept.refuse_other(settings)
        # What this pack did not start has an environment of its own, and tasks have to bring ours.
        environment = {} if _kept.is_ours else settings.runtime_env
        cluster = Cluster(environment, is_local=_kept.is_started, reach=_kept.reach)
        _kept.users[cluster] = lose
        return cluster


def released(cluster: Cluster) -> None:
    """End the use of it. With its last user, a Ray that this module has started or joined ends."""
    global _kept  # noqa: PLW0603 - as above
    with _lock:
        if _kept is None or _kept.users.pop(cluster, None) is None:
            return  # it has ended, and there may be another one by now
        if not _kept.users:
            _kept.end()
            _kept = None


@final
class _Keeper:
    """The thread that begins a Ray, watches it and ends it: Linux ends processes with the thread that started them."""

    def __init__(self, settings: Settings) -> None:
        self.users: dict[Cluster, Callable[[str], object]] = {}
        self.is_ours = not ray.is_initialized()
        self.is_started = self.is_ours and _is_local(settings)
        self.is_lost = False
        self._settings = settings
        self._over = threading.Event()
        self._ended = threading.Event()
        self._begun: Future[None] = Future()
        self._addresses: dict[str, str] = {}
        if not self.is_ours:
            self.refuse_other(settings)
        threading.Thread(target=self._keep, name="pegboard-ray-keeper", daemon=True).start()

    def wait(self) -> None:
        """Wait until it has begun. Raises `PegboardError`; `is_late` says whether it may begin all the same."""
        try:
            self._begun.result(None if self.is_started else _CONNECTING + _JOINING)
        except Exception as error:
            self._over.set()  # should it begin after all, it ends at once
            raise PegboardError(self._refusal(error)) from error

    @property
    def is_late(self) -> bool:
        """Whether it still tries to begin, though no caller waits for it any more."""
        return not self._ended.is_set()

    def refuse_other(self, settings: Settings) -> None:
        """Raises `PegboardError` for a toolkit that asks for another Ray than this process has."""
        ours, wanted = self._settings.address if self.is_ours else "", settings.address
        if wanted == ours or (_is_local(settings) and (self.is_started or not self.is_ours)):
            return
        here = ray.get_runtime_context().gcs_address
        if wanted is not None and here in (wanted, _resolved(wanted)):
            return
        raise PegboardError(
            f"the address of this toolkit's Ray is {wanted!r}, and this process uses the Ray at {here!r} already, for "
            f"which {_origin(self)}; a process has one Ray: give its toolkits the same address, or use two processes"
        )

    def _refusal(self, error: Exception) -> str:
        why = f"it does not answer within {_CONNECTING + _JOINING:g} s" if type(error) is TimeoutError else ""
        why = why or f"{type(error).__name__}: {describe_exception(error)}"
        if self.is_started:
            return f"a local Ray could not be started: {why}"
        if not self.is_ours:
            return f"the Ray that this program has begun does not answer: {why}; call ray.shutdown() and begin another"
        return f"no Ray at {self._settings.address!r}: {why}; begin one there, or correct the setting"

    def end(self) -> None:
        """End what was begun; returns when it has ended."""
        self._over.set()
        self._ended.wait()

    def _keep(self) -> None:
        try:
            self._begin()
        except BaseException as error:  # noqa: BLE001 - who waits for it raises it
            self._end("")
            self._begun.set_exception(error)
            return
        self._begun.set_result(None)
        reason = self._watch()
        self.is_lost = bool(reason)
        for cluster, lose in list(self.users.items()) if reason else ():
            cluster.is_lost = True
            lose(reason)
        self._end(reason)

    def _end(self, reason: str) -> None:
        try:
            if self.is_ours and reason is not _SHUT:
                ray.shutdown()
        finally:
            driver._worker_logs_enabled = True
            self._ended.set()

    def _begin(self) -> None:
        if self.is_ours:
            _begin(self._settings)
            # Ray prints on the program's stdout that workers died, of those too that were killed because a call ended.
            driver._worker_logs_enabled = bool(self._settings.options.get("log_to_driver"))
        if ray.util.client.ray.is_connected():
            return  # by way of a server of Ray Client, which keeps watch itself
        here = ray.get_runtime_context()
        _connect(here.gcs_address)
        node = next(each for each in ray.nodes() if each["NodeID"] == here.get_node_id())
        raylet = f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}"
        self._addresses = {_HEAD: here.gcs_address, _NODE: raylet}

    def _watch(self) -> str:
        """Wait until it is over or lost: why it is lost, or nothing."""
        heard = time.monotonic()
        while not self._over.wait(_LOOKS):
            if not ray.is_initialized():
                return _SHUT
            missing = self._missing()
            if not missing:
                heard = time.monotonic()
            elif self.is_started or _NODE in missing or time.monotonic() - heard >= _SILENCE:
                return "; ".join(f"its {part} at {self._addresses[part]}: {why}" for part, why in missing.items())
        return ""

    def reach(self) -> None:
        """Raises OSError if there is no head that takes connections."""
        if _HEAD in self._addresses:
            _connect(self._addresses[_HEAD])

    def _missing(self) -> dict[str, str]:
        """What takes no connection, and why. Ray itself is not asked: without a head it would wait, and then exit."""
        missing = {}
        for part, address in self._addresses.items():
            try:
                _connect(address)
            except OSError as error:
                if error.errno not in _OURS:
                    missing[part] = describe_exception(error)
        return missing


def _is_local(settings: Settings) -> bool:
    return settings.address in (None, "local")


def _origin(keeper: _Keeper) -> str:
    if not keeper.is_ours:
        return "the program itself called ray.init"
    return "another toolkit has " + ("no address" if keeper.is_started else "that address")


def _resolved(address: str) -> str:
    """An address as Ray knows it itself; as it is where that is not known."""
    try:
        return str(services.canonicalize_bootstrap_address(address) or address)
    except Exception:  # noqa: BLE001 - it names no Ray of this machine, or is none
        return address


def _connect(address: str) -> None:
    """Raises OSError where nothing listens at an address."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), _CONNECTING).close()


def _begin(settings: Settings) -> None:
    arguments: dict[str, Any] = {
        "configure_logging": False,
        "log_to_driver": False,
        "runtime_env": settings.runtime_env or None,
        **settings.options,
    }
    logger = logging.getLogger("ray")
    level = logger.level
    logger.setLevel(logging.ERROR)  # that it has a token, and is started in a thread, is as it should be
    try:
        if not _is_local(settings):
            address = _resolved(str(settings.address))
            if ":" in address and "://" not in address:
                _connect(address)  # where nothing listens, Ray itself tries for seven minutes
            ray.init(address=settings.address, **arguments)
            return
        with _environment():
            ray.init(address="local", include_dashboard=False, **arguments)
    finally:
        logger.setLevel(level)


@contextmanager
def _environment() -> Iterator[None]:
    """Around the start of a Ray on this machine, whose processes take it over.

    Its token is in there, for else Ray writes one into the home directory, and every cluster asks for it from then on.
    Workers import from where this program does. Ray's usage reports are switched off.
    """
    variables = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": _TOKEN, **os.environ}
    variables["PYTHONPATH"] = os.pathsep.join(filter(os.path.isdir, sys.path))
    names = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_USAGE_STATS_ENABLED", "PYTHONPATH")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update({name: variables[name] for name in names if name in variables})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
