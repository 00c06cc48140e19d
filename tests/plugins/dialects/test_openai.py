"""OpenAI's chat completions."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard import FileBlock, ImageBlock, PegboardError, Status, ToolCall, Toolkit, ToolResult, UnknownNameError, tool
from tests.plugins.dialects.desk import BLOCKS, NAMES, PIXEL, chart, get_forecast, result, toolkit_of


@pytest.fixture
def toolkit() -> Toolkit:
    return toolkit_of(get_forecast, chart)


def said(*calls: tuple[str, str, str]) -> dict[str, Any]:
    """A message of the model's."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ],
    }


def chunk(**delta: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def seen(calls: list[ToolCall]) -> list[tuple[str, str, Any]]:
    return [(call.id, call.name, call.arguments) for call in calls]


class TestTools:
    def test_definition(self, toolkit: Toolkit) -> None:
        first = toolkit.dialect("openai").tools()[0]
        assert first == {
            "type": "function",
            "function": {
                "name": "get_forecast",
                "description": "Weather forecast.",
                "parameters": toolkit["get_forecast"].parameters,
            },
        }

    def test_same_as_schemas(self, toolkit: Toolkit) -> None:
        assert toolkit.dialect("openai").tools() == toolkit.schemas("openai") == toolkit.schemas(dialect="openai")

    def test_session_and_view_show_what_they_offer(self, toolkit: Toolkit) -> None:
        session = toolkit.session(presets={"get_forecast": {"city": "Paris"}})
        properties = session.dialect("openai").tools()[0]["function"]["parameters"]["properties"]
        assert "city" not in properties
        view = toolkit.view(include="chart", prefix="my_").dialect("openai")
        assert [each["function"]["name"] for each in view.tools()] == ["my_chart"]

    def test_strict(self, toolkit: Toolkit) -> None:
        function = toolkit.dialect("openai").tools(strict=True)[0]["function"]
        assert function["strict"] is True
        assert function["parameters"] == {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "City name"},
                "days": {"type": ["integer", "null"], "description": "Forecast days {default: 3}"},
                "unit": {"type": ["string", "null"], "enum": ["c", "f", None], "description": '{default: "c"}'},
                "when": {"type": ["string", "null"], "format": "date"},
                "note": {"type": ["string", "null"], "description": '{default: "none"}'},
            },
            "required": ["city", "days", "unit", "when", "note"],
            "additionalProperties": False,
        }

    def test_a_tool_says_itself_whether_it_is_strict(self) -> None:
        @tool(strict=True)
        def held(n: int = 0) -> None: ...

        @tool(strict=False)
        def free(n: int = 0) -> None: ...

        toolkit = toolkit_of(held, free)
        for strict in (False, True):
            definitions = toolkit.dialect("openai").tools(strict)
            assert [each["function"].get("strict") for each in definitions] == [True, None]

    def test_what_cannot_be_strict_goes_without(self) -> None:
        @tool
        def free(labels: dict[str, int], n: int = 1) -> None: ...

        chat = toolkit_of(free).dialect("openai")
        assert chat.tools(strict=True) == chat.tools()
        (loss,) = chat.lint(strict=True)
        assert (loss.tool, loss.path, loss.keyword, loss.severity) == (
            "free", "labels", "additionalProperties", "warning"
        )  # fmt: skip
        assert chat.lint() == []


