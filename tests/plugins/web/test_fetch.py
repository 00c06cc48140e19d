"""`web_fetch`: pages as text, in parts, from where the program allows it."""

import gzip
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from pegboard import SettingsError, Toolkit
from tests.plugins.net.servers import Server, answer, redirect
from tests.plugins.net.spellings import HOSTS, PRIVATE, TRICKS
from tests.plugins.web.desk import board, fetch, html, page
from tests.support.thinning import one_in

LINES = "".join(f"<p>Line {number} of many.</p>" for number in range(500))


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with board(robots=False) as toolkit:
        yield toolkit


def test_a_page(toolkit: Toolkit, web: Server) -> None:
    url = web.sends("/a", html("<h1>Hi</h1><p>See <a href='/b'>b</a>.</p>", "<title>A  page</title>"))
    assert page(toolkit, url) == {
        "url": url,
        "title": "A page",
        "text": f"# Hi\n\nSee [b]({web.origin}/b).",
        "start": 0,
        "total_chars": len(f"# Hi\n\nSee [b]({web.origin}/b)."),
        "next_start": None,
        "media_type": "text/html",
        "status": 200,
    }


class TestParts:
    def test_ten_parts_are_one_fetch(self, toolkit: Toolkit, web: Server) -> None:
        url = web.sends("/a", html(LINES))
        whole = page(toolkit, url, max_chars=100_000)["text"]
        parts: list[str] = []
        start: int | None = 0
        web.heads.clear()
        while start is not None:
            part = page(toolkit, url, start=start, max_chars=1_000)
            assert len(part["text"]) <= 1_000
            assert part["start"] == start
            parts.append(part["text"])
            start = part["next_start"]
        assert "".join(parts) == whole
        assert len(parts) >= 10
        assert web.paths == ["/a"]

    def test_a_part_ends_with_a_line(self, toolkit: Toolkit, web: Server) -> None:
        assert page(toolkit, web.sends("/a", html(LINES)), max_chars=1_000)["text"].endswith("many.\n\n")

    def test_of_another_session_is_fetched_anew(self, toolkit: Toolkit, web: Server) -> None:
        url = web.sends("/a", html(LINES))
        page(toolkit, url)
        for session in (toolkit.session(), toolkit.session()):
            assert session.call_sync("web_fetch", {"url": url, "start": 10}).data["start"] == 10
        assert web.paths == ["/a"] * 3

    def test_from_the_start_is_fetched_anew(self, toolkit: Toolkit, web: Server) -> None:
        url = web.sends("/a", html("<p>one"))
        assert page(toolkit, url)["text"] == "one"
        web.sends("/a", html("<p>two"))
        assert page(toolkit, url)["text"] == "two"

    def test_beyond_the_end(self, toolkit: Toolkit, web: Server) -> None:
        url = web.sends("/a", html("<p>short"))
        assert fetch(toolkit, url, start=5).text == (
            "start=5 is beyond the end: the page has 5 characters. Send start=0."
        )

    @pytest.mark.parametrize(("name", "value"), [("start", -1), ("max_chars", 0), ("max_chars", 10**9)])
    def test_numbers_that_cannot_be_meant(self, toolkit: Toolkit, name: str, value: int) -> None:
        assert fetch(toolkit, "http://127.0.0.1/", **{name: value}).status == "invalid"


