"""Tools that show what a backend does: at the top level of a module, where any process finds them by name."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Final, final

from pegboard import CancelToken, Emitter, ImageBlock, Injected, Session, ToolError, ToolOutput

__all__ = ["GIVEN", "TARGETS", "TOOLS", "OddError", "Thing", "use_session"]

_LONGEST: Final = 120.0
"""Seconds after which a tool ends by itself."""
_BEAT: Final = 0.01

GIVEN: Final[dict[str, Any]] = {
    "nothing": None,
    "text": "plain",
    "number": -7,
    "fraction": 0.5,
    "truth": True,
    "list": [1, "two", None, [3.5]],
    "object": {"a": {"b": [True]}, "ü": "ß"},
    "unicode": "Grüße, 世界 🌍 e\u0301 \u05d0\u05d1",
    "date": [date(2025, 1, 2)],
    "image": ImageBlock.from_bytes(b"pixels", "image/png"),
    "text and image": ["see", ImageBlock.from_bytes(b"pixels", "image/png")],
    "output": ToolOutput({"a": 1}, {"kept": "for the program"}, (ImageBlock.from_bytes(b"pixels", "image/png"),)),
}


class OddError(Exception):
    """What the tools raise."""


@final
class Thing:
    """What the context holds: it cannot be copied, for it has a lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


def where() -> dict[str, int]:
    """Say which process and which thread this is."""
    return {"process": os.getpid(), "thread": threading.get_ident()}


def give(name: str) -> Any:
    """Return one of what is given."""
    return GIVEN[name]


def echo(text: str) -> str:
    """Return a text."""
    return text


def fail(text: str) -> None:
    """Raise."""
    raise OddError(text)


def refuse(text: str) -> None:
    """Tell the model something."""
    raise ToolError(text)


def count(n: int, emitter: Emitter) -> Iterator[str]:
    """Emit and yield in turn."""
    for number in range(n):
        emitter.emit(f"e{number}")
        yield f"y{number} "


def flood(place: str, n: int, size: int, emitter: Emitter, token: CancelToken) -> int:
    """Emit much, and write down how far it came."""
    for number in range(n):
        if token.cancelled:
            return number
        emitter.emit(f"{number}:".ljust(size, "x"))
        _append(place)
    return n


def wait_for(place: str, begun: str, token: CancelToken) -> str:
    """Wait until a file is there, or until stopped."""
    Path(begun).touch()
    end = time.monotonic() + _LONGEST
    while not Path(place).exists() and not token.cancelled and time.monotonic() < end:
        time.sleep(_BEAT)
    return "waited"


def touch(place: str) -> str:
    """Make a file."""
    Path(place).touch()
    return "touched"


def beat(place: str, end: str) -> None:
    """Go on, ignoring every request to stop, until a file is there."""
    last = time.monotonic() + _LONGEST
    while time.monotonic() < last and not Path(end).exists():
        _append(place)
        time.sleep(_BEAT)


def end_process(place: str) -> str:
    """End the process the first time."""
    if Path(place).exists():
        return "done"
    Path(place).touch()
    os._exit(3)


def use_context(thing: Injected[Thing]) -> bool:
    """Use something of the context."""
    return thing.lock.acquire(blocking=False)


def use_secret(key: str) -> dict[str, int]:
    """Say where a secret is, and how long."""
    return {"process": os.getpid(), "length": len(key)}


def tell_secret(key: str) -> None:
    """Raise with a secret in the message."""
    raise OddError(f"the key {key} was refused")


def use_session(session: Session) -> str:
    """Use the session."""
    return type(session).__name__


def _append(place: str) -> None:
    with Path(place).open("ab", buffering=0) as file:
        file.write(b".")


TOOLS: Final = (where, give, echo, fail, refuse, count, flood, wait_for, touch, beat, use_secret, tell_secret)
TARGETS: Final = tuple(f"{__name__}:{name}" for name in ("TOOLS", "end_process"))
"""Where workers find them."""
