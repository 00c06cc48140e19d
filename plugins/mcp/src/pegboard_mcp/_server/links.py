"""Links: what tools gave out as resource links, which their client may read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Final, TypeAlias, final
from weakref import WeakKeyDictionary

from attrs import field, frozen

from pegboard import Session
from pegboard_mcp._auth.callers import LIFETIME, Caller
from pegboard_mcp._auth.guard import answered
from pegboard_mcp._client.remote_tool import RemoteTool
from pegboard_mcp._server.resources import resource_contents
from pegboard_mcp._wire.protocol import is_newer
from pegboard_mcp._wire.reasons import reason

__all__ = ["Given", "Links", "ReadLink", "not_found"]

MOST: Final = 1_000
"""Links that are known of a session; the oldest are forgotten first."""

Content: TypeAlias = "str | bytes | None"
ReadLink: TypeAlias = Callable[[str, Caller], "Content | Awaitable[Content]"]


@final
@frozen
class Given:
    """A link that a tool gave out, and whose it is: a remote server's, or the program's own."""

    link: Any
    tool: str
    remote: RemoteTool | None
    since: float = field(factory=monotonic)


@final
class Links:
    """The links that were given out in each session, and forgotten with it.

    Over HTTP the newer protocol has no sessions: callers that are not identified share those of the last half hour.
    They may call the same tools.
    """

    def __init__(self, read: ReadLink | None) -> None:
        self._read = read
        self._of: WeakKeyDictionary[Session, OrderedDict[str, Given]] = WeakKeyDictionary()
        self._of_unidentified: OrderedDict[str, Given] = OrderedDict()

    def give(self, session: Session | None, tool: str, remote: RemoteTool | None, answer: Any) -> None:
        """Keep the readable links of an answer."""
        links = [each for each in answer.content if each.type == "resource_link"]
        if not links or (remote is None and self._read is None):
            return
        known = self._of_unidentified if session is None else self._of.setdefault(session, OrderedDict())
        for link in links:
            known[str(link.uri)] = Given(link, tool, remote)
            known.move_to_end(str(link.uri))
        while len(known) > MOST:
            known.popitem(last=False)

    def given(self, session: Session | None) -> OrderedDict[str, Given]:
        """The links that a session was given, by URI."""
        if session is not None:
            return self._of.get(session) or OrderedDict()
        known = self._of_unidentified
        while known and next(iter(known.values())).since < monotonic() - LIFETIME:
            known.popitem(last=False)
        return known

    async def read(self, given: Given, caller: Caller) -> Any:
        """The content of a link, as the answer to the client. Raises `MCPError` if it cannot be read."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import INTERNAL_ERROR, ReadResourceResult

        uri = str(given.link.uri)
        try:
            if given.remote is not None:
                return ReadResourceResult(contents=(await given.remote.read(uri)).contents)
            content = await answered(self._read, uri, caller) if self._read is not None else None
        except Exception as error:
            why = reason(error) if given.remote is None else given.remote.masked(reason(error))
            raise MCPError(code=INTERNAL_ERROR, message=f"{uri} cannot be read: {why}") from error
        if content is None:
            return None
        return ReadResourceResult(contents=[resource_contents(uri, given.link.mime_type, content)])


def not_found(uri: str, version: str) -> Exception:
    """The error for an unknown link."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS

    code = INVALID_PARAMS if is_newer(version) else -32002
    message = f"no resource {uri!r}: there are those listed, pages that tools name, and links that tools have given out"
    return MCPError(code=code, message=message, data={"uri": uri})