class TestPdf:
    @pytest.mark.skipif(find_spec("pegboard_documents") is None, reason="needs the extra pegboard-web[pdf]")
    def test_is_read_as_text(self, toolkit: Toolkit, web: Server) -> None:
        desk = pytest.importorskip("tests.plugins.documents.desk")
        content = desk.pdf([desk.lines(["First"]), desk.lines(["Second"])], title="Report")
        found = page(toolkit, web.sends("/a.pdf", answer(content, Content_Type="application/pdf")))
        assert (found["title"], found["media_type"]) == ("Report", "application/pdf")
        assert found["text"] == "[page 1]\nFirst\n\n[page 2]\nSecond"
        found = page(toolkit, web.sends("/b", answer(content, Content_Type="application/octet-stream")), max_chars=9)
        assert (found["text"], found["next_start"]) == ("[page 1]\n", 9)
        damaged = fetch(toolkit, web.sends("/c.pdf", answer(content[:99], Content_Type="application/pdf"))).text
        assert damaged.startswith(f"{web.origin}/c.pdf is a PDF that cannot be read: it is damaged")

    def test_without_the_pack_for_documents(
        self, toolkit: Toolkit, web: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pegboard_documents", None)
        url = web.sends("/a.pdf", answer(b"%PDF-1.7", Content_Type="application/pdf"))
        assert fetch(toolkit, url).text == (
            f"{url} is a PDF: this program lacks pegboard-documents, which reads them. "
            "Fetch a page of text or HTML instead."
        )
        monkeypatch.setattr("pegboard_web._tools.find_spec", lambda name: None)
        with board() as other:
            (record,) = [record for record in other.plugins if record.name == "web"]
        assert 'needs pegboard-documents: pip install "pegboard-web[pdf]"' in map(str, record.not_offered)


class TestContent:
    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            ("text/plain", "# no HTML <p>"),
            ("application/json", '{"a": 1}'),
            ("application/problem+json", '{"a": 1}'),
            ("text/markdown; charset=utf-8", "# Grüße"),
            ("", "plain"),
        ],
    )
    def test_text_is_as_it_was_sent(self, toolkit: Toolkit, web: Server, kind: str, body: str) -> None:
        assert page(toolkit, web.sends("/a", answer(body.encode(), Content_Type=kind)))["text"] == body

    @pytest.mark.parametrize(("kind", "body"), [("application/zip", b"PK"), ("image/png", b"\x89PNG"), ("", b"\0\1")])
    def test_what_is_no_text(self, toolkit: Toolkit, web: Server, kind: str, body: bytes) -> None:
        result = fetch(toolkit, web.sends("/a", answer(body, Content_Type=kind)))
        assert f"is no text: {kind or 'application/octet-stream'}, {len(body)} bytes." in result.text

    def test_raw(self, toolkit: Toolkit, web: Server) -> None:
        url = web.sends("/a", html("<p>Hi"))
        assert page(toolkit, url, content="raw")["text"].startswith("<!doctype html>")

    @pytest.mark.skipif(find_spec("trafilatura") is not None, reason="its library is here")
    def test_an_article_without_its_library(self, toolkit: Toolkit, web: Server) -> None:
        result = fetch(toolkit, web.sends("/a", html("<p>Hi")), content="article")
        assert result.text == "content='article' is not there in this program. Send content='page'."

    @pytest.mark.skipif(find_spec("trafilatura") is None, reason="needs the extra pegboard-web[article]")
    def test_an_article(self, toolkit: Toolkit, web: Server) -> None:
        body = f"<div>Menu</div><article><h1>News</h1>{'<p>Somewhere, words were said today.</p>' * 20}</article>"
        assert page(toolkit, web.sends("/a", html(body)), content="article")["text"].startswith("# News")

    @pytest.mark.parametrize("status", [404, 500])
    def test_other_answers_are_pages_too(self, toolkit: Toolkit, web: Server, status: int) -> None:
        found = page(toolkit, web.sends("/a", html("<p>Not here.", status=status)))
        assert (found["status"], found["text"]) == (status, "Not here.")

    @pytest.mark.parametrize(
        ("header", "meta", "body", "text"),
        [
            ("; charset=iso-8859-1", "", "Gr\xfc\xdfe".encode("latin-1"), "Gr\xfc\xdfe"),
            ("", "<meta charset=windows-1252>", "\x80 5".encode("latin-1"), "\u20ac 5"),
            ("", '<meta http-equiv=Content-Type content="text/html; charset=shift_jis">', b"\x93\xfa", "\u65e5"),
            ("", "", "Gr\xfc\xdfe".encode(), "Gr\xfc\xdfe"),
            ("; charset=latin-1", "<meta charset=utf-8>", "\xfc".encode("latin-1"), "\xfc"),
        ],
    )
    def test_charsets(self, toolkit: Toolkit, web: Server, header: str, meta: str, body: bytes, text: str) -> None:
        sent = b"<html><head>" + meta.encode() + b"</head><body><p>" + body
        assert page(toolkit, web.sends("/a", answer(sent, Content_Type=f"text/html{header}")))["text"] == text

    @pytest.mark.parametrize("name", ["punycode", "utf-7", "unicode-escape", "nonsense"])
    def test_other_charsets_are_read_as_utf_8_and_told(self, toolkit: Toolkit, web: Server, name: str) -> None:
        url = web.sends("/a", answer("é".encode(), Content_Type=f"text/plain; charset={name}"))
        result = fetch(toolkit, url)
        assert result.data["text"] == "é"
        assert [str(note) for note in result.notes] == [
            f"the page names the charset {name!r}, which is not read; it was read as UTF-8"
        ]


