"""Remote tools: the tools of a server as tools of a toolkit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, final

from attrs import field, frozen

from pegboard import (
    Emitter,
    ForeignSchema,
    Judge,
    Redaction,
    RegistrationError,
    Status,
    Suspend,
    Tool,
    ToolCall,
    ToolResult,
)
from pegboard_mcp._client.asking import Asking
from pegboard_mcp._client.incoming import as_json, failure, redacted, result_of
from pegboard_mcp._wire.protocol import WRAPPED
from pegboard_mcp._wire.reasons import NO_ACCESS, TaskEndedError, UnreachableError, reason
from pegboard_schemas import judged

__all__ = ["UNTRUSTED", "Link", "RemoteTool", "counted", "remote_of", "remote_tool"]

UNTRUSTED = "untrusted-hints"
"""The tag of tools whose hints come from the server itself."""


class Link(Protocol):
    """What a remote tool needs of its server."""

    name: str

    async def send(
        self, name: str, arguments: dict[str, Any], progress: Callable[..., Any] | None, asking: Asking
    ) -> Any:
        """Call a tool of the server once. Raises `UnreachableError` where nothing was sent."""

    async def fetch(self, uri: str) -> Any:
        """A resource of the server, as the SDK gives it."""

    @property
    def redact(self) -> Redaction:
        """Masks in texts the secrets by which the server is reached."""

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
    judge: Judge = field(repr=False)
    extra: dict[str, Any] = field(factory=dict, repr=False)
    """Further data of the server: `title`, `icons` and the title among its annotations."""
    meta: dict[str, Any] = field(factory=dict, repr=False)
    """`_meta` of the server's description."""
    tags: tuple[str, ...] = ("mcp", UNTRUSTED)

    async def call(self, call: ToolCall) -> ToolResult:
        """Send the call to the server. It is sent once: a call that may have run is never repeated."""
        loop = asyncio.get_running_loop()
        asking = Asking(self, call, loop, lambda: self._link.redact)
        emitter = call.emitter
        progress = _progress(emitter, loop, self._link) if emitter.heard else None  # it costs the server work too
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
            return asking.explained(self._broken(error))
        origin = {"server": self._link.name, "tool": self.name}
        result = result_of(answer, self.name, self._check, self.wrapped, origin)
        return asking.explained(redacted(result, self._link.redact) if result.is_error else result)

    async def read(self, uri: str) -> Any:
        """A resource that the tool has linked to, as the SDK gives it. Raises what its client does."""
        return await self._link.fetch(uri)

    def masked(self, text: str) -> str:
        """A text with the secrets masked by which the server is reached."""
        return self._link.redact(text)

    def _broken(self, error: Exception) -> ToolResult:
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        code = getattr(error, "code", None)
        server = f"the MCP server {self._link.name!r}"
        if isinstance(error, TaskEndedError):
            return self._failed(error.kind, f"{server} gave no result: {error}")
        if code == REQUEST_TIMEOUT:
            return self._failed("timeout", f"{server} did not answer in time", Status.TIMEOUT)
        if code == CONNECTION_CLOSED:
            message = f"the connection to {server} ended during the call; it may have run, and is not repeated"
            return self._failed("connection_lost", message)
        if code == NO_ACCESS:
            return self._failed("no_access", f"there is no access to {server}: {error}")
        return self._failed("protocol", f"{server} answered with an error: {reason(error)}")

    def _failed(self, kind: str, message: str, status: Status = Status.ERROR) -> ToolResult:
        details = {"server": self._link.name, "stderr": self._link.stderr()}
        return redacted(failure(self.name, kind, message, status=status, **details), self._link.redact)


def remote_tool(described: Any, link: Link) -> tuple[RemoteTool | None, str]:
    """A tool as its server describes it, and what is wrong with the description; no tool if it cannot be one."""
    schema = {"type": "object", **described.input_schema}
    if schema["type"] != "object":
        return None, f"{described.name!r} is left out: its parameters are no object but {schema['type']!r}"
    try:
        parameters = judged(schema, "its parameters")
    except RegistrationError as error:
        return None, f"{described.name!r} is left out, its schema cannot be used: {error}"
    problems = [f"{described.name!r} is offered, but only the server checks {part}" for part in parameters.unchecked]
    returns, check = _answers(described, problems)
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
        # The protocol's default without a hint: a repeated call may do the work twice.
        False if idempotent is None and read_only is not True else idempotent,
        getattr(hints, "open_world_hint", None),
        wrapped,
        link,
        check,
        parameters.judge,
        _besides(described),
        as_json(dict(described.meta or {}))[0],
    )
    return made, "; ".join(problems)


def _answers(described: Any, problems: list[str]) -> tuple[dict[str, Any] | None, Any]:
    """The output schema, and what checks answers by it; what is wrong with it is added to `problems`."""
    if described.output_schema is None:
        return None, None
    try:
        answers = judged(described.output_schema, "its output schema")
    except RegistrationError as error:
        problems.append(f"{described.name!r} is offered without its output schema: {error}")
        return None, None
    problems += [
        f"{described.name!r} is offered, but part of its answers is not checked: {part}" for part in answers.unchecked
    ]
    return described.output_schema, answers.check


def _besides(described: Any) -> dict[str, Any]:
    if not (described.title or described.icons or getattr(described.annotations, "title", None)):
        return {}  # nearly always
    dumped = described.model_dump(mode="json", by_alias=True, exclude_none=True)
    extra = {key: dumped[key] for key in ("title", "icons") if key in dumped}
    title = dumped.get("annotations", {}).get("title")
    return extra if title is None else {**extra, "annotations": {"title": title}}


def remote_of(tool: Tool) -> RemoteTool | None:
    """The remote tool that is registered as this one; None for any other."""
    source = getattr(tool.function, "__self__", None)
    return source if isinstance(source, RemoteTool) else None


def _is_wrapping(returns: dict[str, Any]) -> bool:
    return set(returns.get("properties", ())) == {"result"} and "$defs" not in returns


def counted(progress: float, total: float | None) -> str:
    """The text of progress that a server reports by numbers alone."""
    return f"{progress:g}" if total is None else f"{progress:g}/{total:g}"


def _progress(emitter: Emitter, loop: asyncio.AbstractEventLoop, link: Link) -> Callable[..., Any]:
    """Progress of the server as chunks, emitted on the loop of the caller so that no listener blocks the connection."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        text = message or counted(progress, total)
        loop.call_soon_threadsafe(emitter.progress, progress, total, link.redact(text))

    return report
