"""What each of the five libraries of the core is for at run time: which part of a program is the first to load it."""

from functools import cache

import pytest

from tests.support.interpreters import printed
from tests.workspace.project import ROOT

LIBRARIES = ("attrs", "cattrs", "importlib_metadata", "jsonschema", "pluggy")

BEGIN = """
import sys
from types import ModuleType
import pegboard

def add(a: int, b: int = 1) -> int:
    return a + b

class ByHand:
    name, description = "by_hand", "What it is given."

    def __init__(self, parameters):
        self.parameters = {"type": "object", "properties": {"a": parameters}}

    def call(self, call):
        return call.arguments["a"]

def pack(**hooks):
    made = ModuleType("acme")
    for name, function in hooks.items():
        setattr(made, name, pegboard.hookimpl(function))
    return made

def tools(**hooks):
    return pack(provide_tools=lambda settings: [add], **hooks)

def unit_type():
    import attrs
    return attrs.make_class("Settings", {"unit": attrs.field(default="c", type=str)})

def begun(parameters=None, **options):
    toolkit = pegboard.Toolkit(**{"plugins": ()} | options)
    toolkit.register(add if parameters is None else ByHand(parameters))
    return toolkit
"""
END = f"\nprint(*(name for name in {LIBRARIES} if name in sys.modules))"

PROGRAMS = {
    "an import": ("", ""),
    "an empty toolkit": ("pegboard.Toolkit(plugins=())", "attrs pluggy"),
    "a call": ("assert begun().call_sync('add', '{\"a\": 1}').value == 2", "attrs pluggy"),
    "a call that is refused": ("assert begun().call_sync('add', '{\"a\": [1]}').status == 'invalid'", "attrs pluggy"),
    "a plugin without settings": (
        "assert pegboard.Toolkit(plugins=[tools()]).call_sync('add', {'a': 1}).value == 2",
        "attrs pluggy",
    ),
    "a plugin with settings": (
        "assert 'add' in pegboard.Toolkit(plugins=[tools(settings_type=unit_type)])",
        "attrs cattrs pluggy",
    ),
    "installed plugins": ("pegboard.Toolkit(plugins='installed', block='*')", "attrs importlib_metadata pluggy"),
    "a plugin that is selected by name": (
        "pegboard.Toolkit(plugins=['files'], block='files')",
        "attrs importlib_metadata pluggy",
    ),
    "a schema by hand that Python types could be": (
        "assert begun({'type': 'integer'}).call_sync('by_hand', {'a': 1}).value == 1",
        "attrs pluggy",
    ),
    "a schema by hand that says more": (
        "assert begun({'type': 'string', 'pattern': '^x'}).call_sync('by_hand', {'a': 'x'}).value == 'x'",
        "attrs jsonschema pluggy",
    ),
}


@cache
def loaded(program: str) -> set[str]:
    """The libraries that a program has loaded when it ends."""
    return set(printed(program, "-W", "ignore").split())


@pytest.mark.parametrize("program", PROGRAMS)
def test_is_loaded_by(program: str) -> None:
    source, expected = PROGRAMS[program]
    assert loaded(BEGIN + source + END) == set(expected.split())


def test_each_has_a_use() -> None:
    assert set().union(*(expected.split() for _, expected in PROGRAMS.values())) == set(LIBRARIES)


QUICKSTART = """
import contextlib, io, runpy, sys
with contextlib.redirect_stdout(io.StringIO()):
    runpy.run_path({path!r}, run_name="__main__")
"""


def test_the_quickstart_reads_its_settings_with_cattrs() -> None:
    """It is what `nox -s demo` runs, with every pack installed: some of them have settings."""
    program = QUICKSTART.format(path=str(ROOT / "docs" / "examples" / "quickstart.py"))
    assert {"attrs", "cattrs", "importlib_metadata", "pluggy"} <= loaded(program + END)
