"""Data of a message for its provider alone: reasoning that the provider signed or encrypted, and its place.

Messages are those of chat completions. Their member `provider` holds the blocks that a provider needs back:

    {"role": "assistant", "content": "It is sunny.", "provider": {"anthropic": [
        {"text": 0, "calls": 0, "length": 0, "own": {"type": "thinking", "thinking": "...", "signature": "..."}}]}}

The place of an entry is after the first `text` characters and the first `calls` calls; `length` characters of the text
that follows belong to it. A call may have a member `provider`, too, with the data that came with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import frozen

__all__ = ["PROVIDER", "Piece", "as_message", "has_own", "own_of", "pieces_of", "without_own"]

PROVIDER: Final = "provider"
"""The member of a message, and of a call, with data for its provider alone."""


@frozen
class Piece:
    """A piece of a model's message: text, a call in the form of chat completions, or a block of the provider's own.

    `own` is such a block, or the provider's data for the text or the call; None if there is neither.
    """

    text: str = ""
    call: Mapping[str, Any] | None = None
    own: Mapping[str, Any] | None = None


def as_message(dialect: str, pieces: Iterable[Piece]) -> dict[str, Any]:
    """A message of chat completions with the text and the calls of the pieces, and their own blocks in `provider`."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    kept: list[dict[str, Any]] = []
    length, goes_on = 0, False
    for piece in pieces:
        if piece.call is not None:
            calls.append({**piece.call, **({PROVIDER: {dialect: dict(piece.own)}} if piece.own else {})})
        elif piece.own is not None or calls or goes_on:  # the end of a text, or its place after a call, would be lost
            place = {"text": length, "calls": len(calls), "length": len(piece.text)}
            kept.append({**place, "own": dict(piece.own or {})})
        texts.append(piece.text)
        length, goes_on = length + len(piece.text), bool(piece.text)
    return {"content": "".join(texts), "tool_calls": calls, **({PROVIDER: {dialect: kept}} if kept else {})}


def pieces_of(dialect: str, message: Mapping[str, Any], text: str) -> list[Piece]:
    """A message in pieces, with the dialect's own blocks in their places. `text` is its content."""
    calls = [
        Piece(call={name: value for name, value in call.items() if name != PROVIDER}, own=own_of(dialect, call))
        for call in message.get("tool_calls") or ()
    ]
    pieces: list[Piece] = []
    begin = called = 0
    for place, behind, length, own in _kept(dialect, message):
        pieces += [Piece(text[begin:place])] if place > begin else []
        pieces += calls[called:behind]
        begin, called = max(begin, place), max(called, behind)
        pieces.append(Piece(text[begin : begin + length], own=own))
        begin += length
    pieces += [Piece(text[begin:])] if begin < len(text) else []
    return pieces + calls[called:]


def _kept(dialect: str, message: Mapping[str, Any]) -> Iterator[tuple[int, int, int, Mapping[str, Any]]]:
    """The valid entries of a dialect in a message; another program may have changed the file."""
    provider = message.get(PROVIDER)
    kept = provider.get(dialect) if isinstance(provider, Mapping) else None
    for each in kept if isinstance(kept, list) else ():
        own = each.get("own") if isinstance(each, Mapping) else None
        if isinstance(own, Mapping):
            yield _number(each.get("text")), _number(each.get("calls")), _number(each.get("length")), own


def _number(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def own_of(dialect: str, call: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The dialect's own data of a call."""
    provider = call.get(PROVIDER)
    own = provider.get(dialect) if isinstance(provider, Mapping) else None
    return own if isinstance(own, Mapping) and own else None


def without_own(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages without data for one provider alone: other providers refuse requests with it."""
    return [
        _plain(message) if (PROVIDER in message or "tool_calls" in message) and has_own(message) else message
        for message in messages
    ]


def has_own(message: Mapping[str, Any]) -> bool:
    """Whether a message, or a call in it, has data for one provider alone. All messages are asked at each request."""
    if PROVIDER in message:
        return True
    calls = message.get("tool_calls")
    if type(calls) is list:
        for call in calls:
            if type(call) is dict and PROVIDER in call:
                return True
    return False


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in message.items() if name != PROVIDER}
    if plain.get("tool_calls"):
        plain["tool_calls"] = [
            {name: value for name, value in call.items() if name != PROVIDER} for call in _calls(message)
        ]
    return plain


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
