"""Tools outside a toolkit: `Tool.from_function` and `Tool.external`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pegboard._base.names import check_name
from pegboard._model.tool import Origin, Tool, ToolOptions
from pegboard._toolkit.assemble import standard_assembly
from pegboard._tools.collect import Collector
from pegboard._tools.definition import ToolDefinition
from pegboard._tools.schema_tool import Written, read_schema
from pegboard.extension import Offer

__all__ = ["external_tool", "read_tool"]


def read_tool(
    toolkit_class: type, function: Callable[..., object], *, name: str | None = None, description: str | None = None
) -> Tool:
    """A tool from a typed function, read with the types of the installed plugins."""
    terms = Offer(function, name=name, description=description)
    return Collector(standard_assembly(toolkit_class)).function(function, terms, Origin())


def external_tool(
    toolkit_class: type, name: str, description: str = "", parameters: Mapping[str, object] | None = None
) -> Tool:
    """A tool that is a schema alone."""
    source, assembly = Written(description, parameters), standard_assembly(toolkit_class)
    return Tool(check_name(name), ToolDefinition(read_schema, source, name, ToolOptions(), assembly))
