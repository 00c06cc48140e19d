"""Tools outside a toolkit: `Tool.from_function` and `Tool.external`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from pegboard._base.names import check_name
from pegboard._model.tool import Origin, Tool, ToolOptions
from pegboard._toolkit.assemble import standard_assembly
from pegboard._tools.collect import Collector, Registration
from pegboard._tools.definition import ToolDefinition
from pegboard._tools.schema_tool import Written, read_schema

__all__ = ["external_tool", "read_tool"]


def read_tool(
    toolkit_class: type, function: Callable[..., Any], *, name: str | None = None, description: str | None = None
) -> Tool:
    """A tool from a typed function, read with the types of the installed plugins."""
    collector = Collector(standard_assembly(toolkit_class), None, lambda source: None)
    registration = Registration(name, description)
    if type(function) is FunctionType:
        return collector.function(function, registration, Origin())
    return collector.collect(function, registration, Origin(), None, _unexpected).tools[0]


def external_tool(
    toolkit_class: type, name: str, description: str = "", parameters: Mapping[str, Any] | None = None
) -> Tool:
    """A tool that is a schema alone."""
    assembly = standard_assembly(toolkit_class)
    definition = ToolDefinition(read_schema, Written(description, parameters), name, ToolOptions(), assembly)
    return Tool(check_name(name), definition)


def _unexpected(reason: str, error: BaseException | None) -> None:
    """A lazy tool outside a toolkit: its own error says everything."""
