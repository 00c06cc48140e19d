"""Requests: the arguments of a call as the request that the document describes."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, final
from urllib.parse import unquote

from attrs import field, frozen

from pegboard import MISSING, ToolError
from pegboard_openapi import _styles
from pegboard_openapi._operation import Body, Operation, Place

__all__ = ["Request", "request_for"]


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
    """The request of a call. Raises `ToolError` for arguments that no request can carry.

    `known` are the paths of all operations of this method: what a model writes into a path leads to no other one.
    """
    given = [(place, arguments[place.argument]) for place in operation.places if place.argument in arguments]
    headers = {"Accept": "application/json, */*;q=0.5"}
    headers |= {place.field: _header(place, value) for place, value in given if place.where == "header"}
    cookies = [_text_of(_styles.cookie, place, value) for place, value in given if place.where == "cookie"]
    if any(cookies):
        headers["Cookie"] = "; ".join(filter(None, cookies))
    query = "&".join(filter(None, (_text_of(_styles.query, p, value) for p, value in given if p.where == "query")))
    url = f"{base}{_path(operation, given, known)}{'?' if query else ''}{query}"
    body = operation.body
    sent = _sent(body, [each for each in given if each[0].where == "body"]) if body else MISSING
    if body is None or sent is MISSING:
        return Request(operation.method.upper(), url, headers)
    if body.kind == "multipart":
        return Request(operation.method.upper(), url, headers, files=list(_parts(body, sent)))
    headers["Content-Type"] = body.media_type
    return Request(operation.method.upper(), url, headers, _content(body, sent))


# Paths, queries, headers ---------------------------------------------------------------------------------------------


def _text_of(style: Any, place: Place, value: Any) -> str:
    if place.is_json:
        value = json.dumps(value, ensure_ascii=False)
    text: str = style(place.field, value, place.style, place.explode)
    return text


def _header(place: Place, value: Any) -> str:
    text = json.dumps(value) if place.is_json else _styles.header(value, place.explode)
    if not re.fullmatch(r"[\t -~]*", text):
        raise ToolError(f"{place.argument}: it is sent as a header, which holds printable ASCII characters alone.")
    return text.strip()


def _path(operation: Operation, given: Iterable[tuple[Place, Any]], known: Iterable[tuple[str, ...]]) -> str:
    filled = {place.field: _segment(place, value) for place, value in given if place.where == "path"}
    path = re.sub(r"{([^{}]*)}", lambda found: filled[found[1]], operation.path)
    # Many servers read %2F as a slash before they look for the operation.
    if any("/" in unquote(text) for text in filled.values()):
        own, segments = tuple(operation.path.split("/")), unquote(path).split("/")
        if any(other != own and _leads_to(other, segments) for other in known):
            raise ToolError(f"With a slash in an argument, {operation.label} would be another operation.")
    return path


def _leads_to(template: tuple[str, ...], segments: list[str]) -> bool:
    return len(template) == len(segments) and all(map(_fits, template, segments))


def _fits(part: str, segment: str) -> bool:
    if "{" not in part:
        return part == segment
    return segment.startswith(part.partition("{")[0]) and segment.endswith(part.rpartition("}")[2])


def _segment(place: Place, value: Any) -> str:
    """A value as it stands in a path. Raises `ToolError` for what leads to another one."""
    text = "" if value is None else _text_of(_styles.path, place, value)
    if not text or any(each in (".", "..") for each in re.split(r"[/\\]", unquote(text))):
        raise ToolError(f"{place.argument}: it is a part of a path, and may be neither empty nor '.' nor '..'.")
    return text.replace("%2F", "/") if place.has_slashes else text


# Bodies --------------------------------------------------------------------------------------------------------------


def _sent(body: Body, given: list[tuple[Place, Any]]) -> Any:
    """What the body says, MISSING for none."""
    if given and not given[0][0].field:
        return given[0][1]
    return {place.field: value for place, value in given} if given or body.required else MISSING


def _content(body: Body, sent: Any) -> bytes:
    if body.kind == "json":
        return json.dumps(sent).encode()
    if body.kind == "form":
        return "&".join(f"{key}={value}" for key, value in _form(body, sent)).encode()
    return str(sent).encode() if body.kind == "text" else _decoded("body", sent)


def _form(body: Body, sent: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in sent.items():
        how = body.encoding.get(name, {})
        if how.keys() & {"style", "explode"}:
            style = str(how.get("style", "form"))
            yield from _styles.pairs(name, value, style, how.get("explode", style == "form") is True)
        else:
            # Without a style arrays are repeated, and objects are JSON.
            yield from _styles.pairs(name, _styles.text(value) if isinstance(value, dict) else value, "form", True)


def _parts(body: Body, sent: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The parts of a multipart form: files from base64, objects as JSON, arrays as several parts of one name."""
    for name, value in sent.items():
        told = body.encoding.get(name, {}).get("contentType")
        media_type = told if isinstance(told, str) and "," not in told and "*" not in told else None
        for each in value if isinstance(value, list) else [value]:
            if name in body.files:
                yield name, (name, _decoded(name, each), media_type or "application/octet-stream")
            elif each is not None:
                kind = media_type or ("application/json" if isinstance(each, dict | list) else None)
                yield name, (None, _styles.text(each).encode(), *((kind,) if kind else ()))


def _decoded(name: str, value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise ToolError(f"{name}: expected the content of a file as base64 text.") from None
