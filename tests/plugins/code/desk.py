"""Tools that programs call, and a toolkit with code mode over them."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypedDict

from pegboard import Emitter, ImageBlock, Suspend, TextBlock, ToolCall, ToolError, Toolkit, ToolResult, tool
from pegboard_code import CodeMode

__all__ = ["MODES", "Forecast", "Tools", "coded", "ran"]

MODES = ("loop", "plain")


class Forecast(TypedDict):
    """What the weather tool returns."""

    city: str
    temp_c: float


class Tools:
    """A few tools, and what they were called with."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.threads: list[str] = []
        self.sent: list[str] = []
        self.open = 0
        self.most = 0

    @tool
    def get_weather(self, city: str, call: ToolCall, unit: Literal["c", "f"] = "c") -> Forecast:
        """Weather of a city.

        Args:
            city: Name of the city
            unit: Celsius or Fahrenheit
        """
        self.calls.append(call)
        self.threads.append(threading.current_thread().name)
        if city == "Atlantis":
            raise ToolError("there is no weather in Atlantis")
        return {"city": city, "temp_c": float(len(city))}

    @tool
    async def wait(self, seconds: float, fail: bool = False) -> float:
        """Wait."""
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.open -= 1
        if fail:
            raise ToolError("it failed")
        return seconds

    @tool(requires_approval=True)
    def send_mail(self, to: str) -> str:
        """Send a mail."""
        self.sent.append(to)
        return f"sent to {to}"

    @tool
    def ask_person(self, question: str) -> str:
        """Ask a person, who answers later."""
        raise Suspend(f"asked: {question}")

    @tool
    def draw(self, what: str) -> ImageBlock:
        """Draw."""
        return ImageBlock(data="aGVsbG8=", media_type="image/png")

    @tool
    def page(self) -> list[Any]:
        """A page with a picture."""
        return [TextBlock("Figure 1"), ImageBlock(data="aGVsbG8=", media_type="image/png")]

    @tool
    def rows(self, n: int) -> list[dict[str, int]]:
        """Rows."""
        return [{"id": number, "size": number % 97} for number in range(n)]

    @tool
    def text(self, length: int) -> str:
        """A long text."""
        return "x" * length

    @tool
    def report(self, emitter: Emitter) -> str:
        """Report progress."""
        emitter.emit("half")
        return "done"


@contextmanager
def coded(tools: Tools | None = None, approver: Any = None, **options: Any) -> Iterator[Toolkit]:
    """A toolkit with those tools and `run_code` over all of them."""
    toolkit = Toolkit(plugins=["dataclasses"], approver=approver)
    with toolkit:
        toolkit.register(tools or Tools())
        toolkit.register(CodeMode(toolkit, **options))
        yield toolkit


def ran(toolkit: Any, code: str, mode: str = "plain", **options: Any) -> ToolResult:
    """The result of a program, run from plain code or on a loop."""
    if mode == "plain":
        plain: ToolResult = toolkit.call_sync("run_code", {"code": code}, **options)
        return plain

    async def main() -> ToolResult:
        result: ToolResult = await toolkit.call("run_code", {"code": code}, **options)
        return result

    return asyncio.run(main())
