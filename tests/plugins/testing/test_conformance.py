"""What `assert_conforms` finds: each check sees what it is there to see, and a good pack passes."""

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pegboard import UnknownNameError
from pegboard_testing import Finding, assert_conforms, conformance, fake_distribution
from pegboard_testing._findings import message

HEADER = "from __future__ import annotations\nimport attrs\nimport pegboard\nfrom pegboard import hookimpl, tool\n"
GOOD = '''
@tool(examples=[{"sides": 6}])
def roll(sides: int) -> int:
    """Roll a die.

    Args:
        sides: How many sides
    """
    return sides

@hookimpl
def provide_tools(settings):
    return [roll]
'''
OFFER = "\n@hookimpl\ndef provide_tools(settings):\n    return [f]\n"


def pack(source: str) -> ModuleType:
    """A plugin made by hand: nothing that another interpreter could import."""
    module = ModuleType("site_pack")
    sys.modules["site_pack"] = module
    exec(HEADER + textwrap.dedent(source), vars(module))
    return module


@pytest.fixture(autouse=True)
def _forget_modules() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith("site_")]:
        del sys.modules[name]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.syspath_prepend(tmp_path)

    def install(source: str, **modules: str) -> None:
        files = {"site_pack": HEADER + source, **modules}
        fake_distribution(tmp_path, "acme-dice", entry_points={"dice": "site_pack"}, modules=files)

    return install


def test_a_good_pack_passes() -> None:
    assert conformance(pack(GOOD)) == []
    assert_conforms(pack(GOOD))


def test_an_installed_one_by_its_name(installed: Callable[..., None]) -> None:
    installed(GOOD)
    assert_conforms("dice")
    assert_conforms("acme_dice")


def test_the_environment_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_BLOCK", "*")
    monkeypatch.setenv("PEGBOARD__NOBODY__X", "1")
    assert_conforms(pack(GOOD))


def test_a_name_that_is_not_installed() -> None:
    with pytest.raises(UnknownNameError, match="no plugin 'no-such-pack' is installed"):
        assert_conforms("no-such-pack")


def test_everything_is_in_one_message() -> None:
    source = f"@tool\ndef f(x: int, y: int): ...{OFFER}"
    with pytest.raises(AssertionError) as caught:
        assert_conforms(pack(source))
    assert str(caught.value) == (
        "site_pack does not conform, 3 things to fix:\n"
        "  documentation: f has no description\n"
        "    give its function a docstring\n"
        "  documentation: the parameter 'x' of f has no description\n"
        '    describe it under "Args:" in the docstring, or as Annotated[..., "..."]\n'
        "  documentation: the parameter 'y' of f has no description\n"
        '    describe it under "Args:" in the docstring, or as Annotated[..., "..."]'
    )


def test_message_of_one() -> None:
    assert message("acme", [Finding("a", "b", "c")]) == "acme does not conform, one thing to fix:\n  a: b\n    c"


