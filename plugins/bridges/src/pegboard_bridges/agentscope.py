"""AgentScope: tools give a `ToolChunk` of blocks; the agent asks each about permission before it runs.

What needs approval is a decision to ask: the agent parks, and goes on with the user's `ConfirmResult`s. The agent
checks and repairs arguments by the schema before a tool gets them, and shows the model a copy of the same dict.
Pegboard shall check the arguments, and explain what is wrong. So `input_schema` is whole when it is copied, and allows
any object when it is read. What a tool yields while it runs is part of its result: there is no progress.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pegboard import ApprovalRequest, ImageBlock, Session, TextBlock, ToolCall, Toolkit, ToolResult
from pegboard import Tool as OurTool
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import (
    ExternalTool,
    ExternalTools,
    approved,
    denied,
    external,
    failed,
    finished,
    given_arguments,
)
from pegboard_bridges._outwards import OfferedTools, image_type, parts

with needs("agentscope"):
    from agentscope.message import Base64Source, DataBlock, ToolCallBlock, ToolCallState, ToolResultState, URLSource
    from agentscope.message import TextBlock as ScopeText
    from agentscope.permission import PermissionBehavior, PermissionContext, PermissionDecision
    from agentscope.tool import ToolBase, ToolChunk, ToolResponse
    from agentscope.tool import Toolkit as ScopeToolkit

__all__ = ["BoardTool", "from_agentscope", "to_agentscope"]


class _Schema(dict[str, Any]):
    """A schema that takes any object, and of which a copy is the one that the model is shown."""

    def __init__(self, shown: Mapping[str, Any]) -> None:
        super().__init__(type="object", properties={})
        self._shown = shown

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return deepcopy(dict(self._shown), memo)


class BoardTool(ToolBase):
    """A tool of the toolkit."""

    is_concurrency_safe = True
    is_state_injected = True

    def __init__(self, offered: OfferedTools, tool: OurTool) -> None:
        super().__init__()
        self.name, self.description, self.input_schema = tool.name, tool.description, _Schema(tool.parameters)
        self.is_read_only = tool.hints.read_only is True
        self._offered = offered

    async def check_permissions(self, tool_input: dict[str, Any], context: PermissionContext) -> PermissionDecision:
        """Ask the user about calls that need approval."""
        request = self._offered.question(self._offered.prepare(self.name, tool_input))
        if request is None:
            return PermissionDecision(behavior=PermissionBehavior.ALLOW, message="No approval is needed.")
        return PermissionDecision(behavior=PermissionBehavior.ASK, message=f"{request.reason}.")

    async def call(self, /, _agent_state: Any = None, **arguments: Any) -> ToolChunk:
        """Call it. A call that needs approval runs if the agent's state says that the user has confirmed it."""

        async def ask(request: ApprovalRequest) -> bool | None:
            return True if _agent_state is not None and _confirmed(_agent_state, self.name, arguments) else None

        result = await self._offered.call(self.name, arguments, ask=ask)
        return ToolChunk(content=parts(result, _text, _data), state=_state(result))


def to_agentscope(source: Toolkit | Session) -> list[BoardTool]:
    """The tools that a toolkit, session or view offers now, for AgentScope's own `Toolkit(tools)`."""
    offered = OfferedTools(source)
    return [BoardTool(offered, tool) for tool in offered.tools]


def _confirmed(state: Any, name: str, arguments: dict[str, Any]) -> bool:
    """Whether the user has allowed a call like this one that has not ended. Tools do not learn the id of their call."""
    calls = (block for message in state.context for block in message.content if isinstance(block, ToolCallBlock))
    allowed = (call.input for call in calls if call.name == name and call.state == ToolCallState.ALLOWED)
    return any(json.loads(text or "{}") == arguments for text in allowed)


def _state(result: ToolResult) -> ToolResultState:
    if not result.is_error:
        return ToolResultState.SUCCESS
    return ToolResultState.DENIED if result.status == "denied" else ToolResultState.ERROR


def _text(text: str) -> Any:
    return ScopeText(text=text)


def _data(block: ImageBlock) -> Any:
    kind = image_type(block)
    if block.data is None:
        return DataBlock(source=URLSource(url=block.url, media_type=kind))
    return DataBlock(source=Base64Source(data=block.data, media_type=kind))


def from_agentscope(tools: Any) -> ExternalTools:
    """The tools of a `ToolBase`, AgentScope's `Toolkit`, or a list of such. Raises `NotNativeError` for anything else.

    Of its toolkit they are the tools that are not in groups.
    """
    return external("agentscope", tools, {ToolBase: _external, ScopeToolkit: _inside})


def _inside(toolkit: ScopeToolkit) -> list[ToolBase]:
    found = finished(lambda: toolkit._get_available_tools([]))
    return [each.tool for each in found.values()]


def _external(tool: ToolBase) -> ExternalTool:
    async def call(call: ToolCall) -> Any:
        arguments: Any = given_arguments(call)
        decision = await tool.check_permissions(arguments, PermissionContext())
        if decision.behavior is PermissionBehavior.DENY:
            return denied(call, decision.message)
        if decision.behavior is PermissionBehavior.ASK:
            arguments = await approved(call, decision.message)
            if isinstance(arguments, ToolResult):
                return arguments
        response = await _answer(tool, arguments)
        blocks = [_block(block) for block in response.content]
        if response.state is not ToolResultState.SUCCESS:
            return failed(call, "".join(block.text for block in blocks))
        return blocks

    return ExternalTool(tool.name, tool.description, deepcopy(tool.input_schema), call, ("agentscope",))


async def _answer(tool: ToolBase, arguments: dict[str, Any]) -> ToolResponse:
    """The result of a tool, put together as AgentScope's toolkit does it."""
    made = await tool(**arguments)
    response = ToolResponse()
    if inspect.isasyncgen(made):
        async for chunk in made:
            response.append_chunk(chunk)
    else:
        response.append_chunk(made)
    return response


def _block(block: Any) -> Any:
    if isinstance(block, ScopeText):
        return TextBlock(block.text)
    source = block.source
    if not source.media_type.startswith("image/"):
        return TextBlock(f"[{source.media_type}]")
    if isinstance(source, Base64Source):
        return ImageBlock(data=source.data, media_type=source.media_type)
    return ImageBlock(url=str(source.url), media_type=source.media_type)