class TestCalls:
    def test_of_every_form_of_a_response(self, toolkit: Toolkit) -> None:
        message = said(("call_1", "chart", "{}"), ("call_2", "get_forecast", '{"city": "Paris"}'))
        wanted = [("call_1", "chart", {}), ("call_2", "get_forecast", {"city": "Paris"})]

        def as_object(value: Any) -> Any:
            if isinstance(value, dict):
                return SimpleNamespace(**{name: as_object(inner) for name, inner in value.items()})
            return [as_object(inner) for inner in value] if isinstance(value, list) else value

        class Dumped:
            def model_dump(self) -> Any:
                return {"choices": [{"message": message}]}

        completion = {"id": "chatcmpl-1", "choices": [{"index": 0, "message": message}]}
        for response in (message, completion, as_object(message), as_object(completion), Dumped()):
            assert seen(toolkit.dialect("openai").calls(response)) == wanted

    def test_no_calls(self, toolkit: Toolkit) -> None:
        chat = toolkit.dialect("openai")
        assert chat.calls({"role": "assistant", "content": "Hello"}) == []
        assert chat.calls({"role": "assistant", "content": None, "refusal": "No."}) == []
        assert chat.calls({"choices": [{"message": {"role": "assistant", "tool_calls": None}}]}) == []
        assert chat.calls([]) == []

    def test_no_response(self, toolkit: Toolkit) -> None:
        with pytest.raises(PegboardError, match=r"openai: calls are read from a chat completion, .*; got str"):
            toolkit.dialect("openai").calls("hello")

    @pytest.mark.parametrize(
        "arguments",
        [
            *('{"city":', "[1]", '{"city": "a", "city": "b"}', '{"days": NaN}', "nonsense"),
            *('{"days": 1e999}', '{"days": 1e9999999999999999999}', '{"days": -1e-9999999999999999999}'),
        ],
    )
    def test_unreadable_arguments_stay_text_and_are_refused(self, toolkit: Toolkit, arguments: str) -> None:
        chat = toolkit.dialect("openai")
        calls = chat.calls(said(("call_1", "get_forecast", arguments)))
        assert calls[0].arguments == arguments
        results = toolkit.call_many_sync(calls)
        assert results[0].status is Status.INVALID
        (message,) = chat.messages(results)
        assert message["tool_call_id"] == "call_1"
        assert message["content"].startswith("Error: invalid arguments")

    @pytest.mark.parametrize("arguments", ["", None, "{}"])
    def test_no_arguments(self, toolkit: Toolkit, arguments: Any) -> None:
        (call,) = toolkit.dialect("openai").calls(said(("call_1", "chart", arguments)))
        assert call.arguments == {}

    def test_nulls_of_strict_mode_are_left_out_without_a_note(self, toolkit: Toolkit) -> None:
        sent = '{"city": "Paris", "days": null, "unit": null, "when": null, "note": null}'
        calls = toolkit.dialect("openai").calls(said(("call_1", "get_forecast", sent)))
        result = toolkit.call_many_sync(calls)[0]
        assert (result.text, result.notes) == ("Paris 3 c None None", ())  # `note` takes a null

    def test_custom_tools_are_left_alone(self, toolkit: Toolkit) -> None:
        message = said(("call_1", "chart", "{}"))
        message["tool_calls"].append({"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}})
        assert [call.id for call in toolkit.dialect("openai").calls(message)] == ["call_1"]


class TestStream:
    CHUNKS = (
        chunk(role="assistant", content=""),
        chunk(tool_calls=[{"index": 0, "id": "call_1", "function": {"name": "chart", "arguments": ""}}]),
        chunk(tool_calls=[{"index": 1, "id": "call_2", "function": {"name": "get_forecast", "arguments": '{"ci'}}]),
        chunk(tool_calls=[{"index": n, "function": {"arguments": text}} for n, text in enumerate(["{}", 'ty": "x"}'])]),
        {"choices": [], "usage": {"total_tokens": 5}},
    )
    WANTED: tuple[Any, ...] = (("call_1", "chart", {}), ("call_2", "get_forecast", {"city": "x"}))

    def test_list_of_chunks(self, toolkit: Toolkit) -> None:
        assert seen(toolkit.dialect("openai").calls(list(self.CHUNKS))) == list(self.WANTED)

    def test_collector(self, toolkit: Toolkit) -> None:
        collector = toolkit.dialect("openai").collector()
        for each in self.CHUNKS:
            collector.feed(each)
        assert seen(collector.calls()) == list(self.WANTED)
        (message,) = collector.messages()
        assert message["role"] == "assistant"
        assert [json.loads(call["function"]["arguments"]) for call in message["tool_calls"]] == [{}, {"city": "x"}]

    def test_calls_without_an_id_have_one_in_the_message_and_in_its_answers(self, toolkit: Toolkit) -> None:
        chat = toolkit.dialect("openai")
        collector = chat.collector()
        for each in (0, 1):
            collector.feed(chunk(tool_calls=[{"index": each, "function": {"name": "chart", "arguments": "{}"}}]))
            collector.calls()  # a look meanwhile
        collector.feed(chunk(tool_calls=[{"index": 1, "id": "call_1"}]))  # as late as that
        calls = collector.calls()
        (message,) = collector.messages()
        answers = [each for each in chat.messages(toolkit.call_many_sync(calls)) if each["role"] == "tool"]
        ids = [call["id"] for call in message["tool_calls"]]
        assert ids == [call.id for call in calls] == [each["tool_call_id"] for each in answers]
        assert all(ids)
        assert ids[1] == "call_1"

    def test_calls_stand_where_their_numbers_say(self, toolkit: Toolkit) -> None:
        chunks = [
            chunk(tool_calls=[{"index": index, "id": f"call_{index}", "function": {"name": "chart"}}])
            for index in (1, 0)
        ]
        assert [call.id for call in toolkit.dialect("openai").calls(chunks)] == ["call_0", "call_1"]

    def test_a_server_that_numbers_all_calls_alike(self, toolkit: Toolkit) -> None:
        chunks = [
            chunk(tool_calls=[{"index": 0, "id": name, "function": {"name": "chart", "arguments": "{}"}}])
            for name in "ab"
        ]
        assert seen(toolkit.dialect("openai").calls(chunks)) == [("a", "chart", {}), ("b", "chart", {})]

    def test_a_server_that_does_not_write_arguments_as_text(self, toolkit: Toolkit) -> None:
        function = {"name": "get_forecast", "arguments": {"city": "Paris", "days": 2}}
        chunks = [chunk(tool_calls=[{"index": 0, "id": "a", "function": function}])]
        chat = toolkit.dialect("openai")
        assert seen(chat.calls(chunks)) == [("a", "get_forecast", {"city": "Paris", "days": 2})]
        collector = chat.collector()
        collector.feed(chunks[0])
        (message,) = collector.messages()
        assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"city": "Paris", "days": 2}

    def test_a_server_that_says_everything_again(self, toolkit: Toolkit) -> None:
        texts = ("", '{"city"', '{"city": "x"}')
        chunks = [
            chunk(tool_calls=[{"index": 0, "id": "a", "function": {"name": "get_forecast", "arguments": text}}])
            for text in texts
        ]
        assert seen(toolkit.dialect("openai").calls(chunks)) == [("a", "get_forecast", {"city": "x"})]


class TestMessages:
    def test_tool_messages_stand_together_and_images_follow(self, toolkit: Toolkit) -> None:
        chat = toolkit.dialect("openai")
        calls = chat.calls(said(("call_1", "chart", "{}"), ("call_2", "get_forecast", '{"city": "Paris"}')))
        first, second, third = chat.messages(toolkit.call_many_sync(calls))
        assert (first["role"], first["tool_call_id"]) == ("tool", "call_1")
        assert first["content"] == "Sales\n[image 1 of chart, call_1: it follows in the next message of the user]"
        assert second == {"role": "tool", "tool_call_id": "call_2", "content": "Paris 3 c None none"}
        assert third == {
            "role": "user",
            "content": [
                {"type": "text", "text": "[image 1 of chart, call_1]"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
            ],
        }

    def test_text_files_are_told(self, toolkit: Toolkit) -> None:
        chat = toolkit.dialect("openai")
        (message,) = chat.messages([result(BLOCKS["text file"])])
        assert message["content"] == "[file a.csv, text/csv, 3 bytes]\na,b"
        long = FileBlock.from_bytes(b"a" * 100_000, "text/plain")
        binary = FileBlock.from_bytes(b"\xff", "text/plain")
        for block, size in ((long, "100,000"), (binary, "1")):
            (message,) = chat.messages([result(block)])
            assert message["content"] == f"[file, text/plain, {size} bytes: a tool message takes text alone]"

    @pytest.mark.parametrize(
        ("content", "media_type"),
        [(b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff\xe0", "image/jpeg"), (b"RIFF....WEBP", "image/webp")],
    )
    def test_an_image_says_what_it_is(self, toolkit: Toolkit, content: bytes, media_type: str) -> None:
        *_, last = toolkit.dialect("openai").messages([result(ImageBlock.from_bytes(content))])
        assert last["content"][1]["image_url"]["url"].startswith(f"data:{media_type};base64,")

    @pytest.mark.parametrize("name", NAMES)
    def test_the_bytes_of_an_image_are_believed_before_its_block(self, name: str) -> None:
        chat = toolkit_of().dialect(name)
        honest = ImageBlock.from_bytes(b"\xff\xd8\xff\xe0", "image/jpeg")
        false = ImageBlock.from_bytes(b"\xff\xd8\xff\xe0", "image/png")
        assert chat.messages([result(false)]) == chat.messages([result(honest)])

    def test_nothing_is_silently_empty(self, toolkit: Toolkit) -> None:
        (message,) = toolkit.dialect("openai").messages([ToolResult("call_1", "chart", content="")])
        assert message["content"] == "(no output)"


class TestToolChoice:
    def test_words(self, toolkit: Toolkit) -> None:
        chat = toolkit.dialect("openai")
        assert [chat.tool_choice(word) for word in ("auto", "required", "none")] == ["auto", "required", "none"]
        assert chat.tool_choice("chart") == {"type": "function", "function": {"name": "chart"}}

    def test_unknown(self, toolkit: Toolkit) -> None:
        with pytest.raises(UnknownNameError, match=r"'auto', 'required', 'none', the name of a tool.*got 'cart'"):
            toolkit.dialect("openai").tool_choice("cart")


class TestUnknownDialect:
    def test_names_those_that_there_are_and_nothing_to_install(self, toolkit: Toolkit) -> None:
        with pytest.raises(UnknownNameError) as raised:
            toolkit.dialect("openia")
        assert "there are: anthropic, dashscope, gemini, mcp, openai, openai-responses." in str(raised.value)
        assert "pip install" not in str(raised.value)

    def test_where_the_pack_is_not_used(self) -> None:
        with pytest.raises(
            UnknownNameError, match=r"The pack 'dialects' is installed, but blocked by block=dialects\.$"
        ):
            Toolkit(block=["dialects"]).dialect("openai")
