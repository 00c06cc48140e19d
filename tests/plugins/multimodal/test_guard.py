"""The guard connects to nothing that it does not allow, whatever the URL looks like."""

import asyncio
import gzip
import ipaddress
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard_multimodal.guard import Fetched, Guard, RefusedUrlError, UrlError, is_public, origin_of
from tests.plugins.multimodal import samples
from tests.plugins.multimodal.servers import Answer, Server, sleeping
from tests.support.thinning import first, one_in

PUBLIC = "93.184.216.34"


def words(text: str) -> list[str]:
    return text.split()


# Addresses that are reserved, this machine's or its network's, and addresses of the internet beside them.
PRIVATE = words("""
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.254 127.0.0.1 127.0.0.53 127.1.2.3
127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.254 192.0.0.1
192.0.0.9 192.0.0.10 192.0.0.170 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.254 198.18.0.1 198.19.255.254
198.51.100.1 203.0.113.1 224.0.0.1 224.0.0.251 239.255.255.250 240.0.0.1 250.1.2.3 255.255.255.255 :: ::1 ::2
::7f00:1 ::127.0.0.1 ::a00:1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0.0.0.0
::ffff:192.168.1.1 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::7f00:1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254
64:ff9b:1::1 64:ff9b:1::127.0.0.1 100::1 2001::1 2001:0:7f00:1:: 2001:1::1 2001:2::1 2001:10::1 2001:20::1
2001:db8::1 2001:db8:ffff::1 2002:7f00:1:: 2002:7f00:1::1 2002:a00:1:: 2002:c0a8:101::1 2002:a9fe:a9fe:: 3fff::1
5f00::1 fc00::1 fd00::1 fd00:ec2::254 fdff::1 fe80::1 fe80::a9fe:a9fe fec0::1 feff::1 ff00::1 ff02::1 ff02::fb
ff05::1:3 ffff::1 4000::1 8000::1
""")
OPEN = words("""
1.1.1.1 8.8.8.8 9.9.9.9 93.184.216.34 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 172.15.255.255 172.32.0.1
192.0.1.1 192.167.255.255 192.169.0.1 198.17.255.255 198.20.0.1 223.255.255.255 2606:4700:4700::1111 2a00:1450::1
2001:4860:4860::8888 2003::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1
""")

# Ways to write 127.0.0.1, 169.254.169.254 and others that some readers understand, and hosts that are none.
HOSTS = words("""
0 1 127.1 127.0.1 2130706433 0x7f000001 0x7F000001 0X7f000001 017700000001 0177.0.0.1 0177.0.0.01 0x7f.1 0x7f.0.0.1
0x7f.0x0.0x0.0x1 127.0.0.0x1 127.0x0.1 127.0.0.1. 127.1. 0x7f.1. 127.000.000.001 0127.0.0.1 00000177.0.0.1
127.0.0.01 2852039166 0xa9fea9fe 025177524776 0251.0376.0251.0376 169.254.43518 169.16689662 0xA9.254.0251.254
0xa9.0xfe.0xa9.0xfe 4294967295 4294967297 127.0.0.1.1 256.256.256.256 1.2.3 1..2 .127.0.0.1 127.0.0.1.. 0x 0x. 0xg.1
[127.0.0.1] [::1%25lo] [::1%lo] [fe80::1%25eth0] [::1] [::] [0:0:0:0:0:0:0:1] [0000::0001] [::ffff:127.0.0.1]
[::ffff:7f00:1] [0:0:0:0:0:ffff:127.0.0.1] [64:ff9b::7f00:1] [::127.0.0.1] [::ffff:0x7f.1] [::1].example.com [v1.x]
[] \u2460\u2461\u2466.\u24ea.\u24ea.\u2460 \uff11\uff12\uff17.\uff10.\uff10.\uff11 127\u30020\u30020\u30021
127\uff0e0\uff0e0\uff0e1 127\uff610\uff610\uff611
\u246f\u2468\u3002\u2461\u2464\u2463\u3002\u246f\u2468\uff61\u2461\u2464\u2463
\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3 localho\u017ft loc\xadalhost loc\u200balhost ex\u0430mple.com
127.0.0.\u0661 \u2488\u2489 127%2e0%2e0%2e1 %31%32%37.0.0.1 %6c%6f%63alhost localhost%00 127.0.0.1%2f 127.0.0.1%23
-localhost localhost- a..b *.example.com exa$mple.com exa,mple.com exa~mple.com {host}
""")

