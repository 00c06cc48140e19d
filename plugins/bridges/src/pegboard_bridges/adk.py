"""Google ADK: a toolset, which the agent asks for its tools before each request.

A tool gives a dict of data, with media among its values as parts. Approval is ADK's confirmation: the tool asks for it
by its context and gives an error; when a user has confirmed, ADK calls it again. A tool cannot report progress.
"""

from __future__ import annotations

from typing import Any

from pegboard import ApprovalRequest, ImageBlock, Session, TextBlock, ToolCall, Toolkit, ToolResult
from pegboard import Tool as OurTool
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import (
    ExternalTool,
    ExternalTools,
    approved,
    external,
    failed,
    finished,
    given_arguments,
)
from pegboard_bridges._outwards import OfferedTools, image_type, parts

with needs("adk"):
    from google.adk.agents import LlmAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.sessions import InMemorySessionService
    from google.adk.tools import BaseTool, ToolContext
    from google.adk.tools.base_toolset import BaseToolset
    from google.adk.tools.tool_confirmation import ToolConfirmation
    from google.genai import types

__all__ = ["BoardTool", "BoardToolset", "from_adk", "to_adk"]

WAITS = "This call waits for a confirmation."


class _ConfirmationRequested(Exception):  # noqa: N818 - no error: the tool is called again when a user has answered
    pass


class BoardTool(BaseTool):
    """A tool of the toolkit."""

    def __init__(self, offered: OfferedTools, tool: OurTool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._offered = offered
        self._parameters = tool.parameters

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Call it, or ask for a confirmation."""

        async def ask(request: ApprovalRequest) -> bool:
            if tool_context.tool_confirmation is not None:
                return bool(tool_context.tool_confirmation.confirmed)
            tool_context.request_confirmation(hint=f"{request.reason}. May it run?")
            tool_context.actions.skip_summarization = True
            raise _ConfirmationRequested

        try:
            result = await self._offered.call(self.name, args, tool_context.function_call_id, ask=ask)
        except _ConfirmationRequested:
            return {"error": WAITS}
        return _response(result)


class BoardToolset(BaseToolset):
    """The tools that a toolkit offers when the agent asks."""

    def __init__(self, offered: OfferedTools) -> None:
        super().__init__()
        self._use_invocation_cache = False  # what is offered may change between two requests of one run
        self._offered = offered

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        """The tools that are offered now."""
        return self._offered.natives(lambda tool: BoardTool(self._offered, tool))


def to_adk(source: Toolkit | Session) -> BoardToolset:
    """A toolkit, session or view as a toolset, for `LlmAgent(tools=[...])`."""
    return BoardToolset(OfferedTools(source))


def _response(result: ToolResult) -> dict[str, Any]:
    found = parts(result, str, _image)
    words = "\n".join(each for each in found if isinstance(each, str))
    media = [each for each in found if not isinstance(each, str)]
    return {"error" if result.is_error else "result": words, **({"media": media} if media else {})}


def _image(block: ImageBlock) -> types.Part:
    if block.url:
        return types.Part.from_uri(file_uri=block.url, mime_type=image_type(block))
    return types.Part.from_bytes(data=block.to_bytes(), mime_type=image_type(block))


def from_adk(tools: Any) -> ExternalTools:
    """The tools of a `BaseTool`, a `BaseToolset`, or a list of such. Raises `NotNativeError` for anything else."""
    readers = {BaseTool: _external, BaseToolset: lambda toolset: finished(toolset.get_tools_with_prefix)}
    return external("adk", tools, readers)


async def _context(call: ToolCall, confirmation: ToolConfirmation | None = None) -> ToolContext:
    sessions = InMemorySessionService()
    session = await sessions.create_session(app_name="pegboard", user_id="pegboard")
    inside = InvocationContext(
        invocation_id=call.id, agent=LlmAgent(name="pegboard"), session=session, session_service=sessions
    )
    return ToolContext(inside, function_call_id=call.id, tool_confirmation=confirmation)


def _external(tool: BaseTool) -> ExternalTool:
    async def call(call: ToolCall) -> Any:
        context = await _context(call)
        value = await tool.run_async(args=given_arguments(call), tool_context=context)
        if context.actions.requested_tool_confirmations:
            allowed = await approved(call, f"{tool.name} asks for a confirmation")
            if isinstance(allowed, ToolResult):
                return allowed
            context = await _context(call, ToolConfirmation(confirmed=True))
            value = await tool.run_async(args=allowed, tool_context=context)
        return _value(call, value)

    declared = tool._get_declaration()  # what a model is given; ADK has no other way to it
    schema = None if declared is None else declared.parameters_json_schema
    if schema is None and declared is not None and declared.parameters is not None:
        schema = declared.parameters.json_schema.model_dump(mode="json", exclude_none=True)
    return ExternalTool(tool.name, tool.description, schema, call, ("adk",))


def _value(call: ToolCall, value: Any) -> Any:
    if isinstance(value, dict) and "error" in value and value.keys() <= {"error", "media"}:
        return failed(call, str(value["error"]))
    if isinstance(value, dict) and "result" in value and value.keys() <= {"result", "media"}:
        media = [_block(part) for part in value.get("media", ())]
        return [TextBlock(value["result"]), *media] if media else value["result"]
    return _block(value)


def _block(value: Any) -> Any:
    if isinstance(value, types.Part) and value.inline_data is not None:
        return ImageBlock.from_bytes(value.inline_data.data or b"", value.inline_data.mime_type)
    return value
