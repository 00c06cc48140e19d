"""Subscribers: clients that are told when a resource has changed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, final

from pegboard_mcp._server.links import not_found
from pegboard_mcp._server.resources import Resources
from pegboard_mcp._wire.protocol import connection_of

__all__ = ["Subscribers"]

MOST: Final = 1_000
"""Resources that one client may subscribe to."""


@final
class Subscribers:
    """Those of the older protocol, by their connections; those of the newer one listen to the `bus`."""

    def __init__(self, bus: Any, resources: Resources) -> None:
        self._bus = bus
        self._resources = resources
        self._of: dict[int, tuple[Any, set[str]]] = {}

    async def subscribe(self, context: Any, parameters: Any) -> Any:
        """Tell this client from now on. Raises `MCPError` for an unknown resource, and for too many."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_PARAMS, EmptyResult

        connection, uri = connection_of(context), str(parameters.uri)
        if self._resources.find(uri) is None:  # the changes of others are not known here
            raise not_found(uri, context.protocol_version)
        if id(connection) not in self._of:
            connection.exit_stack.callback(self._of.pop, id(connection), None)
        uris = self._of.setdefault(id(connection), (connection, set()))[1]
        if len(uris) >= MOST and uri not in uris:
            raise MCPError(INVALID_PARAMS, f"a client may subscribe to {MOST} resources")
        uris.add(uri)
        return EmptyResult()

    async def unsubscribe(self, context: Any, parameters: Any) -> Any:
        """Tell this client no longer."""
        from mcp_types import EmptyResult

        _, uris = self._of.get(id(connection_of(context)), (None, set()))
        uris.discard(str(parameters.uri))
        return EmptyResult()

    async def tell(self, uri: str) -> None:
        """Tell all that have subscribed to a resource that it has changed."""
        from mcp.server.subscriptions import ResourceUpdated

        await self._bus.publish(ResourceUpdated(uri=uri))
        for connection, uris in list(self._of.values()):
            if uri in uris:
                with suppress(Exception):  # one that has disconnected needs no news
                    await connection.send_resource_updated(uri)
