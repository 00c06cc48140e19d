"""Names in the core: no class shares its name with another, and what is called a session is annotated as one."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pegboard import extension, hookspecs, inspection
from tests.architecture.graph import modules
from tests.workspace.project import CORE

SOURCES = modules(CORE.path / "src")


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every node of the core, with its module."""
    for name, path in SOURCES.items():
        yield from ((name, node) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def test_no_two_public_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module, node in nodes():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            homes[node.name].append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_sessions_have_a_type() -> None:
    unsaid = []
    for module, node in nodes():
        if isinstance(node, ast.arg | ast.AnnAssign):
            name = node.arg if isinstance(node, ast.arg) else ast.unparse(node.target).removeprefix("self.")
            said = node.annotation is not None and "Any" not in ast.unparse(node.annotation)
            if name in ("session", "_session") and not said:
                unsaid.append(f"{module}:{node.lineno}")
    assert unsaid == []


@pytest.mark.parametrize("module", [extension, hookspecs, inspection])
def test_all_names_what_a_module_gives(module: ModuleType) -> None:
    """What `docs/versioning.md` promises to keep."""
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    defined = {
        node.name if isinstance(node, ast.ClassDef | ast.FunctionDef) else ast.unparse(target)
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)])
    }
    public = {name for name in defined if not name.startswith("_")}
    assert public <= set(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
