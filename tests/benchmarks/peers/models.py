"""The bill of `floors` as pydantic models, for peers that make no dataclasses of what a model sends."""

import threading

from pydantic import BaseModel

from tests.benchmarks.peers.work import SEEN


class Item(BaseModel):
    name: str
    quantity: int
    price: float
    gift: bool


class Bill(BaseModel):
    customer: str
    items: list[Item]


def total(bill: Bill) -> int:
    """Count the items of a bill."""
    return len(bill.items)


def keep_total(bill: Bill) -> int:
    """Count the items of a bill."""
    SEEN.append(((bill,), threading.get_ident()))
    return 1
