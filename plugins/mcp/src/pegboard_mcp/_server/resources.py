"""Resources: texts, files and functions of the program that clients of its board may read, by URI."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from mimetypes import guess_type
from pathlib import Path
from typing import Any, Final, TypeAlias, final
from urllib.parse import unquote

from attrs import field, frozen

from pegboard import Status, Tool, UnknownNameError
from pegboard_mcp._server.functions import Functions, message_of
from pegboard_mcp._server.prompts import Run
from pegboard_mcp._wire.protocol import APP_PAGE

__all__ = ["Resources", "Source", "resource_contents"]

Source: TypeAlias = "str | bytes | Path | Callable[..., Any] | tuple[Any, ...]"
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_TEXTS: Final = ("text/", "application/json", "application/xml", "application/javascript")
_HELD: Final = (str, bytes, Path)
_NO_SEGMENT: Final = frozenset({"", ".", ".."})


@final
@frozen
class Resource:
    """One entry: what it holds, or the function that gives it, and what is said of it."""

    uri: str
    holds: Any = field(repr=False)
    media_type: str | None
    meta: dict[str, Any] | None
    function: Tool | None
    pattern: re.Pattern[str] | None
    """For a template: what its URIs look like."""

    @property
    def name(self) -> str:
        """The name of the function or the file, else the URI."""
        if self.function is not None:
            return str(getattr(self.holds, "__name__", self.uri)).replace("<lambda>", self.uri)
        return self.holds.name if isinstance(self.holds, Path) else self.uri

    @property
    def description(self) -> str | None:
        """What the function says of itself."""
        return (self.function and self.function.description) or None

    @property
    def shown_type(self) -> str | None:
        """The media type as far as it is known before it is read."""
        held = "" if self.function is not None else self.holds
        known = self.function is None or self.uri.startswith("ui://")
        return self.media_type or (_media_type(self.uri, held) if known else None)

    def arguments(self, uri: str) -> dict[str, str] | None:
        """What the placeholders stand for in a URI: one segment each; None where it does not fit."""
        found = self.pattern and self.pattern.fullmatch(uri)
        if not found:
            return None if self.pattern or uri != self.uri else {}
        values = {name: unquote(value) for name, value in found.groupdict().items()}
        odd = any(value in _NO_SEGMENT or set(value) & set("/\\\0") for value in values.values())
        return None if odd else values


@final
class Resources:
    """What a served board lets its clients read, by URI: `serve_mcp(toolkit, resources=Resources({...}))`.

    `changed(uri)` informs those who subscribed to one. Raises ValueError for an invalid source, and `RegistrationError`
    for a function that cannot be read.

    Args:
        sources: By URI: text, bytes, a `Path`, which is read anew each time, or a function, async or not, that returns
            one of these, or None for nothing. `(value, media type)` says what it is, and a third member is its `_meta`.
            A URI with placeholders such as `notes://{name}` is a template: its function takes them by name.
    """

    def __init__(self, sources: Mapping[str, Source]) -> None:
        if not isinstance(sources, Mapping):
            raise ValueError(f"resources are a mapping, such as {{'notes://today': 'text'}}, not {sources!r}")
        self.functions = Functions()
        self._listeners: list[Callable[[str], Any]] = []
        self._known = {uri: self._read(uri, source) for uri, source in sources.items()}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._known.values())

    def __repr__(self) -> str:
        return f"Resources({', '.join(self._known)})"

    def _read(self, uri: str, source: Source) -> Resource:
        if not _URI.fullmatch(uri):
            raise ValueError(f"{uri!r} is no URI for a resource; write one such as 'notes://today'")
        holds, media_type, meta = _parts(uri, source)
        if not (isinstance(holds, _HELD) or callable(holds)):
            raise ValueError(
                f"the resource {uri!r} is a {type(holds).__name__}; give text, bytes, a Path or a function"
            )
        names = _PLACEHOLDER.findall(uri)
        function = self.functions.add(holds, f"resource_{len(self.functions)}") if callable(holds) else None
        if names and function is None:
            raise ValueError(f"{uri!r} has placeholders: give a function that takes {', '.join(names)}")
        if function is not None:
            _check(uri, names, function)
        return Resource(uri, holds, media_type, meta, function, _pattern(uri) if names else None)

    def find(self, uri: str) -> tuple[Resource, dict[str, str]] | None:
        """The resource of a URI, and what its placeholders stand for; the first one that fits."""
        fitting = ((each, each.arguments(uri)) for each in self)
        return next(((each, values) for each, values in fitting if values is not None), None)

    def changed(self, uri: str) -> None:
        """Tell the clients that subscribed to it; from any thread. Raises `UnknownNameError` for an unknown URI."""
        if self.find(uri) is None:
            raise UnknownNameError(f"there is no resource {uri!r} to have changed; there are: {', '.join(self._known)}")
        for listener in list(self._listeners):
            listener(uri)

    def watch(self, listener: Callable[[str], Any]) -> Callable[[], None]:
        """Call `listener(uri)` at each change, until what this returns is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def read(self, uri: str, run: Run) -> Any:
        """The content of one, in the protocol's form; None where there is none. Raises `MCPError`."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import INTERNAL_ERROR

        found = self.find(uri)
        if found is None:
            return None
        try:
            return await self._content(uri, *found, run)
        except (OSError, ValueError) as error:
            why = (error.strerror or "the file system failed") if isinstance(error, OSError) else str(error)
            raise MCPError(INTERNAL_ERROR, f"{uri} cannot be read: {why}") from error

    async def _content(self, uri: str, resource: Resource, arguments: dict[str, str], run: Run) -> Any:
        content, media_type, meta = resource.holds, resource.media_type, resource.meta
        if resource.function is not None:
            given = _given(uri, await run(self.functions, resource.function.name, arguments))
            content, own_type, own_meta = _parts(uri, given)
            media_type, meta = own_type or media_type, own_meta or meta
        if content is None:
            return None
        if not isinstance(content, _HELD):
            raise ValueError(f"its function returned a {type(content).__name__}; it can return text, bytes or a Path")
        media_type = media_type or _media_type(uri, content)
        if isinstance(content, Path):
            content, media_type = _decoded(await asyncio.to_thread(content.read_bytes), media_type)
        return resource_contents(uri, media_type, content, meta)


def _given(uri: str, result: Any) -> Any:
    """What a function returned. Raises `MCPError` with its message where it failed."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

    if result.status is Status.SUCCESS:
        return result.value
    code = INVALID_PARAMS if result.status is Status.INVALID else INTERNAL_ERROR
    raise MCPError(code, f"{uri} cannot be read: {message_of(result)}")


