"""The tools `web_fetch` and `web_search`."""

from collections.abc import Iterator
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Final

import attrs

from pegboard import Note, NotOffered, Param, Session, ToolCall, ToolError, tool
from pegboard_web._pages import Kept, Pages
from pegboard_web._records import Content, Hit, Page, Recency
from pegboard_web._settings import Settings

if TYPE_CHECKING:  # all of it is loaded by the first call, or by the settings that need it
    from pegboard_net import Guard, WebUrl
    from pegboard_web._robots import Robots
    from pegboard_web._search import Service

__all__ = ["WebTools", "offers"]

MOST_CHARS: Final = 200_000


class WebTools:
    """Tools that fetch pages and search: `toolkit.register(*WebTools(robots=False).tools)`.

    The options are those of the section `web` of the settings. Raises ValueError for a value that is none,
    `RefusedUrlError` for an entry of `allow` or `block` that is no host, `SettingsError` for a search service whose
    address or key is missing.
    """

    def __init__(self, **options: Any) -> None:
        settings = Settings(**options)
        self._settings = settings
        if settings.allow or settings.block:
            self._guard, self._blocked  # noqa: B018 - they raise for an entry that is no host
        self._headers = {"User-Agent": settings.user_agent, "Accept-Encoding": "gzip, deflate"}
        self._pages = Pages()
        self._service = None if settings.search is None else _service(settings)

    @cached_property
    def _guard(self) -> "Guard":
        from pegboard_net import Guard

        settings = self._settings
        return Guard(settings.allow, max_bytes=settings.max_bytes, max_seconds=settings.timeout)

    @cached_property
    def _blocked(self) -> tuple[str, ...]:
        return tuple(map(_host, self._settings.block))

    @cached_property
    def _robots(self) -> "Robots":
        from pegboard_web._robots import Robots

        return Robots(self._guard, self._settings.user_agent)

    @property
    def tools(self) -> list[Any]:
        """The tools that can be offered."""
        return [self.web_fetch, *([self.web_search] if self._service is not None else [])]

    @tool(read_only=True, open_world=True)
    async def web_fetch(
        self,
        session: Session,
        call: ToolCall,
        url: str,
        start: Annotated[int, Param(ge=0)] = 0,
        max_chars: Annotated[int, Param(ge=1, le=MOST_CHARS)] = 20_000,
        content: Content = "page",
    ) -> Page:
        """Fetch a web page as Markdown, or a PDF as text. A long page comes in parts: go on with start=next_start.

        Args:
            url: An http(s) URL.
            start: The character to begin at.
            max_chars: Characters of this part at most.
            content: "page": its main part; "article": the article alone, of news and blogs; "raw": as it was sent.
        """
        kept = self._pages.find(session, url, content) if start else None
        if kept is None:
            kept = await self._fetched(call, url, content)
            self._pages.keep(session, url, content, kept)
        try:
            return kept.part(start, max_chars)
        except ValueError as error:
            raise ToolError(str(error)) from None

    @tool(read_only=True, open_world=True)
    async def web_search(
        self,
        query: Annotated[str, Param(min_length=1)],
        max_results: Annotated[int, Param(ge=1, le=20)] = 5,
        recency: Recency | None = None,
        domains: list[str] | None = None,
    ) -> list[Hit]:
        """Search the web.

        Args:
            query: What to search for.
            max_results: Hits at most.
            recency: How old pages may be.
            domains: Search these only, with what is below them, such as example.com.
        """
        if self._service is None:
            raise ToolError("there is no search service in this program")
        from pegboard_web._search import Query

        return await self._service.search(Query(query, max_results, recency, tuple(map(_domain, domains or ()))))

    async def _fetched(self, call: ToolCall, url: str, content: Content) -> Kept:
        from pegboard_web._reading import text_of

        found = await self._guard.fetch(url, headers=self._headers, any_status=True, judge=self._judge)
        read = await text_of(found, content, self._settings.timeout)
        if read.note:
            call.notes.append(Note(read.note, kind="charset"))
        return Kept(found.url, read.title, read.text, found.media_type, found.status)

    async def _judge(self, at: "WebUrl") -> None:
        """Raises `RefusedUrlError` for a URL that the program has blocked, or its server asks not to fetch."""
        await self._refuse_blocked(at)
        if self._settings.robots:
            await self._robots.check(at, self._refuse_blocked)

    async def _refuse_blocked(self, at: "WebUrl") -> None:
        from pegboard_net import RefusedUrlError, redacted

        if any(at.host == host or at.host.endswith(f".{host}") for host in self._blocked):
            raise RefusedUrlError(f"{redacted(str(at.url))} is refused: this program fetches nothing from {at.host}.")


def _service(settings: Settings) -> "Service":
    from pegboard_web._search import Service

    own: Any = {"max_bytes": settings.max_bytes, "timeout": settings.timeout, "user_agent": settings.user_agent}
    return Service(settings.search or "", settings.search_url, settings.search_key, **own)


def _host(entry: str) -> str:
    """A host of the settings, as those of URLs are compared with it."""
    from pegboard_net import read_url

    return read_url(f"http://{entry.strip().rstrip('.')}").host


def _domain(entry: str) -> str:
    return entry.strip().lower().removeprefix("https://").removeprefix("http://").strip("/.")


def offers(settings: Settings) -> Iterator[Any]:
    """The tools of the settings, and what they lack."""
    yield from WebTools(**attrs.asdict(settings, recurse=False)).tools
    if settings.search is None:
        services = "searxng, brave or tavily"
        yield NotOffered(["web_search"], f"needs a search service: set web.search to {services}")
    if find_spec("pegboard_documents") is None:
        yield NotOffered(["web_fetch of PDF"], "needs pegboard-documents", 'pip install "pegboard-web[pdf]"')
