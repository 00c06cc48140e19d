"""The tools that peers are given: those of `floors`, with annotations that are types and not texts.

So this module must not import `annotations` from `__future__`: several peers evaluate such texts anew at each call, and
would look slower than a program that is written as their own pages show.
"""

import threading
from typing import Any

from tests.benchmarks.floors import Bill

SEEN: list[tuple[tuple[Any, ...], int]] = []
"""What arrived in the tools that keep it, and in which thread."""


def forecast(city: str, days: int) -> str:
    """Weather forecast for a city."""
    return city


async def forecast_later(city: str, days: int) -> str:
    """Weather forecast for a city."""
    return city


def total(bill: Bill) -> int:
    """Count the items of a bill."""
    return len(bill.items)


def keep_forecast(city: str, days: int) -> str:
    """Weather forecast for a city."""
    SEEN.append(((city, days), threading.get_ident()))
    return city


async def keep_forecast_later(city: str, days: int) -> str:
    """Weather forecast for a city."""
    SEEN.append(((city, days), threading.get_ident()))
    return city


def keep_total(bill: Bill) -> int:
    """Count the items of a bill."""
    SEEN.append(((bill,), threading.get_ident()))
    return 1