def is_refused(text: str) -> bool:
    """Whether nothing was asked for: of a server that was, the text would be another."""
    return " is refused: " in text or text.startswith("There is no host ")


class TestWhere:
    @pytest.mark.parametrize("host", one_in(3, [*PRIVATE[:40], *HOSTS[:60]]))
    def test_private_addresses_are_refused_in_every_spelling(self, host: str) -> None:
        with board(allow=[], robots=False) as toolkit:
            host = f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host
            assert is_refused(fetch(toolkit, f"http://{host}/").text)

    @pytest.mark.parametrize("url", one_in(2, TRICKS[:40]))
    def test_tricks(self, url: str) -> None:
        with board(allow=[], robots=False) as toolkit:
            assert is_refused(fetch(toolkit, url).text)

    def test_a_redirect_is_judged(self, toolkit: Toolkit, web: Server) -> None:
        text = fetch(toolkit, web.sends("/a", redirect("http://169.254.169.254/latest"))).text
        assert text == "http://169.254.169.254/latest is refused: 169.254.169.254 is not at a public address."

    def test_the_url_after_redirects(self, toolkit: Toolkit, web: Server) -> None:
        web.sends("/a", redirect("/b"))
        assert page(toolkit, web.sends("/b", html("<p>B")))["url"] == f"{web.origin}/b"
        assert page(toolkit, f"{web.origin}/a")["url"] == f"{web.origin}/b"

    @pytest.mark.parametrize("entry", ["127.0.0.1", " 127.0.0.1. "])
    def test_blocked(self, web: Server, entry: str) -> None:
        url = web.sends("/a", html("<p>A"))
        with board(block=[entry]) as toolkit:
            assert fetch(toolkit, url).text == f"{url} is refused: this program fetches nothing from 127.0.0.1."
        assert web.heads == []

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost."])
    def test_what_is_blocked_is_blocked_on_every_redirect(self, web: Server, host: str) -> None:
        url = web.sends("/a", redirect(f"http://{host}:{web.port}/b"))
        with board(block=["LocalHost."], allow=["127.0.0.1", "localhost"], robots=False) as toolkit:
            assert "this program fetches nothing from" in fetch(toolkit, url).text
        assert web.paths == ["/a"]

    @pytest.mark.parametrize("settings", [{"timeout": 0}, {"max_bytes": -1}, {"search": "other"}, {"user_agent": ""}])
    def test_settings_that_cannot_be_meant(self, settings: dict[str, Any]) -> None:
        with pytest.raises(SettingsError, match=r"web"), board(**settings):
            pass


class TestBounds:
    def test_bytes_after_decompression(self, web: Server) -> None:
        bomb = gzip.compress(bytes(5_000_000), 1)
        url = web.sends("/a", answer(bomb, Content_Type="text/plain", Content_Encoding="gzip"))
        with board(robots=False, max_bytes=1_000_000) as toolkit:
            assert fetch(toolkit, url).text == f"{url} answered with a body of more than 1,000,000 bytes."

    def test_time_for_everything(self, web: Server) -> None:
        import itertools
        import time

        def slowly() -> Iterator[bytes]:
            yield b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
            for _ in itertools.repeat(None, 100):
                time.sleep(0.05)
                yield b"x"

        url = web.sends("/a", slowly)
        with board(robots=False, timeout=0.4) as toolkit:
            assert fetch(toolkit, url).text == f"{url} did not answer within 0.4 seconds."
