"""Definitions of tools in a provider's form, registered as external tools: Pegboard does not run them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from pegboard import Judge, PegboardError
from pegboard_dialects._reading import as_plain
from pegboard_dialects._schemas import words

__all__ = ["External", "external"]


@attrs.frozen
class ExternalTool:
    """A tool that Pegboard does not run: its calls are `suspended` until the program resumes them."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    returns: Mapping[str, Any] | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    strict: bool | None = None
    defer: bool = False
    call: None = None

    @property
    def judge(self) -> Judge:
        """What checks the arguments, in bounded steps: a third party may have written the schema.

        Raises `RegistrationError` for a schema that cannot be used.
        """
        from pegboard_schemas import judged  # which few programs need of this pack

        return judged(self.parameters, f"tool {self.name!r}: parameters", refuses_many=False).judge


@attrs.frozen
class External:
    """The tools of some definitions: a source of tools for `register`."""

    definitions: tuple[ExternalTool, ...]

    def tools(self) -> list[ExternalTool]:
        """The tools, by the names that the definitions use."""
        return list(self.definitions)


def external(definitions: Any) -> External:
    """Read definitions in the form of any provider. Raises `PegboardError` for anything else."""
    plain = as_plain(definitions)
    return External(tuple(_read(plain if isinstance(plain, list) else [plain])))


def _read(definitions: Iterable[Any]) -> Iterator[ExternalTool]:
    for each in definitions:
        if isinstance(each, Mapping) and each and all(name.replace("_", "").lower() in _RUN_THERE for name in each):
            continue
        if not isinstance(each, Mapping) or not each.keys() & {"name", "type", *_HOLDERS}:
            raise PegboardError(f"a tool's definition is a dict or an SDK's object with its name; got {each!r}"[:200])
        inside = next((each[holder] for holder in _HOLDERS if isinstance(each.get(holder), (list, Mapping))), None)
        if inside is not None:
            yield from _read([inside] if isinstance(inside, Mapping) else inside)
        elif isinstance(schema := _schema(each), Mapping):
            yield _one(each, schema)


_HOLDERS: Final = ("function_declarations", "functionDeclarations", "tools", "function")
"""Members that hold definitions: of Gemini's tools, of namespaces and answers to `tools/list`, of OpenAI's tools."""
_RUN_THERE: Final = words(
    "codeexecution computeruse enterprisewebsearch filesearch googlemaps googlesearch googlesearchretrieval mcpservers "
    "retrieval urlcontext"
)
"""Gemini's own tools. Such a tool has no name except that of the member that holds it."""
_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema")
_RETURNS: Final = ("output_schema", "outputSchema")
_HINTS: Final = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}


def _schema(definition: Mapping[str, Any]) -> Any:
    """The schema of the parameters; None for a tool that the provider runs."""
    found = next((definition[name] for name in _SCHEMAS if definition.get(name) is not None), None)
    return (
        {"type": "object", "properties": {}}
        if found is None and definition.get("type") in (None, "function")
        else found
    )


def _answer(definition: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema of the returned value, which is inside the schema of a function response."""
    response = definition.get("response_json_schema") or definition.get("responseJsonSchema") or {}
    returns = (response.get("properties") or {}).get("output")
    return {**returns, "$defs": response["$defs"]} if returns and "$defs" in response else returns


def _one(definition: Mapping[str, Any], schema: Mapping[str, Any]) -> ExternalTool:
    returns = next(
        (definition[name] for name in _RETURNS if isinstance(definition.get(name), Mapping)), _answer(definition)
    )
    hints = definition.get("annotations") or {}
    return ExternalTool(
        str(definition["name"]),
        definition.get("description") or "",
        schema,
        returns,
        strict=definition.get("strict") or None,
        defer=definition.get("defer_loading") is True,
        **{name: hints.get(mcp_name) for name, mcp_name in _HINTS.items()},
    )
