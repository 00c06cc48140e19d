"""Resources and prompts of a server, for programs, and the tools by which models read resources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, final

from attrs import field, frozen

from pegboard import Block, Redaction, ToolCall, ToolError
from pegboard_mcp._client.incoming import block_of_resource
from pegboard_mcp._wire.reasons import reason

__all__ = ["Reader", "ResourceTool", "all_of", "contents", "resource_tools"]

MOST: Final = 1_000


class Reader(Protocol):
    """A server whose resources are read."""

    name: str

    @property
    def redact(self) -> Redaction:
        """Masks in texts the secrets by which the server is reached."""

    async def list_resources(self) -> list[Any]:
        """All resources."""

    async def read_resource(self, uri: str) -> tuple[Block, ...]:
        """The content of a resource."""


async def all_of(listing: Callable[..., Awaitable[Any]], member: str) -> list[Any]:
    """All entries of a list, from all its pages; an endless list is cut."""
    found: list[Any] = []
    cursor: str | None = None
    cursors: set[str] = set()
    while len(found) < MOST:
        page = await listing(cursor=cursor, cache_mode="bypass")
        found += getattr(page, member)
        cursor = page.next_cursor
        if not cursor or cursor in cursors:
            break
        cursors.add(cursor)
    return found[:MOST]


def contents(answer: Any) -> tuple[Block, ...]:
    """The content of a resource, as blocks."""
    return tuple(map(block_of_resource, answer.contents))


@final
@frozen(eq=False)
class ResourceTool:
    """A tool about a server's resources; those are text and files of the server's, which change nothing."""

    name: str
    description: str
    parameters: dict[str, Any] = field(repr=False)
    _call: Callable[[Mapping[str, Any]], Awaitable[Any]] = field(repr=False)
    _server: Reader = field(repr=False)
    read_only: bool = True
    tags: tuple[str, ...] = ("mcp", "untrusted-hints")

    async def call(self, call: ToolCall) -> Any:
        """What the server answers. Raises `ToolError` in its words."""
        try:
            return await self._call(call.arguments)
        except Exception as error:  # the protocol, the SDK or the server may raise anything
            raise ToolError(f"the server refused: {self._server.redact(reason(error))}") from error


def resource_tools(server: Reader) -> list[ResourceTool]:
    """`list_resources` and `read_resource`."""

    async def listed(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        members = {"uri", "name", "title", "description", "mime_type", "size"}
        return [
            each.model_dump(mode="json", by_alias=True, exclude_none=True, include=members)
            for each in await server.list_resources()
        ]

    async def read(arguments: Mapping[str, Any]) -> list[Block]:
        return list(await server.read_resource(arguments["uri"]))

    nothing = {"type": "object", "properties": {}, "additionalProperties": False}
    uri = {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]}
    return [
        ResourceTool(
            "list_resources", f"List the resources of {server.name}, with their URIs.", nothing, listed, server
        ),
        ResourceTool("read_resource", f"Read a resource of {server.name} by its URI.", uri, read, server),
    ]
