"""Plans take no memory for calls: after some, a thousand more or two hundred thousand more are the same."""

from __future__ import annotations

import dataclasses
import datetime as dt
import gc
import sys
import tracemalloc
from typing import Any, Literal

import pytest

import pegboard_dataclasses
from pegboard import Toolkit, TypeHandler, TypePlan


class Price:
    def __init__(self, text: str) -> None:
        self.text = text


@dataclasses.dataclass
class Order:
    name: str
    count: int = 1
    day: dt.date | None = None
    kind: Literal["new", "old"] = "new"


def take(order: Order, price: Price, sizes: list[int], by: dict[str, float] | None = None) -> list[Order]:
    return [order]


RIGHT = {"order": {"name": "a", "day": "2024-05-06"}, "price": "3", "sizes": [1, 2]}
CALLS: dict[str, dict[str, Any]] = {
    "right": RIGHT,
    "repaired": {**RIGHT, "sizes": "[1, 2]"},
    "refused by a shape": {**RIGHT, "order": {"nam": "a"}},
    "refused by a schema": {**RIGHT, "price": [3]},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CALLS)
def test_memory_stays_flat(kind: str) -> None:
    toolkit = Toolkit(plugins=[pegboard_dataclasses])
    toolkit.register_type(TypeHandler(Price, lambda annotation, types: TypePlan({"type": "string"}, Price)))
    toolkit.register(take)

    def call(times: int) -> None:
        for _ in range(times):
            toolkit.call_sync("take", CALLS[kind])
        gc.collect()

    call(1_000)
    before = sys.getallocatedblocks()
    call(200_000)
    # Counts and latencies are of a fixed size; an object for each call would show.
    assert sys.getallocatedblocks() - before < 2_000 + 200_000 // 20
    tracemalloc.start()  # and a byte for each call: that is counted for the last ones, for it takes thrice the time
    try:
        call(1_000)
        traced = tracemalloc.get_traced_memory()[0]
        call(5_000)
        assert tracemalloc.get_traced_memory()[0] - traced < 20_000 + 5_000 // 4
    finally:
        tracemalloc.stop()
