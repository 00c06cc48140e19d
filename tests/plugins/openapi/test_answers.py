"""What comes back: values, errors, redirects, limits, and when a request is sent again."""

import asyncio
import base64
import gzip
import json
import threading
from typing import Any

import pytest

from pegboard import ExecutionPolicy, ImageBlock, Status, Toolkit, ToolResult
from pegboard_net import CHARSETS, decoded
from pegboard_openapi import OpenApi
from tests.plugins.openapi.api import answering, one
from tests.plugins.openapi.servers import Asked, Sent, Server, running

PNG = b"\x89PNG\r\n\x1a\nrest"


def call(server: Server, document: Any = None, policy: ExecutionPolicy | None = None, **options: Any) -> ToolResult:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(OpenApi(document or one(), server.url, **options))
        return toolkit.call_sync("do", policy=policy)


class TestValues:
    @pytest.mark.parametrize(
        ("sent", "data", "text"),
        [
            (Sent({"a": [1, "é"]}), {"a": [1, "é"]}, '{"a": [1, "é"]}'),
            (Sent([1], media_type="application/problem+json; charset=utf-8"), [1], "[1]"),
            (Sent("hello"), "hello", "hello"),
            (Sent(b"NaN"), None, "null"),
            (Sent(b"caf\xe9", media_type="text/plain; charset=latin-1"), "café", "café"),
            (Sent(b"<a/>", media_type="image/svg+xml"), "<a/>", "<a/>"),
            (Sent(b"{not json", media_type="application/json"), "{not json", "{not json"),
            (Sent(b'{"a": 1}', media_type=None), {"a": 1}, '{"a": 1}'),
            (Sent(b"plain", media_type=None), "plain", "plain"),
            (Sent(b"", status=204), None, "null"),
            (Sent(b"", status=200), None, "null"),
        ],
    )
    def test_data_and_text(self, server: Server, sent: Sent, data: Any, text: str) -> None:
        server.answers = [sent]
        result = call(server)
        assert (result.status, result.data, result.text) == (Status.SUCCESS, data, text)

    def test_media_are_blocks(self, server: Server) -> None:
        for media_type in ("image/png", "application/octet-stream"):
            server.answers = [Sent(PNG, media_type=media_type)]
            (block,) = call(server).content
            assert isinstance(block, ImageBlock)
            assert (block.to_bytes(), block.media_type) == (PNG, "image/png")

    def test_other_bytes_are_files(self, server: Server) -> None:
        server.answers = [Sent(b"PK\3\4\0", media_type="application/zip")]
        block: Any = call(server).content[0]
        assert (type(block).__name__, block.media_type, block.to_bytes()) == (
            "FileBlock",
            "application/zip",
            b"PK\3\4\0",
        )

    def test_where_it_comes_from_is_for_the_program(self, server: Server) -> None:
        server.answers = [Sent({}, 201, headers=(("Location", "/things/7"), ("X-Other", "no")))]
        metadata = call(server, one("post")).metadata["openapi"]
        assert metadata == {"operation": "do", "status": 201, "location": "/things/7"}

    def test_a_coroutine_calls_on_its_own_loop(self, server: Server) -> None:
        async def run() -> list[ToolResult]:
            async with Toolkit(plugins=()) as toolkit:
                toolkit.register(OpenApi(one(), server.url))
                return await toolkit.call_many([("do", {})] * 20)

        assert {result.status for result in asyncio.run(run())} == {Status.SUCCESS}


