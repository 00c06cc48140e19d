"""OpenAI Agents SDK: tools are `FunctionTool`s, which get the model's arguments as text and give text or parts.

Before each request the SDK asks `is_enabled`: the tools of a session come and go with its groups. Approval is the SDK's
own: a run stops with `interruptions`, and goes on from `state.approve(item)`. The SDK has no channel for progress.
"""

from __future__ import annotations

from typing import Any

from pegboard import ApprovalRequest, ImageBlock, Permission, Session, TextBlock, Tool, ToolCall, Toolkit, ToolResult
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import ExternalTool, ExternalTools, approved, external, given_arguments
from pegboard_bridges._outwards import OfferedTools, data_url, text_or_parts

with needs("openai_agents"):
    from agents import FunctionTool, ToolOutputImage, ToolOutputText, UserError
    from agents.strict_schema import ensure_strict_json_schema
    from agents.tool_context import ToolContext

__all__ = ["from_openai_agents", "to_openai_agents"]


def to_openai_agents(source: Toolkit | Session, *, strict: bool = False) -> list[FunctionTool]:
    """The tools of a toolkit, session or view for `Agent(tools=...)`; each is enabled while it is offered.

    With `strict` the provider holds the model to the schemas that its strict mode can express. There every parameter is
    required, those with a default too.
    """
    offered = OfferedTools(source)
    # The SDK keeps the order of this list: what is offered now comes first, so that what is enabled later follows.
    tools = {tool.name: tool for tool in (*offered.tools, *source.all_tools)}
    return [_tool(offered, tool, strict) for tool in tools.values()]


def _tool(offered: OfferedTools, tool: Tool, strict: bool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], text: str) -> Any:
        def ask(request: ApprovalRequest) -> bool | None:
            return True if context.is_tool_approved(tool.name, context.tool_call_id) else None

        result = await offered.call(tool.name, text, context.tool_call_id, ask=ask)
        return text_or_parts(result, _text, _image)

    async def needs_approval(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        return offered.question(offered.prepare(tool.name, arguments, call_id)) is not None

    def enabled(context: Any, agent: Any) -> bool:
        if not offered.offers(tool.name):
            return False
        # If a tool may need approval, the SDK asks even for arguments that are not JSON. For all other tools Pegboard
        # reports those.
        asks = tool.options.requires_approval or offered.source.permissions.get(tool.name) is Permission.PROMPT
        made.needs_approval = needs_approval if asks else False
        return True

    schema = _strict(tool) if strict else None
    made = FunctionTool(
        tool.name,
        tool.description,
        dict(tool.parameters) if schema is None else schema,
        invoke,
        strict_json_schema=schema is not None,
        is_enabled=enabled,
        needs_approval=needs_approval,
    )
    return made


def _strict(tool: Tool) -> dict[str, Any] | None:
    """The schema in the form of strict mode; None if strict mode cannot express it."""
    try:
        return dict(ensure_strict_json_schema(tool.json_schema(refs="defs")))
    except UserError:
        return None


def _text(text: str) -> Any:
    return ToolOutputText(text=text)


def _image(block: ImageBlock) -> Any:
    return ToolOutputImage(image_url=data_url(block))


def from_openai_agents(tools: Any) -> ExternalTools:
    """The tools of a `FunctionTool` or a list of such; hosted tools run at the provider, and cannot be registered.

    Raises `NotNativeError` for anything else.
    """
    return external("openai_agents", tools, {FunctionTool: _external})


def _external(tool: FunctionTool) -> ExternalTool:
    async def call(call: ToolCall) -> Any:
        import json

        def context(text: str) -> ToolContext[Any]:
            return ToolContext(None, tool_name=tool.name, tool_call_id=call.id, tool_arguments=text)

        arguments: Any = given_arguments(call)
        text = json.dumps(arguments, ensure_ascii=False)
        needed = tool.needs_approval
        if callable(needed):
            needed = await needed(context(text), arguments, call.id)
        if needed:
            arguments = await approved(call, f"{tool.name} needs approval")
            if isinstance(arguments, ToolResult):
                return arguments
            text = json.dumps(arguments, ensure_ascii=False)
        return _value(await tool.on_invoke_tool(context(text), text))

    return ExternalTool(tool.name, tool.description, tool.params_json_schema, call, ("openai_agents",))


def _value(output: Any) -> Any:
    if isinstance(output, ToolOutputText):
        return TextBlock(output.text)
    if isinstance(output, ToolOutputImage):
        return ImageBlock(url=output.image_url) if output.image_url else TextBlock(f"[image: {output.file_id}]")
    return [_value(each) for each in output] if isinstance(output, list) else output
