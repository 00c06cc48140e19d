"""Operations: one operation of a document as the description of a tool, and where each of its arguments goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, final

from attrs import evolve, field, frozen

from pegboard_openapi._document import Document, DocumentError
from pegboard_openapi._names import Names
from pegboard_openapi._pages import answer_fields, pages_text
from pegboard_openapi._schemas import JsonSchema, Schemas
from pegboard_openapi._trimming import trimmed

__all__ = ["Body", "Hidden", "Operation", "Place", "Terms", "operation_id", "read_operation"]

Hidden: TypeAlias = Callable[[str, str], bool]

LONGEST_DESCRIPTION: Final = 1024
_MOST_NAMED: Final = 400
"""Characters of the names of members that a description says are accepted, too."""
_ORDER: Final = ("path", "query", "header", "cookie", "body")
_STYLES: Final[Mapping[str, str]] = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
# What is this pack's or the connection's to say.
_OWN_HEADERS: Final = re.compile(
    r"accept|accept-encoding|authorization|connection|content-(length|type)|cookie|expect|host|keep-alive|proxy-.*|te"
    r"|trailer|transfer-encoding|upgrade",
    re.IGNORECASE,
)
_BASE64: Final[Mapping[str, Any]] = {"type": "string", "contentEncoding": "base64"}
# In the order in which they are taken, where an operation knows several.
_KINDS: Final = (
    ("json", re.compile(r"application/json|.*\+json|\*/\*|application/\*", re.IGNORECASE)),
    ("form", re.compile(r"application/x-www-form-urlencoded", re.IGNORECASE)),
    ("multipart", re.compile(r"multipart/form-data", re.IGNORECASE)),
    ("text", re.compile(r"text/.*|.*[/+](xml|yaml)", re.IGNORECASE)),
    ("binary", re.compile(r".*")),
)
_RANKS: Final = {kind: rank for rank, (kind, _) in enumerate(_KINDS)}
# An object with nothing but these is its properties.
_SIMPLE: Final = frozenset((
    "additionalProperties", "allOf", "deprecated", "description", "example", "examples", "externalDocs",
    "properties", "required", "title", "type", "xml",
))  # fmt: skip


@final
@frozen
class Terms:
    """What holds for all operations of a document.

    `credential_names` are those of its security schemes, by the place and without regard to case; `slashes` are the
    parameters of paths that may hold slashes; `max_schema` is how many characters a schema may have.
    """

    credential_names: Mapping[str, frozenset[str]]
    slashes: tuple[str, ...]
    max_schema: float


@final
@frozen
class Place:
    """Where an argument goes: the `field` of the path, the query, the headers, the cookies or the body.

    Without a field it is the whole body.
    """

    argument: str
    field: str
    where: str
    style: str = "form"
    explode: bool = True
    is_json: bool = False  # it is JSON text there, and no style
    slash: str = ""  # how one is written in a path, none if the value may hold none


@final
@frozen
class Body:
    """What a request carries beside its head: how, and which fields of a multipart form are `files`."""

    media_type: str
    kind: str
    required: bool
    encoding: Mapping[str, Any] = field(factory=dict, repr=False)
    files: frozenset[str] = frozenset()


@final
@frozen(eq=False)
class Operation:
    """One operation, as a tool needs it. `is_whole` says that a schema has everything that the document says.

    `shown` and `shown_returns` are `parameters` and `returns` as a model gets them, smaller where those are large.
    """

    method: str
    path: str
    id: str
    description: str = field(repr=False)
    tags: tuple[str, ...]
    parameters: JsonSchema = field(repr=False)
    shown: JsonSchema = field(repr=False)
    is_whole: bool = field(repr=False)
    returns: JsonSchema | None = field(repr=False)
    shown_returns: JsonSchema | None = field(repr=False)
    returns_is_whole: bool = field(repr=False)
    places: tuple[Place, ...] = field(repr=False)
    body: Body | None = field(repr=False)
    credential_names: Mapping[str, frozenset[str]] = field(repr=False)

    def names(self, where: str) -> frozenset[str]:
        """The names in the query, the cookies or the body that no object may bring along, without regard to case."""
        own = (place.field.casefold() for place in self.places if place.where == where)
        return self.credential_names.get(where, frozenset()).union(own)

    @property
    def label(self) -> str:
        """The operation as messages name it."""
        return f"{self.method.upper()} {self.path}"


def read_operation(
    document: Document, method: str, path: str, item: Any, described: Any, hidden: Hidden, terms: Terms
) -> Operation:
    """An operation of a document. `hidden(where, field)` tells places that are not the model's to fill.

    Raises `DocumentError` for one that cannot be called as it is described.
    """
    return _Reader(document, hidden, terms).operation(method, path, item, described)


class _Reader:
    def __init__(self, document: Document, hidden: Hidden, terms: Terms) -> None:
        self._document = document
        self._hidden = hidden
        self._terms = terms
        self._schemas = Schemas(document, "request")
        # The places with no argument yet, their schemas, and whether they have to be filled.
        self._wanted: list[tuple[Place, Any, bool]] = []
        self._looks = 200

    def operation(self, method: str, path: str, item: Mapping[str, Any], described: Mapping[str, Any]) -> Operation:
        self._read_parameters(path, item, described)
        has_body = "requestBody" in described and method not in ("get", "head", "trace")
        body = self._read_body(self._document.follow(described["requestBody"])) if has_body else None
        parameters, places = self._placed()
        answers = Schemas(self._document, "response")
        returns = self._returned(described, answers) if method != "head" else None
        shown = trimmed(parameters, self._terms.max_schema)
        notes = filter(None, (self._pages(described, parameters, places), _left_out(shown.left_out)))
        return Operation(
            method,
            path,
            operation_id(method, path, described),
            _description(method, path, described, *notes),
            tuple(each for each in described.get("tags") or () if isinstance(each, str)),
            parameters,
            shown.schema,
            self._schemas.is_whole,
            returns,
            None if returns is None else trimmed(returns, self._terms.max_schema).schema,
            answers.is_whole,
            tuple(places),
            body,
            self._terms.credential_names,
        )

    # Parameters --------------------------------------------------------------------------------------------------

    def _read_parameters(self, path: str, item: Mapping[str, Any], described: Mapping[str, Any]) -> None:
        """The parameters of the path and of the operation, whose own count where both have one."""
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for part in (*(item.get("parameters") or ()), *(described.get("parameters") or ())):
            each = self._document.follow(part)
            found[str(each.get("in")), str(each.get("name"))] = each
        for (where, name), each in found.items():
            ours = self._hidden(where, name) or (where == "header" and _OWN_HEADERS.fullmatch(name))
            if where in _STYLES and not ours and (where != "path" or f"{{{name}}}" in path):
                self._read_parameter(where, name, each)
        missing = {*re.findall(r"{([^{}]*)}", path)} - {name for where, name in found if where == "path"}
        if missing:
            raise DocumentError(f"nothing says what {min(missing)!r} in its path is")

    def _read_parameter(self, where: str, name: str, described: Mapping[str, Any]) -> None:
        style, schema, is_json = str(described.get("style", _STYLES[where])), described.get("schema", {}), False
        if isinstance(described.get("content"), Mapping) and described["content"]:
            media_type, media = next(iter(described["content"].items()))
            schema, is_json = _media(media).get("schema", {}), _kind(media_type) == "json"
        converted = self._schemas.convert(schema)
        if isinstance(converted, dict):
            converted |= {key: described[key] for key in ("description", "deprecated") if described.get(key)}
            if "example" in described:
                converted.setdefault("examples", [described["example"]])
        explode = described.get("explode", style == "form") is True
        slash = "/" if described.get("x-multi-segment") is True else "%2F" if name in self._terms.slashes else ""
        place = Place("", name, where, style, explode, is_json, slash)
        self._wanted.append((place, converted, where == "path" or described.get("required") is True))

    # The body ----------------------------------------------------------------------------------------------------

    def _read_body(self, described: Mapping[str, Any]) -> Body | None:
        content = described.get("content")
        if not isinstance(content, Mapping) or not content:
            return None
        media_type = min(content, key=_rank)
        kind, media, required = _kind(media_type), _media(content[media_type]), described.get("required") is True
        schema = media.get("schema", {})
        properties, needed = self._fields(schema) if kind in ("json", "form", "multipart") else ({}, [])
        files: list[str] = []
        have_to = frozenset(needed)
        # An optional body with required fields cannot be described by its fields. In forms this is never meant.
        if properties and (required or not needed or kind != "json"):
            for name, each in properties.items():
                self._wanted.append((Place("", name, "body"), self._content(each, kind), name in have_to))
                files += [name] if self._is_file(each) or self._are_files(each) else []
        else:
            converted = self._content(schema, kind)
            if isinstance(converted, dict) and described.get("description"):
                converted.setdefault("description", described["description"])
            self._wanted.append((Place("", "", "body"), converted, required))
        encoding = {name: each for name, each in _media(media.get("encoding")).items() if isinstance(each, Mapping)}
        return Body(_concrete(media_type), kind, required, encoding, frozenset(files))

    def _content(self, schema: Any, kind: str) -> Any:
        """What the model sends for it: bytes are base64, other media without a schema of JSON are text."""
        converted = self._schemas.convert(schema)
        if kind in ("json", "form") or not isinstance(converted, dict):
            return converted
        if kind == "text":
            return {**_only(converted, "description", "examples"), "type": "string"}
        if kind == "binary" or self._is_file(schema):
            return {**_only(converted, "description"), **_BASE64}
        return {**converted, "items": _BASE64} if self._are_files(schema) else converted

    def _is_file(self, schema: Any) -> bool:
        schema = self._document.follow(schema) if isinstance(schema, Mapping) else {}
        is_text = schema.get("type", "string") == "string"
        return is_text and (schema.get("format") == "binary" or "contentMediaType" in schema)

    def _are_files(self, schema: Any) -> bool:
        schema = self._document.follow(schema) if isinstance(schema, Mapping) else {}
        return schema.get("type") == "array" and self._is_file(schema.get("items"))

    def _fields(self, schema: Any) -> tuple[dict[str, Any], list[str]]:
        """The properties that an object is, and those that it needs; none for what is more than its properties."""
        properties, needed = self._flat(schema)
        if properties is None or not {*needed} <= properties.keys():  # a model cannot send what is not described
            return {}, []
        shown = {name: each for name, each in properties.items() if self._schemas.shows(each)}
        return shown, [name for name in needed if name in shown]

    def _flat(self, schema: Any) -> tuple[dict[str, Any] | None, list[str]]:
        self._looks -= 1  # two references to two references to ... double each time
        schema = self._document.follow(schema)
        branches = schema.get("allOf", [])
        plain = {key for key in schema if not key.startswith("x-")} <= _SIMPLE and isinstance(branches, list)
        if (
            not plain
            or self._looks < 0
            or schema.get("type", "object") != "object"
            or schema.get("additionalProperties", False)
        ):
            return None, []
        properties: dict[str, Any] = {}
        described = schema.get("required")
        needed = [each for each in described if isinstance(each, str)] if isinstance(described, list) else []
        for part, more in ((schema.get("properties") or {}, ()), *map(self._flat, branches)):
            if part is None:
                return None, []
            needed += more
            for name, each in part.items():
                properties[name] = {"allOf": [properties[name], each]} if name in properties else each
        return properties, needed

    # Both together -----------------------------------------------------------------------------------------------

    def _placed(self) -> tuple[JsonSchema, list[Place]]:
        """One schema for everything: the names of parameters and of the body's fields are told apart."""
        wanted = sorted(self._wanted, key=lambda each: _ORDER.index(each[0].where))
        names = _distinct_names([place for place, _, _ in wanted])
        schema: JsonSchema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        for argument, (_, converted, required) in zip(names, wanted, strict=True):
            schema["properties"][argument] = converted
            schema["required"] += [argument] if required else []
        if self._schemas.defs:
            schema["$defs"] = self._schemas.defs
        return schema, [evolve(place, argument=name) for name, (place, _, _) in zip(names, wanted, strict=True)]

    def _pages(self, described: Mapping[str, Any], schema: JsonSchema, places: Sequence[Place]) -> str:
        responses = described.get("responses")
        query = {
            each.argument: (each.field, schema["properties"][each.argument]) for each in places if each.where == "query"
        }
        has_link = any(self._has_link(each) for each in responses.values()) if isinstance(responses, Mapping) else False
        return pages_text(query, answer_fields(self._document, responses), has_link=has_link)

    def _has_link(self, response: Any) -> bool:
        try:
            headers = self._document.follow(response).get("headers")
        except DocumentError:
            return False
        return isinstance(headers, Mapping) and any(name.lower() == "link" for name in headers)

    # Answers -----------------------------------------------------------------------------------------------------

    def _returned(self, described: Mapping[str, Any], schemas: Schemas) -> JsonSchema | None:
        """The schema of every successful answer; None if the document has none, or if it may not be JSON."""
        responses = described.get("responses")
        found = []
        try:
            for status, response in responses.items() if isinstance(responses, Mapping) else ():
                if status.startswith("2"):
                    content = self._document.follow(response).get("content") or {}
                    if any(_kind(each) != "json" or "schema" not in _media(content[each]) for each in content):
                        return None
                    found += [schemas.convert(_media(each)["schema"]) for each in content.values()]
                    found += [] if content else [{"type": "null"}]
        except DocumentError:
            return None
        schema = schemas.joined(found) if found else {}
        if not isinstance(schema, dict) or schema in ({}, {"type": "null"}):
            return None
        return schemas.whole(schema)


