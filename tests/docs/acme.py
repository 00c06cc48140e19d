"""What the examples of the hooks import: a third-party library."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class AcmeClient:
    """Has methods that could be tools, and no idea of Pegboard."""

    def search(self, query: str) -> str:
        """Search."""
        return f"found {query}"

    def fetch(self, number: int) -> str:
        """Fetch."""
        return f"number {number}"


class Money:
    """An amount in whole units of a currency."""

    def __init__(self, amount: int, currency: str) -> None:
        self.amount = amount
        self.currency = currency

    @classmethod
    def parse(cls, text: str) -> Money:
        """Read `12 EUR`. Raises ValueError."""
        match = re.fullmatch(r"([0-9]+) ([A-Z]{3})", text)
        if match is None:
            raise ValueError(f"{text!r} is no amount of money")
        return cls(int(match[1]), match[2])

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}"


@dataclass
class Connection:
    """Knows whether it is open."""

    open: bool = True


class Pool:
    """Remembers the connections that it gave away."""

    def __init__(self) -> None:
        self.given: list[Connection] = []

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Open a connection and close it afterwards."""
        connection = Connection()
        self.given.append(connection)
        yield connection
        connection.open = False


class Chart:
    """Renders itself as the smallest thing that begins like a PNG."""

    def png(self) -> bytes:
        """Bytes of the image."""
        return b"\x89PNG\r\n\x1a\n"


read_json = json.loads
