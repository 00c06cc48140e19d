"""What cannot run in a worker is refused when it is registered; no Ray is loaded for that."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pegboard import Injected, Locked, RegistrationError, Secret, Session, Toolkit, tool
from pegboard.inspection import plugins_of
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


@tool
def greet(name: str) -> str:
    """Greet, in the program."""
    return name


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


class TestSecrets:
    def test_may_not_be_preset_unless_the_settings_say_so(self, toolkit: Toolkit) -> None:
        with pytest.raises(RegistrationError, match=r"the preset of 'key' is a Secret, .*; say secrets = true"):
            toolkit.register(laborers.measure, presets={"key": Secret("abcdef")})
        assert "measure" not in toolkit
        toolkit.register(laborers.measure)
        for board in (toolkit, toolkit.session()):
            with pytest.raises(RegistrationError, match="may not leave the program"):
                board.set_presets("measure", {"key": Locked(Secret("abcdef"))})

    def test_may_be_where_they_say_so_and_for_other_backends(self) -> None:
        with Toolkit(plugins=["ray"], settings={"ray": {"tools": [TOOLS], "secrets": True}}) as toolkit:
            toolkit.register(laborers.measure, presets={"key": Secret("abcdef")})
        with Toolkit(plugins=["ray"]) as toolkit:
            toolkit.register(greet, presets={"name": Secret("abcdef")})


def test_a_fork_of_a_program_that_uses_ray_is_told(toolkit: Toolkit) -> None:
    toolkit.register(laborers.add)
    (backend,) = (
        each.value for each in plugins_of(toolkit).contributions("provide_backends") if each.value.name == "ray"
    )
    backend._dispatcher, backend._process = object(), os.getppid()
    assert "Ray does not survive a fork" in toolkit.call_sync("add", {"a": 1, "b": 2}).text


def test_what_no_worker_finds_is_to_be_named() -> None:
    with Toolkit(plugins=["ray"]) as toolkit, pytest.raises(RegistrationError) as raised:
        toolkit.register(laborers.add)
    assert '{"ray": {"tools": ["tests.plugins.ray.laborers:add"]}}' in str(raised.value)


def test_registering_loads_no_ray(toolkit: Toolkit) -> None:
    before = {name for name in sys.modules if name.partition(".")[0] == "ray"}
    toolkit.register(*laborers.TOOLS)
    assert {name for name in sys.modules if name.partition(".")[0] == "ray"} == before
