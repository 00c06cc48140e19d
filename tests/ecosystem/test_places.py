"""A plugin that fails at any place where its code runs costs the smallest thing, and no other plugin anything."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
from attrs import Factory, define

from pegboard import Injected, Injector, Job, Toolkit
from tests.ecosystem.places import ERRORS, PLACES, Place
from tests.support.failing import boom, pack
from tests.support.thinning import one_in


class Pip:
    """What the pack `pear` provides."""


def apple_tool(text: str, number: int = 1, ratio: float = 0.5) -> str:
    return f"{text} {number} {ratio}"


def pear_tool(text: str, pip: Injected[Pip], flags: list[bool] | None = None) -> str:
    return f"{text} {type(pip).__name__}"


def own_tool(text: str) -> dict[str, str]:
    return {"text": text}


@pytest.fixture(autouse=True)
def _calm() -> Iterator[None]:
    yield
    boom.error = ValueError


@define
class Pear:
    """What the pack `pear` holds open as long as the toolkit is: a backend and a live source."""

    name: str = "pear"
    problems: tuple[str, ...] = ()
    closed: list[str] = Factory(list)

    def submit(self, job: Job) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(job())
        return future

    def close(self) -> None:
        self.closed.append("backend")

    def tools(self) -> list[Any]:
        return []

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        return lambda: self.closed.append("source")

    def pack(self) -> ModuleType:
        return pack(
            "pear",
            provide_tools=lambda settings: [pear_tool, self],
            provide_backends=lambda settings: [self],
            provide_injectors=lambda settings: [Injector(Pip, Pip)],
        )


APPLE = pack("apple", provide_tools=lambda settings: [apple_tool])


def check_others(toolkit: Toolkit) -> None:
    """They are as if the guilty one were not there."""
    expected = {"apple_tool": "hi 1 0.5", "pear_tool": "hi Pip", "own_tool": '{"text": "hi"}'}
    assert {name: toolkit.call_sync(name, {"text": "hi"}).text for name in expected} == expected
    assert asyncio.run(toolkit.call("apple_tool", {"text": "hi"})).text == expected["apple_tool"]
    states = {record.name: str(record.state) for record in toolkit.plugins}
    assert (states["apple"], states["pear"]) == ("active", "active")
    assert not [problem for problem in toolkit.problems if problem.startswith(("apple", "pear"))]


def check(toolkit: Toolkit, place: Place) -> None:
    check_others(toolkit)
    if place.asks is not None:
        place.asks(toolkit)
    if place.raises is not None:
        with pytest.raises(boom.error):
            place.raises(toolkit)
    if place.fails:
        for result in (toolkit.call_sync(place.fails, ARGUMENTS.get(place.fails)), awaited(toolkit, place.fails)):
            assert result.error is not None, result
            assert result.status == "error" or place.fails == "guilty_takes", result
    states = {record.name: str(record.state) for record in toolkit.plugins}
    assert states["guilty"] == place.state
    assert ("guilty_plain" in toolkit) == place.spares
    if place.spares:
        assert toolkit.call_sync("guilty_plain", {"text": "hi"}).text == "hi"
    if not (place.fails or place.raises or place.silent):
        assert any("guilty" in problem for problem in toolkit.problems), toolkit.problems
    assert not [problem for problem in toolkit.problems if "\n" in problem]
    check_others(toolkit)


ARGUMENTS = {"guilty_takes": {"x": "a"}}


def awaited(toolkit: Toolkit, name: str) -> Any:
    return asyncio.run(toolkit.call(name, ARGUMENTS.get(name)))


def cases() -> Iterator[Any]:
    """Each place with each error; the first of a place differs from place to place, and is what the test line takes."""
    for number, place in enumerate(PLACES):
        turn = number % len(ERRORS)
        yield from ((place, error) for error in ERRORS[turn:] + ERRORS[:turn])


@pytest.mark.parametrize(("name", "error"), one_in(len(ERRORS), cases()))
def test_costs_no_other(name: str, error: type[BaseException]) -> None:
    boom.error = error
    place, pear = PLACES[name], Pear()
    toolkit = Toolkit(plugins=[APPLE, place.plugin(), pear.pack()])
    try:
        toolkit.register(own_tool)
        check(toolkit, place)
    finally:
        with suppress(error):
            toolkit.close()
    assert sorted(pear.closed) == ["backend", "source"]


def test_there_are_many_places() -> None:
    assert len(PLACES) >= 60