class TestCharsets:
    @pytest.mark.parametrize(
        ("charset", "text"),
        [
            ("utf-8", "café"), ("UTF-8", "café"), ('"utf-8"', "café"), ("'utf-8'", "café"), ("utf-16", "café"),
            ("utf-16le", "café"), ("iso-8859-1", "café"), ("ISO8859-15", "€"), ("windows-1252", "€"), ("us-ascii", "e"),
            ("koi8-r", "кофе"), ("shift_jis", "珈琲"), ("euc-jp", "珈琲"), ("gb18030", "咖啡"), ("big5", "咖啡"),
            ("euc-kr", "커피"),
        ],
    )  # fmt: skip
    def test_text_is_read_as_it_is_written(self, server: Server, charset: str, text: str) -> None:
        server.answers = [Sent(text.encode(charset.strip("\"'")), media_type=f"text/plain; charset={charset}")]
        result = call(server)
        assert result.data == text
        assert "unknown_charset" not in result.metadata["openapi"]

    @pytest.mark.parametrize(
        "charset",
        [
            "punycode", "idna", "unicode_escape", "raw-unicode-escape", "utf-7", "hex", "base64", "rot13", "zlib",
            "bz2", "uu", "quopri", "undefined", "mbcs", "charmap", "no-such-codec", "x" * 300,
        ],
    )  # fmt: skip
    def test_codecs_that_are_no_charsets_are_not_run(self, server: Server, charset: str) -> None:
        # Python's own would take quadratic time, import modules, or make other text of it.
        body = "caf\\u00e9-é-abc".encode()
        server.answers = [Sent(body, media_type=f"text/plain; charset={charset}")]
        result = call(server)
        assert (result.status, result.data) == (Status.SUCCESS, body.decode())
        assert result.metadata["openapi"]["unknown_charset"] == charset.replace("_", "-")

    def test_nor_in_errors(self, server: Server) -> None:
        server.answers = [Sent("é-abc".encode(), 400, "text/plain; charset=punycode")]
        assert call(server).text == "GET /things answered 400 Bad Request: é-abc"

    def test_what_is_no_character_is_replaced(self, server: Server) -> None:
        server.answers = [Sent(b"a\xffb", media_type="text/plain; charset=utf-8")]
        assert call(server).data == "a\ufffdb"

    @pytest.mark.parametrize("charset", sorted(CHARSETS))
    def test_each_that_is_known_is_one(self, charset: str) -> None:
        assert decoded("abc".encode(charset), f"text/plain; charset={charset}") == "abc"


class TestPromises:
    DOCUMENT = one(
        responses=answering({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]})
    )

    def test_kept(self, server: Server) -> None:
        server.answers = [Sent({"id": 1, "more": 2})]
        assert call(server, self.DOCUMENT).data == {"id": 1, "more": 2}

    def test_broken(self, server: Server) -> None:
        server.answers = [Sent({"id": "one"})]
        result = call(server, self.DOCUMENT)
        assert (result.status, result.error and result.error.kind) == (Status.ERROR, "remote_schema")
        assert (
            "GET /things answered 200, it is done; but the answer is not as documented: id: expected integer"
            in result.text
        )
        assert '{"id": "one"}' in result.text

    def test_not_asked_for(self, server: Server) -> None:
        server.answers = [Sent({"id": "one"})]
        assert call(server, self.DOCUMENT, output_schemas=False).data == {"id": "one"}


class TestErrors:
    def test_status_and_body_are_told(self, server: Server) -> None:
        server.answers = [Sent({"detail": "no such\nthing"}, 404)]
        result = call(server)
        assert result.text == 'GET /things answered 404 Not Found: {"detail": "no such\\nthing"}'
        error: Any = result.error and result.error.exception
        assert (error.status, json.loads(error.body)) == (404, {"detail": "no such\nthing"})

    def test_a_long_body_is_cut(self, server: Server) -> None:
        server.answers = [Sent(b"<html>" + b"x" * 100_000, 400, "text/html")]
        assert len(call(server).text) < 2_100

    def test_no_server_is_there(self) -> None:
        with running(Server()) as gone:
            pass
        assert "the server cannot be reached (ConnectError)" in call(gone).text

    def test_too_much(self, server: Server) -> None:
        server.answers = [Sent(b"x" * 5_000, media_type="text/plain")]
        assert call(server, max_bytes=1_000).text == "GET /things answered with a body of more than 1,000 bytes."

    @pytest.mark.parametrize("codings", [1, 2, 3])
    def test_too_much_once_it_is_decoded(self, server: Server, codings: int) -> None:
        body = bytes(50_000_000)
        for _ in range(codings):
            body = gzip.compress(body)
        encoding = ("Content-Encoding", ", ".join(["gzip"] * codings))
        server.answers = [Sent(body, media_type="text/plain", headers=(encoding,))]
        assert call(server).text == "GET /things answered with a body of more than 10,485,760 bytes."

    @pytest.mark.parametrize(("method", "told"), [("get", ""), ("post", "; it may have been done all the same")])
    def test_too_late(self, server: Server, method: str, told: str) -> None:
        end = threading.Event()
        server.answer = lambda asked: Sent(end.wait(30))
        result = call(server, one(method), timeout=0.2)
        end.set()
        assert result.text.endswith(f"{method.upper()} /things did not answer within 0.2 seconds{told}")


