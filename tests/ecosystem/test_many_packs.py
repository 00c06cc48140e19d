"""Hundreds of distributions and dozens of packs: nothing is imported unless it is requested, and order never shows."""

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pegboard_testing import fake_distribution
from tests.ecosystem.sites import fresh

TOOLS = """
import heavy_{n}

def work(text: str) -> str:
    return text

{names} = [work] * 20
"""
LIGHT = """
import pegboard

@pegboard.hookimpl
def provide_tools(settings):
    return [f"many_tools_{n}:pack_{n}_{{tool}}" for tool in range(20)]
"""
ONE_OF = """
import sys
before = set(sys.modules)
from pegboard import Toolkit
with Toolkit(**options) as toolkit:
    names = list(toolkit._core.registry.board.tools)
    used = toolkit.call_sync(use, {"text": "hi"}).text if use else ""
import json
ours = sorted(name for name in set(sys.modules) - before if name.startswith(("many_", "heavy_")))
print(json.dumps({"names": names, "used": used, "modules": ours, "count": len(sys.modules)}))
"""
BOARD = """
import json
from pegboard import Toolkit
with Toolkit() as toolkit:
    tools = [[t.name, t.description, t.parameters, t.returns, str(t.origin)] for t in toolkit]
    print(json.dumps([tools, [[r.name, str(r), r.reason] for r in toolkit.plugins], toolkit.problems]))
"""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 third-party distributions and 50 packs of 20 tools, each behind import strings."""
    site = tmp_path_factory.mktemp("crowd")
    for number in range(300):
        scripts = {"console_scripts": {f"tool{number}": "module:main"}} if number % 3 else ""
        fake_distribution(site, f"unrelated-{number}", entry_points=scripts, requires=["attrs"])
    for number in range(50):
        names = ", ".join(f"pack_{number}_{tool}" for tool in range(20))
        modules = {
            f"many_pack_{number}": LIGHT.format(n=number),
            f"many_tools_{number}": TOOLS.format(n=number, names=names),
            f"heavy_{number}": "",
        }
        entry_points = {f"many-{number}": f"many_pack_{number}"}
        fake_distribution(site, f"many-pack-{number}", entry_points=entry_points, modules=modules)
    return site


def run(site: Path, options: str = "{}", use: str = "") -> Any:
    return json.loads(fresh(site, f"options = {options}\nuse = {use!r}\n{ONE_OF}"))


class TestNothingIsImportedThatWasNotAskedFor:
    def test_every_pack_but_no_tool(self, crowd: Path) -> None:
        found = run(crowd)
        assert len(found["names"]) == 1000
        assert found["modules"] == sorted(f"many_pack_{number}" for number in range(50))

    def test_one_tool_imports_its_own_module(self, crowd: Path) -> None:
        found = run(crowd, use="pack_7_3")
        assert found["used"] == "hi"
        assert [name for name in found["modules"] if not name.startswith("many_pack_")] == ["heavy_7", "many_tools_7"]

    def test_one_pack(self, crowd: Path) -> None:
        found = run(crowd, "{'plugins': ['many-7']}")
        assert found["modules"] == ["many_pack_7"]
        assert len(found["names"]) == 20

    def test_the_crowd_adds_nothing_but_itself(self, crowd: Path) -> None:
        one = run(crowd, "{'plugins': ['many-7']}")
        all_names = run(crowd)
        assert all_names["count"] - one["count"] == 49


def _install_shuffled(site: Path, seed: int) -> None:
    """The same packs, written in another order: directories list what they hold as it pleases them."""
    source = """
import pegboard

def {name}(words: set[str], number: int = 1) -> dict[str, int]:
    "Count."
    return {{}}

def same(text: str) -> str:
    "Clashes."
    return text

@pegboard.hookimpl
def provide_tools(settings):
    return [{name}, same]
"""
    packs = [f"pack{number}" for number in range(12)]
    Random(seed).shuffle(packs)
    for name in packs:
        modules = {f"shuffled_{name}": source.format(name=name)}
        fake_distribution(site, f"acme-{name}", entry_points={name: f"shuffled_{name}"}, modules=modules)
        fake_distribution(site, f"rival-{name}", entry_points={name: "shuffled_rival"}, modules={"shuffled_rival": ""})
    os.utime(site)


def _boards(tmp_path: Path, seeds: range) -> set[str]:
    found = set()
    for seed in seeds:
        # The same place each time: reasons name it.
        site = tmp_path / str(seed) / "site"
        site.mkdir(parents=True)
        _install_shuffled(site, seed)
        text = fresh(site, BOARD, env={"PYTHONHASHSEED": str(seed)})
        found.add(text.replace(str(site), "site"))
    return found


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(20), marks=pytest.mark.slow)], ids=["3 processes", "20 processes"]
)
def test_same_installed_set_same_board(seeds: range, tmp_path: Path) -> None:
    (board,) = _boards(tmp_path, seeds)
    tools, _, problems = json.loads(board)
    assert len(tools) == 24
    assert len(problems) >= 12
