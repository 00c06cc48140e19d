"""Haystack: a toolset, which an agent asks for its tools at each step; tools are records with a function.

An agent confirms calls by hooks before the tools run: `toolset.confirmed_by(strategy)` is one that asks about the calls
that need approval. Progress goes to a streaming callback (`Agent(..., tool_streaming_callback_passthrough=True)`).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

from pegboard import ApprovalRequest, Chunk, ImageBlock, Session, TextBlock, ToolCall, Toolkit, ToolResult
from pegboard import Tool as OurTool
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import ExternalTool, ExternalTools, external, given_arguments
from pegboard_bridges._outwards import OfferedTools, image_type, progress_of, text_or_parts, words_of

with needs("haystack"):
    from haystack.components.agents.state import State
    from haystack.dataclasses import ImageContent, StreamingChunk, TextContent
    from haystack.hooks.human_in_the_loop import ConfirmationHook, ToolExecutionDecision
    from haystack.tools import Tool, Toolset

__all__ = ["BoardToolset", "from_haystack", "to_haystack"]

RAW = {"raw_result": True}
"""Parts go to the model as they are; so does text."""
CALLBACK = "streaming_callback"
"""The parameter by which Haystack hands a tool the agent's callback."""


def _signature(*names: str) -> inspect.Signature:
    """The signature that Haystack reads before each call, without annotations: it would resolve them each time."""
    named = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names]
    return inspect.Signature([*named, inspect.Parameter("arguments", inspect.Parameter.VAR_KEYWORD)])


TELLS, TELLS_NOT = _signature(CALLBACK), _signature()
"""A tool that has a parameter of that name gets the model's value for it, and reports no progress."""


class _BoardTool(Tool):
    """A tool of the toolkit, and the toolset that it belongs to."""

    toolset: Any = None


class BoardToolset(Toolset):
    """The tools that a toolkit offers when the agent asks."""

    def __init__(self, offered: OfferedTools) -> None:
        super().__init__([])
        self._offered = offered

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._offered.natives(self._tool))

    def get_selectable_tools(self) -> list[Tool]:
        """The tools that are offered now."""
        return list(self)

    def confirmed_by(self, strategy: Any) -> ConfirmationHook:
        """A hook for `Agent(hooks={"before_tool": [...]})`: the strategy decides about calls that need approval."""
        return _ConsentHook(self, strategy)

    def confirmation_of(self, strategy: Any) -> _Confirmation:
        """The object that asks a strategy about the calls of one step."""
        return _Confirmation(self._offered, strategy)

    def consent(self, tools: list[Tool], given: list[str]) -> None:
        """Let only the tools of this step run the approved calls, each of them once."""
        for index, tool in enumerate(tools if given else ()):
            if isinstance(tool, _BoardTool) and tool.toolset is self and self._offered.offers(tool.name):
                tools[index] = self._tool(self._offered.source[tool.name], given)

    def _tool(self, tool: OurTool, given: list[str] | None = None) -> Tool:
        offered = self._offered
        tells = CALLBACK not in tool.parameters.get("properties", {})

        def ask(request: ApprovalRequest) -> bool | None:
            try:
                (given or []).remove(_key(request.tool.name, dict(request.arguments)))
            except ValueError:
                return None
            return True

        def call(**arguments: Any) -> Any:
            callback = arguments.pop(CALLBACK, None) if tells else None
            tell = None if callback is None else _teller(callback)
            return _content(offered.call_sync(tool.name, arguments, ask=ask, on_chunk=tell))

        async def call_later(**arguments: Any) -> Any:
            callback = arguments.pop(CALLBACK, None) if tells else None
            tell = None if callback is None else _later_teller(callback)
            return _content(await offered.call(tool.name, arguments, ask=ask, on_chunk=tell))

        functions: tuple[Any, ...] = (call, call_later)
        for function in functions:
            function.__signature__ = TELLS if tells else TELLS_NOT
        found = _BoardTool(
            tool.name, tool.description, tool.parameters, call, outputs_to_string=RAW, async_function=call_later
        )
        found.toolset = self
        return found


