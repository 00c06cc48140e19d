"""What the tests of the journal share: tools, and toolkits with a journal."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard import ExecutionPolicy, Suspend, Toolkit, tool
from pegboard_journal import Entry, IdempotencyKey, Journal

__all__ = ["Tools", "entries", "journaled", "laborer", "url_of"]


class Tools:
    """Tools that count their runs."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    @tool
    def pay(self, amount: int, key: IdempotencyKey) -> dict[str, int]:
        """Pay an amount."""
        self.ran.append(f"pay {amount} {key}")
        return {"paid": amount}

    @tool
    async def send(self, text: str) -> str:
        """Send a text."""
        await asyncio.sleep(0)
        self.ran.append(f"send {text}")
        return f"sent {text}"

    @tool(read_only=True)
    def weather(self, city: str, days: int = 1) -> dict[str, Any]:
        """Forecast."""
        self.ran.append(f"weather {city} {days}")
        return {"city": city, "days": days}

    @tool(read_only=True)
    async def slow(self, city: str) -> str:
        """Forecast, late."""
        self.ran.append(f"slow {city}")
        await asyncio.sleep(0.05)
        return city.upper()

    @tool(idempotent=True)
    def put(self, value: int) -> str:
        """Put a value."""
        self.ran.append(f"put {value}")
        return f"put {value}"

    @tool(read_only=True, policy=ExecutionPolicy(max_attempts=3, initial_backoff=0.0))
    def flaky(self) -> str:
        """Fail."""
        self.ran.append("flaky")
        raise OSError("not now")

    @tool
    def later(self, question: str) -> str:
        """Ask a person."""
        raise Suspend(question)


def url_of(folder: Path) -> str:
    """A journal in a folder."""
    return f"sqlite:///{folder}/calls.db"


def journaled(
    where: Path | str, tools: Any = None, *, options: Mapping[str, Any] | None = None, **settings: Any
) -> Toolkit:
    """A toolkit whose journal is in that folder or at that URL."""
    url = where if isinstance(where, str) else url_of(where)
    toolkit = Toolkit(plugins=["journal"], settings={"journal": {"url": url, **settings}}, **(options or {}))
    toolkit.register(Tools() if tools is None else tools)
    return toolkit


def entries(toolkit: Toolkit, **filters: Any) -> list[Entry]:
    """What the journal of a toolkit has."""
    return list(Journal.of(toolkit).calls(**filters))


def laborer(name: str, *arguments: Any) -> subprocess.Popen[str]:
    """A process that does a piece of work of `laborers.py`."""
    command = [sys.executable, "-m", "tests.plugins.journal.laborers", name, *map(json.dumps, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
