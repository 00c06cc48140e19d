"""Calls that the fast path hands over because their arguments do not fit: nothing is judged less strictly."""

import asyncio
from typing import Any

import pytest

from pegboard import Status, Toolkit, ToolResult


def forecast(city: str, days: int = 1) -> str:
    """Forecast the weather."""
    return f"{city} {days}"


async def forecast_later(city: str, days: int = 1) -> str:
    """Forecast the weather."""
    return f"{city} {days}"


@pytest.fixture(params=["plain", "loop", "loop, sync tool"])
def call(request: pytest.FixtureRequest) -> Any:
    toolkit = Toolkit(plugins=())
    toolkit.register(forecast, forecast_later)

    def run(arguments: Any) -> ToolResult:
        if request.param == "plain":
            return toolkit.call_sync("forecast", arguments)
        name = "forecast" if "sync" in request.param else "forecast_later"
        return asyncio.run(toolkit.call(name, arguments))

    with toolkit:
        yield run


def test_every_problem_is_named(call: Any) -> None:
    result = call('{"city": ["Bern"], "days": "three"}')
    assert result.status is Status.INVALID
    problems = 'city: expected string, got array ["Bern"]\ndays: expected integer, got string "three"'
    assert result.text == f"Error: invalid arguments:\n{problems}"


def test_what_can_be_repaired_is(call: Any) -> None:
    result = call('{"city": "Bern", "days": "3"}')
    assert (result.text, len(result.notes)) == ("Bern 3", 1)


@pytest.mark.parametrize(
    "text",
    ['{"city": ["a"], "days": 1, "days": 2}', '{"city": {"x": 1, "x": 2}}', '{"city": "a:b", "city": ["c"]}'],
)
def test_a_key_that_came_twice_is_what_is_wrong(call: Any, text: str) -> None:
    result = call(text)
    assert result.status is Status.INVALID
    assert "twice" in result.text


def test_colons_in_texts_are_no_keys(call: Any) -> None:
    result = call('{"city": "a:b", "days": "c:d"}')
    assert result.text == 'Error: invalid arguments:\ndays: expected integer, got string "c:d"'


def test_a_locked_preset_stays_unseen() -> None:
    with Toolkit(plugins=(), preset_override=False) as toolkit:
        toolkit.register(forecast, presets={"days": 2})
        result = toolkit.call_sync("forecast", '{"city": 1.5, "days": 9}')
        assert "days" not in result.text
        assert [note.kind for note in result.notes] == ["dropped"]
        assert toolkit.call_sync("forecast", '{"city": "Bern", "days": 9}').text == "Bern 2"
