"""What cannot run in a worker is refused when it is registered; no Ray is loaded for that."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pegboard import Injected, RegistrationError, Session, Toolkit, tool
from tests.plugins.ray import laborers
from tests.plugins.ray.conftest import TOOLS


class Thing:
    """What the program provides."""


@tool(backend="ray")
async def coroutine() -> str:
    """Run on a loop."""
    return ""


@tool(backend="ray")
def needy(thing: Injected[Thing]) -> str:
    """Need something of the program."""
    return ""


@tool(backend="ray")
def curious(session: Session) -> str:
    """Need the session."""
    return ""


@tool(backend="ray", resources={"num_cpus": "many"})
def vague() -> str:
    """Ask for something."""
    return ""


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=["ray"], settings={"ray": {"tools": [TOOLS]}}) as made:
        yield made


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (coroutine, r"is async; a worker runs plain functions .* or leave the backend out"),
        (needy, r"parameter 'thing' is a Thing, which the program provides and no worker has; take it out"),
        (curious, r"parameter 'session' is a Session, .*; take it out"),
        (vague, r"resources\['num_cpus'\] is 'many'; write a number"),
    ],
)
def test_what_cannot_run_there(toolkit: Toolkit, refused: Any, why: str) -> None:
    with pytest.raises(RegistrationError, match=why):
        toolkit.register(refused)


def test_what_no_worker_finds_is_to_be_named() -> None:
    with Toolkit(plugins=["ray"]) as toolkit, pytest.raises(RegistrationError) as raised:
        toolkit.register(laborers.add)
    assert '{"ray": {"tools": ["tests.plugins.ray.laborers:add"]}}' in str(raised.value)


def test_registering_loads_no_ray(toolkit: Toolkit) -> None:
    before = {name for name in sys.modules if name.partition(".")[0] == "ray"}
    toolkit.register(*laborers.TOOLS)
    assert {name for name in sys.modules if name.partition(".")[0] == "ray"} == before
