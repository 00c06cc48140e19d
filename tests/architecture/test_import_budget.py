"""`import pegboard` loads only what it needs; the rest comes with the first use (PEP 562)."""

import builtins
import collections.abc
import json
import typing
from collections.abc import Iterable

import pytest
import typing_extensions

import pegboard
from tests.support.interpreters import printed
from tests.workspace.project import PACKS

# All of the core that importing it may load.
LOADED = ["pegboard"]

# Each costs a noticeable part of a command's start: 10 to 150 ms.
HEAVY = [
    "asyncio",
    "attr",
    "attrs",
    "cattrs",
    "concurrent.futures",
    "dataclasses",
    "importlib.metadata",
    "importlib_metadata",
    "inspect",
    "jsonschema",
    "logging",
    "pluggy",
    *(pack.package for pack in PACKS),
]


@pytest.fixture(scope="module")
def loaded() -> Iterable[str]:
    """Modules that `import pegboard` adds to those that the interpreter started with."""
    names: list[str] = json.loads(
        printed(
            "import sys; before = set(sys.modules); import pegboard; after = sorted(set(sys.modules) - before)\n"
            "import json; print(json.dumps(after))",
            "-I",
        )
    )
    return names


def test_import_leaves_out_what_is_heavy(loaded: Iterable[str]) -> None:
    assert sorted(set(HEAVY) & set(loaded)) == []


def test_import_loads_only_these_modules_of_ours(loaded: Iterable[str]) -> None:
    assert [name for name in loaded if name.partition(".")[0] == "pegboard"] == LOADED


class TestFace:
    def test_is_sorted_and_names_nothing_twice(self) -> None:
        assert list(pegboard.__all__) == sorted(set(pegboard.__all__))

    def test_every_name_resolves(self) -> None:
        assert [name for name in pegboard.__all__ if getattr(pegboard, name, None) is None] == []

    def test_a_star_shadows_nothing_that_users_have(self) -> None:
        known = {*dir(builtins), *typing.__all__, *typing_extensions.__all__, *collections.abc.__all__}
        assert known & set(pegboard.__all__) == set()
        assert {"Text", "Union"} <= set(dir(pegboard))
        named: dict[str, object] = {"Union": typing.Union, "Text": str, "Any": typing.Any}
        exec("from pegboard import *", named)
        assert (named["Union"], named["Text"], named["Any"]) == (typing.Union, str, typing.Any)

    def test_is_listed_by_dir(self) -> None:
        assert set(pegboard.__all__) <= set(dir(pegboard))

    def test_unknown_name_is_an_attribute_error(self) -> None:
        name = "no_such_name"
        with pytest.raises(AttributeError, match=name):
            getattr(pegboard, name)
