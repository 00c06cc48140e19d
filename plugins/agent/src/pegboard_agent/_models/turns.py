"""A conversation of chat completions for other formats: turns that alternate, with images in the results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from attrs import define, field, frozen

from pegboard import Block, ImageBlock, TextBlock, ToolResult
from pegboard_agent._messages import to_send
from pegboard_agent._models.provider import Piece, pieces_of

__all__ = ["History", "Turn", "history_of"]

_DATA: Final = re.compile(r"data:([^;,]*)[^,]*;base64,(.*)", re.DOTALL)
_LEGAL: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
FOLLOWS: Final = ": it follows in the next message of the user]"
"""The end of the line of a tool message that names an image; a message of the user holds the image."""


@define
class Turn:
    """The messages of one side between two of the other: the user's `results` and `blocks`, or the model's `pieces`.

    `answered` are the ids of the calls that the results answer, as they are in the messages.
    """

    is_user: bool
    results: list[ToolResult] = field(factory=list)
    answered: list[str] = field(factory=list)
    blocks: list[Block] = field(factory=list)
    pieces: list[Piece] = field(factory=list)


@frozen
class History:
    """A conversation: the system's text, then turns. `meta` is the provider's data of the calls, by their ids."""

    system: str
    turns: list[Turn]
    meta: dict[str, Mapping[str, Any]]


def history_of(dialect: str, messages: list[dict[str, Any]]) -> History:
    """Messages of chat completions with the dialect's own data in them. Ids of calls are made legal and unique."""
    system: list[str] = []
    turns: list[Turn] = []
    meta: dict[str, Mapping[str, Any]] = {}
    ids: dict[str, list[str]] = {}  # of the calls that are answered next; several calls may have one id
    names: dict[str, str] = {}
    for message in messages:
        role = message["role"]
        if role in ("system", "developer"):
            system.append(_text_of(message))
            continue
        if not turns or turns[-1].is_user == (role == "assistant"):
            turns.append(Turn(role != "assistant"))
            ids = ids if turns[-1].is_user else {}
        turn = turns[-1]
        if role == "assistant":
            pieces = pieces_of(dialect, to_send(message), _text_of(message))
            turn.pieces += [_called(piece, ids, names) for piece in pieces]
            meta |= {piece.call["id"]: piece.own for piece in turn.pieces if piece.call and piece.own}
        elif role == "tool":
            given = message["tool_call_id"]
            legal = ids.get(given) or [given]
            call_id = legal.pop(0) if len(legal) > 1 else legal[0]
            turn.results.append(ToolResult(call_id, names.get(call_id, ""), content=tuple(_blocks_of(message))))
            turn.answered.append(given)
        else:
            turn.blocks += _placed(_blocks_of(message), turn)
    return History("\n\n".join(filter(None, system)), turns, meta)


def _called(piece: Piece, ids: dict[str, list[str]], names: dict[str, str]) -> Piece:
    """A piece. The id of its call becomes one that every provider takes and that no other call has."""
    if piece.call is None:
        return piece
    given = piece.call["id"]
    legal = given if _LEGAL.fullmatch(given) else f"call_{sha256(given.encode('utf-8', 'replace')).hexdigest()[:16]}"
    unique, number = legal, 1
    while unique in names:  # some servers count the calls of each message from the same number
        number += 1
        unique = f"{legal[:60]}_{number}"
    ids.setdefault(given, []).append(unique)
    names[unique] = piece.call["function"]["name"]
    return Piece(call={**piece.call, "id": unique}, own=piece.own)


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else "\n".join(b.text for b in _blocks_of(message) if b.text)


def _blocks_of(message: Mapping[str, Any]) -> Iterator[Block]:
    """The blocks of a message; a text names each part that is neither text nor an image."""
    content = message.get("content")
    parts: Iterable[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
    for part in parts:
        kind = part.get("type")
        if kind == "text":
            yield TextBlock(part["text"])
        elif kind == "image_url":
            url = part["image_url"]["url"]
            data = _DATA.fullmatch(url)
            yield ImageBlock(data=data[2], media_type=data[1] or None) if data else ImageBlock(url=url)
        else:
            yield TextBlock(f"[{kind}, which this model is not sent]")


def _placed(blocks: Iterable[Block], turn: Turn) -> list[Block]:
    """The user's blocks without the images of results: these go into the results, after the text that names them."""
    rest: list[Block] = []
    for block in blocks:
        label = rest[-1].text if rest and isinstance(block, ImageBlock) else ""
        named = (n for n, call_id in enumerate(turn.answered) if label.endswith(f", {call_id}]"))
        number = next(named, None) if label.startswith("[image ") else None
        if number is None:
            rest.append(block)
            continue
        rest.pop()
        result = turn.results[number]
        content = tuple(_with_image(result.content, block, f"{label[:-1]}{FOLLOWS}"))
        turn.results[number] = ToolResult(result.call_id, result.name, content=content)
    return rest


def _with_image(content: Iterable[Block], image: Block, line: str) -> Iterator[Block]:
    """Content with an image in the place of the line that names it; without such a line, at the end."""
    is_placed = False
    for block in content:
        before, found, after = ("", "", "") if is_placed else block.text.partition(line)
        if not found or not isinstance(block, TextBlock):
            yield block
            continue
        is_placed = True
        yield from (TextBlock(before.removesuffix("\n")), image, TextBlock(after.removeprefix("\n")))
    if not is_placed:
        yield image