AGAIN = ExecutionPolicy(max_attempts=3, initial_backoff=0.0, max_backoff=1.0, jitter=False)


class TestAgain:
    @pytest.mark.parametrize("method", ["get", "put", "head"])
    def test_what_may_be_done_twice(self, server: Server, method: str) -> None:
        server.answers = [Sent({}, 503), Sent({}, 429, headers=(("Retry-After", "0"),))]
        result = call(server, one(method), AGAIN)
        assert (result.status, result.attempts, len(server.asked)) == (Status.SUCCESS, 3, 3)

    @pytest.mark.parametrize("method", ["post", "patch", "delete"])
    def test_and_what_may_not(self, server: Server, method: str) -> None:
        server.answers = [Sent({}, 503, headers=(("Retry-After", "1"),))]
        result = call(server, one(method), AGAIN)
        assert (result.status, len(server.asked)) == (Status.ERROR, 1)
        assert "(it asks to wait 1 seconds)" in result.text

    def test_a_wait_that_is_too_long_is_not_waited_for(self, server: Server) -> None:
        server.answers = [Sent({"detail": "full"}, 429, headers=(("Retry-After", "3600"),))]
        result = call(server, one(), AGAIN)
        assert (result.status, len(server.asked)) == (Status.ERROR, 1)
        error: Any = result.error and result.error.exception
        assert (error.retry_after, error.status, json.loads(error.body)) == (3600.0, 429, {"detail": "full"})

    def test_what_is_refused_is_refused(self, server: Server) -> None:
        server.answers = [Sent({}, 400)]
        assert call(server, one(), AGAIN).status is Status.ERROR
        assert len(server.asked) == 1


class TestRedirects:
    def test_to_the_same_server_are_followed(self, server: Server) -> None:
        server.answers = [Sent(b"", 302, headers=(("Location", "/elsewhere?a=1"),))]
        assert call(server, token="made-up-token", send_always=True).data == {"path": "/elsewhere"}
        assert server.last.headers["Authorization"] == "Bearer made-up-token"

    def test_but_not_for_ever(self, server: Server) -> None:
        server.answer = lambda asked: Sent(b"", 302, headers=(("Location", "/again"),))
        assert "more redirects than are followed" in call(server).text
        assert len(server.asked) == 6

    def test_what_changes_something_is_not_sent_again(self, server: Server) -> None:
        server.answers = [Sent(b"", 307, headers=(("Location", "/elsewhere"),))]
        assert "answered 307, a redirect, which is not followed" in call(server, one("post")).text
        server.answers = [Sent(b"", 303, headers=(("Location", "/done"),))]
        assert call(server, one("post")).data == {"path": "/done"}
        assert server.last.method == "GET"

    def test_elsewhere_needs_the_guard_and_public_addresses(self, server: Server) -> None:
        with running(Server()) as other:
            server.answers = [Sent(b"", 302, headers=(("Location", f"{other.url}/taken?sig=1"),))]
            result = call(server, token="made-up-token", send_always=True)
            assert (result.status, other.asked) == (Status.ERROR, [])
        assert "is not at a public address" in result.text
        assert "sig" not in result.text

    def test_elsewhere_gets_no_credentials(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard_net._guard.is_public", lambda address: True)
        with running(Server()) as other:
            server.answers = [Sent(b"", 302, headers=(("Location", f"{other.url}/file"),))]
            assert call(server, token="made-up-token", send_always=True).data == {"path": "/file"}
            assert other.last.headers["Authorization"] is None

    def test_elsewhere_keeps_what_the_answer_is(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard_net._guard.is_public", lambda address: True)
        with running(Server()) as other:
            server.answers = [Sent(b"", 302, headers=(("Location", f"{other.url}/file"),))]
            other.answers = [Sent("é".encode("latin-1"), media_type="text/plain; charset=latin-1")]
            assert call(server).data == "é"


def test_a_big_answer_of_base64_passes(server: Server) -> None:
    content = base64.b64encode(bytes(3_000_000)).decode()

    def answer(asked: Asked) -> Sent:
        return Sent({"content": content})

    server.answer = answer
    assert call(server).data == {"content": content}
