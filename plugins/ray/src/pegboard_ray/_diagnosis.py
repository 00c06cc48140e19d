"""What `pegboard doctor` says of the cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypeAlias

from pegboard_ray._worker import release_of

if TYPE_CHECKING:
    from pegboard_ray._settings import Settings

__all__ = ["diagnosis"]

_PATIENCE: Final = 30.0
Diagnosis: TypeAlias = tuple[str, str, str]
"""The level, what it is, and what to do."""


def diagnosis(settings: Settings) -> list[Diagnosis]:
    """Findings about the cluster; each node reports what is installed there.

    A Ray of this machine is not started for it. Raises `PegboardError` where there is none at the address.
    """
    if settings.address is None:
        what = f"a first call starts a Ray on this machine, with {os.cpu_count()} CPUs, which ends with the toolkit"
        return [("note", what, "to use a cluster, say address in the settings of ray")]
    from pegboard_ray._cluster import ids, offered
    from pegboard_ray._keeper import acquired, released

    cluster = acquired(settings)
    try:
        nodes = offered()
        found = [("note", f"the cluster at {settings.address} has {_counted(nodes)}", "nothing, if that is all of it")]
        return found + [each for name, node in sorted(ids().items()) for each in _differences(name, node)]
    finally:
        released(cluster)


def _counted(nodes: dict[str, dict[str, float]]) -> str:
    cpus, gpus = (sum(node.get(name, 0) for node in nodes.values()) for name in ("CPU", "GPU"))
    return f"{len(nodes)} nodes with {cpus:g} CPUs and {gpus:g} GPUs"


def _differences(name: str, node: str) -> list[Diagnosis]:
    """A finding for packs whose versions on a node differ from those here."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = installed()
    there_only = NodeAffinitySchedulingStrategy(node, soft=False)
    task = ray.remote(installed).options(num_cpus=0, scheduling_strategy=there_only, max_retries=0)
    try:
        there = ray.get(task.remote(), timeout=_PATIENCE)
    except Exception as error:  # noqa: BLE001 - whatever a node says or does not
        return [
            (
                "warning",
                f"{name} does not say what is installed there: {type(error).__name__}",
                "install pegboard-ray there",
            )
        ]
    releases = {each: (release, there.get(each, "none")) for each, release in here.items()}
    other = [f"{own} here, {remote} there" for own, remote in releases.values() if own != remote]
    if not other:
        return []
    return [("warning", f"{name} has other packs: {'; '.join(other)}", "install the same versions there")]


def installed() -> dict[str, str]:
    """What is installed of Pegboard and its packs, by distribution."""
    from pegboard.inspection import Plugins

    records = Plugins.load(imports=False).records
    names = {"pegboard", *(each.distribution for each in records if each.distribution)}
    return {name: release_of(name) for name in sorted(names)}
