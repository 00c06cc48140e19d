"""Python that the pages mark as `py`: programs and tests run here, and `places.py` says where the rest does."""

import ast
import contextlib
import importlib
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks
from tests.docs.places import PYTHON, Piece, free_names, is_test, run_by
from tests.docs.programs import skip_if_taken
from tests.plugins.documents.desk import pdf, xlsx
from tests.workspace.project import ROOT

BLOCKS = blocks("py")
TESTS = [piece for piece in run_by(PYTHON) if is_test(ast.parse(piece.text))]
PROGRAMS = [piece for piece in run_by(PYTHON) if piece not in TESTS]
WEATHER = ROOT / "docs" / "examples" / "acme-weather" / "src"
# The pack that the README of `pegboard-testing` tests.
DICE = '''"""Dice."""

import pegboard


@pegboard.tool(read_only=True, examples=[{"sides": 1}])
def roll(sides: int = 6) -> int:
    """Throw a die.

    Args:
        sides: How many sides it has
    """
    return sides


@pegboard.hookimpl
def provide_tools() -> list[object]:
    """The tools of the pack."""
    return [roll]
'''


def imported(tree: ast.Module) -> list[tuple[str, str]]:
    """Modules, each with a name that is imported from it, or with an empty one."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, each.name) for each in node.names]
        elif isinstance(node, ast.Import):
            found += [(each.name, "") for each in node.names]
    return found


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_compiles_and_imports_what_is_there(block: Block) -> None:
    tree = ast.parse(block.text)
    for module, name in imported(tree):
        if module.startswith("pegboard") and "bridges." not in module:  # a bridge imports its framework
            assert not name or hasattr(importlib.import_module(module), name), f"{module} has no {name}"


def documents(folder: Path) -> None:
    """The documents of a page, and its tables."""
    (folder / "reports").mkdir()
    (folder / "reports" / "2026.pdf").write_bytes(pdf([b"BT /F 12 Tf 72 720 Td (A good year) Tj ET"] * 3))
    (folder / "reports" / "sales.xlsx").write_bytes(xlsx({"Sales": [["month", "euros"], ["May", 1234]]}))


def shop(folder: Path) -> None:
    """The database of a page."""
    with contextlib.closing(sqlite3.connect(folder / "shop.db")) as database:
        database.executescript("CREATE TABLE customer (id); CREATE TABLE sale (id); INSERT INTO sale VALUES (1)")


# What a program of a page reads, and what it prints of that.
PREPARED: dict[str, tuple[Callable[[Path], None], str]] = {
    "plugins/documents/README.md": (documents, "A good year"),
    "plugins/sql/README.md": (shop, "| 1 |"),
}


@pytest.mark.slow
@pytest.mark.parametrize("piece", PROGRAMS, ids=lambda piece: piece.label)
def test_a_program_runs(piece: Piece, tmp_path: Path) -> None:
    for port in re.findall(r"start_http_server\((\d+)\)", piece.text):
        skip_if_taken(int(port))
    prepare, shown = PREPARED.get(piece.page, (None, ""))
    if prepare:
        prepare(tmp_path)
    assert shown in run(piece.text, tmp_path, "program.py")


@pytest.mark.slow
@pytest.mark.parametrize("piece", TESTS, ids=lambda piece: piece.label)
def test_tests_pass(piece: Piece, tmp_path: Path) -> None:
    """With the pack that the settings of their page name, and the option that records what is not there yet."""
    (tmp_path / "acme_dice.py").write_text(DICE, "utf-8")
    settings = [block.text for block in blocks("toml") if block.path == piece.block.path and "pytest" in block.text]
    (tmp_path / "pyproject.toml").write_text("".join(settings), "utf-8")
    options = ["--tool-calls=record"] if "tool_cassette" in piece.text else ["--schema-update"]
    text = f"import pytest\n\n\n{piece.text}"
    printed = run(text, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_program.py")
    assert f"{piece.text.count('def test_')} passed" in printed


def run(text: str, folder: Path, *arguments: str) -> str:
    """Run a program, or tests, that the last argument names; return what it prints."""
    (folder / arguments[-1]).write_text(text, "utf-8")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(WEATHER)])}
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
