"""Every public name has an entry, every option a row, every page its place in the navigation."""

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, get_overloads

import pytest

import pegboard
from tests.workspace.project import ROOT

DOCS = ROOT / "docs"
ENTRIES = [
    entry
    for page in sorted(DOCS.glob("reference/*.md"))
    for entry in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
]
MODULES = [entry for entry in ENTRIES if entry.rpartition(".")[0] != "pegboard" or entry == "pegboard.inspection"]


def test_every_public_name_has_one_entry() -> None:
    names = [f"pegboard.{name}" for name in dir(pegboard) if name != "__version__"]
    assert Counter(entry for entry in ENTRIES if entry not in MODULES) == Counter(names)


@pytest.mark.parametrize("name", MODULES)
def test_modules_say_which_of_their_names_are_public(name: str) -> None:
    module = importlib.import_module(name)
    assert all(hasattr(module, public) for public in module.__all__)


def test_every_page_has_its_place() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if ".site" not in path.parts}
    named = re.findall(r"^ +- .*: ([\w/-]+\.md)$", (DOCS / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert Counter(named) == Counter(pages)


def test_every_option_has_a_row_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \|", (DOCS / "toolkit.md").read_text(encoding="utf-8"), re.MULTILINE)
    options = inspect.signature(pegboard.Toolkit).parameters.values()
    assert {name: default.replace('"', "'") for name, default in rows} == {
        option.name: repr(option.default) for option in options
    }


@pytest.mark.parametrize(
    ("page", "documented"),
    [
        ("declaring-tools", get_overloads(pegboard.tool)[-1]),
        ("declaring-tools", pegboard.Toolkit.register),
        ("execution", pegboard.ExecutionPolicy),
        ("groups-and-sessions", pegboard.Toolkit.session),
        ("groups-and-sessions", pegboard.Toolkit.view),
    ],
    ids=["tool", "register", "policy", "session", "view"],
)
def test_every_option_has_a_row(page: str, documented: Callable[..., Any]) -> None:
    tables = re.findall(r"^(?:\| .*\n)+", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE)
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(documented).parameters.values()
    options = {option.name for option in parameters if option.kind not in kinds} - {"self"}
    rows = [set(re.findall(r"`(\w+)=?`", re.sub(r"(?m)^(\|[^|]*\|).*", r"\1", table))) for table in tables]
    assert any(options <= row for row in rows), options
