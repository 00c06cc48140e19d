"""A server that means harm, or is broken: what it sends has bounds, in bytes and in time."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import ExecutionPolicy
from pegboard_agent import Agent, AgentStoppedError, ModelError, OpenAIChat
from pegboard_agent._models import response
from pegboard_testing import Failing, Raw, ScriptedServer
from tests.plugins.agent.desk import AT_ONCE, KEY, model_of

ASKED = [{"role": "user", "content": "hi"}]
STREAM = "text/event-stream"


def ask(model: OpenAIChat) -> str:
    async def collect() -> str:
        chunks = [chunk async for chunk in model.stream(ASKED, [])]
        return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])

    return asyncio.run(collect())


def read_request(connection: socket.socket) -> None:
    """All of it: what is left unread when a connection is closed resets it, and its answer may be lost."""
    with connection.makefile("rb") as sent:
        length = 0
        while line := sent.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        sent.read(length)


@contextmanager
def sending(body: Iterable[bytes], *headers: str, status: int = 200, kind: str = STREAM) -> Iterator[OpenAIChat]:
    """A model behind a server that sends this body, which may have no end, to the first that asks."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError), listening.accept()[0] as connection:
                head = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {kind}", "Connection: close", *headers]
                read_request(connection)
                connection.sendall("\r\n".join([*head, "", ""]).encode())
                for piece in body:
                    connection.sendall(piece)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        once = ExecutionPolicy(max_attempts=1).merged_over(AT_ONCE)
        yield OpenAIChat("m", base_url=url, api_key=KEY, policy=once)
    thread.join(30)
    assert not thread.is_alive()


def slowly(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        time.sleep(0.005)
        yield piece


class TestSizes:
    def test_nothing_compressed_is_asked_for(self) -> None:
        with ScriptedServer("ok") as server:
            ask(model_of(server))
        assert server.headers[0]["accept-encoding"] == "identity"

    @pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "deflate"])
    @pytest.mark.parametrize(
        ("status", "said"), [(400, r"answered 400: \(the server sent "), (200, r"127\.0\.0\.1:\d+ sent ")]
    )
    def test_a_small_body_that_would_become_a_large_one_is_not_unpacked(
        self, encoding: str, status: int, said: str
    ) -> None:
        bomb = gzip.compress(gzip.compress(bytes(1 << 24)))
        with (
            sending([bomb], f"Content-Encoding: {encoding}", status=status) as model,
            pytest.raises(ModelError, match=f"{said}a body encoded as '{encoding}', which was not asked for"),
        ):
            ask(model)

    def test_a_line_without_end(self) -> None:
        with (
            sending(chain([b"data: "], repeat(b"x" * 65536))) as model,
            pytest.raises(ModelError, match="sent a line of more than 16,777,216 bytes"),
        ):
            ask(model)

    def test_a_body_without_end_that_comes_at_once(self) -> None:
        with (
            sending(repeat(b" " * 65536), kind="application/json") as model,
            pytest.raises(ModelError, match="sent a body of more than 16,777,216 bytes"),
        ):
            ask(model)

    def test_an_error_without_end(self) -> None:
        with sending(repeat(b"no " * 65536), status=400) as model, pytest.raises(ModelError) as caught:
            ask(model)
        assert "answered 400: no no no" in str(caught.value)
        assert len(str(caught.value)) < 600

    @pytest.mark.parametrize("blanks", [0, 65_490, 65_500, 65_530])
    def test_a_key_at_the_end_of_what_is_read_of_an_error(self, blanks: int) -> None:
        long = [b" " * blanks + KEY.encode() + b" and more" * 10_000]
        with sending(long, status=400) as model, pytest.raises(ModelError) as caught:
            ask(model)
        assert KEY[:4] not in str(caught.value)

    def test_comments_without_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(response, "LONGEST_STREAM", 1 << 20)
        with (
            sending(repeat(b": still here\n\n" * 1000)) as model,
            pytest.raises(ModelError, match="sent a body of more than 1,048,576 bytes"),
        ):
            ask(model)

    @pytest.mark.parametrize("status", [200, 400])
    def test_deep_nesting_is_no_json(self, status: int) -> None:
        deep = "[" * 60_000
        with sending([f"data: {deep}\n\n".encode()], status=status) as model, pytest.raises(ModelError):
            ask(model)

    def test_the_charset_of_a_server_is_not_used(self) -> None:
        """Some take a time that grows with the square of the text."""
        with (
            sending([b"bad-" + b"a" * 50_000], status=400, kind="text/plain; charset=punycode") as model,
            pytest.raises(ModelError, match="answered 400: bad-aaa"),
        ):
            ask(model)

    def test_an_agent_says_what_came(self) -> None:
        with (
            sending(chain([b"data: "], repeat(b"x" * 65536))) as model,
            pytest.raises(AgentStoppedError, match="sent a line of more than 16,777,216 bytes"),
        ):
            Agent("A", model).call_sync("hi")


