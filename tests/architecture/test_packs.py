"""What is the same in all packs, as `docs/anatomy.md` says it: where the hooks stand, the settings and the tools."""

import ast
import re

import pytest

from tests.architecture.houses import MAY_IMPORT
from tests.workspace.project import PACKS, ROOT, Member, each_pack

PAGE = (ROOT / "docs" / "anatomy.md").read_text(encoding="utf-8")
ROOMS = (ROOT / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")


def is_hook(node: ast.stmt) -> bool:
    """Tell whether a function is a hook of Pegboard, not of pytest."""
    names = [ast.unparse(each) for each in getattr(node, "decorator_list", ())]
    return isinstance(node, ast.FunctionDef) and any("hookimpl" in name and "pytest." not in name for name in names)


@each_pack
def test_hooks_stand_at_the_end_of_the_face_or_in_plugin(pack: Member) -> None:
    for path in (pack.path / "src").rglob("*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        hooks = [node for node in body if is_hook(node)]
        assert body[len(body) - len(hooks) :] == hooks, f"something stands below a hook of {path}"
        assert not hooks or path.name in ("__init__.py", "plugin.py"), path


@each_pack
def test_settings_are_one_class_of_that_name_in_one_place(pack: Member) -> None:
    package = pack.path / "src" / pack.package
    trees = {path.name: ast.parse(path.read_text(encoding="utf-8")) for path in package.glob("*.py")}
    hooked = "settings_type" in {node.name for node in trees["__init__.py"].body if isinstance(node, ast.FunctionDef)}
    places = [
        name
        for name, tree in trees.items()
        if any(isinstance(node, ast.ClassDef) and node.name == "Settings" for node in tree.body)
    ]
    assert len(places) == hooked
    assert set(places) <= {"__init__.py", "_settings.py"}


def test_the_page_shows_the_rooms_of_houses() -> None:
    rows = dict(re.findall(r"^\| `(pegboard-\w+)` \| (.*) \|$", ROOMS, re.MULTILINE))
    folders = {
        package.replace("_", "-"): [
            room for room in rooms if any((ROOT / "plugins").glob(f"*/src/{package}/{room}/__init__.py"))
        ]
        for package, rooms in MAY_IMPORT.items()
    }
    assert {name: re.findall(r"`(\w+)/`", rooms) for name, rooms in rows.items()} == folders


def test_no_pack_of_another_size_is_a_house() -> None:
    for pack in PACKS:
        package = pack.path / "src" / pack.package
        if pack.package not in MAY_IMPORT:
            assert [path.parent.name for path in package.glob("*/__init__.py")] == []
            assert len(list(package.glob("*.py"))) <= 20


@pytest.mark.parametrize(("name", "lines"), re.findall(r"^\| \[`([\w-]+)`\]\(\S+\) \| (\d+) \|", PAGE, re.MULTILINE))
def test_sizes_of_the_packs_to_read_are_real(name: str, lines: str) -> None:
    folders = (ROOT / "plugins" / name.removeprefix("pegboard-"), ROOT / "docs" / "examples" / name)
    sources = [source for folder in folders for source in folder.glob("src/*/*.py")]
    real = sum(source.read_text(encoding="utf-8").count("\n") for source in sources)
    assert abs(int(lines) - real) <= real / 10


@each_pack
def test_nothing_in_the_face_is_named_like_a_module_beside_it(pack: Member) -> None:
    """The import of the module would put it in the place of what has its name."""
    face = pack.path / "src" / pack.package / "__init__.py"
    beside = {path.stem for path in face.parent.iterdir()} - {"__init__"}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = {node.name for node in ast.parse(face.read_text(encoding="utf-8")).body if isinstance(node, kinds)}
    assert defined & beside == set()
