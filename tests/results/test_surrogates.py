"""Text that UTF-8 cannot carry: refused on its way in, replaced on its way out, with words for it."""

import asyncio
import json
from typing import Any, ClassVar

import pytest

from pegboard import (
    AudioBlock,
    Block,
    Chunk,
    DataBlock,
    Emitter,
    FileBlock,
    LinkBlock,
    Suspend,
    TextBlock,
    ToolCall,
    ToolError,
    Toolkit,
    ToolOutput,
    ToolResult,
)
from tests.support.thinning import first

HALF = "\ud83d"
PAIR = "\ud83d\ude00"  # two code points of Python's, one character of UTF-16
REFUSED = "half of a character"


def echo(text: str) -> str:
    return text


def anything(x: Any) -> str:
    return "reached"


def texts(x: list[str]) -> str:
    return "reached"


def numbers(x: dict[str, int]) -> str:
    return "reached"


def named(**x: int) -> str:
    return "reached"


class ByHand:
    name = "by_hand"
    description = ""
    parameters = {"type": "object", "properties": {"x": {}}}  # noqa: RUF012 - as a user writes it

    def call(self, call: ToolCall) -> str:
        return "reached"


@pytest.fixture
def board() -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(echo, anything, texts, numbers, named, ByHand())
    return toolkit


def encodable(result: ToolResult) -> None:
    """Everything that leaves can be sent."""
    json.dumps(result.to_dict(), ensure_ascii=False).encode()
    for text in (result.text, result.call_id, json.dumps(result.data, ensure_ascii=False), *map(str, result.notes)):
        text.encode()
    if result.error is not None:
        result.error.message.encode()


SENT: list[tuple[str, Any]] = [
    ("echo", {"text": f"abc{HALF}"}),
    ("echo", {"text": f"ä{HALF}ö"}),
    ("echo", {"text": PAIR}),
    ("echo", '{"text": "abc\\ud83d"}'),
    ("echo", '{"text": "\\uDC00"}'),
    ("echo", f'{{"text": "abc{HALF}"}}'),
    ("echo", f'{{"text": "ä{PAIR}"}}'),
    ("echo", b'{"text": "abc\\ud83d"}'),
    ("echo", {HALF: "abc"}),
    ("echo", '{"\\ud83d": "abc"}'),
    ("echo", {"text": "abc", HALF: 1}),
    ("anything", {"x": [{"deep": [HALF]}]}),
    ("anything", {"x": {"deep": {HALF: 1}}}),
    ("anything", '{"x": [[["\\ud83d"]]]}'),
    ("anything", '{"x": [[{"\\ud83d": 1}]]}'),
    ("anything", {"x": (1, HALF)}),
    ("texts", {"x": ["a", HALF]}),
    ("texts", '{"x": ["a", "\\ud83d"]}'),
    ("numbers", {"x": {HALF: 1}}),
    ("numbers", '{"x": {"\\ud83d": 1}}'),
    ("named", {HALF: 1}),
    ("named", '{"\\ud83d": 1}'),
    ("by_hand", {"x": HALF}),
    ("by_hand", '{"x": {"\\ud83d": 1}}'),
    # With the half behind what is shown.
    ("echo", json.dumps({"text": "a" * 5000 + HALF})),
    ("echo", {"text": "ä" * 5000 + HALF}),
]


