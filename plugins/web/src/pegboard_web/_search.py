"""Search services, each behind one function: a request of the program's own, and hits out of the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from pegboard import SettingsError, ToolError
from pegboard_net import Guard, UrlError, read_url
from pegboard_web._records import Hit, Recency

__all__ = ["Query", "Service"]

LONGEST_SNIPPET: Final = 1_000
_BRAVE: Final = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


class Query(NamedTuple):
    """What is searched for."""

    text: str
    most: int
    recency: Recency | None
    domains: tuple[str, ...]

    @property
    def with_sites(self) -> str:
        """The text with the domains as most services write them."""
        sites = " OR ".join(f"site:{domain}" for domain in self.domains)
        return f"{self.text} ({sites})" if len(self.domains) > 1 else f"{self.text} {sites}".strip()

    def has(self, url: str) -> bool:
        """Whether a URL is of the domains."""
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
        return not self.domains or any(host == each or host.endswith(f".{each}") for each in self.domains)


class _Request(NamedTuple):
    url: str
    headers: Mapping[str, str] = {}
    form: Mapping[str, Any] | None = None


class _Way(NamedTuple):
    """How a service is asked: its address, its request, where the hits are in the answer, and their members."""

    url: str | None
    needs_key: bool
    ask: Callable[[str, str, Query], _Request]
    hits: tuple[str, ...]
    snippet: str
    published: str


def _searxng(url: str, key: str, query: Query) -> _Request:
    # It has no week: a month is the next longer one.
    span = {"week": "month"}.get(query.recency or "", query.recency)
    given = {"q": query.with_sites, "format": "json", **({"time_range": span} if span else {})}
    return _Request(f"{url}/search?{urlencode(given)}", {"Authorization": f"Bearer {key}"} if key else {})


def _brave(url: str, key: str, query: Query) -> _Request:
    given: dict[str, Any] = {"q": query.with_sites[:400], "count": min(query.most, 20)}
    given |= {"freshness": _BRAVE[query.recency]} if query.recency else {}
    headers = {"X-Subscription-Token": key, "Accept": "application/json"}
    return _Request(f"{url}/res/v1/web/search?{urlencode(given)}", headers)


def _tavily(url: str, key: str, query: Query) -> _Request:
    given: dict[str, Any] = {"query": query.text, "max_results": min(query.most, 20)}
    given |= {"time_range": query.recency} if query.recency else {}
    given |= {"include_domains": list(query.domains)} if query.domains else {}
    return _Request(f"{url}/search", {"Authorization": f"Bearer {key}"}, {"json": given})


_WAYS: Final = {
    "searxng": _Way(None, False, _searxng, ("results",), "content", "publishedDate"),
    "brave": _Way("https://api.search.brave.com", True, _brave, ("web", "results"), "description", "page_age"),
    "tavily": _Way("https://api.tavily.com", True, _tavily, ("results",), "content", "published_date"),
}


class Service:
    """A search service as the settings have it. Raises `SettingsError` for an address or a key that is missing."""

    def __init__(
        self, name: str, url: str | None, key: str, *, max_bytes: int, timeout: float, user_agent: str
    ) -> None:
        self._name, self._way, self._key = name, _WAYS[name], key.strip()
        address = url or self._way.url
        if address is None:
            raise SettingsError(f"web.search is {name!r}: set web.search_url to the address of its server")
        if self._way.needs_key and not self._key:
            raise SettingsError(f"web.search is {name!r}: set web.search_key to its key")
        try:
            origin = read_url(address).origin
        except UrlError as error:
            raise SettingsError(f"web.search_url is no address of a server: {error}") from error
        self._url = address.rstrip("/")
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "gzip, deflate"}
        # The program has set the address: it may be a private one, and the environment's proxy is used for it.
        self._guard = Guard([origin], max_bytes=max_bytes, max_seconds=timeout, proxies=True)

    async def search(self, query: Query) -> list[Hit]:
        """The hits. Raises `ToolError` for a service that fails."""
        request = self._way.ask(self._url, self._key, query)
        headers = {**self._headers, **request.headers}
        try:
            found = await self._guard.fetch(request.url, headers=headers, form=request.form, any_status=True)
        except UrlError as error:
            raise ToolError(f"the search failed: {error}") from error
        if found.status != 200:
            raise ToolError(f"the search failed: the service answered {found.status}. Search again later.")
        try:
            answer = json.loads(found.content)
        except (ValueError, RecursionError):
            raise ToolError("the search failed: the answer of the service is no JSON.") from None
        fitting = (hit for hit in self._hits(answer) if query.has(hit.url))
        return [hit for hit, _ in zip(fitting, range(query.most), strict=False)]

    def _hits(self, answer: Any) -> Iterator[Hit]:
        found = answer
        for name in self._way.hits:
            found = found.get(name) if isinstance(found, Mapping) else None
        for each in found if isinstance(found, Sequence) and not isinstance(found, str) else ():
            if isinstance(each, Mapping) and _text(each, "url").startswith(("http://", "https://")):
                snippet = " ".join(_text(each, self._way.snippet).split())[:LONGEST_SNIPPET]
                yield Hit(_text(each, "title"), _text(each, "url"), snippet, _text(each, self._way.published) or None)


def _text(data: Mapping[str, Any], name: str) -> str:
    found = data.get(name)
    return found if isinstance(found, str) else ""