# Whole URLs.
TRICKS = [
    "",
    "example.com",
    "//example.com/cat.png",
    "http:",
    "http:/",
    "http://",
    "http:///",
    "http:///example.com",
    "http:example.com",
    "http:/example.com",
    "http://?",
    "http://#",
    "http://:80/",
    "http://@/",
    "http:\\\\127.0.0.1\\",
    "http://example.com\\@127.0.0.1/",
    "http://127.0.0.1\\@example.com/",
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1@example.com/",
    "http://user:secret@example.com/",
    "http://user@example.com/",
    "http://:@example.com/",
    "http://@example.com/",
    "http://example.com:80@127.0.0.1/",
    "http://%00@127.0.0.1/",
    "http://127.0.0.1#@example.com/",
    "http://127.0.0.1?@example.com/",
    "http://127.0.0.1 @example.com/",
    "http://exa mple.com/",
    " http://127.0.0.1/",
    "http://127.0.0.1/ ",
    "http://127.0.0.1\t/",
    "http://127.0.0.1\r\n/",
    "http://example.com/\r\nX-Injected: 1",
    "http://example.com/\x00",
    "http://example.com/\x7f",
    "ht\ntp://example.com/",
    "http://127.0.0.1:80:80/",
    "http://example.com:22/",
    "http://example.com:25/",
    "http://example.com:0/",
    "http://example.com:1/",
    "http://example.com:445/",
    "http://example.com:1023/",
    "http://example.com:65536/",
    "http://example.com:-1/",
    "http://example.com:8o/",
    "http://example.com:٨٠/",
    "https://example.com:22/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://localhost:8080/",
    "http://sub.localhost/",
    "http://internal/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://rebound.example/",
    "http://half.example/",
    "http://mapped.example/",
    "http://nat64.example/",
    "http://odd.example/",
    "https://internal/",
    "HTTP://127.0.0.1/",
    "hTTp://[::1]/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "file://example.com/etc/passwd",
    "gopher://example.com/",
    "dict://example.com/",
    "ldap://example.com/",
    "ws://example.com/",
    "wss://example.com/",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "jar:http://example.com/",
    "javascript:alert(1)",
    "data:image/png;base64,AAAA",
    "blob:http://example.com/1",
    "about:blank",
    "http://" + "a" * 300 + ".com/",
    "http://example.com/" + "a" * 9000,
]
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
        self.answer = answer or (lambda _: httpx2.Response(200, content=samples.png()))
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


def urls() -> list[str]:
    written = [*(f"[{each}]" if ":" in each else each for each in PRIVATE), *HOSTS]
    return [f"http://{host}/cat.png" for host in written] + TRICKS


def test_there_are_many() -> None:
    assert len({*urls()}) >= 230


@pytest.mark.parametrize("url", urls())
def test_refused(url: str) -> None:
    wire = Wire()
    with pytest.raises(UrlError) as raised:
        fetched(guarded(wire), url)
    assert wire.requests == []
    assert "secret" not in str(raised.value)
    with pytest.raises(UrlError):
        asyncio.run(guarded(wire).check(url))


@pytest.mark.parametrize("url", one_in(12, urls()))
def test_refused_behind_a_redirect(url: str) -> None:
    wire = Wire(lambda _: httpx2.Response(302, headers=[(b"Location", url.encode())]))
    with pytest.raises(UrlError):
        fetched(guarded(wire), "https://example.com/")
    # What is no URL of its own leads back to the first host; none leads anywhere else.
    assert {*wire.hosts} == {PUBLIC}


@pytest.mark.parametrize("address", PRIVATE)
def test_names_at_private_addresses(address: str) -> None:
    wire = Wire()

    async def resolver(host: str, port: int) -> list[str]:
        return [PUBLIC, address]

    with pytest.raises(RefusedUrlError, match="not at a public address"):
        fetched(guarded(wire, resolver=resolver), "http://example.com/")
    assert wire.requests == []
    assert not is_public(address)


@pytest.mark.parametrize("address", OPEN)
def test_public_addresses(address: str) -> None:
    wire = Wire()
    host = f"[{address}]" if ":" in address else address
    assert is_public(address)
    assert fetched(guarded(wire), f"http://{host}:8080/cat.png?a=b#c").content == samples.png()
    assert [ipaddress.ip_address(each) for each in wire.hosts] == [ipaddress.ip_address(address)]
    (request,) = wire.requests
    assert (request.url.port, request.url.raw_path) == (8080, b"/cat.png?a=b")


@given(st.ip_addresses())
def test_no_address_is_public_that_the_registries_call_private(address: Any) -> None:
    if is_public(str(address)):
        # Since 3.13 no address of 6to4 is global by itself; the IPv4 address that it holds decides.
        assert (getattr(address, "sixtofour", None) or address).is_global
        assert not any([address.is_multicast, address.is_loopback, address.is_link_local, address.is_unspecified])


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:{}", "64:ff9b::{}"]))
def test_an_address_within_counts(address: ipaddress.IPv4Address, form: str) -> None:
    assert is_public(form.format(address)) is is_public(str(address))


