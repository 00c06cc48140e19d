"""Swagger 2.0: a document of it as one of OpenAPI 3.0.

Schemas stay where they are, with their references: what is different in them is read where schemas are read. A part
that is not what it should be stays as it is, so that the operation that needs it is left out and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pegboard_openapi._document import METHODS, Document, DocumentError

__all__ = ["as_openapi_3"]

_FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_BYTES: Final = "application/octet-stream"
_JSON: Final = "application/json"
_BODIES: Final = ("body", "formData")
# How several values stand in one text; OpenAPI 3 has no tabs.
_STYLES: Final[Mapping[str, str]] = {"ssv": "spaceDelimited", "tsv": "tabDelimited", "pipes": "pipeDelimited"}
# What a parameter that is no body says of its value; the rest is about the parameter.
_ABOUT: Final = frozenset({"allowEmptyValue", "collectionFormat", "description", "in", "name", "required"})


def as_openapi_3(document: Document) -> Document:
    """A document of Swagger 2.0 as one of OpenAPI 3.0, any other as it is. Raises nothing for what is wrong in it."""
    content = document.content
    if "openapi" in content:
        return document
    paths = content.get("paths")
    items = paths.items() if isinstance(paths, Mapping) else ()
    converted = {
        **content,
        "openapi": "3.0.0",
        "servers": _servers(document, content.get("schemes")),
        "paths": {path: _item(document, part) for path, part in items},
        "components": {"securitySchemes": _schemes(content.get("securityDefinitions"))},
    }
    return Document(converted, document.url)


def _servers(document: Document, schemes: Any) -> list[dict[str, str]]:
    """Where the server is; without a host, or without a scheme, where the document comes from says it."""
    host, path = document.content.get("host"), document.content.get("basePath")
    path = f"/{path.strip('/')}" if isinstance(path, str) else "/"
    if not isinstance(host, str) or not host:
        return [{"url": path}]
    known = [each for each in ("https", "http") if each in schemes] if isinstance(schemes, list) else []
    return [{"url": f"{known[0]}://{host}{path}" if known else f"//{host}{path}"}]


def _schemes(definitions: Any) -> dict[str, Any]:
    named = definitions.items() if isinstance(definitions, Mapping) else ()
    basic = {"type": "http", "scheme": "basic"}
    return {name: basic if isinstance(each, Mapping) and each.get("type") == "basic" else each for name, each in named}


def _item(document: Document, part: Any) -> Any:
    """The operations of a path. Its parameters go to each of them: only they know what a body is sent as."""
    try:
        item = document.follow(part)
    except DocumentError:
        return part
    shared = _listed(document, item.get("parameters"))
    found = {key: value for key, value in item.items() if key != "parameters"}
    return found | {
        method: _operation(document, item[method], shared)
        for method in METHODS
        if isinstance(item.get(method), Mapping)
    }


def _listed(document: Document, parameters: Any) -> list[Any]:
    """Parameters behind their references; what leads nowhere stays a reference."""
    found = []
    for each in parameters if isinstance(parameters, list) else ():
        try:
            found.append(document.follow(each))
        except DocumentError:
            found.append(each)
    return found


def _operation(document: Document, described: Mapping[str, Any], shared: list[Any]) -> dict[str, Any]:
    own = _listed(document, described.get("parameters"))
    known = {_place(each) for each in own}
    parts = [*(each for each in shared if _place(each) not in known), *own]
    bodies = [each for each in parts if _place(each)[0] == "body"]
    fields = [each for each in parts if _place(each)[0] == "formData"]
    found = {**described, "parameters": [_parameter(each) for each in parts if _place(each)[0] not in _BODIES]}
    consumes = _media_types(document, described, "consumes")
    if fields:
        found["requestBody"] = _form(fields, consumes)
    elif bodies:
        found["requestBody"] = _body(bodies[-1], consumes or [_JSON])
    if "schemes" in described:
        found["servers"] = _servers(document, described["schemes"])
    produces = _media_types(document, described, "produces") or [_JSON]
    responses = described.get("responses")
    if isinstance(responses, Mapping):
        found["responses"] = {status: _response(document, each, produces) for status, each in responses.items()}
    return found


def _place(parameter: Any) -> tuple[str, str]:
    """What makes two parameters the same one: an operation has one body, whatever its name."""
    if not isinstance(parameter, Mapping) or "in" not in parameter:
        return "", str(parameter)
    where = str(parameter["in"])
    return where, "" if where == "body" else str(parameter.get("name"))


def _media_types(document: Document, described: Mapping[str, Any], which: str) -> list[str]:
    given = described.get(which, document.content.get(which))
    return [each for each in given if isinstance(each, str)] if isinstance(given, list) else []


# Requests ------------------------------------------------------------------------------------------------------------


def _schema(parameter: Mapping[str, Any]) -> dict[str, Any]:
    schema = {key: value for key, value in parameter.items() if key not in _ABOUT}
    return schema if schema.get("type") != "file" else {**schema, "type": "string", "format": "binary"}


def _how(parameter: Mapping[str, Any], where: str) -> dict[str, Any]:
    """How an array is written."""
    if parameter.get("type") != "array":
        return {}
    how = parameter.get("collectionFormat", "csv")
    style = _STYLES.get(how) if isinstance(how, str) else None
    return {"style": style or ("form" if where in ("query", "formData") else "simple"), "explode": how == "multi"}


def _parameter(parameter: Any) -> Any:
    where, _ = _place(parameter)
    if not where:
        return parameter
    about = {key: parameter[key] for key in ("name", "in", "required", "description") if key in parameter}
    return {**about, **_how(parameter, where), "schema": _schema(parameter)}


def _body(parameter: Mapping[str, Any], consumes: Iterable[str]) -> dict[str, Any]:
    media = {"schema": parameter.get("schema", {})}
    about = {key: parameter[key] for key in ("required", "description") if key in parameter}
    return {**about, "content": dict.fromkeys(consumes, media)}


def _form(fields: list[Mapping[str, Any]], consumes: list[str]) -> dict[str, Any]:
    has_file = any(each.get("type") == "file" for each in fields)
    wanted = (_MULTIPART,) if has_file else (_FORM, _MULTIPART)
    media_type = next((each for each in consumes if each in wanted), wanted[0])
    properties: dict[str, Any] = {}
    encoding: dict[str, Any] = {}
    needed: list[str] = []
    for each in fields:
        name = str(each.get("name"))
        described = {"description": each["description"]} if "description" in each else {}
        properties[name] = {**_schema(each), **described}
        encoding |= {name: how} if (how := _how(each, "formData")) else {}
        needed += [name] if each.get("required") is True else []
    schema = {"type": "object", "properties": properties, "required": needed}
    return {"required": bool(needed), "content": {media_type: {"schema": schema, "encoding": encoding}}}


# Answers -------------------------------------------------------------------------------------------------------------


def _response(document: Document, part: Any, produces: list[str]) -> Any:
    try:
        response = document.follow(part)
        if "schema" not in response:
            return response
        is_file = document.follow(response["schema"]).get("type") == "file"
    except DocumentError:
        return part
    return {**response, "content": {_BYTES: {}} if is_file else dict(_contents(response["schema"], produces))}


def _contents(schema: Any, produces: Iterable[str]) -> Iterator[tuple[str, Any]]:
    for media_type in produces:
        yield media_type, {"schema": schema}
