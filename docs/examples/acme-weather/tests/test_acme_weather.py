import acme_weather
import pytest
from acme_weather import Weather

from pegboard import Status, ToolError, Toolkit


def test_forecast_is_the_same_every_time() -> None:
    forecast = Weather().acme_forecast("Paris", days=2)
    assert forecast == Weather().acme_forecast("Paris", days=2)
    assert [line.split(":")[0] for line in forecast.splitlines()] == ["Day 1 in Paris", "Day 2 in Paris"]


def test_unit_is_a_setting() -> None:
    assert Weather("celsius").acme_forecast("Paris").endswith("°C")
    assert Weather("fahrenheit").acme_forecast("Paris").endswith("°F")


@pytest.mark.parametrize("days", [0, 8])
def test_days_are_limited(days: int) -> None:
    with pytest.raises(ToolError, match="1 to 7"):
        Weather().acme_forecast("Paris", days)


def test_on_a_board() -> None:
    with Toolkit(plugins=[acme_weather]) as toolkit:
        parameters = toolkit["acme_forecast"].parameters
        assert parameters["required"] == ["city"]
        assert parameters["properties"]["city"] == {"type": "string", "description": "Name of the city"}

        result = toolkit.call_sync("acme_forecast", {"city": "Paris"})
        assert result.text == Weather().acme_forecast("Paris")

        assert toolkit.call_sync("acme_forecast", {"city": "Paris", "days": 9}).status is Status.ERROR
