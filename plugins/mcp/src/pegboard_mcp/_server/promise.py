"""Promises: the output schema of a tool in a form that every client reads, and whether a result fits it."""

from __future__ import annotations

import json
from typing import Any, final
from weakref import WeakKeyDictionary

from pegboard import ForeignSchema, RegistrationError, Tool
from pegboard_mcp._client.remote_tool import remote_of
from pegboard_mcp._wire.protocol import WRAPPED, is_newer
from pegboard_schemas import judged

__all__ = ["Promise", "Promises"]


@final
class Promise:
    """The output schema of a tool; `schema` is None where none is served.

    A schema that allows null is wrapped for every client: most clients take a null beside content for no answer. A
    schema that allows anything is not served: the result may be content, which no schema describes.
    """

    def __init__(self, tool: Tool) -> None:
        self.schema: dict[str, Any] | None = tool.returns
        self._check: ForeignSchema | None = None
        self._is_object = False
        self._admits_null = False
        remote = remote_of(tool)
        if self.schema is None or (_says_nothing(self.schema) and remote is None):
            self.schema = None
            return
        try:
            # A tool that has a judge, such as an operation of OpenAPI, has its schemas from a third party.
            is_foreign = hasattr(getattr(tool.function, "__self__", None), "judge")
            judge = judged(self.schema, "its output schema", refuses_many=False).judge if is_foreign else None
            self._check = ForeignSchema(self.schema, "its output schema", quick=_quick, judge=judge)
        except RegistrationError:  # no client could use it either
            self.schema = None
            return
        self._admits_null = not self._check.problems(None)
        self._is_object = self.schema.get("type") == "object" and not self._admits_null

    def shown(self, version: str) -> dict[str, Any] | None:
        """The schema for clients of that version. Older ones refuse lists with schemas that are not of objects."""
        if self.schema is None or not self._is_wrapped(version):
            return self.schema
        moved = _moved(self.schema)
        inner = {keyword: value for keyword, value in moved.items() if keyword not in ("$defs", "$schema")}
        wrapped = {"type": "object", "properties": {"result": inner}, "required": ["result"], WRAPPED: True}
        return wrapped | {keyword: moved[keyword] for keyword in ("$schema", "$defs") if keyword in moved}

    def structured(self, data: Any, version: str) -> Any:
        """Data that fits, in the form that is sent beside the content."""
        return {"result": data} if self._is_wrapped(version) else data

    def broken_by(self, data: Any) -> str:
        """The reason why data does not fit; empty if it fits."""
        if self._check is None:
            return ""
        problems = [problem for problem in self._check.problems(data) if not problem.unchecked]
        if not problems and not _is_json(data):
            return "it has a number that JSON does not know, such as NaN"
        return "; ".join(map(str, problems))

    def _is_wrapped(self, version: str) -> bool:
        return self._admits_null or not (self._is_object or is_newer(version))


@final
class Promises:
    """The promises of the served tools. Each is read once, and kept as long as its tool."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Any, Promise] = WeakKeyDictionary()

    def of(self, tool: Tool) -> Promise:
        """The promise of a tool."""
        promise = self._known.get(tool.definition)
        if promise is None:
            promise = self._known[tool.definition] = Promise(tool)
        return promise


def _says_nothing(schema: dict[str, Any]) -> bool:
    """Whether it admits content blocks, alone or in a list: it does not say what there will be."""
    if "anyOf" in schema:
        return any(isinstance(each, dict) and _says_nothing(each) for each in schema["anyOf"])
    items: Any = schema
    if schema.get("type") == "array" and set(schema) <= {"type", "items"}:
        items = schema.get("items", {})
    return items in ({}, True)


def _moved(part: Any) -> Any:
    """A schema whose root becomes a member of another one: its references to itself follow, but for `$defs`."""
    if isinstance(part, list):
        return [_moved(each) for each in part]
    if not isinstance(part, dict):
        return part
    moved = {key: value if key in _VALUES else _moved(value) for key, value in part.items()}
    target = part.get("$ref")
    if isinstance(target, str) and (target == "#" or (target.startswith("#/") and not target.startswith("#/$defs/"))):
        moved["$ref"] = f"#/properties/result{target[1:]}"
    return moved


def _is_json(data: Any) -> bool:
    try:
        json.dumps(data, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


_VALUES = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are data, and no schemas."""
_SCALARS = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),)}


def _quick(schema: dict[str, Any]) -> Any:
    """A predicate that is true only for what surely fits: scalars, and lists of them. Most results are no more."""
    if schema.get("type") == "array" and set(schema) == {"type", "items"} and isinstance(schema["items"], dict):
        inner = _quick(schema["items"])
        return inner and (lambda value: type(value) is list and all(map(inner, value)))
    if set(schema) == {"type"} and isinstance(schema["type"], str) and schema["type"] in _SCALARS:
        kinds = _SCALARS[schema["type"]]
        return lambda value: type(value) in kinds
    return None
