"""Bodies are counted after decoding; charsets and times to wait are read as they may be meant."""

import asyncio
import codecs
import gzip
import time
import zlib
from collections.abc import AsyncIterator
from email.utils import formatdate

import httpx2
import pytest

from pegboard_net import CHARSETS, BodyError, body_of, charset_of, decoded, pieces_of, redirect_of, retry_after

MB = 1 << 20


def response(*pieces: bytes, asked: str = "gzip, deflate", **headers: str) -> httpx2.Response:
    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    request = httpx2.Request("GET", "http://example.com/", headers={"Accept-Encoding": asked})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(200, content=body(), headers=named, request=request)


def read(found: httpx2.Response, most: int = MB) -> bytes:
    return asyncio.run(body_of(found, most))


def test_a_body_of_exactly_as_many_bytes() -> None:
    assert read(response(b"x" * 10), 10) == b"x" * 10
    with pytest.raises(BodyError, match=r"^a body of more than 1,000 bytes$"):
        read(response(b"x" * 1001), 1000)


def bomb(encoding: str) -> bytes:
    """100 MB in a few kilobytes, packed fast: at the usual level it takes seconds."""
    body = bytes(100 * MB)
    for each in encoding.split(", "):
        body = gzip.compress(body, 1) if each == "gzip" else zlib.compress(body, 1)
    return body


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "gzip, gzip", "deflate, gzip"])
def test_a_bomb_is_counted_as_it_is_unpacked(encoding: str) -> None:
    sizes: list[int] = []

    async def drawn() -> None:
        async for piece in pieces_of(response(bomb(encoding), content_encoding=encoding), 5 * MB):
            sizes.append(len(piece))  # noqa: PERF401 - a comprehension would lose them when the last one raises

    with pytest.raises(BodyError, match="more than 5,242,880 bytes"):
        asyncio.run(drawn())
    assert max(sizes) <= MB
    assert sum(sizes) <= 5 * MB


@pytest.mark.parametrize("parts", [(b"text",), (b"te", b"xt")])
def test_what_is_packed_and_asked_for(parts: tuple[bytes, ...]) -> None:
    packed = b"".join(map(gzip.compress, parts))
    assert b"text".startswith(read(response(packed, content_encoding="gzip")))


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate", "br", "zstd", "x", "gzip, br", "identity, gzip"])
def test_a_coding_that_was_not_asked_for(encoding: str) -> None:
    with pytest.raises(BodyError, match="which was not asked for"):
        read(response(gzip.compress(b"text"), asked="identity", content_encoding=encoding))


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, br"])
def test_a_coding_that_nothing_here_decodes(encoding: str) -> None:
    with pytest.raises(BodyError, match="which was not asked for"):
        read(response(gzip.compress(b"text"), content_encoding=encoding))


@pytest.mark.parametrize("encoding", ["", "identity", " IDENTITY "])
def test_what_is_not_packed(encoding: str) -> None:
    assert read(response(b"text", asked="identity", content_encoding=encoding)) == b"text"


def test_damaged_codings() -> None:
    with pytest.raises(httpx2.DecodingError):
        read(response(b"no gzip", content_encoding="gzip"))
    with pytest.raises(httpx2.DecodingError):
        read(response(b"", content_encoding=", ".join(["gzip"] * 6)))


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 10_000])
def test_the_first_bytes_are_shown_once(size: int) -> None:
    shown: list[bytes] = []
    body = bytes(size)
    found = response(*(body[at : at + 1000] for at in range(0, size, 1000)))
    assert asyncio.run(body_of(found, MB, shown.append)) == body
    assert shown == [body[:4096]]


@pytest.mark.parametrize(
    ("media_type", "charset"),
    [("text/html", None), ("text/html; charset=UTF_8", "utf-8"), ('a/b; x=y; Charset="Latin1"', "latin1"), ("", None)],
)
def test_charset_of(media_type: str, charset: str | None) -> None:
    assert charset_of(media_type) == charset


def test_every_charset_is_one_of_text_that_python_knows() -> None:
    for charset in CHARSETS:
        assert codecs.lookup(charset)._is_text_encoding


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "utf-7", "rot13", "zlib", "hex", "x"])
def test_other_codecs_are_not_run(charset: str) -> None:
    began = time.perf_counter()
    assert decoded(b"bad-" + b"a" * 500_000, f"text/plain; charset={charset}").startswith("bad-aaa")
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("5", 5.0), (" 1.5 ", 1.5), ("0", 0.0), ("", None), ("-1", None), ("inf", None), ("nan", None), ("soon", None)],
)
def test_retry_after(header: str, seconds: float | None) -> None:
    assert retry_after(header) == seconds


def test_retry_after_as_a_date() -> None:
    assert retry_after(formatdate(time.time() + 60, usegmt=True)) == pytest.approx(60, abs=2)
    assert retry_after(formatdate(time.time() - 60, usegmt=True)) == 0.0


@pytest.mark.parametrize("status", [200, 201, 300, 301, 302, 303, 304, 305, 306, 307, 308, 401])
def test_redirect_of(status: int) -> None:
    found = httpx2.Response(status, headers={"Location": "/a"})
    assert redirect_of(found) == ("/a" if status in (301, 302, 303, 307, 308) else None)
    assert redirect_of(httpx2.Response(status)) is None
    assert redirect_of(httpx2.Response(status, headers={"Location": ""})) is None
