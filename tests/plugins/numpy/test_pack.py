"""The pack in a toolkit, and what it does not import."""

import pytest

from pegboard import PluginState, Toolkit
from tests.support.interpreters import printed

QUIET = """
import sys
import pegboard_numpy
from pegboard import Toolkit, tool

@tool
def add(a: int, b: list[float]) -> dict[str, float]:
    return {"sum": a + sum(b)}

with Toolkit(plugins=[pegboard_numpy]) as toolkit:
    toolkit.register(add)
    assert toolkit.call_sync("add", {"a": 1, "b": [2]}).data == {"sum": 3.0}
    toolkit["add"].returns

print(sorted({"numpy", "pandas", "PIL"} & set(sys.modules)))
"""

ALONE = QUIET.replace("import sys\n", "import sys, numpy\n").replace("a: int", "a: numpy.int8")


@pytest.mark.parametrize(("program", "loaded"), [(QUIET, "[]"), (ALONE, "['numpy']")])
def test_libraries_are_imported_only_when_their_types_are_met(program: str, loaded: str) -> None:
    assert printed(program, "-W", "error") == loaded


def test_is_active_without_problems(toolkit: Toolkit) -> None:
    assert [record.state for record in toolkit.plugins] == [PluginState.ACTIVE]
    assert toolkit.problems == []
