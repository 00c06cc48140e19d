"""Remote tools: a tool of a server as a tool by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, final

from attrs import field, frozen

from pegboard import Emitter, ForeignSchema, RegistrationError, Status, Suspend, Tool, ToolCall, ToolResult
from pegboard_mcp._asking import Asking
from pegboard_mcp._incoming import WRAPPED, failure, result_of
from pegboard_mcp._reasons import UnreachableError, reason

__all__ = ["UNTRUSTED", "Link", "RemoteTool", "remote_tool"]

UNTRUSTED = "untrusted-hints"
"""The tag of tools whose hints are what a server says of itself."""


class Link(Protocol):
    """What a remote tool needs of its server."""

    name: str

    async def send(
        self, name: str, arguments: dict[str, Any], progress: Callable[..., Any] | None, asking: Asking
    ) -> Any:
        """Call a tool of the server once. Raises `UnreachableError` where nothing was sent."""

    def stderr(self) -> str:
        """The end of what the server wrote to stderr."""


@final
@frozen(eq=False)
class RemoteTool:
    """A tool of a server, with the name that the server gives it."""

    name: str
    description: str
    parameters: dict[str, Any] = field(repr=False)
    returns: dict[str, Any] | None = field(repr=False)
    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    wrapped: bool
    _link: Link = field(repr=False)
    _check: ForeignSchema | None = field(repr=False)
    tags: tuple[str, ...] = ("mcp", UNTRUSTED)

    async def call(self, call: ToolCall) -> ToolResult:
        """Send the call to the server. It is sent once: a call that may have run is never repeated."""
        loop = asyncio.get_running_loop()
        asking = Asking(self, call, loop)
        emitter = call.emitter
        progress = _progress(emitter, loop) if emitter.heard else None  # it costs the server work too
        try:
            answer = await self._link.send(self.name, dict(call.arguments), progress, asking)
        except UnreachableError as error:
            message = f"the MCP server {self._link.name!r} cannot be reached: {error}"
            return self._failed("unreachable", message)
        except asyncio.CancelledError:
            if asking.unanswered:
                raise Suspend(f"{self.name} asks: {asking.unanswered}") from None
            raise
        except Exception as error:  # noqa: BLE001 - whatever the protocol, the SDK or the server comes up with
            return self._broken(error)
        origin = {"server": self._link.name, "tool": self.name}
        return result_of(answer, self.name, self._check, self.wrapped, origin)

    def _broken(self, error: Exception) -> ToolResult:
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        code = getattr(error, "code", None)
        server = f"the MCP server {self._link.name!r}"
        if code == REQUEST_TIMEOUT:
            return self._failed("timeout", f"{server} did not answer in time", Status.TIMEOUT)
        if code == CONNECTION_CLOSED:
            said = f"the connection to {server} ended during the call; it may have run, and is not repeated"
            return self._failed("connection_lost", said)
        return self._failed("protocol", f"{server} answered with an error: {reason(error)}")

    def _failed(self, kind: str, message: str, status: Status = Status.ERROR) -> ToolResult:
        return failure(self.name, kind, message, status=status, server=self._link.name, stderr=self._link.stderr())


def remote_tool(described: Any, link: Link) -> tuple[RemoteTool | None, str]:
    """A tool as its server describes it, and what is wrong with the description; no tool if it cannot be one."""
    schema = {"type": "object", **described.input_schema}
    returns: dict[str, Any] | None = described.output_schema
    check, problem = None, ""
    try:
        Tool.external("tool", "", schema)
    except RegistrationError as error:
        return None, f"{described.name!r} is left out, its schema cannot be used: {error}"
    if returns is not None:
        try:
            check = ForeignSchema(returns, "its output schema")
        except RegistrationError as error:
            returns, problem = None, f"{described.name!r} is offered without its output schema: {error}"
    wrapped = returns is not None and returns.get(WRAPPED) is True
    hints = described.annotations
    read_only = getattr(hints, "read_only_hint", None)
    idempotent = getattr(hints, "idempotent_hint", None)
    made = RemoteTool(
        described.name,
        described.description or described.title or getattr(hints, "title", None) or "",
        schema,
        returns["properties"]["result"] if wrapped and returns and _is_wrapping(returns) else returns,
        read_only,
        getattr(hints, "destructive_hint", None),
        # What the protocol assumes where nothing is said: a repeated call may do the work twice.
        False if idempotent is None and read_only is not True else idempotent,
        getattr(hints, "open_world_hint", None),
        wrapped,
        link,
        check,
    )
    return made, problem


def _is_wrapping(returns: dict[str, Any]) -> bool:
    return set(returns.get("properties", ())) == {"result"} and "$defs" not in returns


def _progress(emitter: Emitter, loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    """Progress of the server as chunks, emitted on the loop of the caller so that no listener blocks the connection."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        text = message or (f"{progress:g}" if total is None else f"{progress:g}/{total:g}")
        loop.call_soon_threadsafe(emitter.emit, text)

    return report