def _media(described: Any) -> Mapping[str, Any]:
    return described if isinstance(described, Mapping) else {}


def _kind(media_type: str) -> str:
    plain = media_type.partition(";")[0].strip()
    return next(kind for kind, pattern in _KINDS if pattern.fullmatch(plain))


def _rank(media_type: str) -> tuple[int, bool]:
    # What a model writes as the changed members is no list of the operations of a JSON patch.
    return _RANKS[_kind(media_type)], "json-patch" in media_type


def _concrete(media_type: str) -> str:
    if "*" not in media_type:
        return media_type
    return "application/json" if _kind(media_type) == "json" else media_type.replace("*", "plain")


def _only(schema: Mapping[str, Any], *keywords: str) -> JsonSchema:
    return {keyword: schema[keyword] for keyword in keywords if keyword in schema}


def _distinct_names(places: Sequence[Place]) -> list[str]:
    """A name for each that all providers accept: its own for the first, `<where>_<name>` for later ones like it."""
    own = [_legal(place.field or place.where) for place in places]
    names = Names(own)
    first: set[str] = set()
    found = []
    for name, place in zip(own, places, strict=True):
        found.append(names.free(_legal(f"{place.where}_{place.field}")[:58]) if name in first else name)
        first.add(name)
    return found


def _legal(name: str) -> str:
    clean = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)
    return (clean if clean == name else clean.strip("_"))[:64] or "value"


