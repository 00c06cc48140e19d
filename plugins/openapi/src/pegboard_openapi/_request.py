"""Requests: the arguments of a call as the request that the document describes."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, final
from urllib.parse import unquote

from attrs import field, frozen

from pegboard import MISSING
from pegboard_openapi import _styles
from pegboard_openapi._operation import Body, Operation, Place

__all__ = ["ArgumentsError", "Request", "request_for", "split_path"]

_DECODINGS: Final = 2
"""How often a path may be decoded before the operation is looked for: by what stands before a server, and by it."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class ArgumentsError(ValueError):
    """Arguments that fit their schema and that no request of their operation can carry; the model reads the message."""


Given: TypeAlias = tuple[Place, Any]


@final
@frozen
class Request:
    """A request without credentials; `files` are the parts of a multipart form, as httpx2 takes them."""

    method: str
    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    content: bytes | None = field(default=None, repr=False)
    files: list[Any] | None = field(default=None, repr=False)


def request_for(
    operation: Operation, base: str, arguments: Mapping[str, Any], known: Iterable[tuple[str, ...]]
) -> Request:
    """The request of a call. Raises `ArgumentsError` for arguments that no request can carry.

    `known` are the paths of all operations of this method, as `split_path` gives them: what a model writes into a path
    leads to no other one.
    """
    try:
        return _request(operation, base, arguments, known)
    except UnicodeEncodeError:
        raise ArgumentsError("the arguments hold characters that no request can carry") from None


def _request(
    operation: Operation, base: str, arguments: Mapping[str, Any], known: Iterable[tuple[str, ...]]
) -> Request:
    given = [(place, arguments[place.argument]) for place in operation.places if place.argument in arguments]
    headers = {"Accept": "application/json, */*;q=0.5"}
    headers |= {place.field: _header(place, value) for place, value in given if place.where == "header"}
    cookies = "; ".join(f"{name}={value}" for name, value in _pairs(operation, given, "cookie"))
    if cookies:
        headers["Cookie"] = cookies
    query = "&".join(f"{name}={value}" for name, value in _pairs(operation, given, "query"))
    url = f"{base}{_path(operation, given, known)}{'?' if query else ''}{query}"
    body = operation.body
    sent = _sent(body, [each for each in given if each[0].where == "body"]) if body else MISSING
    if body is None or sent is MISSING:
        return Request(operation.method.upper(), url, headers)
    if body.kind == "multipart":
        return Request(operation.method.upper(), url, headers, files=list(_parts(body, sent)))
    headers["Content-Type"] = body.media_type
    return Request(operation.method.upper(), url, headers, _content(operation, body, sent))


# Paths, queries, headers ---------------------------------------------------------------------------------------------


def _pairs(operation: Operation, given: Iterable[Given], where: str) -> Iterator[_styles.Pair]:
    """Names and values of a query or of cookies, encoded."""
    for place, value in given:
        if place.where == where:
            text = json.dumps(value, ensure_ascii=False) if place.is_json else value
            pairs = _styles.pairs(place.field, text, place.style, place.explode)
            yield from _checked(pairs, operation, where, place.field) if isinstance(text, dict) else pairs


def _checked(pairs: Iterable[_styles.Pair], operation: Operation, where: str, field: str) -> Iterator[_styles.Pair]:
    """What an object becomes, which may bring names of its own: never those of credentials and other parameters."""
    names = operation.names(where)
    for name, value in pairs:
        brought = unquote(name)
        # To many servers `key[x]` is a part of `key`, and to some `KEY` is `key`.
        read = brought.strip().casefold()
        is_own = brought == field or brought.startswith(f"{field}[")
        if not (is_own or names.isdisjoint((read, read.partition("[")[0]))):
            raise ArgumentsError(f"{field}: {brought[:50]!r} is the name of another parameter; leave it out")
        yield name, value


def _header(place: Place, value: Any) -> str:
    text = json.dumps(value) if place.is_json else _styles.header(value, place.explode, place.style)
    if not re.fullmatch(r"[\t -~]*", text):
        raise ArgumentsError(f"{place.argument}: it is sent as a header, which holds printable ASCII characters alone")
    return text.strip()


