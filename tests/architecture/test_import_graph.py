"""The core is a house of rooms without circles, and packs see only its face."""

import ast
import functools
from itertools import pairwise
from pathlib import Path

import pytest

from tests.architecture.graph import Import, across, circle, imports, modules, resolve
from tests.architecture.rooms import DOORS, MAY_IMPORT, room
from tests.workspace.project import CORE, PACKS, ROOT

MODULES = modules(CORE.path / "src")
FACES = {"pegboard", "pegboard.inspection"}
FACE_ONLY = {"pegboard"}
"""What names everything."""


CORE_ROOMS = sorted({room(name) for name in MODULES} - FACE_ONLY)


@functools.cache
def of_the_core() -> list[Import]:
    """Read when a test asks: each process that runs tests collects this file."""
    return [found for name, path in MODULES.items() for found in resolve(imports(name, path), MODULES)]


class TestCore:
    def test_every_room_has_its_line(self) -> None:
        assert sorted(MAY_IMPORT) == CORE_ROOMS, "say in tests/architecture/rooms.py what a room may import"

    def test_no_import_goes_up_or_across(self) -> None:
        inside = [found for found in of_the_core() if room(found.importer) not in FACE_ONLY]
        assert across(inside, room, MAY_IMPORT) == []

    def test_no_imports_form_a_circle(self) -> None:
        assert told_circle(of_the_core()) == []

    def test_libraries_are_loaded_by_their_rooms_alone(self) -> None:
        loaders = [
            str(i)
            for name, path in MODULES.items()
            for i in imports(name, path)
            for library, rooms in DOORS.items()
            if f"{i.imported}.".startswith(f"{library}.") and room(name) not in (*rooms, *FACE_ONLY)
        ]
        assert loaders == []

    def test_every_room_says_what_it_is_for(self) -> None:
        folders = [name for name in CORE_ROOMS if (CORE.path / "src" / "pegboard" / name).is_dir()]
        said = [ast.get_docstring(ast.parse(MODULES[f"pegboard.{name}"].read_text("utf-8"))) for name in folders]
        assert all(said)


def told_circle(found: list[Import]) -> list[str]:
    """Say which imports form a circle."""
    steps = set(pairwise(circle(found)))
    return [str(i) for i in found if (i.importer, i.imported) in steps]


def test_modules_of_packs_form_no_circle() -> None:
    known = {name: path for pack in PACKS for name, path in modules(pack.path / "src").items()}
    assert told_circle([found for name, path in known.items() for found in resolve(imports(name, path), known)]) == []


# What packs offer to each other, by their own documentation.
LIBRARY_PARTS = {"pegboard_files.ConfinedFolder", "pegboard_process.wire"}


def is_public(name: str) -> bool:
    """Tell whether a dotted name is a face of the core, a public name in one, or a part of a pack for others."""
    if name in LIBRARY_PARTS or name.rpartition(".")[0] in LIBRARY_PARTS:
        return True
    face, _, attribute = name.rpartition(".")
    return name in FACES or (face in FACES and not attribute.startswith("_") and name not in MODULES)


def trespasses(path: Path, *allowed: str) -> list[str]:
    """Say which imports of a module reach behind the core's face, or into another pack."""
    ours = {"pegboard", *(pack.package for pack in PACKS)} - {*allowed}
    found = (i for i in imports(path.stem, path) if i.imported.partition(".")[0] in ours)
    return [str(i) for i in found if not is_public(i.imported)]


# Packs of which a part is a library, and who uses it.
LIBRARIES = {
    "pegboard_agent": ("pegboard_cli", "pegboard_dialects", "pegboard_net"),
    "pegboard_cli": ("pegboard_policy", "pegboard_schemas", "pegboard_testing"),
    "pegboard_bridges": ("pegboard_schemas",),
    "pegboard_dialects": ("pegboard_schemas",),
    "pegboard_documents": ("pegboard_files", "pegboard_process"),
    "pegboard_files": ("pegboard_schemas",),
    "pegboard_inspector": ("pegboard_mcp", "pegboard_schemas"),
    "pegboard_mcp": ("pegboard_schemas",),
    "pegboard_multimodal": ("pegboard_net",),
    "pegboard_openapi": ("pegboard_net", "pegboard_schemas"),
    "pegboard_policy": ("pegboard_journal",),
    "pegboard_sql": ("pegboard_process",),
    "pegboard_web": ("pegboard_documents", "pegboard_net", "pegboard_process"),
}


def test_packs_import_only_the_face() -> None:
    sources = [(path, pack.package) for pack in PACKS for path in modules(pack.path / "src").values()]
    found = [trespasses(path, package, *LIBRARIES.get(package, ())) for path, package in sources]
    assert [line for lines in found for line in lines] == []


def test_examples_import_only_faces() -> None:
    packs = {pack.package for pack in PACKS}
    examples = sorted((ROOT / "docs" / "examples").rglob("*.py"))
    assert [line for path in examples for line in trespasses(path, *packs)] == []


class TestGuards:
    """Each guard finds what it is there to find."""

    @pytest.fixture
    def tower(self, tmp_path: Path) -> Path:
        package = tmp_path / "tower"
        package.mkdir()
        (package / "__init__.py").touch()
        return tmp_path

    def found(self, tower: Path, **sources: str) -> list[Import]:
        for name, source in sources.items():
            (tower / "tower" / f"{name}.py").write_text(source, encoding="utf-8")
        known = modules(tower)
        return [found for name, path in known.items() for found in resolve(imports(name, path), known)]

    @pytest.mark.parametrize(
        "source",
        [
            "import tower.top",
            "from tower import top",
            "from tower.top import thing",
            "from . import top",
            "from .top import thing",
            "def f():\n    from tower.top import thing",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import tower.top",
            "from importlib import import_module\nimport_module('tower.top')",
            "import importlib\nimportlib.import_module('tower.top')",
        ],
    )
    def test_upward_import_is_named(self, tower: Path, source: str) -> None:
        found = self.found(tower, ground=source, top="thing = 1")
        (message,) = across(found, room, {"top": ["ground"]})
        assert message.startswith("tower.ground imports tower.top (ground.py:")

    def test_import_that_the_table_allows_is_fine(self, tower: Path) -> None:
        found = self.found(tower, a="from tower.b import x", b="x = 1", c="import tower.a")
        assert across(found, room, {"a": ["b"], "c": ["a"]}) == []
        assert circle(found) == []

    def test_circle_is_found(self, tower: Path) -> None:
        found = self.found(tower, a="import tower.b", b="import tower.c", c="def f():\n    import tower.a")
        assert set(circle(found)) == {"tower.a", "tower.b", "tower.c"}

    @pytest.mark.parametrize(
        ("source", "trespass"),
        [
            ("import pegboard", False),
            ("from pegboard import tool", False),
            ("from pegboard_testing import fake", True),
            ("import pegboard_files", True),
            ("import pegboard._model.tool", True),
            ("from pegboard._model.tool import Tool", True),
            ("from pegboard import _tool", True),
            ("from pegboard import hookspecs", True),
        ],
    )
    def test_trespass_is_found(self, tmp_path: Path, source: str, trespass: bool) -> None:
        module = tmp_path / "unrelated.py"
        module.write_text(source, encoding="utf-8")
        assert bool(trespasses(module)) is trespass
