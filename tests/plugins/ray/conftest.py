"""Clusters on this machine."""

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pegboard import Toolkit

# Not skipped from here: a folder that is named to pytest would end the run so.
collect_ignore_glob = [] if find_spec("pegboard_ray") else ["test_*.py"]

# Before Ray is loaded. What it asks for without is in a test of its own, in another process.
os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

TOOLS = "tests.plugins.ray.laborers:TOOLS"
SMALL = 100 * 1024**2
"""Bytes of an object store."""
ROOT = Path(__file__).parents[3]

Board = Callable[..., Toolkit]


LAB = """
from pegboard import hookimpl, tool

@tool(backend="ray", resources={{"num_cpus": 0, "first": 0.1}})
def release_first() -> str:
    "Say which release this is."
    return "{release}"

@tool(backend="ray", resources={{"num_cpus": 0, "second": 0.1}})
def release_second() -> str:
    "Say which release this is."
    return "{release}"

@tool(backend="ray", resources={{"num_cpus": 0, "second": 0.1}})
def mix({parameters}) -> int:
    "Mix."
    return a

@hookimpl
def provide_tools():
    return [release_first, release_second, mix]
"""


@pytest.fixture(scope="session")
def labs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two environments: folders with two releases of one pack, whose tool `mix` has other parameters in the second."""
    return [
        installed(tmp_path_factory.mktemp("lab"), release, parameters)
        for release, parameters in (("1.0", "a: int"), ("2.0", "a: int, b: int"))
    ]


def installed(place: Path, release: str, parameters: str) -> Path:
    """A folder with a release of the pack in it."""
    place.joinpath("acme_lab.py").write_text(LAB.format(release=release, parameters=parameters), encoding="utf-8")
    record = place / f"acme_lab-{release}.dist-info"
    record.mkdir()
    record.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: acme-lab\nVersion: {release}\n", encoding="utf-8"
    )
    record.joinpath("entry_points.txt").write_text("[pegboard]\nlab = acme_lab\n", encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def cluster(labs: list[Path]) -> Iterator[Any]:
    """Two nodes; each has a resource of its own, a shared one, and an environment of its own."""
    from ray.cluster_utils import Cluster

    paths = [os.pathsep.join([str(ROOT), str(lab)]) for lab in labs]
    with pytest.MonkeyPatch.context() as patch:  # a cluster has its own environment
        patch.setenv("PYTHONPATH", paths[0])
        made = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "resources": {"first": 1, "both": 1}, "object_store_memory": SMALL},
        )
        patch.setenv("PYTHONPATH", paths[1])
        made.add_node(num_cpus=1, resources={"second": 1, "both": 1}, object_store_memory=SMALL)
    yield made
    made.shutdown()


@pytest.fixture
def board(cluster: Any) -> Iterator[Board]:
    """Makes toolkits that use the cluster."""
    made: list[Toolkit] = []

    def make(*tools: Any, plugins: tuple[str, ...] = (), **settings: Any) -> Toolkit:
        section = {"address": cluster.address, "tools": [TOOLS], "patience": 1.0, **settings}
        toolkit = Toolkit(plugins=["ray", *plugins], settings={"ray": section})
        made.append(toolkit)
        if tools:
            toolkit.register(*tools)
        return toolkit

    yield make
    for toolkit in made:
        toolkit.close()