@given(st.text(max_size=60), st.sampled_from(["", "http://", "https://", "http://127.0.0.1", "http://[", "http://a@"]))
def test_any_text_is_fetched_from_a_checked_address_or_refused(text: str, before: str) -> None:
    wire = Wire()
    try:
        fetched(guarded(wire), before + text)
    except UrlError:
        return
    assert all(map(is_public, wire.hosts))


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
        guard = guarded(wire, origins=["http://internal:8000"])
        assert fetched(guard, "http://internal:8000/made.png").content == samples.png()
        for other in ("http://internal/", "http://internal:8001/", "https://internal:8000/", "http://10.0.0.7:8000/"):
            with pytest.raises(RefusedUrlError):
                fetched(guard, other)
        assert wire.hosts == ["10.0.0.7"]

    def test_a_private_origin_leads_nowhere_else(self) -> None:
        wire = Wire(lambda _: httpx2.Response(302, headers={"Location": "http://127.0.0.1:1234/"}))
        with pytest.raises(RefusedUrlError):
            fetched(guarded(wire, origins=["http://internal:8000"]), "http://internal:8000/")
        assert wire.hosts == ["10.0.0.7"]

    def test_origin_of(self) -> None:
        assert origin_of("HTTPS://Example.com/a?b") == "https://example.com:443"
        with pytest.raises(RefusedUrlError):
            origin_of("example.com")


class TestLimits:
    def test_redirects(self) -> None:
        wire = Wire(lambda request: httpx2.Response(307, headers={"Location": str(request.url.path) + "x"}))
        with pytest.raises(UrlError, match="more redirects than are followed"):
            fetched(guarded(wire), "http://example.com/x")
        assert len(wire.requests) == 6

    @pytest.mark.parametrize("status", [201, 204, 206, 304, 400, 401, 404, 500, 503])
    def test_other_answers(self, status: int) -> None:
        wire = Wire(lambda _: httpx2.Response(status, content=b""))
        with pytest.raises(UrlError, match=f"example.com/ answered {status}"):
            fetched(guarded(wire), "http://example.com/?signature=x")

    @pytest.mark.parametrize(
        "encoding", first(2, ["gzip", "x", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip"])
    )
    def test_nothing_is_unpacked(self, web: Server, encoding: str) -> None:
        bomb = gzip.compress(gzip.compress(bytes(50_000_000)))
        packed = bomb if "gzip" in encoding else zlib.compress(bytes(50_000_000))
        url = web.host("bomb", packed, headers={"Content-Encoding": encoding})
        with pytest.raises(UrlError, match="compressed"):
            fetched(Guard([web.origin]), url)

    def test_a_size_that_is_said(self, web: Server) -> None:
        url = web.host("large", b"x" * 10, headers={"Content-Length": "99999999999"})
        with pytest.raises(UrlError, match="more than 52,428,800 bytes"):
            fetched(Guard([web.origin]), url)

    def test_a_size_that_is_not_said(self) -> None:
        drawn: list[int] = []

        async def endless() -> Any:
            while True:
                drawn.append(1)
                yield bytes(1000)

        wire = Wire(lambda _: httpx2.Response(200, content=endless()))
        with pytest.raises(UrlError, match="more than 10,000 bytes"):
            fetched(guarded(wire, max_bytes=10_000), "http://example.com/")
        assert len(drawn) == 11

    def test_slow_answers_and_slow_bodies(self, web: Server) -> None:
        url = web.host("slow", b"x", before=sleeping(1.0))
        with pytest.raises(UrlError, match=r"did not answer within 0\.2 seconds|could not be fetched"):
            fetched(Guard([web.origin], max_seconds=0.2), url)

        async def dripping() -> Any:
            while True:
                yield b"x"
                await asyncio.sleep(0.02)

        wire = Wire(lambda _: httpx2.Response(200, content=dripping()))
        with pytest.raises(UrlError, match=r"did not answer within 0\.3 seconds"):
            fetched(guarded(wire, max_seconds=0.3), "http://example.com/")

    def test_a_body_that_breaks_off(self, web: Server) -> None:
        url = web.host("torn", b"x" * 1000, cut=10)
        with pytest.raises(UrlError, match="could not be fetched: RemoteProtocolError"):
            fetched(Guard([web.origin]), url)

    def test_a_slow_resolver(self) -> None:
        async def slow(host: str, port: int) -> list[str]:
            await asyncio.sleep(60)
            return [PUBLIC]

        with pytest.raises(UrlError, match="did not answer"):
            fetched(guarded(Wire(), resolver=slow, max_seconds=0.1), "http://example.com/")

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
    loopback = [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "[::1]",
        "0.0.0.0",
        "[::]",
        "127.9.9.9",
        *HOSTS,
        "[::ffff:7f00:1]",
    ]
    for host in loopback:
        url = f"http://{host}:{listener.port}/"
        web.files["/away"] = Answer(b"", 302, {"Location": url.encode("ascii", "backslashreplace").decode()})
        for guard, start in ((Guard(max_seconds=5), url), (Guard([web.origin], max_seconds=5), f"{web.origin}/away")):
            with pytest.raises(UrlError):
                fetched(guard, start)
    assert listener.connections == 0
    with socket.create_connection(("127.0.0.1", listener.port)):  # it does count
        pass
    with pytest.raises(UrlError):
        fetched(Guard([f"http://127.0.0.1:{listener.port}"]), f"http://127.0.0.1:{listener.port}/")
    assert listener.connections == 2


def test_over_tls_the_name_is_checked_at_the_address(web: Server) -> None:
    async def here(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    url = web.origin.replace("http://127.0.0.1", "https://example.com")
    with pytest.raises(UrlError, match="ConnectError"):  # this server speaks no TLS
        fetched(Guard([url], resolver=here), url)
