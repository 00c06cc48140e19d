"""A server that asks the form in its arguments, and answers with what came back; run as a script.

Over stdio, or with the argument `http` over HTTP on a free port, which standard error tells.
"""

import asyncio
import json
import sys
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from pegboard_mcp._wire.protocol import is_newer

ASKED = "Who are you?"


async def listed(context: Any, parameters: Any) -> types.ListToolsResult:
    schema = {"type": "object", "properties": {"form": {"type": "object"}, "url": {"type": "string"}}}
    return types.ListToolsResult(tools=[types.Tool(name="ask", description="Ask.", input_schema=schema)])


async def called(context: Any, parameters: Any) -> types.CallToolResult | types.InputRequiredResult:
    arguments = parameters.arguments or {}
    if is_newer(context.protocol_version):
        reply = (parameters.input_responses or {}).get("it")
        if reply is None:
            question = types.ElicitRequest(params=_question(arguments))
            return types.InputRequiredResult(input_requests={"it": question}, request_state="asked")
    elif "url" in arguments:
        reply = await context.session.elicit_url(ASKED, arguments["url"], "1", related_request_id=context.request_id)
    else:
        reply = await context.session.elicit_form(ASKED, arguments["form"], related_request_id=context.request_id)
    told = {"action": reply.action, "content": reply.content}
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(told))])


def _question(arguments: dict[str, Any]) -> Any:
    if "url" in arguments:
        return types.ElicitRequestURLParams(message=ASKED, url=arguments["url"])
    return types.ElicitRequestFormParams(message=ASKED, requested_schema=arguments["form"])


def server() -> Server[Any]:
    return Server("forms", version="1", on_list_tools=listed, on_call_tool=called)


async def main() -> None:
    asking = server()
    if sys.argv[1:] == ["http"]:
        import socket

        import uvicorn

        with socket.create_server(("127.0.0.1", 0)) as listening:
            sys.stderr.write(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
            sys.stderr.flush()
            application = asking.streamable_http_app(host="127.0.0.1")
            await uvicorn.Server(uvicorn.Config(application, log_level="warning")).serve(sockets=[listening])
    else:
        async with stdio_server() as (read, write):
            await asking.run(read, write, asking.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