def resource_contents(uri: str, media_type: str | None, content: str | bytes, meta: Any = None) -> Any:
    """The content of a resource in the protocol's form: text as text, bytes in base64."""
    import base64

    from mcp_types import BlobResourceContents, TextResourceContents

    if isinstance(content, str):
        return TextResourceContents(uri=uri, mime_type=media_type, text=content, _meta=meta)
    blob = base64.b64encode(content).decode("ascii")
    return BlobResourceContents(uri=uri, mime_type=media_type, blob=blob, _meta=meta)


def _parts(uri: str, source: Any) -> tuple[Any, str | None, dict[str, Any] | None]:
    """What a resource holds, its media type and its `_meta`, as far as these are said. Raises ValueError."""
    holds, *more = source if isinstance(source, tuple) and source else (source,)
    media_type, meta = (*more, None, None)[:2]
    if len(more) > 2 or not isinstance(media_type, str | None) or not isinstance(meta, dict | None):
        raise ValueError(f"the resource {uri!r} is (value, media type) or (value, media type, its _meta)")
    return holds, media_type, meta


def _media_type(uri: str, content: str | bytes | Path) -> str | None:
    """What is likely, by name and kind; None for a file whose name says nothing."""
    if uri.startswith("ui://"):
        return APP_PAGE
    if isinstance(content, Path):
        return guess_type(content.name)[0]
    return guess_type(uri)[0] or ("text/plain" if isinstance(content, str) else "application/octet-stream")


def _decoded(content: bytes, media_type: str | None) -> tuple[str | bytes, str]:
    """What a file holds: text where its type is one of texts, or is not known, and it can be read so."""
    if (media_type or "text/").startswith(_TEXTS):
        with suppress(ValueError):
            return content.decode("utf-8"), media_type or "text/plain"
    return content, media_type or "application/octet-stream"


def _pattern(uri: str) -> re.Pattern[str]:
    *parts, last = _PLACEHOLDER.split(uri)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return re.compile("".join(f"{re.escape(text)}(?P<{name}>[^/?#]+)" for text, name in pairs) + re.escape(last))


def _check(uri: str, names: list[str], function: Tool) -> None:
    """Raises ValueError where a function does not take the placeholders of its URI, or needs more."""
    parameters = {each.name: each.required for each in function.params if each.source == "model"}
    unknown = [name for name in names if name not in parameters]
    lacking = [name for name, required in parameters.items() if required and name not in names]
    if unknown or lacking or len(set(names)) < len(names):
        takes = ", ".join(parameters) or "nothing"
        raise ValueError(f"the function of {uri!r} takes {takes}; name its parameters as the placeholders, once each")
