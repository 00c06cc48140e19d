"""Reading responses of providers in any form: SDK objects or dicts, whole or in chunks, arguments as text.

A server may send anything: a member of the wrong kind is read as if it were absent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol

from pegboard import PegboardError, ToolCall

__all__ = [
    "Assembly",
    "Collector",
    "as_plain",
    "assembled",
    "decoded",
    "first_object",
    "number_in",
    "object_in",
    "objects_in",
    "several",
    "text_in",
    "unknown_response",
]

DEEPEST: Final = 100
"""How many levels of a response are made plain; deeper values stay as they are."""
_ATOMS: Final = (str, bytes, int, float, bool, type(None))
_EXACTLY: Final = frozenset(_ATOMS)
_OBJECT: Final = (dict, Mapping)
"""A dict is recognised at once; a check against an abstract class takes ten times as long."""


def as_plain(value: Any, depth: int = 0) -> Any:
    """`value` as dicts, lists and atoms, from its `model_dump()`, else its members, else its attributes."""
    kind = type(value)
    if kind in _EXACTLY or depth > DEEPEST:
        return value
    if kind is dict:  # most members are atoms: those need no call
        return {key: inner if type(inner) in _EXACTLY else as_plain(inner, depth + 1) for key, inner in value.items()}
    if kind is list:
        return [as_plain(inner, depth + 1) for inner in value]
    if isinstance(value, _ATOMS):
        return value
    if isinstance(value, Mapping):
        return {key: as_plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [as_plain(inner, depth + 1) for inner in value]
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        # The data that the server sent, without warnings if its form is not what the SDK expects.
        exactly = {"exclude_unset": True, "warnings": False} if hasattr(type(value), "model_fields") else {}
        return as_plain(dump(**exactly), depth + 1)
    members = dict(_attributes(value))
    return as_plain(members, depth) if members else value


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Public attributes of the object, of its slots and of its class; properties are not read."""
    for cls in reversed(type(value).__mro__[:-1]):
        slots = vars(cls).get("__slots__", ())
        names = [slots] if isinstance(slots, str) else [*slots, *vars(cls).get("_fields", ())]
        yield from ((name, getattr(value, name)) for name in names if not name.startswith("_") and hasattr(value, name))
        for name, inner in vars(cls).items():
            if not name.startswith("_") and isinstance(inner, (*_ATOMS, Mapping, list, tuple)):
                yield name, inner
    yield from getattr(value, "__dict__", {}).items()


def several(response: Any) -> list[Any] | None:
    """The members of a list of chunks or items, as plain data; None for anything else."""
    if isinstance(response, Sequence) and not isinstance(response, (str, bytes)) and not hasattr(response, "_fields"):
        return [plain for each in response if isinstance(plain := as_plain(each), Mapping)]
    return None


def text_in(data: Mapping[str, Any], name: str) -> str:
    """A member that is text, else an empty text."""
    found = data.get(name)
    return found if isinstance(found, str) else ""


def number_in(data: Mapping[str, Any], name: str) -> int:
    """A member that is a number, else 0."""
    found = data.get(name)
    return found if isinstance(found, int) else 0


def object_in(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A member that is an object, else an empty object."""
    found = data.get(name)
    return found if isinstance(found, _OBJECT) else {}


def objects_in(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects in a member that is a list."""
    found = data.get(name)
    return [each for each in found if isinstance(each, _OBJECT)] if isinstance(found, list) else []


def first_object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The first object in a member that is a list; an empty one if there is none."""
    return next(iter(objects_in(data, name)), {})


def unknown_response(provider: str, expected: str, got: Any) -> PegboardError:
    """The error for a value that cannot be a response of the provider."""
    shown = f"a dict with {', '.join(map(repr, got))}" if isinstance(got, Mapping) and got else type(got).__name__
    return PegboardError(f"{provider}: calls are read from {expected}; got {shown}")


class Assembly(Protocol):
    """Puts a response together from chunks."""

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Take in a chunk."""

    @property
    def response(self) -> Any:
        """The response so far, in the form that `calls` reads, with the reason for its end."""

    @property
    def messages(self) -> list[Any]:
        """The messages of the response, as a request holds them."""


class Collector:
    """Collects the chunks of one streamed response."""

    def __init__(self, read: Callable[[Any], list[ToolCall]], assembly: Assembly) -> None:
        self._read = read
        self._assembly = assembly

    def feed(self, chunk: Any) -> None:
        """Take in a chunk."""
        plain = as_plain(chunk)
        if isinstance(plain, Mapping):
            self._assembly.add(plain)  # a response for each chunk would read all arguments each time

    def calls(self) -> list[ToolCall]:
        """The calls in the chunks so far."""
        return self._read(self._assembly.response)

    def messages(self) -> list[Any]:
        """The model's messages, to append to the conversation."""
        return self._assembly.messages


def assembled(chunks: Iterable[Any], assembly: Assembly) -> Any:
    """The response that the chunks make up."""
    for chunk in chunks:
        if isinstance(chunk, Mapping):
            assembly.add(chunk)
    return assembly.response


class _NotTheSame(ValueError):  # noqa: N818 - a name for the reason; it does not leave this module
    """The text holds something that Python values would lose."""


def decoded(arguments: Any) -> Any:
    """The arguments of a call: JSON text of an object as a dict, no arguments as an empty one, all else unchanged.

    Text stays text if it is not a JSON object, names a member twice, or has numbers that a float would change: the
    toolkit reads, repairs or refuses it.
    """
    if arguments is None or arguments == "":
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments, object_pairs_hook=_members, parse_float=_same_number, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _NotTheSame
    return members


def _same_number(text: str) -> float:
    number = float(text)
    try:
        if Decimal(text) == Decimal(repr(number)):
            return number
    except ArithmeticError:  # an exponent of more digits than decimals have
        pass
    raise _NotTheSame


def _no_constant(name: str) -> Any:
    raise _NotTheSame(name)