class TestDeadline:
    def test_comments_for_ever(self) -> None:
        with sending(slowly(repeat(b": still here\n\n"))) as model:
            model.deadline = 0.2
            with pytest.raises(ModelError, match=r"did not answer completely within 0\.2 s, the model's deadline"):
                ask(model)

    def test_text_for_ever(self) -> None:
        chunk = b'data: {"choices": [{"delta": {"content": "more "}}]}\n\n'
        with sending(slowly(repeat(chunk))) as model:
            model.deadline = 0.2
            with pytest.raises(ModelError, match="deadline"):
                ask(model)

    def test_headers_that_do_not_come(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
            with pytest.raises(ModelError, match="deadline"):
                ask(OpenAIChat("m", base_url=url, api_key=KEY, deadline=0.2))

    def test_all_attempts_and_the_waits_between_them_count(self) -> None:
        often = ExecutionPolicy(max_attempts=1000, timeout=60.0)
        busy = Failing(503, headers={"Retry-After": "0.05"})
        with ScriptedServer(forever=busy) as server, pytest.raises(ModelError, match="deadline"):
            ask(model_of(server, policy=often, deadline=0.3))
        assert 1 < len(server.requests) < 1000

    def test_none_is_no_deadline(self) -> None:
        with ScriptedServer("ok") as server:
            assert ask(model_of(server, deadline=None)) == "ok"

    @pytest.mark.parametrize("deadline", [0, -1, True, "5", float("nan"), float("inf")])
    def test_what_is_none_is_refused(self, deadline: Any) -> None:
        with pytest.raises(ValueError, match="deadline is a number of seconds above 0, or None"):
            OpenAIChat("m", deadline=deadline)


class TestLines:
    @pytest.mark.parametrize("text", ["a\u2028b\u2029c", "a\x85b\x0bc\x0cd\x1ce", "再见\n再见"])
    def test_text_ends_no_line_that_json_allows_in_it(self, text: str) -> None:
        with ScriptedServer(text, fragment=100) as server:
            assert ask(model_of(server)) == text

    def test_lines_may_end_as_those_of_windows(self) -> None:
        event = 'data: {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}'
        with ScriptedServer(Raw(f": hello\r\n{event}\r\n\r\ndata: [DONE]\r\n\r\n")) as server:
            assert ask(model_of(server)) == "Hi"

    @given(st.lists(st.binary(max_size=12) | st.just(b"\n") | st.just("é\n".encode()), max_size=12))
    def test_pieces_are_cut_anywhere(self, pieces: list[bytes]) -> None:
        async def read() -> list[str]:
            async def body() -> AsyncIterator[bytes]:
                for piece in pieces:
                    yield piece

            sent = httpx2.Response(200, content=body())
            return [line async for come in response.lines(sent) for line in come]

        whole = b"".join(pieces).decode("utf-8", "replace").split("\n")
        assert asyncio.run(read()) == (whole if whole[-1] else whole[:-1])
