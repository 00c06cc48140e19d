"""The client that the suite's client scenarios start: a toolkit with one server, whose URL comes last on the line."""

import json
import os
import sys
from typing import Any

from pegboard import Toolkit
from pegboard_mcp import McpServer

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
LEGACY = {"initialize", "elicitation-sep1034-client-defaults", "sse-retry", "json-schema-ref-no-deref"}
ARGUMENTS: dict[str, Any] = {"add_numbers": {"a": 5, "b": 3}}


def mode() -> str:
    if os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "") < "2026":
        return "legacy"
    return "legacy" if SCENARIO in LEGACY else "auto"


def auth(url: str) -> Any:
    if not SCENARIO.startswith("auth/"):
        return None
    from tests.plugins.mcp.conformance.authorization import agreeing

    return agreeing(url)


def sample(schema: Any) -> Any:
    """Some value of a schema."""
    kinds: dict[Any, Any] = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    return kinds.get(schema.get("type"), "text") if isinstance(schema, dict) else "text"


def arguments(tool: Any, tools: list[Any]) -> dict[str, Any]:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    for planned in context.get("toolCalls", []):
        if planned.get("name") == tool.name:
            return dict(planned.get("arguments", {}))
    if "schema" in tool.parameters.get("properties", {}):
        return {"schema": tools[0].parameters}
    return ARGUMENTS.get(tool.name) or {
        name: sample(schema) for name, schema in tool.parameters.get("properties", {}).items()
    }


def main() -> None:
    with Toolkit(plugins=(), approver=lambda request: True) as toolkit:
        tools = toolkit.register(McpServer.http(sys.argv[-1], auth=auth(sys.argv[-1]), mode=mode(), call_timeout=20.0))
        for problem in toolkit.problems:
            print(problem, file=sys.stderr)
        for tool in tools:
            print(tool.name, toolkit.call_sync(tool.name, arguments(tool, tools)), file=sys.stderr)


if __name__ == "__main__":
    main()
