"""Tools for boards of these tests."""

from collections.abc import Callable, Iterable
from typing import Any

from pegboard import Session, Toolkit

__all__ = ["add", "board", "double", "named", "names", "shown"]


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def double(a: int) -> int:
    """Double a number."""
    return 2 * a


def named(name: str) -> Callable[..., str]:
    """A function of that name which returns it."""

    def function(note: str = "") -> str:
        return f"{name}{note}"

    function.__name__ = name
    function.__doc__ = f"What {name} does."
    return function


def board(*tools: str, **groups: str | Iterable[str]) -> Toolkit:
    """A toolkit with these tools, and with groups that hold further ones; a group's name ends with `_off` if it is."""
    toolkit = Toolkit(plugins=())
    toolkit.register(*map(named, tools)) if tools else None
    for group, members in groups.items():
        toolkit.create_group(group, active=not group.endswith("_off"))
        for name in [members] if isinstance(members, str) else members:
            toolkit.register(named(name), group=group)
    return toolkit


def names(board: Toolkit | Session) -> list[str]:
    """The names of the tools that are offered."""
    return [tool.name for tool in board.tools]


def shown(board: Toolkit | Session, name: str) -> list[str]:
    """The parameters of a tool that the model sees."""
    properties: dict[str, Any] = board[name].parameters["properties"]
    return list(properties)