def operation_id(method: str, path: str, described: Mapping[str, Any]) -> str:
    """The name of an operation: its `operationId`, or its method and path."""
    own = described.get("operationId")
    return own if isinstance(own, str) and own.strip() else f"{method}{re.sub('[^A-Za-z0-9]+', '_', path)}".rstrip("_")


def _description(method: str, path: str, described: Mapping[str, Any], *notes: str) -> str:
    texts = [str(described[key]).strip() for key in ("summary", "description") if described.get(key)]
    if len(texts) == 2 and texts[1].startswith(texts[0].rstrip(".")):
        del texts[0]
    if described.get("deprecated") is True:
        texts.insert(0, "Deprecated.")
    text = "\n\n".join(texts) or f"{method.upper()} {path}"
    most = LONGEST_DESCRIPTION - sum(len(each) + 2 for each in notes)
    return "\n\n".join((text if len(text) <= most else f"{text[: most - 3]}...", *notes))


def _left_out(paths: Sequence[str]) -> str:
    """What a description says of members that the schema does not show; an empty text for none."""
    groups: dict[str, list[str]] = {}
    room, named = _MOST_NAMED, 0
    for path in paths:
        above, _, name = path.rpartition(".")
        room -= len(name) + 2 + (0 if above in groups else len(above) + 4)
        if room < 0:
            break
        groups.setdefault(above, []).append(name)
        named += 1
    texts = [f"`{above}`: {', '.join(names)}" if above else ", ".join(names) for above, names in groups.items()]
    if named < len(paths):
        texts.append(f"{len(paths) - named:,} more")
    return f"Accepted, though the schema does not show it in full: {'; '.join(texts)}." if paths else ""
