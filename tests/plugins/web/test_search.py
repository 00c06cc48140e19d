"""`web_search`: three services behind one tool, and answers of servers that may be wrong."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pegboard import Toolkit
from tests.plugins.net.servers import Server, answer
from tests.plugins.web.desk import board

KEY = "sk-search-0123456789"
RESULTS = [
    {"url": f"https://{host}/{number}", "title": f"T{number}", "content": "a\n b", "description": "a\n b"}
    for number, host in enumerate(["example.com", "www.example.com", "example.org", "badexample.com"])
]
ANSWERS = {"searxng": {"results": RESULTS}, "brave": {"web": {"results": RESULTS}}, "tavily": {"results": RESULTS}}
PATHS = {"searxng": "/search", "brave": "/res/v1/web/search", "tavily": "/search"}


def sends(web: Server, service: str, found: Any, status: int = 200) -> dict[str, Any]:
    """The settings of a service that answers so."""
    web.sends(PATHS[service], answer(json.dumps(found).encode(), status, Content_Type="application/json"))
    return {"search": service, "search_url": web.origin, "search_key": KEY}


def search(toolkit: Toolkit, **arguments: Any) -> Any:
    return toolkit.call_sync("web_search", {"query": "cats", **arguments})


@pytest.mark.parametrize("service", ANSWERS)
class TestEach:
    def test_hits(self, web: Server, service: str) -> None:
        with board(**sends(web, service, ANSWERS[service])) as toolkit:
            hits = search(toolkit, max_results=2).data
        assert hits == [
            {"title": f"T{number}", "url": RESULTS[number]["url"], "snippet": "a b", "published": None}
            for number in (0, 1)
        ]

    def test_domains_are_enforced(self, web: Server, service: str) -> None:
        with board(**sends(web, service, ANSWERS[service])) as toolkit:
            hits = search(toolkit, domains=["Example.com"]).data
        assert [hit["url"] for hit in hits] == ["https://example.com/0", "https://www.example.com/1"]

    def test_the_key_goes_to_the_service_and_nowhere_else(self, web: Server, service: str) -> None:
        with board(**sends(web, service, {"error": "no"}, status=401)) as toolkit:
            result = search(toolkit)
        assert KEY in web.heads[0]
        assert result.text == "the search failed: the service answered 401. Search again later."
        assert KEY not in repr(result)

    @pytest.mark.parametrize(
        "found", [[], None, "x", {"results": "x"}, {"web": []}, {"results": [1, {}, {"url": 5}, {"url": "file:///x"}]}]
    )
    def test_an_odd_answer_has_no_hits(self, web: Server, service: str, found: Any) -> None:
        with board(**sends(web, service, found)) as toolkit:
            assert search(toolkit).data == []

    def test_one_that_is_no_json(self, web: Server, service: str) -> None:
        settings = sends(web, service, "")
        web.sends(PATHS[service], answer(b"<html>"))
        with board(**settings) as toolkit:
            assert search(toolkit).text == "the search failed: the answer of the service is no JSON."


@pytest.mark.parametrize(("recency", "span"), [("day", "day"), ("week", "month"), ("year", "year")])
def test_searxng_is_asked(web: Server, recency: str, span: str) -> None:
    with board(**sends(web, "searxng", ANSWERS["searxng"])) as toolkit:
        search(toolkit, recency=recency, domains=["a.com", "b.com"])
    query = parse_qs(urlsplit(web.paths[0]).query)
    assert query == {"q": ["cats (site:a.com OR site:b.com)"], "format": ["json"], "time_range": [span]}


def test_brave_is_asked(web: Server) -> None:
    with board(**sends(web, "brave", ANSWERS["brave"])) as toolkit:
        search(toolkit, recency="week", max_results=7)
    assert parse_qs(urlsplit(web.paths[0]).query) == {"q": ["cats"], "count": ["7"], "freshness": ["pw"]}
    assert web.header("X-Subscription-Token") == KEY


def test_without_a_service_there_is_none() -> None:
    with board() as toolkit:
        assert [tool.name for tool in toolkit.tools] == ["web_fetch"]
        [record] = [record for record in toolkit.plugins if record.name == "web"]
        missing = {name: each.reason for each in record.not_offered for name in each.names}
    assert missing["web_search"] == "needs a search service: set web.search to searxng, brave or tavily"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"search": "searxng"}, "set web.search_url to the address of its server"),
        ({"search": "brave"}, "set web.search_key to its key"),
        ({"search": "tavily", "search_key": " "}, "set web.search_key to its key"),
        ({"search": "searxng", "search_url": "ftp://x"}, "web.search_url is no address of a server"),
    ],
)
def test_settings_that_lack_something(settings: dict[str, str], said: str) -> None:
    with Toolkit(plugins=["web", "dataclasses"], settings={"web": settings}) as toolkit:
        assert said in " ".join(map(str, toolkit.problems))


def test_robots_do_not_count_for_the_service(web: Server) -> None:
    settings = sends(web, "searxng", ANSWERS["searxng"])
    web.sends("/robots.txt", answer(b"User-agent: *\nDisallow: /"))
    with board(**settings) as toolkit:
        assert search(toolkit).status == "success"
    assert "/robots.txt" not in web.paths
