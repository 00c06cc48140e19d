"""The library: what clients may read: resources of the program, pages of apps, and links that tools have given out."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, final

from pegboard import Session, Tool
from pegboard_mcp._auth.callers import Callers, Scopes
from pegboard_mcp._client.remote_tool import remote_of
from pegboard_mcp._server.functions import completed
from pegboard_mcp._server.links import Given, Links, not_found
from pegboard_mcp._server.prompts import Run
from pegboard_mcp._server.resources import Resources
from pegboard_mcp._server.selection import offered
from pegboard_mcp._wire.protocol import APP_PAGE

__all__ = ["Library", "missing_pages", "page_of"]


def page_of(tool: Tool) -> str | None:
    """The URI of the page that a tool names, of MCP Apps; also where older servers name it."""
    ui = tool.meta.get("ui")
    uri = ui.get("resourceUri") if isinstance(ui, dict) else tool.meta.get("ui/resourceUri")
    return uri if isinstance(uri, str) and uri.startswith("ui://") else None


def missing_pages(tools: Iterable[Tool], resources: Resources) -> dict[str, str]:
    """The pages that tools of the program name and no resource is, each with the first tool that names it."""
    missing: dict[str, str] = {}
    for tool in tools:
        uri = page_of(tool)
        if uri is not None and remote_of(tool) is None and resources.find(uri) is None:
            missing.setdefault(uri, tool.name)
    return missing


@final
class Library:
    """Answers requests about resources. A caller reads pages and links of tools that it may call."""

    def __init__(self, resources: Resources, links: Links, callers: Callers, scopes: Scopes) -> None:
        self.resources = resources
        self._links = links
        self._callers = callers
        self._scopes = scopes

    async def listed(self, context: Any, parameters: Any) -> Any:
        """The program's resources, and the links that were given out."""
        from mcp_types import ListResourcesResult, Resource

        own = [
            Resource(
                uri=each.uri,
                name=each.name,
                description=each.description,
                mime_type=each.shown_type,
                _meta=each.meta,
            )
            for each in self.resources
            if each.pattern is None
        ]
        members = ("uri", "name", "title", "description", "mime_type", "size")
        links = [{name: getattr(each.link, name) for name in members} for each in self._given(context).values()]
        known = {each.uri for each in own}
        return ListResourcesResult(resources=[*own, *(Resource(**each) for each in links if each["uri"] not in known)])

    async def templates(self, context: Any, parameters: Any) -> Any:
        """The program's templates."""
        from mcp_types import ListResourceTemplatesResult, ResourceTemplate

        found = [
            ResourceTemplate(
                uri_template=each.uri, name=each.name, description=each.description, mime_type=each.media_type
            )
            for each in self.resources
            if each.pattern is not None
        ]
        return ListResourceTemplatesResult(resource_templates=found)

    async def read(self, context: Any, parameters: Any, run: Run) -> Any:
        """The content of a resource. Raises `MCPError` for one that is unknown or cannot be read."""
        from mcp_types import ReadResourceResult

        uri = str(parameters.uri)
        if (content := await self.resources.read(uri, run)) is not None:
            return ReadResourceResult(contents=[content])
        given = self._page(context, uri) or self._given(context).get(uri)
        answer = None if given is None else await self._links.read(given, self._callers.caller(context))
        if answer is None:
            raise not_found(uri, context.protocol_version)
        return answer

    def completed(self, template: str, argument: Any) -> Any:
        """The values of a placeholder. Raises `MCPError` for an unknown template."""
        found = next((each for each in self.resources if each.uri == template and each.function is not None), None)
        if found is None or found.function is None:
            raise not_found(template, "")
        return completed(found.function, argument)

    def has_pages(self, session: Session) -> bool:
        """Whether there are pages of apps to be shown."""
        return any(each.uri.startswith("ui://") for each in self.resources) or any(map(page_of, offered(session)))

    def _page(self, context: Any, uri: str) -> Given | None:
        """A page of a remote server: that of the first tool that names it."""
        if not uri.startswith("ui://"):
            return None
        named = (tool for tool in self._callable(context) if page_of(tool) == uri)
        link = SimpleNamespace(uri=uri, mime_type=APP_PAGE)
        found = (Given(link, tool.name, remote_of(tool)) for tool in named)
        return next((each for each in found if each.remote is not None), None)

    def _given(self, context: Any) -> dict[str, Given]:
        """The links that the caller was given by tools that it may call still."""
        given = self._links.given(self._callers.lasting(context))
        may = {tool.name for tool in self._callable(context)} if given else ()
        return {uri: each for uri, each in given.items() if each.tool in may}

    def _callable(self, context: Any) -> list[Tool]:
        caller = self._callers.caller(context)
        session = self._callers.lasting(context) or self._callers.shown(caller)
        return [tool for tool in offered(session) if not self._scopes.missing(tool.name, caller)]
