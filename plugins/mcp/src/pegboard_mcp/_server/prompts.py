"""Prompts that a user at the client asks for: functions of the program, and those of servers behind this one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias, final

from pegboard import Block, Status, ToolResult
from pegboard_mcp._client.server import McpServer
from pegboard_mcp._server.functions import Functions, completed, message_of
from pegboard_mcp._server.outgoing import content_of
from pegboard_mcp._wire.reasons import reason

__all__ = ["Prompts", "Run"]

Run: TypeAlias = Callable[[Functions, str, Mapping[str, Any]], Awaitable[ToolResult]]
"""Calls a function by its name, for the request that is answered."""


@final
class Prompts:
    """The prompts by name. Each function returns text, content, messages, or a list of these.

    A message is a mapping with `role` and `content`, or one of the SDK's. The prompts of a server have its name before
    theirs, `server__prompt`. Raises ValueError for what is no list, and `RegistrationError` for a function that cannot
    be read.
    """

    def __init__(self, prompts: Iterable[Callable[..., Any] | McpServer]) -> None:
        if callable(prompts):
            raise ValueError(f"prompts are a list of functions, such as [review], not {prompts!r}")
        self.functions = Functions()
        given = list(prompts)
        self._servers = [each for each in given if isinstance(each, McpServer)]
        functions = [each for each in given if not isinstance(each, McpServer)]
        self._tools = {tool.name: tool for tool in map(self.functions.add, functions)}

    def __len__(self) -> int:
        return len(self._tools) + len(self._servers)

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
        remote = await asyncio.gather(*map(_prompts_of, self._servers))
        return ListPromptsResult(prompts=sum(remote, prompts))

    async def get(self, parameters: Any, run: Run) -> Any:
        """The messages of a prompt. Raises `MCPError` for an unknown one, and for arguments that do not fit."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, GetPromptResult

        tool = self._tools.get(parameters.name)
        if tool is None and (server := self._server_of(parameters.name)) is not None:
            return await _prompt_of(server, parameters)
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

    def _server_of(self, name: str) -> McpServer | None:
        return next((each for each in self._servers if name.startswith(f"{each.name}__")), None)

    def completed(self, name: str, argument: Any) -> Any:
        """The values of an argument; none for one of another server. Raises `MCPError` for an unknown prompt."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_PARAMS, CompleteResult, Completion

        if name not in self._tools:
            if self._server_of(name) is not None:
                return CompleteResult(completion=Completion(values=[]))
            raise MCPError(INVALID_PARAMS, f"there is no prompt {name!r}")
        return completed(self._tools[name], argument)


async def _prompts_of(server: McpServer) -> list[Any]:
    """The prompts of a server behind this one; none of one that has none or is unavailable."""
    with suppress(Exception):  # the protocol, the SDK or the server may raise anything
        return [each.model_copy(update={"name": f"{server.name}__{each.name}"}) for each in await server.list_prompts()]
    return []


async def _prompt_of(server: McpServer, parameters: Any) -> Any:
    """The messages of its prompt. Raises `MCPError` with its words."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import INTERNAL_ERROR

    name = parameters.name.removeprefix(f"{server.name}__")
    try:
        return await server.get_prompt(name, parameters.arguments)
    except Exception as error:  # the same
        code, why = (error.code, str(error)) if isinstance(error, MCPError) else (INTERNAL_ERROR, reason(error))
        raise MCPError(code, f"the prompt {parameters.name!r}: {server.redact(why)}") from error


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
