"""The words of the packs: names say what a value is, and texts name who acts."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workspace.project import PACKS, ROOT, Member

NAMES = {"asked", "facts", "foreign", "gone", "hung", "mended", "said", "seen", "theirs", "told", "whoever"}
"""As a name of data or of a function each of these is a riddle: `reason`, `recorded` or `visible` is a name."""
WORDS = re.compile(
    r"\b(whoever|somebody|nobody|everybody|hang(s|ing)? (up|there)|hung|takes? down|strangers?|(?<!\")foreign)\b",
    re.IGNORECASE,
)
PUBLIC = {("pegboard-otel", "told")}
"""Names that the core gives: `Middleware` has a `told`."""
each_pack = pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)


def names(tree: ast.AST) -> Iterator[str]:
    """The names that a module gives: to functions, classes, parameters, variables and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def riddles(text: str) -> set[str]:
    return {name for name in names(ast.parse(text)) if name.strip("_").lower() in NAMES}


def pages(pack: Member) -> list[Path]:
    topic = pack.name.removeprefix("pegboard-")
    texts = [pack.path / "README.md", ROOT / "docs" / "packs" / f"{topic}.md", ROOT / "docs" / f"{topic}.md"]
    return [*sorted((pack.path / "src").rglob("*.py")), *(page for page in texts if page.exists())]


@each_pack
def test_names_say_what_a_value_is(pack: Member) -> None:
    found = {
        (path.name, name)
        for path in sorted((pack.path / "src").rglob("*.py"))
        for name in riddles(path.read_text(encoding="utf-8"))
        if (pack.name, name) not in PUBLIC
    }
    assert found == set()


@each_pack
def test_texts_name_who_acts(pack: Member) -> None:
    lines = [(page.name, line) for page in pages(pack) for line in page.read_text(encoding="utf-8").splitlines()]
    assert [(name, line) for name, line in lines if WORDS.search(line)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("said = 1", {"said"}),
        ("def f(told): ...", {"told"}),
        ("self._asked = 1", {"_asked"}),
        ("class Foreign: ...", {"Foreign"}),
        ("for facts in (): ...", {"facts"}),
        ("x.said()", set()),
        ("from a import facts_of", set()),
        ("'the message that was told'", set()),
    ],
)
def test_riddles_are_found(text: str, found: set[str]) -> None:
    assert riddles(text) == found


@pytest.mark.slow
def test_every_exception_is_needed() -> None:
    packs = {pack.name: pack for pack in PACKS}
    for name, riddle in PUBLIC:
        sources = (packs[name].path / "src").rglob("*.py")
        assert any(riddle in riddles(path.read_text(encoding="utf-8")) for path in sources)
