"""Every public name has an entry, every parameter and option a row, every page its place in the navigation."""

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator
from enum import Enum
from typing import Any, get_overloads

import griffe
import pytest
import yaml

import pegboard
from tests.docs.records import Records
from tests.workspace.project import ROOT

DOCS = ROOT / "docs"
ENTRIES = [
    entry
    for page in sorted(DOCS.glob("reference/*.md"))
    for entry in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
]
MODULES = [entry for entry in ENTRIES if entry.rpartition(".")[0] != "pegboard" or entry == "pegboard.inspection"]


# What sessions have for the rooms of the core.
FOR_THE_TOOLKIT = {"holds", "lineage", "ready", "reveal", "seen"}

# From so many parameters on a method has a table, as each class and function has from one.
MANY = 3


def public_objects() -> dict[str, Any]:
    """Classes and functions that the reference shows, by the place where each is defined.

    Without the hooks of packs, which hooks.md describes, and without fixtures.
    """
    modules = [importlib.import_module(entry) for entry in MODULES]
    shown = [getattr(pegboard, entry.partition(".")[2]) for entry in ENTRIES if entry not in MODULES]
    shown += [getattr(module, name) for module in modules for name in module.__all__]
    kept = [each for each in shown if inspect.isclass(each) or inspect.isfunction(each) or hasattr(each, "cache_info")]
    return {f"{each.__module__}.{each.__qualname__}": each for each in kept if not hasattr(each, "pegboard_impl")}


def constructor(cls: type, public: Container[type]) -> Any:
    """What makes an object of a class; None where that is Python's, or described by a public base."""
    if issubclass(cls, Enum) or getattr(cls, "_is_protocol", False):
        return None
    owner = next(base for base in cls.__mro__ if {"__init__", "__new__"} & {*vars(base)})
    made_by = vars(owner).get("__init__", owner.__new__)
    return made_by if inspect.isfunction(made_by) and (owner is cls or owner not in public) else None


def spelled_out(function: Any, names: list[str]) -> list[str]:
    """The same names with the members of a typed dict in place of `**options`."""
    last = [*inspect.signature((get_overloads(function) or [function])[-1]).parameters.values()][-1:]
    found = re.fullmatch(r"Unpack\[(\w+)\]", str(last[0].annotation)) if last else None
    return [*names[:-1], *function.__globals__[found[1]].__annotations__] if found else names


def documented() -> Iterator[tuple[str, Any, Any, bool]]:
    """Each public callable: its name, what has its parameters, what has its docstring, and whether it is bound."""
    public = public_objects()
    classes = [each for each in public.values() if inspect.isclass(each)]
    for path, found in public.items():
        made_by = constructor(found, classes) if inspect.isclass(found) else found
        if made_by is not None:
            yield path, made_by, found, inspect.isclass(found)
    for cls in classes:
        for name, member in vars(cls).items():
            method = getattr(member, "__func__", member)
            # The docstring of a tool is for the model.
            if inspect.isfunction(method) and name[0] != "_" and not hasattr(method, "__pegboard_tool__"):
                is_bound = not isinstance(member, staticmethod)
                if len(inspect.signature(method).parameters) - is_bound >= MANY or rows(method):
                    yield f"{cls.__module__}.{cls.__qualname__}.{name}", method, method, is_bound


def rows(found: Any) -> list[str]:
    """Names of the parameters that a docstring describes."""
    return [name for name, text in pegboard.parse_docstring(found.__doc__).params.items() if text]


def test_the_table_of_a_docstring_has_a_row_for_each_parameter() -> None:
    wrong = []
    for path, function, found, is_bound in documented():
        names = [*inspect.signature(function).parameters][is_bound:]
        if rows(found) not in (names, spelled_out(function, names)):
            wrong.append(f"{path} takes {names}, its docstring has rows for {rows(found)}")
    assert wrong == []


def test_every_public_name_has_one_entry() -> None:
    names = [f"pegboard.{name}" for name in dir(pegboard) if name != "__version__"]
    assert Counter(entry for entry in ENTRIES if entry not in MODULES) == Counter(names)


@pytest.mark.parametrize("name", MODULES)
def test_modules_say_which_of_their_names_are_public(name: str) -> None:
    module = importlib.import_module(name)
    assert all(hasattr(module, public) for public in module.__all__)


def test_a_page_that_orders_members_leaves_none_out() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("reference/*.md"))
    blocks = re.findall(r"^::: ([\w.]+)\n    options:\n(      members: (?:.+\n)+)", text, re.MULTILINE)
    ordered = {name: yaml.safe_load(block)["members"] for name, block in blocks}
    agent = importlib.import_module("pegboard_agent")
    hooks = {name for name in agent.__all__ if hasattr(getattr(agent, name), "pegboard_impl")}
    assert Counter(ordered.pop("pegboard_agent")) == Counter({*agent.__all__} - hooks)
    methods = {name for name in dir(pegboard.Session) if not name.startswith("_")} - FOR_THE_TOOLKIT
    assert Counter(ordered.pop("pegboard.Session")) == Counter({*methods, "__getitem__"})
    assert ordered == {}


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


@pytest.mark.slow
def test_signatures_of_classes_are_shown_as_they_are() -> None:
    paths = [str(ROOT / "core" / "src"), *map(str, ROOT.glob("plugins/*/src"))]
    loader = griffe.GriffeLoader(search_paths=paths, extensions=griffe.load_extensions(Records))
    public = public_objects()
    for name in {path.partition(".")[0] for path in public}:
        loader.load(name)
    classes = [each for each in public.values() if inspect.isclass(each)]
    made_by = {path: constructor(found, ()) for path, found in public.items() if found in classes}
    expected = {path: [*inspect.signature(made).parameters][1:] for path, made in made_by.items() if made is not None}
    shown = {path: [each.name.lstrip("*") for each in loader.modules_collection[path].parameters] for path in expected}
    assert {path: [name for name in names if name != "self"] for path, names in shown.items()} == expected
    # Options that a typed dict names have no default there; those of the tool's record are meant.
    options, record = (loader.modules_collection[f"pegboard._model.tool.{name}"] for name in ("tool", "ToolOptions"))
    defaults = {each.name: str(each.default) for each in record.parameters if each.name != "self"}
    assert {each.name: str(each.default) for each in options.parameters if each.name != "function"} == defaults
