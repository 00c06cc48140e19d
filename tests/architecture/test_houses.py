"""Packs with many modules are houses: rooms whose imports go one way, and no module that holds next to nothing."""

import ast

import pytest

from tests.architecture.graph import across, circle, imports, modules, resolve
from tests.architecture.houses import FACES, FEWEST_LINES, MAY_IMPORT, MOST_MODULES
from tests.architecture.rooms import room
from tests.workspace.project import PACKS

SOURCES = {pack.package: pack.path / "src" for pack in PACKS}

pytestmark = pytest.mark.parametrize("pack", MAY_IMPORT)


def test_every_room_has_its_line(pack: str) -> None:
    assert sorted(MAY_IMPORT[pack]) == sorted({room(name) for name in modules(SOURCES[pack])} - {pack, "__main__"})


def test_imports_go_as_the_table_says(pack: str) -> None:
    known = modules(SOURCES[pack])
    found = [found for name, path in known.items() for found in resolve(imports(name, path), known)]
    inside = [i for i in found if room(i.importer) not in (pack, "__main__")]
    assert across(inside, room, MAY_IMPORT[pack]) == []
    assert circle(found) == []


def test_rooms_form_no_circle(pack: str) -> None:
    table = MAY_IMPORT[pack]
    earlier: set[str] = set()
    for name, may_import in table.items():
        assert earlier.issuperset(may_import), f"{name} stands above what it imports"
        earlier.add(name)


def test_modules_hold_something(pack: str) -> None:
    lines = {path: path.read_text("utf-8").count("\n") for path in modules(SOURCES[pack]).values()}
    assert [str(path) for path, count in lines.items() if count < FEWEST_LINES and path.name not in FACES] == []
    assert len(lines) <= MOST_MODULES[pack]


def test_folders_say_what_they_are_for(pack: str) -> None:
    for path in (SOURCES[pack] / pack).glob("*/**/__init__.py"):
        lines = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").splitlines()
        assert 1 <= len(lines) <= 3, path
