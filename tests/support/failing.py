"""Code of a plugin that fails, wherever it is called, and plugins made of functions."""

from types import ModuleType
from typing import Any, NoReturn

from pegboard import hookimpl, tool

__all__ = ["OfClass", "boom", "pack"]


class Boom:
    """Raises what the test chooses, whatever it is called with."""

    error: type[BaseException] = ValueError

    def __call__(self, *given: Any, **named: Any) -> NoReturn:
        raise self.error("of the pack's own")


boom = Boom()


class OfClass:
    """A class of tools that cannot be made."""

    def __init__(self) -> None:
        boom()

    @tool
    def of_class(self) -> str:
        return ""


def pack(name: str, **hooks: Any) -> ModuleType:
    """A plugin; its hooks are functions, marked or not."""
    made = ModuleType(name)
    for hook, function in hooks.items():
        setattr(made, hook, function if hasattr(function, "pegboard_impl") else hookimpl(function))
    return made
