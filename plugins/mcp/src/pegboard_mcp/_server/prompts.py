"""Prompts: functions of the program whose messages a user at the client asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias, final

from pegboard import Block, Status, ToolResult
from pegboard_mcp._server.functions import Functions, completed, message_of
from pegboard_mcp._server.outgoing import content_of

__all__ = ["Prompts", "Run"]

Run: TypeAlias = Callable[[Functions, str, Mapping[str, Any]], Awaitable[ToolResult]]
"""Calls a function by its name, for the request that is answered."""


@final
class Prompts:
    """The prompts by name. Each function returns text, content, messages, or a list of these.

    A message is a mapping with `role` and `content`, or one of the SDK's. Raises ValueError for what is no list, and
    `RegistrationError` for a function that cannot be read.
    """

    def __init__(self, functions: Iterable[Callable[..., Any]]) -> None:
        if callable(functions):
            raise ValueError(f"prompts are a list of functions, such as [review], not {functions!r}")
        self.functions = Functions()
        self._tools = {tool.name: tool for tool in map(self.functions.add, functions)}

    def __len__(self) -> int:
        return len(self._tools)

    async def listed(self, context: Any, parameters: Any) -> Any:
        """All of them, as the protocol has them."""
        from mcp_types import ListPromptsResult, Prompt, PromptArgument

        def arguments(tool: Any) -> list[PromptArgument]:
            shown = [each for each in tool.params if each.source == "model"]
            return [PromptArgument(name=p.name, description=p.description or None, required=p.required) for p in shown]

        prompts = [
            Prompt(name=tool.name, description=tool.description or None, arguments=arguments(tool))
            for tool in self._tools.values()
        ]
        return ListPromptsResult(prompts=prompts)

    async def get(self, parameters: Any, run: Run) -> Any:
        """The messages of a prompt. Raises `MCPError` for an unknown one, and for arguments that do not fit."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, GetPromptResult

        tool = self._tools.get(parameters.name)
        if tool is None:
            known = ", ".join(self._tools)
            raise MCPError(INVALID_PARAMS, f"there is no prompt {parameters.name!r}; there are: {known}")
        result = await run(self.functions, tool.name, parameters.arguments or {})
        if result.status is not Status.SUCCESS:
            code = INVALID_PARAMS if result.status is Status.INVALID else INTERNAL_ERROR
            raise MCPError(code, f"the prompt {tool.name!r}: {message_of(result)}")
        if isinstance(result.value, GetPromptResult):
            return result.value
        returned = result.text if result.value is None else result.value
        several = returned if isinstance(returned, list | tuple) else [returned]
        return GetPromptResult(description=tool.description or None, messages=list(map(_message, several)))

    def completed(self, name: str, argument: Any) -> Any:
        """The values of an argument. Raises `MCPError` for an unknown prompt."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_PARAMS

        if name not in self._tools:
            raise MCPError(INVALID_PARAMS, f"there is no prompt {name!r}")
        return completed(self._tools[name], argument)


def _message(given: Any) -> Any:
    """A message of the protocol. Raises `MCPError` for what is none."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import INTERNAL_ERROR, PromptMessage, TextContent

    if isinstance(given, PromptMessage):
        return given
    role: Any = "user"
    content = given
    if isinstance(given, Mapping):
        role, content = given.get("role", "user"), given.get("content")
    if isinstance(content, str):
        content = TextContent(text=content)
    elif isinstance(content, Block):
        content = content_of(content)
    try:
        return PromptMessage(role=role, content=content)
    except ValueError as error:
        what = f"a {type(content).__name__} of the role {role!r}"
        raise MCPError(INTERNAL_ERROR, f"the prompt returned {what}: it returns text, blocks or messages") from error
