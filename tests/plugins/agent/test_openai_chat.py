"""The client: what it sends, what it tries again, what it says when it gives up."""

import asyncio
import socket
import time
from email.utils import formatdate
from typing import Any

import pytest

from pegboard import ExecutionPolicy, Secret
from pegboard_agent import RESTARTED, ModelError, OpenAIChat
from pegboard_testing import Broken, Failing, Raw, ScriptedServer
from tests.plugins.agent.desk import AT_ONCE, KEY, model_of
from tests.support.thinning import first

ASKED = [{"role": "user", "content": "hi"}]


def ask(model: OpenAIChat, messages: Any = ASKED, **options: Any) -> list[Any]:
    async def collect() -> list[Any]:
        return [chunk async for chunk in model.stream(messages, [], **options)]

    return asyncio.run(collect())


def text_of(chunks: list[Any]) -> str:
    return "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])


class TestRequests:
    def test_what_is_sent(self) -> None:
        with ScriptedServer("Hello.") as server:
            chunks = ask(model_of(server, temperature=0.5), seed=7)
        assert text_of(chunks) == "Hello."
        assert server.requests == [
            {
                "model": "scripted",
                "messages": ASKED,
                "stream": True,
                "stream_options": {"include_usage": True},
                "temperature": 0.5,
                "seed": 7,
            }
        ]
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"

    def test_half_a_surrogate_pair_is_sent_as_a_question_mark(self) -> None:
        with ScriptedServer("ok") as server:
            ask(model_of(server), [{"role": "user", "content": "\ud83d"}])
        assert server.requests[0]["messages"][0]["content"] == "?"

    def test_connections_stay_open_within_connected(self) -> None:
        async def twice(model: OpenAIChat) -> None:
            async with model.connected() as connected:
                for _ in range(2):
                    async for _ in connected.stream(ASKED, []):
                        pass

        with ScriptedServer("one", "two") as server:
            asyncio.run(twice(model_of(server)))
        assert len(server.requests) == 2
        assert server.connections == 1


