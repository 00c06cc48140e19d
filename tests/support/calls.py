"""The ways to make one call."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pytest

from pegboard import Toolkit, ToolResult

__all__ = ["CALLERS", "both", "call_and_cancel", "each_caller", "without_arguments"]

CALLERS: Final[dict[str, Callable[..., ToolResult]]] = {
    "plain": lambda toolkit, *args, **options: toolkit.call_sync(*args, **options),
    "loop": lambda toolkit, *args, **options: asyncio.run(toolkit.call(*args, **options)),
}
"""From plain code, and from a coroutine."""

each_caller = pytest.mark.parametrize("caller", CALLERS)


def both(toolkit: Toolkit, name: str, sent: Any = None, **options: Any) -> Iterator[ToolResult]:
    """The results from plain code and from a coroutine."""
    for caller in CALLERS.values():
        yield caller(toolkit, name, sent, **options)


def call_and_cancel(toolkit: Toolkit, name: str, sent: Any = None) -> None:
    """Cancel a caller that waits for a call; the cancellation must reach the caller."""

    async def main() -> None:
        task = asyncio.create_task(toolkit.call(name, sent))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def without_arguments(calls: Iterable[Any]) -> list[Any]:
    """The calls of a batch; those that are only named have no arguments."""
    return [(call, {}) if isinstance(call, str) else call for call in calls]