class _ConsentHook(ConfirmationHook):
    """Asks a strategy about calls that need approval. Its approvals hold for one step: no other run finds them.

    The agent hands its tools of a step to its hooks, and runs them from the same list.
    """

    def __init__(self, toolset: BoardToolset, strategy: Any) -> None:
        super().__init__({"*": strategy})
        self._toolset, self._strategy = toolset, strategy

    def run(self, state: State) -> None:
        """Confirm the calls of a step."""
        confirmation = self._toolset.confirmation_of(self._strategy)
        ConfirmationHook({"*": confirmation}).run(state)
        self._toolset.consent(state.data.get("tools") or [], confirmation.given)

    async def run_async(self, state: State) -> None:
        """Confirm the calls of a step, in an agent that runs on an event loop."""
        confirmation = self._toolset.confirmation_of(self._strategy)
        await ConfirmationHook({"*": confirmation}).run_async(state)
        self._toolset.consent(state.data.get("tools") or [], confirmation.given)


class _Confirmation:
    """Asks another strategy about the calls that need approval, and records its approvals."""

    def __init__(self, offered: OfferedTools, strategy: Any) -> None:
        self._offered, self._strategy = offered, strategy
        self.given: list[str] = []

    def run(self, *, tool_name: str, tool_params: dict[str, Any], **more: Any) -> ToolExecutionDecision:
        """Decide."""
        if self._offered.question(self._offered.prepare(tool_name, tool_params)) is None:
            return ToolExecutionDecision(tool_name, True, more.get("tool_call_id"), final_tool_params=tool_params)
        return self._noted(self._strategy.run(tool_name=tool_name, tool_params=tool_params, **more))

    async def run_async(self, *, tool_name: str, tool_params: dict[str, Any], **more: Any) -> ToolExecutionDecision:
        """Decide, in an agent that runs on an event loop."""
        if self._offered.question(self._offered.prepare(tool_name, tool_params)) is None:
            return ToolExecutionDecision(tool_name, True, more.get("tool_call_id"), final_tool_params=tool_params)
        return self._noted(await self._strategy.run_async(tool_name=tool_name, tool_params=tool_params, **more))

    def _noted(self, decision: ToolExecutionDecision) -> ToolExecutionDecision:
        if decision.execute:
            self.given.append(_key(decision.tool_name, decision.final_tool_params or {}))
        return decision


def to_haystack(source: Toolkit | Session) -> BoardToolset:
    """A toolkit, session or view as a toolset, for `Agent(tools=...)`."""
    return BoardToolset(OfferedTools(source))


def _key(name: str, arguments: dict[str, Any]) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"


def _teller(callback: Callable[[Any], Any]) -> Callable[[Chunk], None]:
    return lambda chunk: callback(StreamingChunk("", meta=progress_of(chunk)))


def _later_teller(callback: Callable[[Any], Any]) -> Callable[[Chunk], Any]:
    async def tell(chunk: Chunk) -> None:
        outcome = callback(StreamingChunk("", meta=progress_of(chunk)))
        if inspect.isawaitable(outcome):
            await outcome

    return tell


def _content(result: ToolResult) -> Any:
    return text_or_parts(result, TextContent, _image)


def _image(block: ImageBlock) -> Any:
    return ImageContent(block.data, image_type(block)) if block.data else TextContent(words_of(block))


def from_haystack(tools: Any) -> ExternalTools:
    """The tools of a `Tool`, a `Toolset`, or a list of such. Raises `NotNativeError` for anything else."""
    return external("haystack", tools, {Tool: _external, Toolset: list})


def _external(tool: Tool) -> ExternalTool:
    async def call(call: ToolCall) -> Any:
        return _value(await tool.invoke_async(**given_arguments(call)))

    return ExternalTool(tool.name, tool.description, tool.parameters, call, ("haystack",))


def _value(value: Any) -> Any:
    if isinstance(value, TextContent):
        return TextBlock(value.text)
    if isinstance(value, ImageContent):
        return ImageBlock(data=value.base64_image, media_type=value.mime_type)
    return [_value(each) for each in value] if isinstance(value, list) else value
