"""The core is a tower without circles, and packs see only its face."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.architecture.floors import FLOORS
from tests.architecture.graph import Import, circle, imports, modules, resolve, upward
from tests.workspace.project import CORE, PACKS, ROOT, Member, each_pack

MODULES = modules(CORE.path / "src")
IMPORTS = [found for name, path in MODULES.items() for found in resolve(imports(name, path), MODULES)]
FACES = {"pegboard", "pegboard.inspection", "pegboard.testing"}


class TestCore:
    @pytest.mark.parametrize("name", MODULES)
    def test_every_module_has_a_floor(self, name: str) -> None:
        assert name in FLOORS, f"say on which floor {name} stands, in tests/architecture/floors.py"

    def test_every_floor_holds_only_modules_that_exist(self) -> None:
        assert sorted(set(FLOORS) - set(MODULES)) == []

    def test_no_import_goes_up(self) -> None:
        known = [found for found in IMPORTS if {found.importer, found.imported} <= set(FLOORS)]
        assert upward(known, FLOORS) == []

    def test_no_imports_form_a_circle(self) -> None:
        names = circle(IMPORTS)
        steps = set(pairwise(names))
        assert [str(found) for found in IMPORTS if (found.importer, found.imported) in steps] == []


def is_public(name: str) -> bool:
    """Tell whether a dotted name is a face of the core or a public name in one."""
    face, _, attribute = name.rpartition(".")
    return name in FACES or (face in FACES and not attribute.startswith("_") and name not in MODULES)


def trespasses(path: Path, *allowed: str) -> list[str]:
    """Say which imports of a module reach behind the core's face, or into another pack."""
    ours = {"pegboard", *(pack.package for pack in PACKS)} - {*allowed}
    found = (i for i in imports(path.stem, path) if i.imported.partition(".")[0] in ours)
    return [str(i) for i in found if not is_public(i.imported)]


@each_pack
def test_pack_imports_only_the_face(pack: Member) -> None:
    assert [line for path in modules(pack.path / "src").values() for line in trespasses(path, pack.package)] == []


EXAMPLES = sorted((ROOT / "docs" / "examples").rglob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.relative_to(ROOT / "docs" / "examples").as_posix())
def test_example_imports_only_faces(path: Path) -> None:
    packs = {pack.package for pack in PACKS}
    assert trespasses(path, *packs) == []


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
        (message,) = upward(found, {"tower": 9, "tower.ground": 1, "tower.top": 2})
        assert message.startswith("tower.ground imports tower.top (ground.py:")
        assert message.endswith("): from floor 1 up to floor 2")

    def test_import_within_a_floor_and_down_is_fine(self, tower: Path) -> None:
        found = self.found(tower, a="from tower.b import x", b="x = 1", c="import tower.a")
        assert upward(found, {"tower": 9, "tower.a": 1, "tower.b": 1, "tower.c": 2}) == []
        assert circle(found) == []

    def test_circle_is_found(self, tower: Path) -> None:
        found = self.found(tower, a="import tower.b", b="import tower.c", c="def f():\n    import tower.a")
        assert set(circle(found)) == {"tower.a", "tower.b", "tower.c"}

    @pytest.mark.parametrize(
        ("source", "trespass"),
        [
            ("import pegboard", False),
            ("from pegboard import tool", False),
            ("from pegboard.testing import fake", False),
            ("import pegboard_files", True),
            ("import pegboard._tool", True),
            ("from pegboard._tool import Tool", True),
            ("from pegboard import _tool", True),
            ("from pegboard import hookspecs", True),
        ],
    )
    def test_trespass_is_found(self, tmp_path: Path, source: str, trespass: bool) -> None:
        module = tmp_path / "stranger.py"
        module.write_text(source, encoding="utf-8")
        assert bool(trespasses(module)) is trespass
