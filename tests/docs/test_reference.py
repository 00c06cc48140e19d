"""Every public name has an entry, every parameter and option a row, every page its place in the navigation."""

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
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


# From so many parameters on a method has a table, as each class and function has from one.
MANY = 3


def public_objects() -> dict[str, Any]:
    """What the reference shows, by the place where it is defined: a name may be on two pages."""
    modules = [importlib.import_module(entry) for entry in MODULES]
    shown = [getattr(pegboard, entry.partition(".")[2]) for entry in ENTRIES if entry not in MODULES]
    shown += [getattr(module, name) for module in modules for name in module.__all__]
    # The hooks of a pack are for the toolkit; hooks.md describes them.
    own = [each for each in shown if inspect.isroutine(each) or inspect.isclass(each)]
    return {f"{each.__module__}.{each.__qualname__}": each for each in own if not hasattr(each, "pegboard_impl")}


def constructor(cls: type) -> Any:
    """What makes an object of a class, where the class defines it itself."""
    if issubclass(cls, Enum) or getattr(cls, "_is_protocol", False):
        return None
    return vars(cls).get("__init__", vars(cls).get("__new__"))


def parameters(function: Any) -> list[str]:
    """Names as a docstring has them."""
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls", "_cls")]


def rows(documented: Any) -> list[str]:
    """Names of the parameters that a docstring describes."""
    return [name for name, text in pegboard.parse_docstring(documented.__doc__).params.items() if text]


def tables() -> Iterator[tuple[str, list[str], list[str], bool]]:
    """Each public callable: its name, parameters, the rows of its docstring, and whether it needs any."""
    for path, found in public_objects().items():
        made_by = constructor(found) if inspect.isclass(found) else found
        if made_by is not None:
            yield path, parameters(made_by), rows(found), True
        for name, member in vars(found).items() if inspect.isclass(found) else ():
            method = getattr(member, "__func__", member)
            if inspect.isfunction(method) and not name.startswith("_"):
                names = parameters(method)
                yield f"{path}.{name}", names, rows(method), len(names) >= MANY


def test_the_table_of_a_docstring_has_a_row_for_each_parameter() -> None:
    wrong = {path: (names, found) for path, names, found, needed in tables() if found != names and (found or needed)}
    assert wrong == {}


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
        ("execution", pegboard.ExecutionPolicy.__init__),
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
