"""Documents: read from a file, a URL, a mapping or an application, as plain and bounded data.

Who wrote a document is not known: YAML makes nothing but JSON of it, its size is bounded, and what it refers to
elsewhere is never fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import unquote

from attrs import field, frozen

from pegboard import PegboardError
from pegboard_net import Fetched, Guard, UrlError, read_url

__all__ = ["METHODS", "Document", "DocumentError", "is_url", "read_document"]

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
MAX_BYTES: Final = 64 * 1024 * 1024
_MOST_PARTS: Final = 4_000_000
_MOST_REPEATED: Final = 100_000  # parts that YAML repeats by reference, which is how a small file becomes a large one
_TEXT_OF_A_PART: Final = 100  # characters: a longer text counts as several parts
_DEEPEST: Final = 150
_MOST_HOPS: Final = 50


class DocumentError(PegboardError):
    """A document, or a part of it, that cannot be used."""


@final
@frozen
class Document:
    """A document of OpenAPI 3, or of Swagger 2.0; `url` is where it was fetched, if it was."""

    content: Mapping[str, Any] = field(repr=False)
    url: str | None = None

    @property
    def is_3_0(self) -> bool:
        """Whether its schemas are those of OpenAPI 3.0 and not JSON Schema 2020-12."""
        return str(self.content.get("openapi")).startswith("3.0")

    @cached_property
    def schemes(self) -> Mapping[str, Mapping[str, Any]]:
        """The security schemes by name; a document without any takes a token, or a user and a password, as most do."""
        components = self.content.get("components")
        given = components.get("securitySchemes") if isinstance(components, Mapping) else None
        if not given or not isinstance(given, Mapping):
            return {"token": {"type": "http", "scheme": "bearer"}, "basic": {"type": "http", "scheme": "basic"}}
        schemes: dict[str, Mapping[str, Any]] = {}
        for name, scheme in given.items():
            try:
                schemes[name] = self.follow(scheme)
            except DocumentError:  # then it is of no known kind, and what needs it is left out
                schemes[name] = {}
        return schemes

    def at(self, reference: Any) -> Any:
        """What a reference leads to. Raises `DocumentError` for nothing, and for another document."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise DocumentError(f"it refers to {str(reference)[:200]!r}, another document; those are never fetched")
        target: Any = self.content
        for step in reference[2:].split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and name.isdecimal() and int(name[:9]) < len(target):
                target = target[int(name[:9])]
            elif isinstance(target, Mapping) and name in target:
                target = target[name]
            else:
                raise DocumentError(f"it refers to {reference[:200]!r}, which is not there")
        return target

    def follow(self, part: Any) -> Mapping[str, Any]:
        """An object of the document, behind its references. Raises `DocumentError`."""
        for _ in range(_MOST_HOPS):
            if not isinstance(part, Mapping):
                raise DocumentError(f"it has {str(part)[:50]!r} where an object belongs")
            if "$ref" not in part:
                return part
            part = self.at(part["$ref"])
        raise DocumentError("it refers to itself without end")

    def operations(self) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
        """Method, path, the path's item and the operation, in the order of the document."""
        paths = self.content.get("paths")
        for path, part in paths.items() if isinstance(paths, Mapping) else ():
            try:
                item = self.follow(part)
            except DocumentError:
                continue
            for method in METHODS:
                if path.startswith("/") and isinstance(item.get(method), Mapping):
                    yield method, path, item, item[method]


def is_url(source: Any) -> bool:
    """Whether a source is a URL and no file."""
    return isinstance(source, str) and source.lower().startswith(("http://", "https://"))


def read_document(source: Any) -> Document:
    """The document that a mapping, a path, a URL or an application is or has. Raises `DocumentError`."""
    url = None
    if isinstance(source, Mapping):
        content: Any = source
    elif callable(getattr(source, "openapi", None)):
        content = source.openapi()
    elif is_url(source):
        found = _fetched(source)
        content, url = _parsed(found.content), found.url
    else:
        content = _parsed(_file(Path(source).expanduser()))
    plain = _plain(content, [_MOST_PARTS], 0)
    known = plain if isinstance(plain, dict) else {}
    if not (str(known.get("openapi", "")).startswith("3.") or str(known.get("swagger", "")).startswith("2.")):
        version = known.get("swagger", known.get("openapi"))
        reason = f"it is of version {version!s:.20}; convert it first" if version else "it has no `openapi: 3...`"
        raise DocumentError(f"this is no document of OpenAPI 3 or Swagger 2.0: {reason}")
    return Document(known, url)


def _file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DocumentError(f"{path} cannot be read: {error.strerror}") from error
    if len(text) > MAX_BYTES:
        raise DocumentError(f"it has more than {MAX_BYTES:,} bytes")
    return text


