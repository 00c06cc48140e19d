"""The guard connects to nothing that it does not allow, whatever the URL looks like."""

import asyncio
import gzip
import ipaddress
import logging
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, repeat
from typing import Any, ClassVar

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard_net import Fetched, Guard, RefusedUrlError, UrlError, is_public, read_url
from tests.plugins.net.servers import Server, answer, redirect
from tests.plugins.net.spellings import HOSTS, OPEN, PRIVATE, urls, words
from tests.support.thinning import first, one_in

PUBLIC = "93.184.216.34"
FOUND = b"found"
NAMES = {
    "localhost": ["127.0.0.1", "::1"],
    "localhost.": ["127.0.0.1"],
    "sub.localhost": ["127.0.0.1"],
    "internal": ["10.0.0.7"],
    "metadata.google.internal": ["169.254.169.254"],
    "rebound.example": ["127.0.0.1"],
    "half.example": [PUBLIC, "192.168.0.1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "nat64.example": ["64:ff9b::a00:1"],
    "odd.example": [PUBLIC, "no address"],
}


class Wire:
    """Stands in for the network: `asked` are the hosts that something was sent to."""

    def __init__(self, answer: Callable[[httpx2.Request], httpx2.Response] | None = None) -> None:
        self.requests: list[httpx2.Request] = []
        self.answer = answer or (lambda _: httpx2.Response(200, content=FOUND))
        self.transport = httpx2.MockTransport(self.take)

    def take(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return self.answer(request)

    @property
    def hosts(self) -> list[str]:
        return [request.url.host for request in self.requests]


async def resolve(host: str, port: int) -> list[str]:
    return NAMES.get(host, [PUBLIC])  # whatever else slips through would be connected to


def guarded(wire: Wire, **options: Any) -> Guard:
    return Guard(**{"resolver": resolve, "transport": wire.transport, **options})


def fetched(guard: Guard, url: str, **options: Any) -> Fetched:
    return asyncio.run(guard.fetch(url, **options))


def fetched_unless_refused(url: str) -> list[str]:
    """The addresses that were connected to."""
    wire = Wire()
    with suppress(UrlError):
        fetched(guarded(wire), url)
    return wire.hosts


def test_there_are_many() -> None:
    assert len({*urls()}) >= 230


@pytest.mark.parametrize("url", one_in(3, urls()))
def test_refused(url: str) -> None:
    wire = Wire()
    with pytest.raises(UrlError) as raised:
        fetched(guarded(wire), url)
    assert wire.requests == []
    said = str(raised.value)
    assert "secret" not in said
    assert not any(word in said for word in ("allow", "setting", "private", "origin", "proxy", "pegboard"))


@pytest.mark.parametrize("url", one_in(12, urls()))
def test_refused_behind_a_redirect(url: str) -> None:
    wire = Wire(lambda _: httpx2.Response(302, headers=[(b"Location", url.encode())]))
    with pytest.raises(UrlError):
        fetched(guarded(wire), "https://example.com/")
    # What is no URL of its own leads back to the first host; none leads anywhere else.
    assert {*wire.hosts} == {PUBLIC}


@pytest.mark.parametrize("address", one_in(3, PRIVATE))
def test_names_at_private_addresses(address: str) -> None:
    wire = Wire()

    async def resolver(host: str, port: int) -> list[str]:
        return [PUBLIC, address]

    with pytest.raises(RefusedUrlError, match="not at a public address"):
        fetched(guarded(wire, resolver=resolver), "http://example.com/")
    assert wire.requests == []


@pytest.mark.parametrize("address", one_in(3, OPEN))
def test_public_addresses(address: str) -> None:
    wire = Wire()
    host = f"[{address}]" if ":" in address else address
    assert fetched(guarded(wire), f"http://{host}:8080/cat.png?a=b#c").content == FOUND
    assert [ipaddress.ip_address(each) for each in wire.hosts] == [ipaddress.ip_address(address)]
    (request,) = wire.requests
    assert (request.url.port, request.url.raw_path) == (8080, b"/cat.png?a=b")


@given(st.text(max_size=60), st.sampled_from(["", "http://", "https://", "http://127.0.0.1", "http://[", "http://a@"]))
def test_any_text_is_fetched_from_a_checked_address_or_refused(text: str, before: str) -> None:
    assert all(map(is_public, fetched_unless_refused(before + text)))


BLOCKS = ["127.0.0.0/8", "10.0.0.0/8", "169.254.169.254/32", "192.168.0.0/16", "100.64.0.0/10", "0.0.0.0/8"]
WIDE = str.maketrans("0123456789.", "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19\u3002")

WITHIN = words("""
[::{h}:{l}] [::ffff:{a}] [::FFFF:{h}:{l}] [0:0:0:0:0:ffff:{h}:{l}] [64:ff9b::{a}] [64:ff9b:1::{a}] [2002:{h}:{l}::1]
[2001:0:{h}:{l}::] [2a00::5efe:{a}] [::ffff:0:{a}]
""")


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, str]:
    """A private IPv4 address and a literal that some reader takes for it."""
    block = ipaddress.ip_network(draw(st.sampled_from(BLOCKS)))
    number = draw(st.integers(int(block.network_address), int(block.broadcast_address)))
    address = str(ipaddress.IPv4Address(number))
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    parts = draw(st.integers(1, 4))
    numbers = [number >> 24 - 8 * place & 0xFF for place in range(parts - 1)]
    numbers.append(number & (1 << 8 * (5 - parts)) - 1)
    forms = [draw(st.sampled_from(["{}", "0{:o}", "000{:o}", "0x{:x}", "0X{:X}", "0x000{:x}"])) for _ in numbers]
    literal = ".".join(form.format(each) for form, each in zip(forms, numbers, strict=True))
    assert socket.inet_ntoa(socket.inet_aton(literal)) == address
    within = draw(st.sampled_from(["", *WITHIN]))
    if within:
        return address, within.format(h=high, l=low, a=address)
    literal += draw(st.sampled_from(["", "."]))
    encoded = draw(st.sampled_from(["plain", "wide", "percent"]))
    if encoded == "wide":
        literal = literal.translate(WIDE)
    if encoded == "percent":
        literal = "".join(f"%{ord(each):02x}" for each in literal)
    return address, literal


@given(spelled(), st.sampled_from(["http", "https", "HTTP"]), st.sampled_from(["", ":80", ":8080"]))
def test_no_spelling_of_a_private_address_is_connected_to(spelling: tuple[str, str], scheme: str, port: str) -> None:
    _, literal = spelling
    assert fetched_unless_refused(f"{scheme}://{literal}{port}/") == []
    assert fetched_unless_refused(f"{scheme}://example.com@{literal}{port}/") == []


class TestConnection:
    def test_goes_to_the_address_that_was_checked(self) -> None:
        asked: list[str] = []

        async def changing(host: str, port: int) -> list[str]:
            asked.append(host)
            return [PUBLIC] if len(asked) == 1 else ["127.0.0.1"]

        wire = Wire()
        fetched(guarded(wire, resolver=changing), "https://changing.example/cat.png")
        assert (asked, wire.hosts) == (["changing.example"], [PUBLIC])
        (request,) = wire.requests
        assert request.headers["Host"] == "changing.example"
        assert request.extensions["sni_hostname"] == "changing.example"
        with pytest.raises(RefusedUrlError):
            fetched(guarded(wire, resolver=changing), "https://changing.example/cat.png")

    def test_brings_nothing_along(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        (tmp_path / ".netrc").write_text("default login me password secret\n")
        monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))

        def answer(request: httpx2.Request) -> httpx2.Response:
            if request.url.path == "/b":
                return httpx2.Response(200, content=b"x")
            return httpx2.Response(302, headers={"Location": "http://b.example/b", "Set-Cookie": "a=b; Domain=example"})

        wire = Wire(answer)
        assert fetched(guarded(wire), "http://a.example/a").url == "http://b.example/b"
        for request in wire.requests:
            assert not {"cookie", "authorization", "proxy-authorization", "referer"} & {*request.headers}
            assert request.headers["Accept-Encoding"] == "identity"

    def test_the_next_address_is_tried(self) -> None:
        def answer(request: httpx2.Request) -> httpx2.Response:
            if request.url.host == "2606:4700:4700::1111":
                raise httpx2.ConnectError("no route")
            return httpx2.Response(200, content=b"x")

        async def both(host: str, port: int) -> list[str]:
            return ["2606:4700:4700::1111", PUBLIC]

        wire = Wire(answer)
        assert fetched(guarded(wire, resolver=both), "http://example.com/").content == b"x"
        assert wire.hosts == ["2606:4700:4700::1111", PUBLIC]

    def test_an_unknown_name(self) -> None:
        async def unknown(host: str, port: int) -> list[str]:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")

        with pytest.raises(UrlError, match=r"There is no host nowhere\.example"):
            fetched(guarded(Wire(), resolver=unknown), "http://nowhere.example/")

    def test_origins_of_the_program_may_be_private(self) -> None:
        wire = Wire()
        guard = guarded(wire, allow=["http://internal:8000"])
        assert fetched(guard, "http://internal:8000/made.png").content == FOUND
        for other in ("http://internal/", "http://internal:8001/", "https://internal:8000/", "http://10.0.0.7:8000/"):
            with pytest.raises(RefusedUrlError):
                fetched(guard, other)
        assert wire.hosts == ["10.0.0.7"]

    def test_a_private_origin_leads_nowhere_else(self) -> None:
        wire = Wire(lambda _: httpx2.Response(302, headers={"Location": "http://127.0.0.1:1234/"}))
        with pytest.raises(RefusedUrlError):
            fetched(guarded(wire, allow=["http://internal:8000"]), "http://internal:8000/")
        assert wire.hosts == ["10.0.0.7"]

    def test_origin(self) -> None:
        assert read_url("HTTPS://Example.com./a?b").origin == "https://example.com:443"
        with pytest.raises(RefusedUrlError):
            read_url("example.com")

    def test_answers_of_a_resolver_that_are_none(self) -> None:
        for answers in ([], [PUBLIC, "no address"], ["127.1"]):

            async def odd(host: str, port: int, found: list[str] = answers) -> list[str]:
                return found

            wire = Wire()
            with pytest.raises(UrlError, match="There is no host"):
                fetched(guarded(wire, resolver=odd, allow=["10.0.0.0/8"]), "http://example.com/")
            assert wire.requests == []

    def test_a_final_dot_is_not_sent_as_the_name_of_a_certificate(self) -> None:
        wire = Wire()
        fetched(guarded(wire), "https://example.com./")
        assert wire.requests[0].extensions["sni_hostname"] == "example.com"

    def test_the_log_has_no_url(self, web: Server, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        url = web.sends("/a", answer())
        fetched(Guard([web.origin]), f"{url}?signature=secret")
        assert "secret" not in caplog.text


class TestAllow:
    @pytest.mark.parametrize(
        ("entry", "reached", "refused"),
        [
            ("http://internal:8000", ["http://internal:8000/", "http://INTERNAL.:8000/"], ["http://internal/"]),
            ("internal:22", ["http://internal:22/", "https://internal:22/"], ["http://internal/"]),
            ("Internal.", ["http://internal/", "https://internal:25/"], ["http://sub.localhost/"]),
            ("10.0.0.7", ["http://10.0.0.7/", "https://10.0.0.7:25/"], ["http://internal/", "http://10.0.0.8/"]),
            ("10.0.0.0/8", ["http://10.0.0.7/", "http://internal:8000/"], ["http://internal:25/", "http://127.0.0.1/"]),
            ("[::1]:8000", ["http://[::1]:8000/"], ["http://[::1]/"]),
            ("::1", ["http://[::1]:8000/"], ["http://localhost/"]),
            ("::1/128", ["http://[::1]/"], ["http://localhost/"]),
        ],
    )
    def test_opens_what_it_names(self, entry: str, reached: list[str], refused: list[str]) -> None:
        for url in reached:
            assert fetched(guarded(Wire(), allow=[entry]), url).content == FOUND
        for url in refused:
            with pytest.raises(RefusedUrlError):
                fetched(guarded(Wire(), allow=[entry]), url)

    @pytest.mark.parametrize("entry", ["", "10.0.0.1/8", "10.0.0.0/99", "a b", "ftp://a", "user@a", "a/b", "127.1"])
    def test_refuses_what_is_none(self, entry: str) -> None:
        with pytest.raises((ValueError, RefusedUrlError)):
            Guard([entry])

    def test_a_proxy_is_used_for_what_the_program_names_alone(
        self, web: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", web.origin)
        monkeypatch.setenv("no_proxy", "direct.example")
        url = "http://wiki.internal/page"
        web.sends(url, answer(b"page"))
        assert fetched(Guard(["wiki.internal"], proxies=True, resolver=resolve), url).content == b"page"
        web.sends(url, redirect("http://internal/"))
        with pytest.raises(RefusedUrlError):  # at 10.0.0.7, and not asked for through the proxy
            fetched(Guard(["wiki.internal"], proxies=True, resolver=resolve), url)
        assert web.paths == [url, url]
        for guard in (Guard(["wiki.internal"]), Guard(proxies=True)):
            with pytest.raises(UrlError):
                fetched(guard, url)
        assert web.paths == [url, url]


class TestRedirects:
    """Over sockets: the names are those of this machine, and the addresses are real ones."""

    @pytest.fixture
    def local(self) -> Guard:
        async def here(host: str, port: int) -> list[str]:
            return ["10.0.0.1"] if host == "private.example" else ["127.0.0.1"]

        return Guard(["127.0.0.0/8"], resolver=here, max_seconds=5)

    def test_are_followed_by_path_and_by_name(self, web: Server, other: Server, local: Guard) -> None:
        web.sends("/a", redirect("b?c=d#e", 301))
        web.sends("/b", redirect(f"//b.example:{other.port}/c", 308))
        other.sends("/c", answer(b"c", Content_Type="Text/HTML; charset=Latin-1"))
        found = fetched(local, f"http://a.example:{web.port}/a")
        assert (found.content, found.url, found.status) == (b"c", f"http://b.example:{other.port}/c", 200)
        assert (found.media_type, found.charset) == ("text/html", "latin-1")
        assert (web.paths, web.header("host")) == (["/a", "/b?c=d"], f"a.example:{web.port}")
        assert other.header("host") == f"b.example:{other.port}"

    @pytest.mark.parametrize(
        "to",
        words("""
        http://private.example/ http://10.0.0.1/ http://[::1]/ http://169.254.169.254/ http://0x7f.1/ file:///etc/passwd
        ftp://a.example/ gopher://a.example/ data:,x http://127.0.0.1:22/ http://user:secret@a.example/ //[
        http://a.example:99999/ http://\xe9.example/ \\\\a.example\\
        """),
    )
    def test_to_where_nothing_leads(self, web: Server, local: Guard, to: str) -> None:
        with pytest.raises(UrlError) as raised:
            fetched(local, web.sends("/a", redirect(to)))
        assert web.paths == ["/a"]
        assert "secret" not in str(raised.value)

    def test_in_a_circle_and_too_many(self, web: Server, local: Guard) -> None:
        web.sends("/a", redirect("/b"))
        web.sends("/b", redirect("/a"))
        with pytest.raises(UrlError, match="more redirects than are followed"):
            fetched(local, f"{web.origin}/a")
        assert len(web.heads) == 6

    def test_without_a_place(self, web: Server, local: Guard) -> None:
        with pytest.raises(UrlError, match="answered 302"):
            fetched(local, web.sends("/a", answer(b"", 302)))
        assert fetched(local, f"{web.origin}/a", any_status=True).status == 302

    SENT: ClassVar = {"Authorization": "Bearer secret", "X-Key": "secret", "Cookie": "a=secret", "user-agent": "me"}

    def test_credentials_go_to_their_origin_alone(self, web: Server, other: Server, local: Guard) -> None:
        web.sends("/a", redirect("/b"))
        web.sends("/b", redirect(f"{other.origin}/c"))
        other.sends("/c", redirect(f"{web.origin}/d"))
        web.sends("/d", answer(b"d"))
        assert fetched(local, f"{web.origin}/a", headers=self.SENT).content == b"d"
        assert [head.count("secret") for head in web.heads] == [3, 3, 0]  # and not after a third party chose the path
        assert ["secret" in head for head in other.heads] == [False]
        assert {web.header("user-agent", at) for at in range(3)} | {other.header("user-agent")} == {"me"}

    @pytest.mark.parametrize("to", ["http://example.com:8080/", "http://b.example/", "HTTP://example.com/"])
    def test_nothing_leads_from_https_to_http_with_credentials(self, to: str) -> None:
        def found(request: httpx2.Request) -> httpx2.Response:
            is_first = request.url.scheme == "https"
            return httpx2.Response(302 if is_first else 200, headers={"Location": to} if is_first else {})

        wire = Wire(found)
        with pytest.raises(RefusedUrlError, match="from https"):
            fetched(guarded(wire), "https://example.com/", headers=self.SENT)
        assert len(wire.requests) == 1
        fetched(guarded(wire), "https://example.com/", headers={"User-Agent": "me", "ACCEPT": "text/html"})
        assert wire.requests[-1].url.scheme == "http"
        assert wire.requests[-1].headers.get_list("accept") == ["text/html"]

    def test_no_header_names_another_host(self, web: Server, local: Guard) -> None:
        fetched(local, web.sends("/a", answer()), headers={"Host": "evil.example", "host": "evil.example"})
        assert web.header("host") == f"127.0.0.1:{web.port}"
        assert "evil" not in web.heads[0]


class TestLimits:
    @pytest.fixture
    def guard(self, web: Server) -> Guard:
        return Guard([web.origin], max_bytes=100_000, max_seconds=0.5)

    @pytest.mark.parametrize("status", [201, 204, 206, 304, 400, 401, 404, 500, 503])
    def test_other_answers(self, status: int) -> None:
        wire = Wire(lambda _: httpx2.Response(status, content=b""))
        with pytest.raises(UrlError, match=f"example.com/ answered {status}"):
            fetched(guarded(wire), "http://example.com/?signature=x")
        assert fetched(guarded(wire), "http://example.com/", any_status=True).status == status

    @pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "x"])
    def test_nothing_packed_is_asked_for(self, web: Server, guard: Guard, encoding: str) -> None:
        url = web.sends("/a", answer(gzip.compress(bytes(1000)), Content_Encoding=encoding))
        with pytest.raises(UrlError, match=r"encoded as .*, which was not asked for"):
            fetched(guard, url)
        assert web.header("accept-encoding") == "identity"

    @pytest.mark.parametrize("encoding", ["gzip", "deflate", "gzip, gzip"])
    def test_bombs(self, web: Server, guard: Guard, encoding: str) -> None:
        body = bytes(50_000_000)
        for each in encoding.split(", "):
            body = (gzip if each == "gzip" else zlib).compress(body)
        url = web.sends("/a", answer(body, Content_Encoding=encoding))
        with pytest.raises(UrlError, match="answered with a body of more than 100,000 bytes"):
            fetched(guard, url, headers={"Accept-Encoding": "gzip, deflate"})

    def test_a_size_that_is_said(self, web: Server, guard: Guard) -> None:
        url = web.sends("/a", answer(b"x", Content_Length="99999999999"))
        with pytest.raises(UrlError, match="more than 100,000 bytes"):
            fetched(guard, url)

    @pytest.mark.parametrize("head", ["", "Transfer-Encoding: chunked\r\n"])
    def test_a_body_without_end(self, web: Server, guard: Guard, head: str) -> None:
        piece = b"400\r\n" + b"x" * 1024 + b"\r\n"
        url = web.sends("/a", lambda: chain([f"HTTP/1.1 200 OK\r\n{head}\r\n".encode()], repeat(piece)))
        with pytest.raises(UrlError, match="more than 100,000 bytes"):
            fetched(guard, url)

    @pytest.mark.parametrize("length", ["1000", "0x10", "-1", "1, 2", "1\r\nContent-Length: 2"])
    def test_a_length_that_is_a_lie(self, web: Server, guard: Guard, length: str) -> None:
        with pytest.raises(UrlError, match="could not be fetched: RemoteProtocolError"):
            fetched(guard, web.sends("/a", answer(b"short", Content_Length=length)))

    def test_a_length_that_is_too_small(self, web: Server, guard: Guard) -> None:
        assert fetched(guard, web.sends("/a", answer(b"12345 HTTP/1.1 200 OK", Content_Length="5"))).content == b"12345"

    def test_headers_without_end(self, web: Server, guard: Guard) -> None:
        url = web.sends("/a", lambda: chain([b"HTTP/1.1 200 OK\r\n"], repeat(b"X: " + b"y" * 1000 + b"\r\n")))
        with pytest.raises(UrlError, match="could not be fetched: RemoteProtocolError"):
            fetched(guard, url)

    @pytest.mark.parametrize(
        "begun", first(1, ["", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"])
    )
    def test_one_deadline_for_what_trickles(self, web: Server, guard: Guard, begun: str) -> None:
        def trickling() -> Iterator[bytes]:
            yield begun.encode()
            for piece in repeat(b"y", 500):
                yield piece
                time.sleep(0.02)

        began = time.monotonic()
        with pytest.raises(UrlError, match=r"did not answer within 0\.5 seconds"):
            fetched(guard, web.sends("/a", trickling))
        assert time.monotonic() - began < 3

    def test_one_deadline_for_all_redirects(self, web: Server, guard: Guard) -> None:
        def slow() -> list[bytes]:
            time.sleep(0.2)
            return redirect("/a")

        with pytest.raises(UrlError, match=r"did not answer within 0\.5 seconds"):
            fetched(guard, web.sends("/a", slow))
        assert len(web.heads) <= 3

    def test_a_slow_resolver(self) -> None:
        async def slow(host: str, port: int) -> list[str]:
            await asyncio.sleep(60)
            return [PUBLIC]

        with pytest.raises(UrlError, match="did not answer"):
            fetched(guarded(Wire(), resolver=slow, max_seconds=0.1), "http://example.com/")

    def test_what_is_no_http(self, web: Server, guard: Guard) -> None:
        with pytest.raises(UrlError, match="RemoteProtocolError"):
            fetched(guard, web.sends("/a", [b"SSH-2.0-OpenSSH_9.9\r\n"]))

    def test_the_beginning_decides_before_the_rest_is_drawn(self) -> None:
        drawn: list[int] = []

        async def long() -> Any:
            for _ in range(1000):
                drawn.append(1)
                yield bytes(1024)

        def look(head: bytes) -> None:
            raise UrlError(f"{len(head)} bytes of no use")

        wire = Wire(lambda _: httpx2.Response(200, content=long()))
        with pytest.raises(UrlError, match="4096 bytes of no use"):
            fetched(guarded(wire), "http://example.com/", look=look)
        assert len(drawn) == 4

    def test_a_form_is_sent_once_and_follows_nothing(self) -> None:
        form = {"data": {"key": "a"}, "files": {"file": ("a.txt", b"content", "text/plain")}}
        wire = Wire(lambda _: httpx2.Response(200, content=b"done"))
        assert fetched(guarded(wire), "http://example.com/", form=form).content == b"done"
        assert (wire.requests[0].method, b"content" in wire.requests[0].content) == ("POST", True)
        wire = Wire(lambda _: httpx2.Response(307, headers={"Location": "http://other.example/"}))
        with pytest.raises(UrlError):
            fetched(guarded(wire), "http://example.com/", form=form)
        assert len(wire.requests) == 1

    def test_without_await(self, web: Server, guard: Guard) -> None:
        url = web.sends("/a", answer(b"text", Content_Type="text/plain"))
        found = guard.fetch_sync(url)
        assert (found.content, found.media_type, found.charset) == (b"text", "text/plain", None)

        async def within() -> Fetched:
            return guard.fetch_sync(url)

        assert asyncio.run(within()) == found
        with pytest.raises(RefusedUrlError):
            Guard().fetch_sync(url)


class Listener:
    """Counts the connections to a port of this machine, at both loopback addresses."""

    def __init__(self) -> None:
        self.connections = 0
        self.sockets = []
        first = socket.create_server(("127.0.0.1", 0))
        self.port = first.getsockname()[1]
        self.sockets.append(first)
        if socket.has_ipv6:
            with suppress(OSError):  # a machine without it
                self.sockets.append(socket.create_server(("::1", self.port), family=socket.AF_INET6))
        for each in self.sockets:
            threading.Thread(target=self._count, args=(each,), daemon=True).start()

    def _count(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self) -> None:
        for each in self.sockets:
            each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    try:
        yield made
    finally:
        made.close()


def test_over_sockets_nothing_private_is_connected_to(listener: Listener, web: Server) -> None:
    """With the system's own resolver and network, directly and behind a redirect from an origin that is allowed."""
    loopback = ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "0.0.0.0", "[::]", "127.9.9.9", "[::ffff:7f00:1]"]
    for host in loopback + HOSTS:
        url = f"http://{host}:{listener.port}/"
        away = web.sends("/away", redirect(url.encode("ascii", "backslashreplace").decode()))
        for guard, start in ((Guard(max_seconds=5), url), (Guard([web.origin], max_seconds=5), away)):
            with pytest.raises(UrlError):
                fetched(guard, start)
    assert listener.connections == 0
    with socket.create_connection(("127.0.0.1", listener.port)):  # it does count
        pass
    with pytest.raises(UrlError):
        fetched(Guard([f"http://127.0.0.1:{listener.port}"]), f"http://127.0.0.1:{listener.port}/")
    assert listener.connections == 2


def test_over_tls_the_name_is_sent_to_the_address(web: Server) -> None:
    async def here(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    url = f"https://example.com:{web.port}"
    with pytest.raises(UrlError, match="ConnectError"):  # this server speaks no TLS
        fetched(Guard([url], resolver=here), url)
    assert [b"example.com" in hello for hello in web.hellos] == [True]
