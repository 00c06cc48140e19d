"""The same conversations through the models of four providers: each in its own format, with the same events."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from pegboard import ImageBlock, TextBlock, Toolkit, tool
from pegboard_agent import (
    RESTARTED,
    Agent,
    AgentStoppedError,
    AnthropicChat,
    CallEnded,
    CallStarted,
    Final,
    GeminiChat,
    Memory,
    Message,
    ModelError,
    OpenAIChat,
    OpenAIResponses,
    Stopped,
    TextDelta,
)
from pegboard_agent._models.model import Reply
from pegboard_testing import Failing, Raw, ScriptedServer
from tests.plugins.agent.desk import KEY, Calculator, WeatherService, events_of, faults_of, model_of
from tests.plugins.agent.wires import SIGNED, WIRES, InDialect, Say, Wire, model_on, request_of
from tests.support.thinning import one_in

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ASKED: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
WEATHER = ("get_weather", {"city": "Oslo"})
SUM = ("add", {"a": 15, "b": 27})
each_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


@tool
def chart(kind: str) -> list[Any]:
    """Draw a chart."""
    return [TextBlock(f"A {kind} chart:"), ImageBlock.from_bytes(PIXEL, "image/png"), TextBlock("That was it.")]


def toolkit() -> Toolkit:
    found = Toolkit(plugins=["dialects"])
    found.register(WeatherService(), Calculator(), chart)
    return found


def agent_on(wire: Wire, server: ScriptedServer, memory: Memory | None = None, **options: Any) -> Agent:
    board = toolkit()
    return Agent("A", InDialect(model_on(wire, server, **options), board), board, memory=memory)


def ask(model: Any, messages: Any = ASKED, tools: Any = (), **options: Any) -> list[Any]:
    async def collect() -> list[Any]:
        async with aclosing(model.stream(messages, list(tools), **options)) as chunks:
            return [chunk async for chunk in chunks]

    return asyncio.run(collect())


def reply_of(chunks: list[Any]) -> Reply:
    reply = Reply()
    for chunk in chunks:
        reply.feed(chunk)
    return reply


def told(events: list[Any]) -> list[Any]:
    """Events in words; pieces of text are joined, since providers cut them in different places."""
    found: list[Any] = []
    for event in events:
        match event:
            case TextDelta(text) if found and found[-1][0] == "text":
                found[-1] = ("text", found[-1][1] + text)
            case TextDelta(text):
                found.append(("text", text))
            case CallStarted(call):
                found.append(("call", call.id, call.name, call.arguments))
            case CallEnded(result):
                found.append(("result", result.call_id, result.status.value, result.text))
            case Final(message):
                found.append(("final", message.text, message.is_cut_off))
            case Stopped(reason):
                found.append(("stopped", reason))
    results = [event for event in found if event[0] == "result"]  # in whatever order the calls end
    return [event for event in found[:-1] if event[0] != "result"] + sorted(results) + found[-1:]


SCRIPTS: dict[str, tuple[Any, ...]] = {
    "text": (Say("Hello there, how are you?"),),
    "one call": (Say(calls=(WEATHER,)), Say("It is sunny.")),
    "parallel calls": (Say("Let me see.", (WEATHER, SUM)), Say("Sunny, and 42.")),
    "calls one after another": (Say(calls=(WEATHER,)), Say(calls=(SUM,)), Say("Sunny, and 42.")),
    "an image": (Say(calls=(("chart", {"kind": "bar"}), SUM)), Say("A dot.")),
    "reasoning": (Say("I look.", (WEATHER, SUM), thought="The user wants both."), Say("42.", thought="Done.")),
    "length": (Say("The first half", ends="length"),),
    "length in a call": (Say("Well.", (SUM, WEATHER), ends="length", cut=True), Say("No call then.")),
    "length after a call": (Say(calls=(SUM,), ends="length"), Say("No call then.")),
    "busy": (Failing(429, "slow down", {"Retry-After": "0.01"}), Say("Hello.")),
    "overloaded": (Failing(529, "overloaded"), Say(calls=(SUM,)), Failing(503), Say("42.")),
    "nothing said": (Say(),),
}


def is_as_openai_says(script: tuple[Any, ...], wire: Wire, *, stream: bool) -> None:
    openai, *_ = WIRES
    found = []
    for each in (openai, wire):
        with ScriptedServer(*each.replies(*script, stream=stream)) as server:
            found.append(told(events_of(agent_on(each, server), "What now?")))
            assert len(server.requests) == len(script)
    assert found[0] == found[1]
    assert found[0][-1][0] == "final"


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "at once"])
@pytest.mark.parametrize("name", one_in(3, list(SCRIPTS)))
@pytest.mark.parametrize("wire", WIRES[1:], ids=lambda wire: wire.name)
def test_the_events_are_those_of_chat_completions(wire: Wire, name: str, stream: bool) -> None:
    is_as_openai_says(SCRIPTS[name], wire, stream=stream)


class TestEvents:
    """What the events are, so that four models are not wrong alike."""

    @each_wire
    def test_parallel_calls(self, wire: Wire) -> None:
        with ScriptedServer(*wire.replies(*SCRIPTS["parallel calls"])) as server:
            events = told(events_of(agent_on(wire, server), "What now?"))
        assert events == [
            ("text", "Let me see."),
            ("call", "call_0_0", "get_weather", {"city": "Oslo"}),
            ("call", "call_0_1", "add", {"a": 15, "b": 27}),
            ("text", "Sunny, and 42."),
            ("result", "call_0_0", "success", "Weather in Oslo: Sunny, 25°C"),
            ("result", "call_0_1", "success", "42.0"),
            ("final", "Sunny, and 42.", False),
        ]

    @each_wire
    @pytest.mark.parametrize("name", ["length in a call", "length after a call"])
    def test_a_call_that_a_length_stop_cut_does_not_run(self, wire: Wire, name: str) -> None:
        with ScriptedServer(*wire.replies(*SCRIPTS[name])) as server:
            events = told(events_of(agent_on(wire, server), "What now?"))
        assert not [event for event in events if event[0] == "call"]
        assert all("the message was cut off" in event[3] for event in events if event[0] == "result")
        assert events[-1] == ("final", "No call then.", False)

    @each_wire
    def test_a_length_stop_of_text_is_said(self, wire: Wire) -> None:
        with ScriptedServer(*wire.replies(*SCRIPTS["length"])) as server:
            answer = agent_on(wire, server).call_sync("What now?")
        assert (answer.text, answer.is_cut_off) == ("The first half", True)

    @each_wire
    @pytest.mark.parametrize("stream", [True, False])
    def test_a_refusal_is_a_text_for_the_user(self, wire: Wire, stream: bool) -> None:
        with ScriptedServer(*wire.replies(Say(ends="refusal"), stream=stream)) as server:
            events = told(events_of(agent_on(wire, server), "What now?"))
        assert [event[0] for event in events] == ["text", "final"]
        assert "I may not say that." in events[0][1]
        assert events[0][1] == events[1][1]

    @pytest.mark.parametrize("wire", WIRES[1:], ids=lambda wire: wire.name)  # the first one's are a text or a refusal
    @pytest.mark.parametrize("stream", [True, False])
    def test_a_refusal_in_the_middle_is_said_after_the_text(self, wire: Wire, stream: bool) -> None:
        with ScriptedServer(*wire.replies(Say("First you", ends="refusal"), stream=stream)) as server:
            answer = agent_on(wire, server).call_sync("What now?")
        assert answer.text.startswith("First you")
        assert "I may not say that." in answer.text

    @each_wire
    @pytest.mark.parametrize("stream", [True, False])
    def test_usage(self, wire: Wire, stream: bool) -> None:
        with ScriptedServer(*wire.replies(Say("Hello."), stream=stream)) as server:
            usage = reply_of(ask(model_on(wire, server))).usage
        prompt = {"cached_tokens": 4, **({} if wire.name == "gemini" else {"cache_write_tokens": 3})}
        assert usage == {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": prompt,
            "completion_tokens_details": {"reasoning_tokens": 2},
        }

    @each_wire
    @pytest.mark.parametrize("stream", [True, False])
    def test_no_usage_is_no_number(self, wire: Wire, stream: bool) -> None:
        with ScriptedServer(*wire.replies(Say("Hello.", tokens=False), stream=stream)) as server:
            assert reply_of(ask(model_on(wire, server))).usage == {}

    @each_wire
    @pytest.mark.parametrize("stream", [True, False])
    def test_reasoning_comes_apart_from_text(self, wire: Wire, stream: bool) -> None:
        with ScriptedServer(*wire.replies(Say("42.", thought="15 and 27."), stream=stream)) as server:
            chunks = ask(model_on(wire, server))
        reply = Reply()
        pieces = [reply.feed(chunk) for chunk in chunks]
        assert "".join(piece.text for piece in pieces) == "42."
        assert "".join(piece.reasoning for piece in pieces) == "15 and 27."


class TestFailures:
    @each_wire
    def test_a_response_that_breaks_off_begins_anew(self, wire: Wire) -> None:
        say = Say("Hello there, how are you?")
        with ScriptedServer(*wire.replies(wire.stream(say, most=4), say)) as server:
            chunks = ask(model_on(wire, server))
        assert chunks.count(RESTARTED) == 1
        assert reply_of(chunks).text == "Hello there, how are you?"

    @each_wire
    def test_text_is_not_shown_twice(self, wire: Wire) -> None:
        say = Say("Hello there, how are you?", thought="A greeting, it seems.")
        with ScriptedServer(*wire.replies(wire.stream(say, most=6), say)) as server:
            chunks = ask(model_on(wire, server))
        reply = Reply()
        pieces = [reply.feed(chunk) for chunk in chunks]
        assert "".join(piece.text for piece in pieces) == "Hello there, how are you?"
        assert "".join(piece.reasoning for piece in pieces) == "A greeting, it seems."

    @each_wire
    def test_a_call_that_breaks_off_does_not_run(self, wire: Wire) -> None:
        say = Say(calls=(SUM, WEATHER))
        most = len(list(wire.events(say, {}))) - 3
        with ScriptedServer(*wire.replies(wire.stream(say, most=most), Say("No call."))) as server:
            events = told(events_of(agent_on(wire, server), "What now?"))
        assert [event[0] for event in events] == ["text", "final"]

    @each_wire
    def test_an_error_in_the_stream_that_may_pass(self, wire: Wire) -> None:
        kind = {"anthropic": "overloaded_error", "openai-responses": "server_error"}.get(wire.name, "")
        error = Raw(f"data: {json.dumps(wire.error(kind, 'busy'))}\n\n")
        with ScriptedServer(error, *wire.replies(Say("Hello."))) as server:
            assert reply_of(ask(model_on(wire, server))).text == "Hello."

    @each_wire
    def test_an_error_in_the_stream_that_will_not(self, wire: Wire) -> None:
        kind = {"anthropic": "invalid_request_error", "openai-responses": "invalid_prompt"}.get(wire.name)
        event = wire.error(kind, "no such thing") if kind else {"error": {"code": 400, "message": "no such thing"}}
        error = Raw(f"data: {json.dumps(event)}\n\n")
        with ScriptedServer(forever=error) as server, pytest.raises(ModelError, match="answered 400: no such thing"):
            ask(model_on(wire, server))
        assert len(server.requests) == 1

    @each_wire
    def test_the_key_is_in_no_error_and_no_url(self, wire: Wire) -> None:
        with ScriptedServer(Failing(401, f"bad key {KEY}")) as server, pytest.raises(AgentStoppedError) as caught:
            agent_on(wire, server).call_sync("hi")
        assert KEY in server.headers[0][wire.key]
        seen: BaseException | None = caught.value
        while seen is not None:
            assert KEY not in f"{seen!s}{seen!r}"
            seen = seen.__cause__
        assert "answered 401: bad key ***" in str(caught.value)

    @each_wire
    @pytest.mark.parametrize("status", [401, 403])
    def test_no_key_is_said(self, wire: Wire, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(wire.variable, raising=False)
        with ScriptedServer(Failing(status, "who?")) as server, pytest.raises(ModelError) as caught:
            ask(wire.model("m", base_url=server.url))
        assert str(caught.value).endswith(f"(no key was sent: set {wire.variable}, or give api_key)")
        assert wire.key not in server.headers[0]

    @each_wire
    def test_the_last_failure_does_not_show_the_key_either(self, wire: Wire) -> None:
        said = Raw(f"data: [1, '{KEY}'\n\n")
        with ScriptedServer(forever=said) as server, pytest.raises(ModelError) as caught:
            ask(model_on(wire, server))
        cause: BaseException | None = caught.value
        while cause is not None:
            assert KEY not in str(cause)
            cause = cause.__cause__ or cause.__context__


def first_line(wire: Wire, **options: Any) -> str:
    """The first line of the request, which has the path."""
    lines: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with listening.accept()[0] as connection, connection.makefile("rb") as sent:
                lines.append(sent.readline().decode())
                while sent.readline().strip():
                    pass
                connection.sendall(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v9/"
        with pytest.raises(ModelError):
            ask(wire.model(options.pop("model", "scripted"), base_url=url, api_key=KEY, **options))
        thread.join(30)
    return lines[0]


class TestAddresses:
    @each_wire
    def test_the_path_follows_the_version(self, wire: Wire) -> None:
        assert first_line(wire) == f"POST /v9{wire.path} HTTP/1.1\r\n"

    @pytest.mark.parametrize(
        ("model", "path"),
        [("tunedModels/mine", "tunedModels/mine"), ("a b?c#d", "models/a%20b%3Fc%23d")],
    )
    def test_names_of_geminis_models(self, model: str, path: str) -> None:
        assert first_line(WIRES[3], model=model) == f"POST /v9/{path}:streamGenerateContent?alt=sse HTTP/1.1\r\n"

    @each_wire
    def test_the_providers_own_server_is_the_default(self, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(wire.variable, "from-the-environment")
        model = wire.model("m")
        host = {"openai": "api.openai.com", "openai-responses": "api.openai.com", "anthropic": "api.anthropic.com",
                "gemini": "generativelanguage.googleapis.com"}[wire.name]  # fmt: skip
        assert repr(model) == f"{wire.model.__name__}('m', {host})"
        assert model.base_url.rpartition("/")[2] in ("v1", "v1beta")
        assert model.api_key.value == "from-the-environment"
        assert model.dialect == wire.name

    def test_what_servers_can_be_told_of_tools(self) -> None:
        for model in (OpenAIChat, OpenAIResponses):
            assert model("m").keeps is True
            assert model("m", base_url="http://127.0.0.1:1/v1").keeps is False
            assert model("m", base_url="http://127.0.0.1:1/v1", keeps=True).keeps is True
            assert model("m", keeps=False).keeps is False
        assert GeminiChat("m").keeps is True
        assert AnthropicChat("m").keeps is False


class TestReasoningGoesBack:
    """In place, to the provider that it came from, and to no other."""

    def second_request(self, wire: Wire, stream: bool) -> dict[str, Any]:
        with ScriptedServer(*wire.replies(*SCRIPTS["reasoning"], stream=stream)) as server:
            agent_on(wire, server).call_sync("What now?")
        request: dict[str, Any] = server.requests[1]
        return request

    @pytest.mark.parametrize("stream", [True, False])
    def test_signed_and_redacted_blocks(self, stream: bool) -> None:
        request = self.second_request(WIRES[2], stream)
        assert request["messages"][1] == {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "The user wants both.", "signature": SIGNED},
                {"type": "redacted_thinking", "data": SIGNED},
                {"type": "text", "text": "I look."},
                {
                    "type": "tool_use",
                    "id": "call_0_0",
                    "name": "get_weather",
                    "input": {"city": "Oslo"},
                    "caller": {"type": "direct"},
                },
                {
                    "type": "tool_use",
                    "id": "call_0_1",
                    "name": "add",
                    "input": {"a": 15, "b": 27},
                    "caller": {"type": "direct"},
                },
            ],
        }
        results = request["messages"][2]["content"]
        assert [block["tool_use_id"] for block in results] == ["call_0_0", "call_0_1"]

    @pytest.mark.parametrize("stream", [True, False])
    def test_encrypted_items_as_they_were_done(self, stream: bool) -> None:
        request = self.second_request(WIRES[1], stream)
        assert request["store"] is False
        assert request["include"] == ["reasoning.encrypted_content"]
        _, thought, said, *rest = request["input"]
        summary = [{"type": "summary_text", "text": "The user wants both."}]
        assert thought == {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": SIGNED}
        assert said == {"role": "assistant", "content": "I look."}
        assert [item["type"] for item in rest] == ["function_call"] * 2 + ["function_call_output"] * 2
        assert [item["call_id"] for item in rest] == ["call_0_0", "call_0_1"] * 2
        assert rest[0]["arguments"] == '{"city": "Oslo"}'

    @pytest.mark.parametrize("stream", [True, False])
    def test_thought_signatures_of_calls(self, stream: bool) -> None:
        request = self.second_request(WIRES[3], stream)
        assert request["contents"][1] == {
            "role": "model",
            "parts": [
                {"text": "I look."},
                {
                    "function_call": {"id": "call_0_0", "name": "get_weather", "args": {"city": "Oslo"}},
                    "thought_signature": SIGNED,
                },
                {"function_call": {"id": "call_0_1", "name": "add", "args": {"a": 15, "b": 27}}},
            ],
        }
        responses = [part["function_response"] for part in request["contents"][2]["parts"]]
        assert [(each["id"], each["name"]) for each in responses] == [("call_0_0", "get_weather"), ("call_0_1", "add")]

    def test_the_signature_of_a_text(self) -> None:
        wire = WIRES[3]
        with ScriptedServer(*wire.replies(Say("42.", thought="Hm."), Say("Yes."))) as server:
            model = model_on(wire, server)
            message = reply_of(ask(model)).message(toolkit().dialect("openai"))
            ask(model, [*ASKED, message, {"role": "user", "content": "Sure?"}])
        parts = [{"text": "42."}, {"text": "", "thoughtSignature": SIGNED}]
        assert server.requests[1]["contents"][1]["parts"] == parts

    def test_calls_without_ids_get_none_back(self) -> None:
        wire = WIRES[3]
        call = {"functionCall": {"name": "add", "args": {"a": 1, "b": 2}}}
        event = {"candidates": [{"content": {"role": "model", "parts": [call, call]}, "finishReason": "STOP"}]}
        with ScriptedServer(Raw(f"data: {json.dumps(event)}\n\n"), *wire.replies(Say("3"))) as server:
            agent_on(wire, server).call_sync("1 + 2, twice")
        contents = server.requests[1]["contents"]
        assert contents[1]["parts"] == [{"function_call": {"name": "add", "args": {"a": 1, "b": 2}}}] * 2
        assert [set(part["function_response"]) for part in contents[2]["parts"]] == [{"name", "response"}] * 2

    @pytest.mark.parametrize("first", one_in(2, WIRES), ids=lambda wire: wire.name)
    @pytest.mark.parametrize("second", WIRES, ids=lambda wire: wire.name)
    def test_another_provider_goes_on(self, first: Wire, second: Wire) -> None:
        memory = Memory()
        with ScriptedServer(*first.replies(*SCRIPTS["reasoning"])) as server:
            agent_on(first, server, memory).call_sync("What now?")
        with ScriptedServer(*second.replies(Say("Yes."))) as server:
            assert agent_on(second, server, memory).call_sync("Sure?").text == "Yes."
        (request,) = server.requests
        sent = json.dumps(request)
        assert "provider" not in sent
        if first is not second:
            assert SIGNED not in sent
        for word in ("What now?", "I look.", "Oslo", "Sunny", "42.", "Sure?"):
            assert word in sent
        if first.name != "gemini" and second.name == "gemini":
            calls = [part for content in request["contents"] for part in content["parts"] if "function_call" in part]
            assert [part.get("thought_signature") for part in calls] == ["skip_thought_signature_validator", None]

    def test_openais_own_server_is_not_sent_the_reasoning_of_others(self) -> None:
        message = {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm.", "provider": {"anthropic": []}}
        own = OpenAIChat("m", api_key=KEY)._body([*ASKED, message], [], {})
        assert own["messages"] == [*ASKED, {"role": "assistant", "content": "Hi."}]
        other = OpenAIChat("m", base_url="http://127.0.0.1:1/v1", api_key=KEY)._body([*ASKED, message], [], {})
        assert other["messages"][1] == {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm."}

    def test_a_model_of_the_program_is_not_sent_it_either(self) -> None:
        seen: list[Any] = []

        class Echo:
            async def stream(self, messages: Any, tools: Any, **options: Any) -> Any:
                seen.extend(messages)
                yield {"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]}

        memory = Memory()
        with ScriptedServer(*WIRES[2].replies(*SCRIPTS["reasoning"])) as server:
            agent_on(WIRES[2], server, memory).call_sync("What now?")
        Agent("A", Echo(), toolkit(), memory=memory).call_sync("Sure?")
        assert seen
        assert "provider" not in json.dumps(seen)

    def test_a_server_that_does_not_take_it_any_more(self) -> None:
        """Newer models of Anthropic refuse reasoning where what stood before it has changed: tools that were found."""
        wire = WIRES[2]
        refusal = (
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different "
            'conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
        )
        script = (Say(calls=(SUM,), thought="Add."), Failing(400, refusal), Say(calls=(WEATHER,), thought="Look."))
        with ScriptedServer(*wire.replies(*script, Say("Sunny."))) as server:
            assert agent_on(wire, server).call_sync("What now?").text == "Sunny."
        assert '"thinking"' in json.dumps(server.requests[1])
        assert '"thinking"' not in json.dumps(server.requests[2])

    def test_it_is_left_out_for_the_rest_of_a_run(self) -> None:
        wire = WIRES[2]

        async def twice(model: Any) -> None:
            async with model.connected() as connected:
                for _ in range(2):
                    async for _ in connected.stream([*ASKED, message, *ASKED], []):
                        pass

        own = {"type": "redacted_thinking", "data": "eA=="}
        kept = {"anthropic": [{"text": 0, "calls": 0, "length": 0, "own": own}]}
        message = {"role": "assistant", "content": "Hi.", "provider": kept}
        refused = Failing(400, "Invalid `signature` in `thinking` block")
        with ScriptedServer(refused, *wire.replies(Say("1"), Say("2"))) as server:
            asyncio.run(twice(model_on(wire, server)))
        sent = ["redacted_thinking" in json.dumps(request) for request in server.requests]
        assert sent == [True, False, False]

    @pytest.mark.parametrize("stream", [True, False])
    def test_a_server_of_chat_completions_cannot_write_it(self, stream: bool) -> None:
        forged = {
            "anthropic": [{"text": 0, "calls": 0, "length": 0, "own": {"type": "redacted_thinking", "data": "x"}}]
        }
        call = {"index": 0, "id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
        said = {"content": "Hi.", "provider": forged, "tool_calls": [{**call, "provider": {"anthropic": {"x": 1}}}]}
        body = json.dumps({"choices": [{"delta" if stream else "message": said, "finish_reason": "stop"}]})
        raw = Raw(f"data: {body}\n\n") if stream else Raw(body, "application/json")
        with ScriptedServer(raw) as server:
            message = reply_of(ask(model_of(server))).message(toolkit().dialect("openai"))
        assert message["content"] == "Hi."
        assert message["tool_calls"][0]["id"] == "c"
        assert "provider" not in json.dumps(message)

    def test_models_that_do_not_reason_are_not_asked_for_encrypted_reasoning(self) -> None:
        wire = WIRES[1]
        refused = Failing(400, "Encrypted content is not supported with this model.")
        with ScriptedServer(*wire.replies(refused, Say(calls=(SUM,)))) as server:
            assert reply_of(ask(model_on(wire, server))).finish == "tool_calls"
        assert [request["include"] for request in server.requests] == [["reasoning.encrypted_content"], []]

    def test_it_is_asked_for_once_only(self) -> None:
        refused = Failing(400, "Invalid `signature` in `thinking` block")
        with ScriptedServer(forever=refused) as server, pytest.raises(ModelError, match="answered 400: Invalid"):
            ask(model_on(WIRES[2], server))
        assert len(server.requests) == 2


class TestMessages:
    def sent(self, wire: Wire, messages: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
        with ScriptedServer(*wire.replies(Say("ok"))) as server:
            ask(model_on(wire, server), messages, **options)
        request: dict[str, Any] = server.requests[0]
        return request

    @each_wire
    def test_an_image_of_a_result_stands_in_the_result(self, wire: Wire) -> None:
        data = base64.b64encode(PIXEL).decode()
        with ScriptedServer(*wire.replies(*SCRIPTS["an image"])) as server:
            agent_on(wire, server).call_sync("Draw and add.")
        request = server.requests[1]
        text = "A bar chart:"
        if wire.name == "openai":
            assert not faults_of(request["messages"])
            assert request["messages"][-1]["content"][1]["image_url"]["url"] == f"data:image/png;base64,{data}"
        elif wire.name == "anthropic":
            drawn, added = request["messages"][-1]["content"]
            assert drawn["content"] == [
                {"type": "text", "text": text},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
                {"type": "text", "text": "That was it."},
            ]
            assert added["content"] == "42.0"
        elif wire.name == "gemini":
            drawn, added = (part["function_response"] for part in request["contents"][-1]["parts"])
            assert drawn["response"] == {"output": f"{text}\nThat was it."}
            assert drawn["parts"] == [{"inline_data": {"mime_type": "image/png", "data": data}}]
            assert added["response"] == {"output": "42.0"}
        else:
            drawn, added = request["input"][-2:]
            url = f"data:image/png;base64,{data}"
            assert drawn["output"] == [
                {"type": "input_text", "text": text},
                {"type": "input_image", "image_url": url, "detail": "auto"},
                {"type": "input_text", "text": "That was it."},
            ]
            assert added["output"] == "42.0"
        if wire.name != "openai":
            assert "it follows in the next message" not in json.dumps(request)

    @each_wire
    @pytest.mark.parametrize("url", ["https://example.com/a.png", "data:image/png;base64,iVBORw0KGgo="])
    def test_images_of_the_user(self, wire: Wire, url: str) -> None:
        is_data = url.startswith("data:")
        block = ImageBlock(data="iVBORw0KGgo=", media_type="image/png") if is_data else ImageBlock(url=url)
        request = self.sent(wire, [Message("user", ["Look:", block, "What is it?"]).to_openai()])
        image: dict[str, Any]
        if wire.name == "openai":
            content = request["messages"][0]["content"]
            image, texts = content[1], [content[0]["text"], content[2]["text"]]
            assert image == {"type": "image_url", "image_url": {"url": url}}
        elif wire.name == "anthropic":
            content = request["messages"][0]["content"]
            image, texts = content[1], [content[0]["text"], content[2]["text"]]
            data = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
            assert image == {"type": "image", "source": data if is_data else {"type": "url", "url": url}}
        elif wire.name == "gemini":
            content = request["contents"][0]["parts"]
            image, texts = content[1], [content[0]["text"], content[2]["text"]]
            inline = {"inline_data": {"mime_type": "image/png", "data": "iVBORw0KGgo="}}
            assert image == (inline if is_data else {"file_data": {"file_uri": url, "mime_type": "image/png"}})
        else:
            content = request["input"][0]["content"]
            image, texts = content[1], [content[0]["text"], content[2]["text"]]
            assert image == {"type": "input_image", "image_url": url, "detail": "auto"}
        assert texts == ["Look:", "What is it?"]

    def test_what_the_system_says_has_its_own_place(self) -> None:
        system = {"role": "system", "content": "Be brief."}
        later = {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]}
        messages = [system, *ASKED, later]
        assert self.sent(WIRES[1], messages)["instructions"] == "Be brief.\n\nBe kind."
        assert self.sent(WIRES[2], messages)["system"] == "Be brief.\n\nBe kind."
        gemini = self.sent(WIRES[3], messages)
        assert gemini["system_instruction"] == {"parts": [{"text": "Be brief.\n\nBe kind."}]}
        assert gemini["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]

    @pytest.mark.parametrize("wire", WIRES[2:], ids=lambda wire: wire.name)
    def test_roles_alternate_and_nothing_is_empty(self, wire: Wire) -> None:
        said = [("user", "a"), ("user", "b"), ("assistant", ""), ("user", "c"), ("assistant", "d"), ("assistant", "e")]
        request = self.sent(wire, [{"role": role, "content": text} for role, text in said])
        turns = request.get("messages") or request["contents"]
        assert [turn["role"] in ("assistant", "model") for turn in turns] in ([False, True], [False, False, True])
        texts = [part["text"] for turn in turns for part in turn.get("content") or turn["parts"]]
        assert texts == ["a", "b", "c", "d", "e"]

    @each_wire
    def test_the_form_of_the_answer(self, wire: Wire) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        form = {"type": "json_schema", "json_schema": {"name": "next_step", "schema": schema}}
        request = self.sent(wire, ASKED, response_format=form)
        found = {
            "openai": request.get("response_format"),
            "openai-responses": request.get("text"),
            "anthropic": request.get("output_config"),
            "gemini": request.get("generation_config"),
        }[wire.name]
        assert (
            found
            == {
                "openai": form,
                "openai-responses": {"format": {"type": "json_schema", "name": "next_step", "schema": schema}},
                "anthropic": {"format": {"type": "json_schema", "schema": schema}},
                "gemini": {"response_mime_type": "application/json", "response_json_schema": schema},
            }[wire.name]
        )
        assert wire.name == "openai" or "response_format" not in request

    def test_a_form_that_anthropic_has_no_words_for(self) -> None:
        with pytest.raises(ModelError, match="a json_schema alone"):
            ask(AnthropicChat("m", api_key=KEY), response_format={"type": "json_object"})

    @each_wire
    def test_options_go_into_every_request(self, wire: Wire) -> None:
        with ScriptedServer(*wire.replies(Say("ok"))) as server:
            ask(model_on(wire, server, temperature=0.5), top_p=0.9)
        request = server.requests[0]
        held = request["generation_config"] if wire.name == "gemini" else request
        assert (held["temperature"], held["top_p"]) == (0.5, 0.9)

    @each_wire
    @pytest.mark.parametrize("choice", ["auto", "required", "none", "add", ["add", "chart"]], ids=str)
    def test_a_request_of_the_dialect_is_sent_whole(self, wire: Wire, choice: Any) -> None:
        if wire.name == "anthropic" and isinstance(choice, list):
            choice = "add"  # it has no words for a subset
        tools, options = request_of(toolkit().dialect(wire.name), choice, parallel=False)
        with ScriptedServer(*wire.replies(Say("ok"))) as server:
            ask(model_on(wire, server), tools=tools, **options)
        (request,) = server.requests
        assert tools
        assert request["tools"] == tools
        assert options.items() <= request.items()

    @each_wire
    def test_no_choice_among_no_tools(self, wire: Wire) -> None:
        board = toolkit()
        dialect = board.dialect(wire.name)
        name = "tool_config" if wire.name == "gemini" else "tool_choice"
        choice = {name: dialect.tool_choice("none")}
        with ScriptedServer(*wire.replies(Say("ok"), Say("ok"))) as server:
            ask(model_on(wire, server), tools=dialect.tools(), **choice)
            ask(model_on(wire, server), **choice)
        assert server.requests[0]["tools"] == dialect.tools()
        assert server.requests[0][name] == dialect.tool_choice("none")
        assert not {"tools", name} & set(server.requests[1])

    @pytest.mark.parametrize("wire", WIRES[1:], ids=lambda wire: wire.name)
    def test_ids_are_such_as_every_provider_takes(self, wire: Wire) -> None:
        """Some servers number the calls of each message alike, and use characters that others refuse."""
        messages: list[dict[str, Any]] = list(ASKED)
        for answers in (("one", "two"), ("three",)):
            call = {"id": "functions.add:0", "type": "function", "function": {"name": "add", "arguments": "{}"}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call] * len(answers)})
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": answer} for answer in answers]
        request = self.sent(wire, messages)
        found = list(_ids_in(request))
        called, answered = found[: len(found) // 2], found[len(found) // 2 :]
        assert len(set(found)) == 3
        assert sorted(called + answered) == sorted(2 * [*set(found)])
        assert all(each.replace("_", "").isalnum() and len(each) <= 64 for each in found)

    @pytest.mark.parametrize("wire", WIRES[1:], ids=lambda wire: wire.name)
    def test_arguments_that_are_no_object_go_back_as_one(self, wire: Wire) -> None:
        call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{broken"}}
        messages = [*ASKED, {"role": "assistant", "content": None, "tool_calls": [call]}]
        request = self.sent(wire, [*messages, {"role": "tool", "tool_call_id": "c", "content": "no"}])
        assert "INVALID_JSON" in json.dumps(request)

    def test_the_word_of_google_for_when_to_ask_again(self) -> None:
        detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3600s"}
        body = json.dumps({"error": {"code": 429, "message": "quota", "details": [detail]}})
        model = GeminiChat("m", api_key=KEY)
        assert model._wait_named({}, body) == 3600.0
        assert model._wait_named({"retry-after": "7"}, "{}") == 7.0

    @pytest.mark.parametrize(
        ("event", "text"),
        [
            ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "PROHIBITED_CONTENT"),
            ({"candidates": [{"finishReason": "RECITATION"}]}, "RECITATION"),
        ],
    )
    def test_what_google_holds_back(self, event: Any, text: str) -> None:
        with ScriptedServer(Raw(f"data: {json.dumps(event)}\n\n")) as server:
            answer = agent_on(WIRES[3], server).call_sync("hi")
        assert answer.text == f"(The server held the answer back: {text})"

    def test_a_malformed_call_is_asked_for_anew(self) -> None:
        bad = Raw('data: {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "add("}]}\n\n')
        with ScriptedServer(bad, *WIRES[3].replies(Say("Hello."))) as server:
            assert agent_on(WIRES[3], server).call_sync("hi").text == "Hello."

    def test_several_messages_of_one_response_are_paragraphs(self) -> None:
        wire = WIRES[1]
        whole = wire.whole(Say("Let me look."), {})
        whole["output"][0]["phase"] = "commentary"
        whole["output"].append({**wire.whole(Say("It is 42."), {})["output"][0], "phase": "final_answer"})
        with ScriptedServer(Raw(json.dumps(whole), "application/json"), *wire.replies(Say("Yes."))) as server:
            agent, model = agent_on(wire, server), model_on(wire, server)
            reply = reply_of(ask(model))
            ask(model, [*ASKED, reply.message(agent.toolkit.dialect("openai")), *ASKED])
        assert reply.text == "Let me look.\n\nIt is 42."
        said = [(item.get("phase"), item["content"].strip()) for item in server.requests[1]["input"][1:3]]
        assert said == [("commentary", "Let me look."), ("final_answer", "It is 42.")]

    def test_reasoning_that_only_a_store_holds_does_not_go_back(self) -> None:
        wire = WIRES[1]
        whole = wire.whole(Say("Hm.", thought="Well."), {})
        del whole["output"][0]["encrypted_content"]
        with ScriptedServer(Raw(json.dumps(whole), "application/json")) as server:
            message = reply_of(ask(model_on(wire, server))).message(toolkit().dialect("openai"))
        assert message == {"role": "assistant", "content": "Hm.", "reasoning_content": "Well."}


def _ids_in(value: Any) -> Iterator[str]:
    """Ids of calls and of what answers them, wherever they are in a request."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("id", "call_id", "tool_use_id") and isinstance(inner, str):
                yield inner
            else:
                yield from _ids_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _ids_in(inner)


def test_models_are_what_an_agent_takes() -> None:
    with ScriptedServer("ok") as server:
        assert model_of(server).dialect == "openai"
    for wire in WIRES:
        Agent("A", wire.model("m", api_key=KEY), toolkit())
