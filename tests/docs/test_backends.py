"""The table of backends says what the backends do."""

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from pegboard import Injected, RegistrationError, Session, Toolkit, tool
from pegboard.inspection import plugins_of

PAGE = Path(__file__).parents[2] / "docs" / "backends.md"
BACKENDS = ["inline", "thread", "process", "ray"]


class Thing:
    """What the program provides."""


def give(thing: Injected[Thing]) -> str:
    """Take something of the context."""
    return str(thing)


def see(session: Session) -> str:
    """Take the session."""
    return str(session)


def rows() -> dict[str, list[str]]:
    """The second table, by what its lines say."""
    table = PAGE.read_text(encoding="utf-8").partition("## What differs")[2].partition("\n\n## ")[0]
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", table, re.MULTILINE)
    ]
    assert lines[0][1:] == BACKENDS
    return {line[0]: line[1:] for line in lines[2:]}


def takes(toolkit: Toolkit, backend: str, function: Callable[..., object]) -> bool:
    """Whether a tool is admitted."""
    try:
        toolkit.register(tool(backend=backend)(function))
    except RegistrationError:
        return False
    return True


@pytest.mark.parametrize("name", BACKENDS)
def test_it_says_what_backends_do(name: str) -> None:
    built_in = name in ("inline", "thread")
    if not built_in and find_spec(f"pegboard_{name}") is None:
        pytest.skip(f"pegboard-{name} is not installed here")
    settings = {"ray": {"tools": ["tests.docs.test_backends:see"]}} if name == "ray" else {}

    def local() -> str:
        """Stand inside a function."""
        return ""

    with Toolkit(plugins=() if built_in else [name], settings=settings) as toolkit:
        found = [each.value for each in plugins_of(toolkit).contributions("provide_backends")]
        backend = next(each for each in found if each.name == name)
        said = {
            "a timeout ends the tool": getattr(backend, "keeps_time", False),
            "leaves this machine": getattr(backend, "remote", False),
            "takes context objects": takes(toolkit, name, give),
            "takes a `Session`": takes(toolkit, name, see),
            "needs a function that is found by name": not takes(toolkit, name, local),
        }
    column = {what: cells[BACKENDS.index(name)] for what, cells in rows().items()}
    assert column == {what: "yes" if does else "no" for what, does in said.items()}
