"""Haystack: a toolset, which an agent asks for its tools at each step; tools are records with a function.

An agent confirms calls by hooks before the tools run: `toolset.confirmed_by(strategy)` is one that asks where the board
would. Progress goes to a streaming callback (`Agent(..., tool_streaming_callback_passthrough=True)`).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

from pegboard import ApprovalRequest, Chunk, ImageBlock, Session, TextBlock, ToolCall, Toolkit, ToolResult
from pegboard import Tool as OurTool
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import ForeignTool, ForeignTools, foreign, given_arguments
from pegboard_bridges._outwards import Board, image_type, progress_of, text_or_parts, words_of

with needs("haystack"):
    from haystack.dataclasses import ImageContent, StreamingChunk, TextContent
    from haystack.hooks.human_in_the_loop import ConfirmationHook, ToolExecutionDecision
    from haystack.tools import Tool, Toolset

__all__ = ["BoardToolset", "from_haystack", "to_haystack"]

RAW = {"raw_result": True}
"""Parts go to the model as they are; so does text."""


class BoardToolset(Toolset):
    """The tools of a board, as they are offered when the agent asks."""

    def __init__(self, board: Board) -> None:
        super().__init__([])
        self._board = board
        self._approved: list[str] = []

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._board.natives(self._tool))

    def get_selectable_tools(self) -> list[Tool]:
        """The tools that are offered now."""
        return list(self)

    def confirmed_by(self, strategy: Any) -> ConfirmationHook:
        """A hook for `Agent(hooks={"before_tool": [...]})`: the strategy decides where the board would ask."""
        return ConfirmationHook({"*": _Confirmation(self._board, self._approved, strategy)})

    def _tool(self, tool: OurTool) -> Tool:
        board, approved = self._board, self._approved

        def ask(request: ApprovalRequest) -> bool | None:
            key = _key(request.tool.name, dict(request.arguments))
            if key not in approved:
                return None
            approved.remove(key)  # for one call
            return True

        def call(streaming_callback: Any = None, **arguments: Any) -> Any:
            tell = None if streaming_callback is None else _teller(streaming_callback)
            return _content(board.call_sync(tool.name, arguments, ask=ask, on_chunk=tell))

        async def call_later(streaming_callback: Any = None, **arguments: Any) -> Any:
            tell = None if streaming_callback is None else _later_teller(streaming_callback)
            return _content(await board.call(tool.name, arguments, ask=ask, on_chunk=tell))

        return Tool(
            tool.name, tool.description, tool.parameters, call, outputs_to_string=RAW, async_function=call_later
        )


class _Confirmation:
    """Asks another strategy about the calls for which the board asks, and remembers its consent."""

    def __init__(self, board: Board, approved: list[str], strategy: Any) -> None:
        self._board, self._approved, self._strategy = board, approved, strategy

    def run(self, *, tool_name: str, tool_params: dict[str, Any], **more: Any) -> ToolExecutionDecision:
        """Decide."""
        if self._board.question(self._board.prepare(tool_name, tool_params)) is None:
            return ToolExecutionDecision(tool_name, True, more.get("tool_call_id"), final_tool_params=tool_params)
        return self._noted(self._strategy.run(tool_name=tool_name, tool_params=tool_params, **more))

    async def run_async(self, *, tool_name: str, tool_params: dict[str, Any], **more: Any) -> ToolExecutionDecision:
        """Decide, in an agent that runs on an event loop."""
        if self._board.question(self._board.prepare(tool_name, tool_params)) is None:
            return ToolExecutionDecision(tool_name, True, more.get("tool_call_id"), final_tool_params=tool_params)
        return self._noted(await self._strategy.run_async(tool_name=tool_name, tool_params=tool_params, **more))

    def _noted(self, decision: ToolExecutionDecision) -> ToolExecutionDecision:
        if decision.execute:
            self._approved.append(_key(decision.tool_name, decision.final_tool_params or {}))
        return decision


def to_haystack(source: Toolkit | Session) -> BoardToolset:
    """A toolkit, session or view as a toolset, for `Agent(tools=...)`."""
    return BoardToolset(Board(source))


def _key(name: str, arguments: dict[str, Any]) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"


def _teller(callback: Callable[[Any], Any]) -> Callable[[Chunk], None]:
    return lambda chunk: callback(StreamingChunk("", meta=progress_of(chunk)))


def _later_teller(callback: Callable[[Any], Any]) -> Callable[[Chunk], Any]:
    async def tell(chunk: Chunk) -> None:
        told = callback(StreamingChunk("", meta=progress_of(chunk)))
        if inspect.isawaitable(told):
            await told

    return tell


def _content(result: ToolResult) -> Any:
    return text_or_parts(result, TextContent, _image)


def _image(block: ImageBlock) -> Any:
    return ImageContent(block.data, image_type(block)) if block.data else TextContent(words_of(block))


def from_haystack(tools: Any) -> ForeignTools:
    """The tools of a `Tool`, a `Toolset`, or a list of such. Raises `NotNativeError` for anything else."""
    return foreign("haystack", tools, {Tool: _foreign, Toolset: list})


def _foreign(tool: Tool) -> ForeignTool:
    async def call(call: ToolCall) -> Any:
        return _value(await tool.invoke_async(**given_arguments(call)))

    return ForeignTool(tool.name, tool.description, tool.parameters, call, ("haystack",))


def _value(value: Any) -> Any:
    if isinstance(value, TextContent):
        return TextBlock(value.text)
    if isinstance(value, ImageContent):
        return ImageBlock(data=value.base64_image, media_type=value.mime_type)
    return [_value(each) for each in value] if isinstance(value, list) else value
