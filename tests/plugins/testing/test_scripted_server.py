"""The scripted server: real HTTP, what was written down, and nothing left open."""

import http.client
import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from pegboard_testing import Broken, Failing, Raw, ScriptedServer
from tests.support.residue import Open


def post(server: ScriptedServer, **asked: Any) -> str:
    body = json.dumps({"model": "any", "messages": [], **asked}).encode()
    with urlopen(Request(f"{server.url}/chat/completions", body), timeout=10) as response:
        text: str = response.read().decode()
    return text


def deltas(stream: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in stream.splitlines() if line]
    assert lines.pop() == "[DONE]"
    return [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]


class TestReplies:
    def test_whole(self) -> None:
        with ScriptedServer(["Well. ", ("roll", {"sides": 6})]) as server:
            reply = json.loads(post(server))
        message = reply["choices"][0]["message"]
        assert message["content"] == "Well. "
        assert message["tool_calls"][0]["function"] == {"name": "roll", "arguments": '{"sides": 6}'}
        assert reply["usage"]["total_tokens"] == 15

    @pytest.mark.parametrize("fragment", [1, 3, 100])
    def test_in_fragments(self, fragment: int) -> None:
        with ScriptedServer(["你好, you", ("roll", '{"sides": '), ("toss", {})], fragment=fragment) as server:
            told = deltas(post(server, stream=True))
        assert "".join(delta.get("content") or "" for delta in told) == "你好, you"
        pieces = [piece for delta in told for piece in delta.get("tool_calls", ())]
        arguments = ["".join(p["function"]["arguments"] for p in pieces if p["index"] == index) for index in (0, 1)]
        assert arguments == ['{"sides": ', "{}"]
        assert [piece["function"]["name"] for piece in pieces if "id" in piece] == ["roll", "toss"]

    def test_usage_comes_if_it_is_asked_for(self) -> None:
        with ScriptedServer(forever="ok") as server:
            assert "usage" not in post(server, stream=True)
            assert '"usage"' in post(server, stream=True, stream_options={"include_usage": True})

    def test_ids_are_new_in_a_conversation(self) -> None:
        with ScriptedServer(forever=[("roll", {}), ("roll", {})]) as server:
            replies = [json.loads(post(server, messages=[{}] * count)) for count in (1, 3)]
        ids = [call["id"] for reply in replies for call in reply["choices"][0]["message"]["tool_calls"]]
        assert len(set(ids)) == 4

    def test_functions_of_the_request(self) -> None:
        with ScriptedServer(lambda request: f"to {request['model']}") as server:
            assert "to any" in post(server)

    def test_failures(self) -> None:
        with ScriptedServer(Failing(429, "slow down", {"Retry-After": "7"})) as server:
            with pytest.raises(HTTPError) as caught:
                post(server)
            assert caught.value.headers["Retry-After"] == "7"
            assert json.load(caught.value)["error"]["message"] == "slow down"
            with pytest.raises(HTTPError, match="400"):  # the script is over
                post(server)

    def test_what_breaks_off(self) -> None:
        with ScriptedServer(Broken("Hello there."), Broken("Hello there.", events=2), Raw("junk")) as server:
            with pytest.raises(http.client.RemoteDisconnected):
                post(server)
            with pytest.raises(http.client.IncompleteRead) as caught:
                post(server, stream=True)
            assert caught.value.partial.count(b"data: ") == 2
            assert post(server) == "junk"

    def test_what_came_is_recorded(self) -> None:
        with ScriptedServer("ok") as server:
            post(server, temperature=0)
        assert server.requests == [{"model": "any", "messages": [], "temperature": 0}]
        assert server.headers[0]["host"] in server.url

    def test_nothing_is_left_open(self) -> None:
        before = Open.now()
        with ScriptedServer("ok") as server:
            host = server.url.split("/")[2]
            kept = http.client.HTTPConnection(host, timeout=10)
            kept.request("POST", "/v1/chat/completions", b"{}", {"Content-Length": "2"})
            kept.getresponse().read()
        kept.close()
        assert before.residue() == []