ODD_PARAMETER = """
SCHEMA = {"type": "object", "properties": {"a b": {"type": "string", "description": "x"}}}

@tool(extended_model=SCHEMA)
def f(**kwargs):
    "Do it."

@hookimpl
def provide_tools(): return [f]
"""
ODD_METADATA = """
@tool(examples=[{}])
def f():
    "Do it."
    return pegboard.ToolOutput(1, metadata={"x": object()})

@hookimpl
def provide_tools(): return [f]
"""
CHANGING = """
import itertools
count = itertools.count()

@hookimpl
def provide_tools():
    @tool(description=f"Do it {next(count)} times.")
    def f(): ...
    return [f]
"""
FOUND = {
    "fails to load": ("raise_ = 1", "loading", "implements no hook"),
    "fails in a hook": ("@hookimpl\ndef provide_tools(): 1 // 0", "loading", "ZeroDivisionError in provide_tools"),
    "fails in the hook for commands": (
        "@hookimpl\ndef provide_commands(): return [1]",
        "loading",
        "item 0 of provide_commands",
    ),
    "prints": ("@hookimpl\ndef provide_tools(): print('x'); return []", "loading", "printed to standard output"),
    "a long name": (
        f'@tool(name="f" * 60)\ndef f():\n    "Do it."{OFFER}',
        "names",
        "has 71 characters",
    ),
    "a name of no parameter": (
        ODD_PARAMETER,
        "names",
        "the parameter 'a b' of f",
    ),
    "invisible text": (f'@tool(description="Do it.\\u200bAnd more.")\ndef f(): ...{OFFER}', "documentation", "U+200B"),
    "an example that fails": (
        '@tool(examples=[{"x": 1}, {"x": 0}])\ndef f(x: pegboard.Param):\n    "Do it."\n'.replace(
            "x: pegboard.Param", 'x: typing.Annotated[int, "A number"]'
        ).replace("@tool", "import typing\n@tool")
        + f"    return 1 // x{OFFER}",
        "examples",
        "example 2 of f ends as error",
    ),
    "an example that is none": (f'@tool(examples=["x"])\ndef f():\n    "Do it."{OFFER}', "examples", "is a str"),
    "a result that is not JSON": (
        ODD_METADATA,
        "results",
        "not JSON serializable",
    ),
    "a schema that changes": (
        CHANGING,
        "stability",
        "other schemas for f",
    ),
    "a secret that says nothing": (
        "@attrs.frozen\nclass S:\n    api_key: str = ''\n@hookimpl\ndef settings_type(): return S\n",
        "secrets",
        "'api_key' looks like a secret",
    ),
    "a secret in the repr of the settings": (
        (
            "@attrs.frozen\nclass S:\n    api_key: str = attrs.field(default='', metadata={'secret': True})\n"
            "@hookimpl\ndef settings_type(): return S\n"
        ),
        "secrets",
        "'api_key' shows in the repr of the settings",
    ),
    "a secret in a description": (
        (
            "@attrs.frozen\nclass S:\n    pin: str = attrs.field(default='', repr=False, metadata={'secret': True})\n"
            "@hookimpl\ndef settings_type(): return S\n"
            "@hookimpl\ndef provide_tools(settings):\n    @tool(description=f'Do it with {settings.pin}.')\n"
            "    def f(): ...\n    return [f]"
        ),
        "secrets",
        "'pin' shows in the schema of f",
    ),
    "a secret in an error": (
        (
            "from pegboard import SettingsError\ndef check(self, attribute, value):\n"
            "    if value: raise ValueError(f'bad pin {value}')\n"
            "@attrs.frozen\nclass S:\n    pin: str | None = attrs.field(default=None, repr=False, validator=check, "
            "metadata={'secret': True})\n@hookimpl\ndef settings_type(): return S\n"
        ),
        "",
        "",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_finds(name: str) -> None:
    source, check, words = FOUND[name]
    found = conformance(pack(source))
    if not check:
        assert found == []  # the core itself keeps secrets out of what a validator says
        return
    assert [check for each in found if each.check == check and words in each.what] == [check], found
    assert all(each.remedy for each in found)


class TestExamples:
    SOURCE = (
        f'class Db: ...\n@tool(examples=[{{}}])\ndef f(db: pegboard.Injected[Db]):\n    "Ask."\n    return 1{OFFER}'
    )

    def test_without_their_context(self) -> None:
        (finding,) = conformance(pack(self.SOURCE))
        assert "context= and settings=" in finding.remedy

    def test_with_it(self) -> None:
        module: Any = pack(self.SOURCE)
        assert conformance(module, context=module.Db()) == []

    def test_left_out(self) -> None:
        assert conformance(pack(self.SOURCE), run_examples=False) == []

    def test_that_need_approval(self) -> None:
        source = f'@tool(requires_approval=True, examples=[{{}}])\ndef f():\n    "Do it."\n    return 1{OFFER}'
        assert conformance(pack(source)) == []

    def test_with_settings(self) -> None:
        source = (
            "@attrs.frozen\nclass S:\n    unit: str = ''\n@hookimpl\ndef settings_type(): return S\n"
            "@hookimpl\ndef provide_tools(settings):\n    @tool(examples=[{}])\n    def f():\n        'Do it.'\n"
            "        return 1 // len(settings.unit)\n    return [f]"
        )
        assert [each.check for each in conformance(pack(source))] == ["examples"]
        assert conformance(pack(source), settings={"unit": "kelvin"}) == []


class TestFreshInterpreter:
    """What only another process can tell."""

    def test_heavy_imports(self, installed: Callable[..., None]) -> None:
        heavy = {f"site_heavy.part{number}": "" for number in range(45)}
        imports = "".join(f"import {name}\n" for name in heavy)
        installed(imports + GOOD, **heavy)
        (finding,) = conformance("dice")
        assert finding.what == "loading it imports 47 modules, and 40 are the most: site_heavy (46), site_pack (1)"
        assert "import strings" in finding.remedy
        assert conformance("dice", budget=47) == []

    @pytest.mark.slow
    def test_order_of_a_set(self, installed: Callable[..., None]) -> None:
        words = [f"word{number}" for number in range(30)]
        source = f'@tool(description=f"Knows {{sorted(set({words!r}), key=hash)}}.")\ndef f(): ...{OFFER}'
        installed(source)
        (finding,) = conformance("dice")
        assert finding.what == "schemas differ between processes with different hash seeds"

    def test_a_pack_that_needs_its_tests(self, installed: Callable[..., None]) -> None:
        installed(f"import sys\nif 'pytest' not in sys.modules: raise OSError('no pytest')\n{GOOD}")
        found = conformance("dice")
        assert [each.check for each in found] == ["import"]
        assert "no pytest" in found[0].what

    @pytest.mark.slow
    def test_objects_and_classes(self, installed: Callable[..., None]) -> None:
        source = "class Pack:\n    @hookimpl\n    def provide_tools(self): return []\npack = Pack()\n"
        installed(source + "import site_heavy", site_heavy="")
        import site_pack  # type: ignore[import-not-found]

        for plugin in (site_pack.Pack, site_pack.pack):
            assert [each.check for each in conformance(plugin, budget=1)] == ["import"]