class TestIn:
    @pytest.mark.parametrize(("name", "sent"), SENT)
    @pytest.mark.parametrize("repair", first(1, ["safe", "off", "max"]))
    def test_refused(self, name: str, sent: Any, repair: Any) -> None:
        toolkit = Toolkit(repair=repair)
        toolkit.register(echo, anything, texts, numbers, named, ByHand())
        for result in (
            toolkit.call_sync(name, sent),
            asyncio.run(toolkit.call(name, sent)),
            toolkit.prepare(name, sent).execute_sync(),
            toolkit.call_many_sync([(name, sent)])[0],
        ):
            assert result.status == "invalid", result
            assert REFUSED in result.text
            assert "UTF-8" in result.text
            encodable(result)

    def test_the_message_leads_there(self, board: Toolkit) -> None:
        assert "after {'text': 'abc " in board.call_sync("echo", '{"text": "abc\\ud83d rest"}').text

    def test_what_is_no_utf_8_to_begin_with(self, board: Toolkit) -> None:
        result = board.call_sync("echo", b'{"text": "\xed\xa0\xbd"}')
        assert result.status == "invalid"
        assert "not valid UTF-8" in result.text

    @pytest.mark.parametrize("sent", ['["\\ud83d"]', '["\ud83d"]'])
    def test_json_text_in_a_text_is_not_opened(self, board: Toolkit, sent: str) -> None:
        for given in ({"x": sent}, json.dumps({"x": sent}), json.dumps(json.dumps({"x": [HALF]}))):
            result = board.call_sync("texts", given)
            assert result.status == "invalid"
            encodable(result)

    @pytest.mark.parametrize("text", ["a", "ä", "😀", "\\ud83d", '"\\n', "\x00", "\uffff", "日本"])
    def test_everything_else_arrives(self, board: Toolkit, text: str) -> None:
        for sent in ({"text": text}, json.dumps({"text": text}), json.dumps({"text": text}, ensure_ascii=False)):
            result = board.call_sync("echo", sent)
            assert (result.value, result.text, result.notes) == (text, text, ())
            assert board.call_sync("echo", json.dumps({"text": text * 400})).value == text * 400

    @pytest.mark.parametrize("name", ["echo", "missing"])
    def test_call_ids(self, board: Toolkit, name: str) -> None:
        sent, identity = {"text": "a"}, f"call{HALF}"
        for result in (
            board.call_sync(name, sent, call_id=identity),
            asyncio.run(board.call(name, sent, call_id=identity)),
            board.prepare(name, sent, call_id=identity).execute_sync(),
            board.call_sync(ToolCall(identity, name, sent)),
            board.call_many_sync([{"name": name, "arguments": sent, "id": identity}])[0],
        ):
            assert result.status == ("invalid" if name == "echo" else "not_found")
            if name == "echo":
                assert "the id of the call" in result.text
            json.dumps(result.to_dict(), ensure_ascii=False).encode()
        assert board.call_sync("echo", sent, call_id="ä").call_id == "ä"

    def test_names(self, board: Toolkit) -> None:
        for result in (board.call_sync(f"echo{HALF}"), board.prepare(f"echo{HALF}").execute_sync()):
            assert result.status == "not_found"
            json.dumps(result.to_dict(), ensure_ascii=False).encode()
            result.text.encode()

    def test_what_an_approver_edits(self) -> None:
        from pegboard import Approval

        toolkit = Toolkit(plugins=(), approver=lambda request: Approval.edit({"text": HALF}))
        toolkit.register(echo)
        toolkit.set_permission("echo", "prompt")
        result = toolkit.call_sync("echo", {"text": "a"})
        assert result.status == "invalid"
        assert REFUSED in result.text


RETURNED: list[Any] = [
    f"a{HALF}",
    f"ä{HALF}",
    HALF * 400,
    {"key": HALF},
    {HALF: 1},
    [[{"deep": [HALF]}]],
    [1, HALF],
    TextBlock(HALF),
    [TextBlock("a"), TextBlock(HALF)],
    DataBlock({"deep": [HALF]}),
    LinkBlock(f"https://example.com/{HALF}"),
    ToolResult(content=HALF, data={"x": HALF}),
    ToolResult(content="whole", data={HALF: 1}),
    ToolOutput({"a": HALF}),
    ToolError(HALF),
    ValueError(f"bad {HALF}"),
    Suspend(f"wait {HALF}"),
]


