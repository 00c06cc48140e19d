"""Documents made by the line, and what becomes of them."""

from collections.abc import Mapping
from typing import Any

from pegboard import Toolkit
from pegboard_openapi import OpenApi

OK: Mapping[str, Any] = {"200": {"description": "fine"}}
BASE = "http://127.0.0.1:1"


def documented(paths: Mapping[str, Any], version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    return {"openapi": version, "info": {"title": "shop", "version": "1"}, "paths": paths, **more}


def parameter(name: str, where: str = "query", schema: Any = None, **more: Any) -> dict[str, Any]:
    required = {"required": True} if where == "path" else {}
    return {"name": name, "in": where, "schema": schema or {"type": "string"}, **required, **more}


def body(schema: Any, media_type: str = "application/json", *, required: bool = True, **more: Any) -> dict[str, Any]:
    return {"content": {media_type: {"schema": schema, **more}}, "required": required}


def answering(schema: Any, status: str = "200") -> dict[str, Any]:
    return {status: {"description": "fine", "content": {"application/json": {"schema": schema}}}}


def one(
    method: str = "get", path: str = "/things", version: str = "3.1.0", more: Any = None, **content: Any
) -> dict[str, Any]:
    """A document of one operation, which is called `do`."""
    operation = {"operationId": "do", "summary": "Do it.", "responses": OK, **content}
    return documented({path: {method: operation}}, version, **(more or {}))


def board(document: Any, base_url: str | None = BASE, **options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(OpenApi(document, base_url, name="shop", **options))
    return toolkit


def schema_of(document: Any, **options: Any) -> Any:
    with board(document, **options) as toolkit:
        assert toolkit.problems == []
        return toolkit["do"].parameters


def problem_of(document: Any, base_url: str | None = BASE, **options: Any) -> str:
    with board(document, base_url, **options) as toolkit:
        (problem,) = toolkit.problems
        return problem
