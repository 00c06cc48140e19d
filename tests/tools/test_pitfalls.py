"""What authors get wrong: options that do not exist, words that are no choice; types say it before anything runs."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pegboard import ExecutionPolicy, Locked, Permission, Toolkit, tool


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


class TestOptions:
    @pytest.mark.parametrize("make", [ExecutionPolicy, tool, Toolkit(plugins=()).tool])
    def test_the_nearest_is_named(self, make: Any) -> None:
        with pytest.raises(TypeError, match=r"has no option 'timeot'\. Did you mean 'timeout'"):
            make(timeot=3)

    @pytest.mark.parametrize("word", ["allow", None, "ALWAYS"])
    def test_permissions_are_listed(self, word: Any) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(add)
        with pytest.raises(ValueError, match='a permission is "always", "prompt" or "never", got '):
            toolkit.set_permission("add", word)
        toolkit.set_permission("add", Permission.NEVER)
        assert toolkit.permissions["add"] == "never"


class TestToolOfAToolkit:
    def test_bare(self) -> None:
        toolkit = Toolkit(plugins=())
        given = toolkit.tool(add)
        assert given is add
        assert toolkit.call_sync("add", {"a": 2}).value == 3

    def test_with_options(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("sums", active=False)

        @toolkit.tool(name="plus", group="sums", presets={"b": Locked(40)}, read_only=True, tags=["math"])
        def plus(a: int, b: int) -> int:
            """Add."""
            return a + b

        assert plus(1, 1) == 2
        registered = toolkit["plus"]
        assert (registered.groups, registered.hints.read_only, registered.tags) == (("sums",), True, ("math",))
        assert list(registered.parameters["properties"]) == ["a"]
        toolkit.update_groups("sums", active=True)
        assert toolkit.call_sync("plus", {"a": 2}).value == 42

    def test_an_unknown_group_is_refused(self) -> None:
        toolkit = Toolkit(plugins=())
        with pytest.raises(KeyError, match="summs"):
            toolkit.tool(group="summs")(add)
        assert len(toolkit) == 0

    def test_local_names_are_found(self) -> None:
        source = """
            from __future__ import annotations
            from enum import Enum
            from pegboard import Toolkit

            def make():
                class Unit(Enum):
                    C = "celsius"

                toolkit = Toolkit(plugins=())

                @toolkit.tool
                def show(unit: Unit) -> str:
                    return unit.name

                @toolkit.tool(name="other")
                def show_other(unit: Unit) -> str:
                    return unit.name

                return toolkit
        """
        names: dict[str, Any] = {"__name__": "sample"}
        exec(compile(dedent(source), "sample.py", "exec"), names)
        toolkit = names["make"]()
        assert toolkit.call_sync("show", {"unit": "celsius"}).text == "C"
        assert toolkit.call_sync("other", {"unit": "celsius"}).text == "C"


SAMPLE = """
from pegboard import ExecutionPolicy, Permission, Toolkit, ToolSchema, tool

toolkit = Toolkit(plugins=())


@tool(timeout=3)
def fine(a: int) -> int:
    return a


@toolkit.tool
def bare(a: int) -> int:
    return a


@toolkit.tool(read_only=True, presets={"a": 1})
def with_options(a: int) -> int:
    return a


sums: int = fine(1) + bare(1) + with_options(1)
schemas: list[ToolSchema] = toolkit.schemas()
toolkit.set_permission("fine", "always")
toolkit.set_permission("fine", Permission.NEVER)
ExecutionPolicy(timeout=None, max_attempts=3, retry_on=(OSError,))
"""
MISTAKES = {
    "policy": "ExecutionPolicy(timeot=3)",
    "policy_value": 'ExecutionPolicy(timeout="3 s")',
    "tool": "tool(timeot=3)",
    "toolkit_tool": "toolkit.tool(timeot=3)",
    "permission": 'toolkit.set_permission("fine", "allow")',
    "schemas": "text: str = toolkit.schemas()[0]",
    "argument": 'bare("x")',
    "register": "toolkit.register(fine)(1)",
}
CHECKERS = {"mypy": ["mypy", "--strict", "--no-error-summary"], "pyright": ["pyright"]}


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checkers_see_them(checker: str, tmp_path: Path) -> None:
    pytest.importorskip(checker)
    lines = SAMPLE.strip().splitlines()
    first = len(lines) + 1
    sample = tmp_path / "sample.py"
    sample.write_text("\n".join([*lines, *MISTAKES.values(), ""]), encoding="utf-8")
    command = [sys.executable, "-m", *CHECKERS[checker], str(sample)]
    if checker == "pyright":
        command[-1:] = ["--pythonpath", sys.executable, str(sample)]
    told = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    errors = [line for line in told.stdout.splitlines() if "sample.py:" in line and "error" in line]
    wrong = {int(line.partition("sample.py:")[2].partition(":")[0]) for line in errors}
    assert wrong == set(range(first, first + len(MISTAKES))), told.stdout