class TestOut:
    @pytest.mark.parametrize("value", RETURNED, ids=lambda value: type(value).__name__)
    @pytest.mark.parametrize("options", [{}, {"max_output": 100}, {"expose_errors": "traceback"}])
    def test_replaced(self, value: Any, options: Any) -> None:
        def give() -> Any:
            if isinstance(value, BaseException):
                raise value
            return value

        toolkit = Toolkit(plugins=(), **options)
        toolkit.register(give)
        for result in (
            toolkit.call_sync("give"),
            asyncio.run(toolkit.call("give")),
            toolkit.prepare("give").execute_sync(),
        ):
            assert [note.kind for note in result.notes] == ["replaced"]
            assert "U+FFFD" in result.notes[0]
            encodable(result)
            for block in result.content:
                json.dumps(block.to_dict(), ensure_ascii=False).encode()
            assert [note.kind for note in result.notes] == ["replaced"]

    def test_a_pair_is_its_character(self) -> None:
        def give() -> Any:
            return {"text": PAIR}

        toolkit = Toolkit(plugins=())
        toolkit.register(give)
        result = toolkit.call_sync("give")
        assert (result.text, result.data) == ('{"text": "😀"}', {"text": "😀"})

    def test_the_value_is_the_programs_own(self) -> None:
        def give() -> str:
            return HALF

        toolkit = Toolkit(plugins=())
        toolkit.register(give)
        result = toolkit.call_sync("give")
        assert (result.value, result.text) == (HALF, "\ufffd")

    def test_metadata_logs_and_attachments(self) -> None:
        def give(call: ToolCall) -> ToolOutput:
            call.log(f"log {HALF}")
            call.attach(FileBlock(data="YQ==", name=f"file {HALF}"))
            return ToolOutput("fine", metadata={"key": [HALF]}, attachments=(TextBlock(HALF),))

        toolkit = Toolkit(plugins=())
        toolkit.register(give)
        members = toolkit.call_sync("give").to_dict()
        json.dumps(members, ensure_ascii=False).encode()
        assert (members["metadata"], members["logs"]) == ({"key": ["\ufffd"]}, ["log \ufffd"])

    def test_metadata_that_is_no_json_stays(self) -> None:
        circle: list[Any] = []
        circle.append(circle)
        strange = object()

        def give() -> ToolOutput:
            return ToolOutput("fine", metadata={"object": strange, "circle": circle})

        toolkit = Toolkit(plugins=())
        toolkit.register(give)
        assert toolkit.call_sync("give").to_dict()["metadata"] == {"object": strange, "circle": circle}

    @pytest.mark.parametrize("emit", [HALF, TextBlock(HALF), DataBlock([HALF]), LinkBlock(f"https://a/{HALF}")])
    def test_chunks(self, emit: Any) -> None:
        def work(emitter: Emitter) -> None:
            emitter.emit(emit)

        def stream() -> Any:
            yield emit

        chunks: list[Chunk] = []
        toolkit = Toolkit(plugins=())
        toolkit.register(work, stream)
        for name in ("work", "stream"):
            encodable(toolkit.call_sync(name, on_chunk=chunks.append))
        assert len(chunks) == 2
        for chunk in chunks:
            json.dumps(chunk.content.to_dict(), ensure_ascii=False).encode()

    def test_an_answer_from_outside(self) -> None:
        from pegboard import Tool

        toolkit = Toolkit(plugins=())
        toolkit.register(Tool.external("ask", "Asks.", {"type": "object"}))
        assert toolkit.call_sync("ask", call_id="c").status == "suspended"
        result = toolkit.resume("c", {"answer": HALF})
        assert (result.data, [note.kind for note in result.notes]) == ({"answer": "\ufffd"}, ["replaced"])

    @pytest.mark.parametrize(
        "value", ["a", "ä", {"a": "ä"}, [1, 2.5, None], TextBlock("ä"), AudioBlock(data="YQ=="), b"\xff", None, 3]
    )
    def test_everything_else_stays(self, value: Any) -> None:
        def give() -> Any:
            return value

        toolkit = Toolkit(plugins=())
        toolkit.register(give)
        result = toolkit.call_sync("give")
        assert result.notes == ()
        if isinstance(value, Block):
            assert result.content[0] is value or result.content[0] == value

    def test_what_others_wrote_of_their_tools(self) -> None:
        """A server's description, or its schema, has to be sent to a model."""

        class Remote:
            name = "remote"
            description = f"Does {HALF} things."
            parameters: ClassVar[dict[str, Any]] = {
                "type": "object",
                "properties": {"x": {"type": "string", "description": HALF, "enum": ["a", HALF]}},
            }

            def call(self, call: ToolCall) -> str:
                return "reached"

        toolkit = Toolkit(plugins=())
        toolkit.register(Remote())
        for schema in toolkit.schemas():
            f"{schema.description} {json.dumps(schema.parameters, ensure_ascii=False)}".encode()
        assert toolkit["remote"].description == "Does \ufffd things."
        assert toolkit.call_sync("remote", {"x": "a"}).text == "reached"

    def test_results_cross_processes(self) -> None:
        import pickle

        made = ToolResult(content=HALF)
        again = pickle.loads(pickle.dumps(made))
        assert (again.text, [note.kind for note in again.notes]) == ("\ufffd", ["replaced"])