def _fetched(url: str) -> Fetched:
    """What is at a URL that the program has named, and where that was in the end. Raises `DocumentError`."""
    try:
        # What it redirects to is named by a third party: only its own host may be a private one.
        guard = Guard([read_url(url).host], max_bytes=MAX_BYTES, proxies=True)
        return guard.fetch_sync(url, headers={"Accept-Encoding": "gzip, deflate"})
    except UrlError as error:
        raise DocumentError(str(error)) from error


def _parsed(text: bytes) -> Any:
    try:
        if text.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
            try:
                return json.loads(text)
            except ValueError:
                pass  # YAML may begin like that too
        return _yaml(text)
    except RecursionError:
        raise DocumentError("it is nested too deep") from None


def _yaml(text: bytes) -> Any:
    """YAML as OpenAPI means it: `on`, `2020-01-01` and `12:30` are text."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C is ten times as fast
    loader: Any = type("Loader", (base,), {"yaml_implicit_resolvers": {}})
    for kind, pattern, first in _SCALARS:
        loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", pattern, first)
    # Text that is tagged as a number is read as JSON has it: in base 60 long ones take quadratic time.
    for kind, number in (("int", int), ("float", float)):
        loader.add_constructor(f"tag:yaml.org,2002:{kind}", lambda _, node, number=number: number(node.value))
    try:
        _survey(yaml.parse(text, loader))
        return yaml.load(text, loader)  # noqa: S506 - a safe one
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise DocumentError(f"it is neither JSON nor YAML{where}") from error


class _Survey:
    """Counts the parts of a YAML document by its events, each as often as aliases repeat it.

    An alias costs what its anchor holds, with the aliases in that: merge keys copy it, and so does what reads the
    document.
    """

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}  # by anchor
        self._open: list[tuple[str | None, int]] = []  # anchors, and the parts that were counted before each
        self._parts = 0
        self._repeated = 0

    def begin(self, anchor: str | None) -> None:
        """An array or an object begins. Raises `DocumentError` for one too deep, which crashes a composer in C."""
        self._open.append((anchor, self._parts))
        self._parts += 1
        if len(self._open) > _DEEPEST:
            raise DocumentError("it is nested too deep")

    def end(self) -> None:
        """The innermost one ends; until then its anchor stands for nothing, or for what had it before."""
        anchor, before = self._open.pop()
        if anchor is not None:
            self._sizes[anchor] = self._parts - before

    def scalar(self, anchor: str | None, text: str) -> None:
        """A text, a number, true, false or null."""
        size = 1 + len(text) // _TEXT_OF_A_PART
        self._parts += size
        if anchor is not None:
            self._sizes[anchor] = size

    def alias(self, anchor: str) -> None:
        """What an anchor holds, once more. Raises `DocumentError` for too much, and for what holds the alias."""
        if anchor not in self._sizes or any(each == anchor for each, _ in self._open):
            raise DocumentError(f"its alias {anchor!r:.50} stands for nothing, or for what it is in")
        self._parts += self._sizes[anchor]
        self._repeated += self._sizes[anchor]
        if self._repeated > _MOST_REPEATED:
            raise DocumentError(f"its aliases repeat more than {_MOST_REPEATED:,} parts; write it without anchors")


def _survey(events: Iterable[Any]) -> None:
    """Refuse YAML that is nested too deep, or that aliases make too large. Raises `DocumentError`."""
    import yaml

    survey = _Survey()
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            survey.begin(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            survey.end()
        elif isinstance(event, yaml.ScalarEvent):
            survey.scalar(event.anchor, event.value)
        elif isinstance(event, yaml.AliasEvent):
            survey.alias(str(event.anchor))


# As JSON has them.
_SCALARS: Final = (
    ("null", re.compile(r"(~|null|)\Z"), ["~", "n", ""]),
    ("bool", re.compile(r"(true|false)\Z"), ["t", "f"]),
    ("int", re.compile(r"-?(0|[1-9][0-9]*)\Z"), list("-0123456789")),
    ("float", re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z"), list("-0123456789")),
    ("merge", re.compile(r"<<\Z"), ["<"]),
)


def _plain(part: Any, budget: list[int], depth: int) -> Any:
    """A copy of JSON types alone, with names as text. Each part counts as often as it is used."""
    budget[0] -= 1
    if budget[0] < 0 or depth > _DEEPEST:
        raise DocumentError(f"it has more than {_MOST_PARTS:,} parts, or is nested more than {_DEEPEST} levels deep")
    if isinstance(part, Mapping):
        return {
            key if isinstance(key, str) else json.dumps(key, default=str): _plain(value, budget, depth + 1)
            for key, value in part.items()
        }
    if isinstance(part, list | tuple):
        return [_plain(each, budget, depth + 1) for each in part]
    return part if part is None or isinstance(part, str | int | float | bool) else str(part)