class TestKeys:
    @pytest.mark.parametrize(
        ("base_url", "variable"),
        [
            ("https://api.openai.com/v1", "OPENAI_API_KEY"),
            ("http://127.0.0.1:1/v1", "OPENAI_API_KEY"),
            ("https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
            ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
            ("https://dashscope.example.com/v1", "OPENAI_API_KEY"),
        ],
    )
    def test_come_from_the_environment(self, base_url: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
        monkeypatch.setenv("DASHSCOPE_API_KEY", "of-dashscope")
        monkeypatch.setenv(variable, "the right one")
        model = OpenAIChat("m", base_url=base_url)
        assert model.api_key.value == "the right one"
        assert "right" not in repr(model) + repr(vars(model))

    @pytest.mark.parametrize("given", [KEY, Secret(KEY), f" {KEY}\n"])
    def test_may_be_given(self, given: Any) -> None:
        with ScriptedServer("ok") as server:
            ask(model_of(server, api_key=given))
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"

    def test_an_empty_one_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
        with ScriptedServer("ok") as server:
            ask(model_of(server, api_key=""))
        assert "authorization" not in server.headers[0]

    def test_what_cannot_be_one_is_refused_without_showing_it(self) -> None:
        with pytest.raises(ValueError, match="characters that no key has") as caught:
            OpenAIChat("m", api_key="sk-\nsecret")
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize(
        "said",
        [
            Failing(401, f"bad key {KEY}"),
            Raw(f'data: {{"error": {{"message": "bad key {KEY}", "code": 400}}}}\n\n'),
            Raw(f"data: no JSON, but {KEY}\n\n"),
            Raw(f"no JSON, but {KEY}", "application/json"),
        ],
    )
    def test_are_taken_out_of_what_the_server_says(self, said: Any) -> None:
        with ScriptedServer(forever=said) as server, pytest.raises(ModelError) as caught:
            ask(model_of(server))
        assert "***" in str(caught.value)
        assert KEY not in str(caught.value)

    @pytest.mark.parametrize("key", ["x", "EMPTY", "ollama"])
    def test_one_that_only_stands_for_a_key_hides_nothing(self, key: str) -> None:
        reason = f"the context of 4096 tokens is exceeded: {key}"
        with ScriptedServer(Failing(400, reason)) as server, pytest.raises(ModelError, match=f"answered 400: {reason}"):
            ask(model_of(server, api_key=key))

    @pytest.mark.parametrize("key", [b"sk-bytes", 5])
    def test_a_key_that_is_no_text_is_refused_at_once(self, key: Any) -> None:
        with pytest.raises(TypeError, match=f"the API key is a text or a Secret of one, not {type(key).__name__}"):
            OpenAIChat("m", api_key=key)

    def test_a_server_that_wants_a_key_where_there_is_none(self) -> None:
        with (
            ScriptedServer(Failing(401, "who are you?")) as server,
            pytest.raises(ModelError, match=r"no key was sent: set OPENAI_API_KEY, or give api_key"),
        ):
            ask(model_of(server, api_key=""))


class TestTryingAgain:
    @pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
    def test_what_may_pass(self, status: int) -> None:
        with ScriptedServer(Failing(status), "ok") as server:
            assert text_of(ask(model_of(server))) == "ok"

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
    def test_what_will_not(self, status: int) -> None:
        with (
            ScriptedServer(Failing(status, "no"), "ok") as server,
            pytest.raises(ModelError, match=f"answered {status}: no"),
        ):
            ask(model_of(server))
        assert len(server.requests) == 1

    def test_the_last_attempt_says_how_often(self) -> None:
        with ScriptedServer(forever=Failing(503, "busy")) as server, pytest.raises(ModelError) as caught:
            ask(model_of(server))
        assert str(caught.value).endswith("was asked 3 times and failed: 503: busy")

    def test_one_attempt_is_one_request(self) -> None:
        once = ExecutionPolicy(max_attempts=1)
        with ScriptedServer(forever=Failing(503)) as server, pytest.raises(ModelError, match="was asked once"):
            ask(model_of(server, policy=once))
        assert len(server.requests) == 1

    @pytest.mark.parametrize("wait", first(2, ["0.2", "a date", "-5", "soon", "nan"]))
    def test_retry_after_is_waited_for(self, wait: str) -> None:
        date = int(time.time()) + 2
        wait = formatdate(date, usegmt=True) if wait == "a date" else wait
        with ScriptedServer(Failing(429, headers={"Retry-After": wait}), "ok") as server:
            started = time.monotonic()
            assert text_of(ask(model_of(server))) == "ok"
        waited = time.monotonic() - started
        assert waited >= (0.2 if wait == "0.2" else 0)
        assert time.time() >= (date if "GMT" in wait else 0)

    def test_too_long_a_wait_is_no_wait(self) -> None:
        said = Failing(429, "slow down", {"Retry-After": "3600"})
        with ScriptedServer(said) as server, pytest.raises(ModelError, match="again in 3600 s only: 429: slow down"):
            ask(model_of(server))

    def test_a_broken_response_begins_anew_and_says_so(self) -> None:
        with ScriptedServer(Broken("Hello there.", 2), "Hello there.") as server:
            chunks = ask(model_of(server))
        assert text_of(chunks[:2]) == "Hello th"
        assert chunks[2] is RESTARTED
        assert text_of(chunks[3:]) == "Hello there."

    def test_an_unannounced_end_is_a_break(self) -> None:
        half = Raw('data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n')
        with ScriptedServer(half, "Hello.") as server:
            assert text_of(ask(model_of(server))).endswith("Hello.")
        assert len(server.requests) == 2

    def test_silence_is_a_break(self) -> None:
        impatient = AT_ONCE.merged_over(ExecutionPolicy())
        impatient = ExecutionPolicy(timeout=0.1).merged_over(impatient)
        with ScriptedServer(Broken("Hello.", 2, seconds=1.0), "Hello.") as server:
            assert text_of(ask(model_of(server, policy=impatient))).endswith("Hello.")

    @pytest.mark.parametrize(
        "odd",
        [
            Raw('data: {"choices": "none"}\n\ndata: [DONE]\n\n'),
            Raw('data: {"choices": ["text"]}\n\ndata: [DONE]\n\n'),
            Raw('data: {"choices": [{"delta": "text"}]}\n\ndata: [DONE]\n\n'),
            Raw("data: [DONE]\n\n"),
            Raw('{"answer": 42}', "application/json"),
            Raw('{"choices": [{"message": "text"}]}', "application/json"),
        ],
    )
    def test_what_is_no_completion_is_asked_for_anew(self, odd: Raw) -> None:
        with ScriptedServer(odd, "ok") as server:
            assert text_of(ask(model_of(server))) == "ok"
        with ScriptedServer(forever=odd) as server, pytest.raises(ModelError) as caught:
            ask(model_of(server))
        assert "was asked 3 times and failed: the response " in str(caught.value)

    def test_a_redirect_is_not_followed_and_says_where_it_leads(self) -> None:
        elsewhere = Failing(307, "", {"Location": "http://169.254.169.254/v1"})
        with ScriptedServer(forever=elsewhere) as server, pytest.raises(ModelError) as caught:
            ask(model_of(server))
        assert str(caught.value).endswith(
            "307, a redirect to http://169.254.169.254/v1, which is not followed; give the right address as base_url"
        )
        assert len(server.requests) == 1

    def test_no_server_listens(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        model = OpenAIChat("m", base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, policy=AT_ONCE)
        with pytest.raises(ModelError, match=rf"^127.0.0.1:{port} was asked 3 times and failed: ConnectError"):
            ask(model)

    @pytest.mark.parametrize("base_url", ["ftp://example.com", "nonsense", "http://[::1"])
    def test_what_is_no_server(self, base_url: str) -> None:
        with pytest.raises(ModelError, match="is no URL of a server"):  # which asking again does not fix
            ask(OpenAIChat("m", base_url=base_url, api_key=KEY, policy=AT_ONCE))
