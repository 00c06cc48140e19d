"""robots.txt: what a server asks for is honoured, for the targets of redirects too."""

import pytest

from tests.plugins.net.servers import Server, answer, redirect
from tests.plugins.web.desk import board, fetch, html, page

RULES = b"User-agent: *\nDisallow: /private\n\nUser-agent: acme\nDisallow: /\nAllow: /open\n"


def test_it_is_asked_once_and_honoured(web: Server) -> None:
    web.sends("/robots.txt", answer(RULES, Content_Type="text/plain"))
    web.sends("/private", html("<p>Private"))
    with board() as toolkit:
        assert page(toolkit, web.sends("/open", html("<p>Open")))["text"] == "Open"
        refused = f"{web.origin}/private is refused: its server's robots.txt asks not to fetch it."
        assert fetch(toolkit, f"{web.origin}/private").text == refused
    assert web.paths == ["/robots.txt", "/open"]


def test_by_the_product_name(web: Server) -> None:
    web.sends("/robots.txt", answer(RULES))
    url = web.sends("/a", html("<p>A"))
    with board(user_agent="Acme/1.2 (+https://example.com)") as toolkit:
        assert "robots.txt" in fetch(toolkit, url).text
        assert page(toolkit, web.sends("/open", html("<p>Open")))["text"] == "Open"
    assert web.header("User-Agent") == "Acme/1.2 (+https://example.com)"


def test_for_the_target_of_a_redirect(web: Server, other: Server) -> None:
    other.sends("/robots.txt", answer(b"User-agent: *\nDisallow: /"))
    url = web.sends("/a", redirect(f"{other.origin}/b"))
    with board() as toolkit:
        assert f"{other.origin}/b is refused: its server's robots.txt" in fetch(toolkit, url).text
    assert other.paths == ["/robots.txt"]


@pytest.mark.parametrize(("status", "allowed"), [(404, True), (401, True), (403, True), (500, False), (503, False)])
def test_servers_without_one(web: Server, status: int, allowed: bool) -> None:
    web.sends("/robots.txt", answer(b"", status))
    url = web.sends("/a", html("<p>A"))
    with board() as toolkit:
        assert (fetch(toolkit, url).status == "success") is allowed


def test_one_that_cannot_be_read(web: Server) -> None:
    web.sends("/robots.txt", [b"no HTTP at all"])
    with board() as toolkit:
        assert "robots.txt" in fetch(toolkit, web.sends("/a", html("<p>A"))).text


def test_one_behind_a_redirect(web: Server) -> None:
    web.sends("/robots.txt", redirect("/other.txt"))
    web.sends("/other.txt", answer(b"User-agent: *\nDisallow: /"))
    with board() as toolkit:
        assert "robots.txt" in fetch(toolkit, web.sends("/a", html("<p>A"))).text


@pytest.mark.parametrize(
    "rules", [b"Disallow: /" + b"*" * 30_000, b"User-agent: *\n" + b"Disallow: /*a*b*c*d$\n" * 9_000]
)
def test_hostile_rules_end(web: Server, other: Server, rules: bytes) -> None:
    web.sends("/robots.txt", answer(rules))
    url = web.sends("/" + "abcd" * 500, html("<p>A"))
    with board() as toolkit:
        result = fetch(toolkit, url)
        assert result.status == "success" or "robots.txt asks not to fetch it" in result.text
        assert page(toolkit, other.sends("/b", html("<p>B")))["text"] == "B"


def test_the_program_may_do_without(web: Server) -> None:
    web.sends("/robots.txt", answer(b"User-agent: *\nDisallow: /"))
    with board(robots=False) as toolkit:
        assert page(toolkit, web.sends("/a", html("<p>A")))["text"] == "A"
    assert web.paths == ["/a"]