def split_path(path: str) -> tuple[str, ...]:
    """A path in segments, as servers compare them: decoded, some without regard to case, and to a slash at the end."""
    return tuple(unquote(part).casefold() for part in path.rstrip("/").split("/"))


def _path(operation: Operation, given: Iterable[Given], known: Iterable[tuple[str, ...]]) -> str:
    filled = {place.field: _segment(place, value) for place, value in given if place.where == "path"}
    if not filled:
        return operation.path
    path = re.sub(r"{([^{}]*)}", lambda found: filled[found[1]], operation.path)
    own, segments = split_path(operation.path), split_path(unquote(path))
    # `/users/{id}` is `/users/me` when the id is "me". Two templates that both fit every value are the server's affair.
    if any(_fits_all(other, segments) and not _fits_all(other, own) for other in known):
        names = ", ".join(place.argument for place, _ in given if place.where == "path")
        raise ArgumentsError(f"{names}: with this in its path {operation.label} would be another operation")
    return path


def _fits_all(template: tuple[str, ...], segments: tuple[str, ...]) -> bool:
    return len(template) == len(segments) and all(map(_fits, template, segments))


def _fits(part: str, segment: str) -> bool:
    if "{" not in part:
        return part == segment
    return segment.startswith(part.partition("{")[0]) and segment.endswith(part.rpartition("}")[2])


def _segment(place: Place, value: Any) -> str:
    """A value as it stands in a path. Raises `ArgumentsError` for what leads to another one."""
    text = json.dumps(value, ensure_ascii=False) if place.is_json else value
    text = read = "" if value is None else _styles.path(place.field, text, place.style, place.explode)
    for _ in range(_DECODINGS):
        read = unquote(read)
        parts = re.split(r"[/\\]", read)
        if any(each in ("", ".", "..") for each in parts):
            raise ArgumentsError(f"{place.argument}: it is a part of a path, and may be neither empty nor '.' nor '..'")
        if (len(parts) > 1 and not place.slash) or _CONTROL.search(read):
            raise ArgumentsError(f"{place.argument}: it is one part of a path, and holds no slash and no line break")
    return text.replace("%2F", place.slash) if place.slash else text


# Bodies --------------------------------------------------------------------------------------------------------------


def _sent(body: Body, given: list[Given]) -> Any:
    """What the body says, MISSING for none."""
    if given and not given[0][0].field:
        return given[0][1]
    return {place.field: value for place, value in given} if given or body.required else MISSING


def _content(operation: Operation, body: Body, sent: Any) -> bytes:
    if body.kind == "json":
        return json.dumps(sent).encode()
    if body.kind == "form":
        return "&".join(f"{key}={value}" for key, value in _form(operation, body, sent)).encode()
    return str(sent).encode() if body.kind == "text" else _decoded("body", sent)


def _form(operation: Operation, body: Body, sent: Mapping[str, Any]) -> Iterator[_styles.Pair]:
    for name, value in sent.items():
        how = body.encoding.get(name, {})
        if how.keys() & {"style", "explode"}:
            style = str(how.get("style", "form"))
            pairs = _styles.pairs(name, value, style, how.get("explode", style == "form") is True)
            yield from _checked(pairs, operation, "body", name) if isinstance(value, dict) else pairs
        else:
            # Without a style arrays are repeated, and objects are JSON.
            yield from _styles.pairs(name, _styles.text(value) if isinstance(value, dict) else value, "form", True)


def _parts(body: Body, sent: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The parts of a multipart form: files from base64, objects as JSON, arrays as several parts of one name."""
    for name, value in sent.items():
        how = body.encoding.get(name, {})
        declared = how.get("contentType")
        media_type = declared if isinstance(declared, str) and "," not in declared and "*" not in declared else None
        is_one = not isinstance(value, list) or (how.get("explode") is False and name not in body.files)
        whole = _styles.joined(value, str(how.get("style"))) if is_one and isinstance(value, list) else value
        for each in [whole] if is_one else value:
            if name in body.files:
                yield name, (name, _decoded(name, each), media_type or "application/octet-stream")
            elif each is not None:
                kind = media_type or ("application/json" if isinstance(each, dict | list) else None)
                yield name, (None, _styles.text(each).encode(), *((kind,) if kind else ()))


def _decoded(name: str, value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise ArgumentsError(f"{name}: expected the content of a file as base64 text") from None
