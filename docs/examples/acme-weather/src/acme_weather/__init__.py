"""Weather forecasts for LLM agents."""

from collections.abc import Iterable
from typing import Literal
from zlib import crc32

import attrs

import pegboard

SKIES = ("sunny", "cloudy", "rainy", "windy")


@attrs.frozen
class Settings:
    """The section `acme` of the settings; every field needs a default."""

    unit: Literal["celsius", "fahrenheit"] = "celsius"


@attrs.frozen
class Weather:
    """The tools: methods, because they need the settings. Plain functions are tools too."""

    unit: str = "celsius"

    @pegboard.tool(read_only=True)
    def acme_forecast(self, city: str, days: int = 1) -> str:
        """Weather forecast for a city.

        Args:
            city: Name of the city
            days: How many days, from 1 to 7
        """
        if not 1 <= days <= 7:
            raise pegboard.ToolError(f"There are forecasts for 1 to 7 days, not for {days}.")
        return "\n".join(f"Day {day} in {city}: {self._weather(city, day)}" for day in range(1, days + 1))

    def _weather(self, city: str, day: int) -> str:
        seed = crc32(f"{city.casefold()} {day}".encode())
        celsius = seed % 36 - 5
        degrees = f"{celsius * 9 // 5 + 32} °F" if self.unit == "fahrenheit" else f"{celsius} °C"
        return f"{SKIES[seed % len(SKIES)]}, {degrees}"


@pegboard.hookimpl
def settings_type() -> type[Settings]:
    """What can be set."""
    return Settings


@pegboard.hookimpl
def provide_tools(settings: Settings) -> Iterable[object]:
    """The tools of this pack."""
    return [Weather(settings.unit)]
