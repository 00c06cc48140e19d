"""A cluster as one toolkit uses it: tasks, and what its nodes have."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, final

import ray
from ray.experimental.internal_kv import _internal_kv_del, _internal_kv_get

from pegboard_ray import _worker
from pegboard_ray._order import NAMESPACE

__all__ = ["Cluster", "ids", "needs_of", "offered"]

_AHEAD: Final = 16
"""Chunks of a tool that were not taken yet; at so many the tool waits."""
_FRESH: Final = 5.0
"""Seconds for which the nodes of a cluster are taken to be the same."""
_NAMES: Final = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}


@final
class Cluster:
    """A cluster as one toolkit uses it."""

    def __init__(self, runtime_env: Mapping[str, Any], *, is_local: bool, reach: Callable[[], object]) -> None:
        # What this pack did not start has an environment of its own, and tasks have to bring ours.
        common: dict[str, Any] = {"max_retries": 0, **({"runtime_env": dict(runtime_env)} if runtime_env else {})}
        self.is_local = is_local
        self.is_lost = False
        self._reach = reach
        """Raises OSError if there is no head: to ask a dead one takes a minute, and then Ray ends the program."""
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
        """Whether any node has the resources that a task needs, in use or not."""
        needs, nodes = needs_of(options), self.offered().values()
        return any(all(node.get(name, 0) >= amount for name, amount in needs.items()) for node in nodes)

    def offered(self) -> dict[str, dict[str, float]]:
        """What each living node has, by its name and the beginning of its id. Raises what Ray has instead."""
        self._reach()
        return offered()

    def at_once(self, shape: Any, options: Mapping[str, Any]) -> int:
        """How many of such tasks the nodes run at once, as of some seconds ago; 1 at least."""
        known, looked = self._room.get(shape, (0, -_FRESH))
        if time.monotonic() - looked >= _FRESH:
            needs = needs_of(options)
            with suppress(Exception):  # the cluster does not answer, which is no reason to send nothing
                rooms = (
                    min((node.get(name, 0) // amount for name, amount in needs.items()), default=1)
                    for node in self.offered().values()
                )
                known = int(sum(rooms))
            self._room[shape] = known, time.monotonic()
        return max(1, known)

    def note(self, task: str) -> str:
        """The key of the call whose timeout made its worker end itself; empty if it ended for another reason."""
        with suppress(Exception):  # the cluster may have ended as a whole
            self._reach()
            note = _internal_kv_get(task.encode(), namespace=NAMESPACE)
            if note is not None:
                _internal_kv_del(task.encode(), namespace=NAMESPACE)
                return str(note.decode())
        return ""


def needs_of(options: Mapping[str, Any]) -> dict[str, float]:
    """The resources that a task with these options needs, by their names."""
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
