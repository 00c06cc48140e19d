"""Python that the pages mark as `py`, since the tests of pages do not run it: what can be run by itself, runs."""

import ast
import builtins
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks

BLOCKS = blocks("py")
# What is on a page that the test cannot have here, by a word of the block.
NOT_HERE = {
    'backend="ray"': "a Ray: nox -s ray",
    "https://example.com": "a network",
    "start_http_server": "a port of a fixed number",
}


def free_names(tree: ast.Module) -> set[str]:
    """Names that a block uses and neither defines nor imports: it is a part of a program then."""
    stored, loaded = set(dir(builtins)) | {"__name__"}, set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else stored).add(node.id)
        elif isinstance(node, ast.arg):
            stored.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            stored.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            stored |= {(each.asname or each.name).partition(".")[0] for each in node.names}
    return loaded - stored


def imported(tree: ast.Module) -> list[tuple[str, str]]:
    """Modules, each with a name that is imported from it, or with an empty one."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, each.name) for each in node.names]
        elif isinstance(node, ast.Import):
            found += [(each.name, "") for each in node.names]
    return found


def is_installed(tree: ast.Module) -> bool:
    tops = {module.partition(".")[0] for module, _ in imported(tree)}
    return all(importlib.util.find_spec(top) is not None for top in tops)


def is_program(block: Block) -> bool:
    """Whether a block does something by itself and can do it here."""
    tree = ast.parse(block.text)
    is_test = any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in tree.body)
    here = not is_test and not free_names(tree) and is_installed(tree)
    return here and not any(word in block.text for word in NOT_HERE)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_compiles_and_imports_what_is_there(block: Block) -> None:
    tree = ast.parse(block.text)
    for module, name in imported(tree):
        if module.startswith("pegboard") and "bridges." not in module:  # a bridge imports its framework
            assert not name or hasattr(importlib.import_module(module), name), f"{module} has no {name}"


@pytest.mark.slow
@pytest.mark.parametrize("block", [block for block in BLOCKS if is_program(block)], ids=lambda block: block.place)
def test_a_program_runs(block: Block, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(block.text, "utf-8")
    command = [sys.executable, "-W", "error", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("toolkit.register(tool)", {"toolkit", "tool"}),
        ("import a.b\nfrom c import d as e\na, e, print", set()),
        ("def f(x, *y):\n    z = x\n    return [w for w in y], z, v", {"v"}),
        ("class A:\n    b: int = 1\nA", set()),
    ],
)
def test_names_that_a_part_of_a_program_takes_from_elsewhere_are_found(text: str, names: set[str]) -> None:
    assert free_names(ast.parse(text)) == names
