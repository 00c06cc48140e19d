"""The tools that are called and the floors that they are measured against: the same work, written by hand."""

from __future__ import annotations

import inspect
import json
import queue
import threading
import typing
from asyncio import Future, get_running_loop, run_coroutine_threadsafe
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attrs import define

import pegboard

__all__ = ["Bill", "Client", "Hop", "Item", "Small", "by_hand", "written"]


@define
class Small:
    """The least that a call can answer."""

    name: str
    status: str
    value: Any


@dataclass
class Item:
    name: str
    quantity: int
    price: float
    gift: bool


@dataclass
class Bill:
    customer: str
    items: list[Item]


@pegboard.injectable
class Client:
    """What the program provides."""


def forecast(city: str, days: int) -> str:
    """Weather forecast for a city."""
    return city


async def forecast_later(city: str, days: int) -> str:
    """Weather forecast for a city."""
    return city


def total(bill: Bill) -> int:
    """Count the items of a bill."""
    return len(bill.items)


def send(client: Client, key: str, text: str) -> str:
    """Send a text."""
    return text


def refuse(city: str, days: int) -> str:
    """Fail."""
    raise ValueError(city)


FORECAST = '{"city": "Bern", "days": 3}'
BOTH_WRONG = '{"city": ["Bern"], "days": "three"}'
SEND = '{"text": "hello"}'
ITEMS = [{"name": f"item {n}", "quantity": n, "price": n + 0.5, "gift": n % 2 == 0} for n in range(20)]
BILL = json.dumps({"bill": {"customer": "Ada", "items": ITEMS}})
ONE_WRONG = BILL.replace('"quantity": 13', '"quantity": "a lot"')


def by_hand(function: Callable[..., Any], text: str, **provided: Any) -> Callable[[], Small]:
    """F1: read the JSON text, call the function, keep the answer."""
    loads = json.loads

    def call() -> Small:
        return Small("tool", "success", function(**loads(text), **provided))

    return call


def bill_by_hand(text: str) -> Callable[[], Small]:
    """F3: the same with the dataclasses built by hand."""
    loads = json.loads

    def call() -> Small:
        bill = loads(text)["bill"]
        items = [Item(each["name"], each["quantity"], each["price"], each["gift"]) for each in bill["items"]]
        return Small("total", "success", total(Bill(bill["customer"], items)))

    return call


def failing_by_hand(text: str) -> Callable[[], Small]:
    """F1 of a tool that raises: the answer is the exception, with a text for the model."""
    loads = json.loads

    def call() -> Small:
        try:
            return Small("refuse", "success", refuse(**loads(text)))
        except Exception as error:  # noqa: BLE001 - as a library has to
            return Small("refuse", f"Error: {error}", error)

    return call


async def later_by_hand() -> Small:
    """F1 and the await."""
    return Small("forecast_later", "success", await forecast_later(**json.loads(FORECAST)))


def reflect(function: Callable[..., Any]) -> None:
    """F7: the least that reading a signature takes."""
    inspect.signature(function)
    typing.get_type_hints(function, include_extras=True)


class Hop:
    """The bare thread hop of B12: an empty job through a queue to a worker thread, and its answer back to the loop."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    async def __call__(self) -> None:
        loop = get_running_loop()
        done: Future[None] = loop.create_future()
        self._jobs.put(lambda: loop.call_soon_threadsafe(done.set_result, None))
        await done

    async def back(self) -> None:
        """To the thread, from there to the loop, and both ways back: what a thread that asks the loop has to go."""
        loop = get_running_loop()
        done: Future[None] = loop.create_future()

        async def inner() -> None: ...

        def job() -> None:
            run_coroutine_threadsafe(inner(), loop).result()
            loop.call_soon_threadsafe(done.set_result, None)

        self._jobs.put(job)
        await done

    def blocking(self) -> None:
        """The same from plain code."""
        done = threading.Event()
        self._jobs.put(done.set)
        done.wait()

    def close(self) -> None:
        """End the thread."""
        self._jobs.put(None)
        self._thread.join()


SCALARS = '''
def tool_{n}(city: str, days: int = 1) -> str:
    """Weather forecast for a city.

    Args:
        city: City name
        days: Forecast days
    """
    return city
'''

NESTED = '''
def tool_{n}(bill: Bill, currency: str = "CHF", copies: int = 1) -> str:
    """Print a bill.

    Args:
        bill: The bill and its items
        currency: Three letters
        copies: How many sheets
    """
    return currency
'''

NESTED_OF_ITS_OWN = """
@dataclass
class Item{n}:
    name: str
    quantity: int
    price: float
    gift: bool

@dataclass
class Bill{n}:
    customer: str
    items: list[Item{n}]
""" + NESTED.replace("Bill,", "Bill{n},")


def written(template: str, number: int, start: int = 0) -> list[Callable[..., Any]]:
    """Distinct functions, as if each had been written by hand."""
    names = {"Bill": Bill, "dataclass": dataclass, "__name__": __name__}
    for n in range(start, start + number):
        exec(compile(template.replace("{n}", str(n)), f"<tool {n}>", "exec", dont_inherit=True), names)
    return [names[f"tool_{n}"] for n in range(start, start + number)]  # type: ignore[misc]
