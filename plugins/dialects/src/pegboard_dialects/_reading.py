"""What comes from a provider, whatever form it has: SDK objects, dicts, whole or in chunks, arguments as text.

A server may send anything: what is not of the kind that is asked for is read as if it were not there.
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
"""How many levels of what was handed over are made plain; what is deeper stays as it is."""
_ATOMS: Final = (str, bytes, int, float, bool, type(None))
_EXACTLY: Final = frozenset(_ATOMS)


def as_plain(value: Any, depth: int = 0) -> Any:
    """`value` as dicts, lists and atoms: what `model_dump()` gives, else the members of a mapping, else attributes."""
    kind = type(value)
    if kind in _EXACTLY or depth > DEEPEST:  # as nearly all are: to ask an abstract class takes ten times as long
        return value
    if kind is dict:
        return {key: as_plain(inner, depth + 1) for key, inner in value.items()}
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
        # What the server sent, and that without warnings where it is in another form than the SDK expects.
        exactly = {"exclude_unset": True, "warnings": False} if hasattr(type(value), "model_fields") else {}
        return as_plain(dump(**exactly), depth + 1)
    members = dict(_attributes(value))
    return as_plain(members, depth) if members else value


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Public attributes, of the object, of its slots and of its class; no property is asked."""
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
    """A member that is text, else an empty one."""
    found = data.get(name)
    return found if isinstance(found, str) else ""


def number_in(data: Mapping[str, Any], name: str) -> int:
    """A member that is a number, else 0."""
    found = data.get(name)
    return found if isinstance(found, int) else 0


def object_in(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A member that is an object, else an empty one."""
    found = data.get(name)
    return found if isinstance(found, Mapping) else {}


def objects_in(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects in a member that is a list."""
    found = data.get(name)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def first_object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The first of them; an empty one where there are none."""
    return next(iter(objects_in(data, name)), {})


def unknown_response(provider: str, expected: str, got: Any) -> PegboardError:
    """The error for what cannot be a response of that provider."""
    shown = f"a dict with {', '.join(map(repr, got))}" if isinstance(got, Mapping) and got else type(got).__name__
    return PegboardError(f"{provider}: calls are read from {expected}; got {shown}")


class Assembly(Protocol):
    """Puts a response together from chunks."""

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Take in a chunk."""

    @property
    def response(self) -> Any:
        """What was put together, as `calls` reads a response that came whole: also why it ended."""

    @property
    def messages(self) -> list[Any]:
        """The same as a request holds it."""


class Collector:
    """Collects the chunks of one streamed response."""

    def __init__(self, read: Callable[[Any], list[ToolCall]], assembly: Assembly) -> None:
        self._read = read
        self._assembly = assembly

    def feed(self, chunk: Any) -> None:
        """Take in a chunk."""
        plain = as_plain(chunk)
        if isinstance(plain, Mapping):
            self._assembly.add(plain)  # no response yet, which would read all arguments again for each chunk

    def calls(self) -> list[ToolCall]:
        """The calls that were collected."""
        return self._read(self._assembly.response)

    def messages(self) -> list[Any]:
        """What the model said, to append to the conversation."""
        return self._assembly.messages


def assembled(chunks: Iterable[Any], assembly: Assembly) -> Any:
    """The response that some chunks are."""
    for chunk in chunks:
        if isinstance(chunk, Mapping):
            assembly.add(chunk)
    return assembly.response


class _NotTheSame(ValueError):  # noqa: N818 - says what is the matter, and is never seen outside
    """The text holds something that its Python values do not tell."""


def decoded(arguments: Any) -> Any:
    """The arguments of a call: JSON text of an object as a dict, nothing as an empty one, all else as it came.

    What is no JSON object, names a member twice, or has numbers that a float would change, stays text: the toolkit
    knows how to read, repair and refuse that.
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
