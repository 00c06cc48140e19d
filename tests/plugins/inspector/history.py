"""A program whose journal has calls of before: kept answers, errors, and arguments that the page keeps secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegboard import Toolkit, tool

__all__ = ["journaled"]


def journaled(folder: Path, **settings: Any) -> Toolkit:
    """A toolkit that records whole arguments and results."""

    @tool(read_only=True)
    def forecast(city: str) -> dict[str, str]:
        """Weather forecast."""
        return {"city": city, "sky": "blue"}

    @tool
    def sign_in(user: str, password: str) -> str:
        """Sign in."""
        return f"{user} with {password}"

    journal = {"url": f"sqlite:///{folder}/calls.db", "content": "redacted", "cache": {"forecast": 60.0}, **settings}
    toolkit = Toolkit(plugins=["journal"], settings={"journal": journal})
    toolkit.register(forecast, sign_in)
    return toolkit
