"""Results: what a tool's return value becomes for the model, and for the program."""

import asyncio
import base64
import dataclasses
import datetime as dt
import enum
import json
import math
import pickle
import types
import uuid
from collections import ChainMap, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypedDict

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import (
    AudioBlock,
    Block,
    Converter,
    DataBlock,
    Fault,
    FileBlock,
    ImageBlock,
    LinkBlock,
    Note,
    Status,
    TextBlock,
    ToolCall,
    Toolkit,
    ToolOutput,
    ToolResult,
    VideoBlock,
    hookimpl,
    tool,
)

pytestmark = pytest.mark.usefixtures("path")

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 16


@dataclasses.dataclass
class Point:
    y: int
    x: int = 0


@attrs.frozen
class Box:
    corner: Point
    label: str = "box"


class Pair(NamedTuple):
    left: int
    right: str


Plain = namedtuple("Plain", "b a")


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Mood(enum.StrEnum):
    GOOD = "good"


class Movie(TypedDict):
    title: str


class Speechless:
    def __init__(self) -> None:
        self.b, self.a = 1, [2]
        self._hidden = 3


class Slotted:
    __slots__ = ("x",)

    def __init__(self) -> None:
        self.x = 1


class Talking:
    def __str__(self) -> str:
        return "I talk"


class Pydantic:
    """As a pydantic model looks from outside."""

    model_fields = {"name": None, "age": None}  # noqa: RUF012 - that is how it looks

    def __init__(self) -> None:
        self.name, self.age = "Ann", 7
        self.extra = "not a field"


def result_of(value: Any, **options: Any) -> ToolResult:
    """The result of an unannotated tool that returns `value`; the same however the tool is called."""
    with Toolkit(plugins=(), **options) as toolkit:
        toolkit.register(lambda: value, name="give")
        results = [
            toolkit.call_sync("give"),
            asyncio.run(toolkit.call("give")),
            toolkit.prepare("give").execute_sync(),
            *toolkit.call_many_sync([("give", {})]),
        ]
    assert len({(each.status, each.text) for each in results}) == 1, results
    return results[0]


# value -> the text for the model; data is what the text says, unless a third member gives it.
ROWS: list[tuple[Any, ...]] = [
    ("as it is", "as it is", "as it is"),
    ('{"looks": "like JSON"}', '{"looks": "like JSON"}', '{"looks": "like JSON"}'),
    ("", "", ""),
    (None, "null"),
    (True, "true"),
    (0, "0"),
    (-3.5, "-3.5"),
    (1e400, "Infinity", None),
    (math.nan, "NaN", None),
    ([1, "a", None, True], '[1, "a", null, true]'),
    ((1, (2,)), "[1, [2]]"),
    ({"b": 1, "a": {"d": 2, "c": 3}}, '{"b": 1, "a": {"d": 2, "c": 3}}'),
    ({"grüße": "日本 🎉"}, '{"grüße": "日本 🎉"}'),
    ([math.nan, {"x": math.inf}], '[null, {"x": null}]'),
    ({1: "a", None: "b", False: "c", 2.5: "d"}, '{"1": "a", "null": "b", "false": "c", "2.5": "d"}'),
    ({Colour.RED: 1, dt.date(2026, 1, 2): 2, (1, 2): 3}, '{"red": 1, "2026-01-02": 2, "[1, 2]": 3}'),
    ({3, 1, 2}, "[1, 2, 3]"),
    (frozenset({"b", "a"}), '["a", "b"]'),
    (Point(1), '{"y": 1, "x": 0}'),
    (Box(Point(1)), '{"corner": {"y": 1, "x": 0}, "label": "box"}'),
    (Pair(1, "r"), '{"left": 1, "right": "r"}'),
    (Plain(1, 2), '{"b": 1, "a": 2}'),
    (Movie(title="Alien"), '{"title": "Alien"}'),
    (Pydantic(), '{"name": "Ann", "age": 7}'),
    (OrderedDict(b=1, a=2), '{"b": 1, "a": 2}'),
    (defaultdict(list, {"a": [1]}), '{"a": [1]}'),
    (types.MappingProxyType({"a": 1}), '{"a": 1}'),
    (ChainMap({"a": 1}), '{"a": 1}'),
    (UserDict(a=1), '{"a": 1}'),
    (UserList([1]), "[1]"),
    (deque([1, 2]), "[1, 2]"),
    (range(3), "[0, 1, 2]"),
    ({"a": 1}.keys(), '["a"]'),
    (dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "2026-01-02T03:04:05Z|2026-01-02T03:04:05+00:00"),
    (dt.date(2026, 1, 2), "2026-01-02"),
    (dt.time(3, 4), "03:04:00"),
    (Decimal("1.10"), "1.10", "1.10"),
    (Fraction(1, 3), "1/3"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (PurePosixPath("/a/b"), "/a/b"),
    (Colour.RED, "red"),
    (Level.LOW, "1"),
    (Mood.GOOD, "good"),
    ([Colour.RED, Level.LOW, Decimal("2.0"), b"ab"], '["red", 1, "2.0", "YWI="]'),
    (Speechless(), '{"b": 1, "a": [2]}'),
    (Slotted(), '{"x": 1}'),
    (Talking(), "I talk"),
    (2 + 3j, "(2+3j)"),
    ([Point(1), Talking()], '[{"y": 1, "x": 0}, "I talk"]'),
]


class TestValues:
    @pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row[0]).__name__)
    def test_rows(self, row: tuple[Any, ...]) -> None:
        value, text = row[:2]
        result = result_of(value)
        assert result.status is Status.SUCCESS
        assert not result.is_error
        assert result.text in text.split("|")
        assert result.value is value
        if len(row) == 3:
            assert result.data == row[2]
        else:
            assert result.data == _read(result.text)
        assert json.loads(json.dumps(result.to_dict()))["data"] == result.data
        assert pickle.loads(pickle.dumps(result)).to_dict() == result.to_dict()

    def test_durations(self) -> None:
        assert result_of(dt.timedelta(seconds=90)).text in ("PT1M30S", "PT90S", "0:01:30", "90.0")

    @pytest.mark.parametrize(
        "value", [10**5000, -(10**5000), [10**5000], {"n": 10**5000}], ids=["n", "-n", "[n]", "{n}"]
    )
    def test_integers_that_python_does_not_spell(self, value: Any) -> None:
        result = result_of(value)
        assert "0x" in result.text
        assert json.loads(json.dumps(result.to_dict()))["data"] == result.data

    def test_the_largest_integers_stay(self) -> None:
        assert result_of(10**4290).text == str(10**4290)

    def test_an_object_without_anything(self) -> None:
        assert "0x" not in result_of(object()).text
        assert result_of(object()).status is Status.SUCCESS

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda x: st.lists(x) | st.dictionaries(st.text(), x),
            max_leaves=8,
        )
    )
    def test_json_survives(self, value: Any) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(lambda: value, name="give")
        result = toolkit.call_sync("give")
        assert result.data == value
        if not isinstance(value, str):
            assert json.loads(result.text) == value

    def test_annotations_write_what_they_promise(self) -> None:
        def when() -> dt.datetime:
            return dt.datetime(2026, 1, 2, tzinfo=dt.UTC)

        def prices() -> dict[str, Decimal]:
            return {"b": Decimal("1.10"), "a": Decimal(2)}

        def wrong() -> int:
            return "not an int"  # type: ignore[return-value]

        toolkit = Toolkit(plugins=())
        toolkit.register(when, prices, wrong)
        assert toolkit.call_sync("when").data in ("2026-01-02T00:00:00Z", "2026-01-02T00:00:00+00:00")
        assert toolkit.call_sync("prices").text == '{"b": "1.10", "a": "2"}'
        assert toolkit.call_sync("wrong").text == "not an int"


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


class TestUnconvertible:
    def circular_list() -> Any:  # type: ignore[misc]
        value: list[Any] = []
        value.append(value)
        return value

    def circular_dict() -> Any:  # type: ignore[misc]
        value: dict[str, Any] = {}
        value["self"] = {"again": value}
        return value

    def deep() -> Any:  # type: ignore[misc]
        value: Any = 1
        for _ in range(50_000):
            value = [value]
        return value

    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError("no words")

    class Leaving:
        def __str__(self) -> str:
            raise SystemExit(3)

    MAKERS = [circular_list, circular_dict, deep, Mute, Leaving, lambda: [TestUnconvertible.Mute()]]  # noqa: RUF012

    @pytest.mark.parametrize("make", MAKERS, ids=range(len(MAKERS)))
    def test_is_an_error_that_says_why(self, make: Callable[[], Any]) -> None:
        value = make()
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(lambda: value, name="give")
            for result in (toolkit.call_sync("give"), asyncio.run(toolkit.call("give"))):
                assert result.status is Status.ERROR
                assert result.error is not None
                assert result.error.kind == "conversion"
                assert type(value).__name__ in result.text
                assert len(result.text) < 1000

    def test_what_is_seen_twice_is_no_circle(self) -> None:
        shared = [1]
        assert result_of([shared, {"again": shared}]).text == '[[1], {"again": [1]}]'


class TestBytes:
    @pytest.mark.parametrize(
        ("content", "block", "media_type"),
        [
            (PNG, ImageBlock, "image/png"),
            (b"\xff\xd8\xff\xe0" + b"\x00" * 16, ImageBlock, "image/jpeg"),
            (b"GIF89a" + b"\x00" * 16, ImageBlock, "image/gif"),
            (b"RIFF\x10\x00\x00\x00WEBPVP8 ", ImageBlock, "image/webp"),
            (b"RIFF\x10\x00\x00\x00WAVEfmt ", AudioBlock, "audio/wav"),
            (b"ID3\x04" + b"\x00" * 16, AudioBlock, "audio/mpeg"),
            (b"OggS" + b"\x00" * 16, AudioBlock, "audio/ogg"),
            (b"\x00\x00\x00\x18ftypisom" + b"\x00" * 16, VideoBlock, "video/mp4"),
            (b"\x1aE\xdf\xa3" + b"\x00" * 16, VideoBlock, "video/webm"),
            (b"%PDF-1.7 ...", FileBlock, "application/pdf"),
            (b"anything else", FileBlock, "application/octet-stream"),
            (b"\x00\x00\x00\x18ftypM4A " + b"\x00" * 16, AudioBlock, "audio/mp4"),
            (b"\x00\x00\x00\x18ftypavif" + b"\x00" * 16, ImageBlock, "image/avif"),
            (b"BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00", ImageBlock, "image/bmp"),
            (b"BMW is a car", FileBlock, "application/octet-stream"),
            (b"", FileBlock, "application/octet-stream"),
        ],
    )
    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_become_the_block_that_suits_them(
        self, content: bytes, block: type[Any], media_type: str, kind: type[Any]
    ) -> None:
        result = result_of(kind(content))
        made: Any = result.content[0]
        assert len(result.content) == 1
        assert type(made) is block
        assert made.media_type == media_type
        assert made.to_bytes() == content
        assert base64.b64decode(made.data) == content
        assert result.text == ""
        json.dumps(result.to_dict())

    def test_an_annotation_changes_nothing(self) -> None:
        def give() -> bytes:
            return PNG

        toolkit = Toolkit(plugins=())
        toolkit.register(give)
        assert type(toolkit.call_sync("give").content[0]) is ImageBlock


class TestBlocks:
    BLOCKS: list[Block] = [  # noqa: RUF012 - a table
        TextBlock("text"),
        DataBlock({"a": 1}),
        ImageBlock.from_bytes(PNG, "image/png"),
        ImageBlock(url="https://example.org/a.png"),
        AudioBlock(url="https://example.org/a.mp3", media_type="audio/mpeg"),
        VideoBlock.from_bytes(b"v", "video/mp4"),
        FileBlock.from_bytes(b"f"),
        LinkBlock("https://example.org", "Example"),
    ]

    @pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
    def test_stay_as_they_are(self, block: Block) -> None:
        result = result_of(block)
        assert result.content == (block,)
        assert result.to_dict()["content"] == [block.to_dict()]
        assert pickle.loads(pickle.dumps(result)).content == (block,)

    @pytest.mark.parametrize("kind", [list, tuple])
    def test_lists_of_them(self, kind: type[Any]) -> None:
        assert result_of(kind(self.BLOCKS)).content == tuple(self.BLOCKS)

    def test_mixed_with_values(self) -> None:
        content = result_of(["caption", self.BLOCKS[2], {"a": 1}]).content
        assert content == (TextBlock("caption"), self.BLOCKS[2], TextBlock('{"a": 1}'))

    def test_text_is_all_text(self) -> None:
        assert result_of([TextBlock("a"), self.BLOCKS[2], TextBlock("b")]).text == "a\nb"


class TestOutput:
    def test_metadata_and_attachments_are_the_programs(self) -> None:
        attachment = FileBlock.from_bytes(b"raw")
        result = result_of(ToolOutput({"a": 1}, metadata={"rows": 7}, attachments=[attachment]))
        assert (result.text, result.data, result.value) == ('{"a": 1}', {"a": 1}, {"a": 1})
        assert result.metadata == {"rows": 7}
        assert result.attachments == (attachment,)
        assert "rows" not in result.text

    def test_a_tool_that_attaches_itself(self) -> None:
        def give(call: ToolCall) -> ToolOutput:
            call.attach(TextBlock("first"))
            return ToolOutput("x", attachments=[TextBlock("second")])

        toolkit = Toolkit(plugins=())
        toolkit.register(give)
        assert [block.text for block in toolkit.call_sync("give").attachments] == ["first", "second"]

    def test_a_result_is_adopted(self) -> None:
        own = ToolResult("other", "else", Status.ERROR, "sorry", None, Fault("quota", "sorry"), notes=(Note("n"),))
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(lambda: own, name="give")
            for result in (toolkit.call_sync("give", call_id="c1"), asyncio.run(toolkit.call("give", call_id="c1"))):
                assert (result.call_id, result.name) == ("c1", "give")
                assert (result.status, result.text, result.notes) == (Status.ERROR, "sorry", ("n",))
                assert result.error is not None
                assert result.error.kind == "quota"
        assert (own.call_id, own.duration) == ("other", 0.0)

    @pytest.mark.parametrize("error", [ValueError("no"), ExceptionGroup("all", [ValueError("no")])])
    def test_a_returned_exception_is_an_error(self, error: Exception) -> None:
        result = result_of(error)
        assert result.status is Status.ERROR
        assert result.text.endswith("no")
        assert result.error is not None
        assert result.error.exception is error


class TestStreams:
    def test_generators_join_their_texts(self) -> None:
        def give() -> Iterator[str]:
            yield "a"
            yield "b"

        async def give_later() -> AsyncIterator[str]:
            yield "a"
            await asyncio.sleep(0)
            yield "b"

        for function in (give, give_later):
            result = _call(function)
            assert (result.text, result.value) == ("ab", "ab")

    def test_a_return_value_is_the_result(self) -> None:
        def give() -> Generator[str, None, dict[str, bool]]:
            yield "progress"
            return {"done": True}

        assert _call(give).data == {"done": True}

    def test_blocks_are_appended(self) -> None:
        image = ImageBlock.from_bytes(PNG, "image/png")

        def give() -> Iterator[Any]:
            yield "a"
            yield image
            yield "b"

        assert _call(give).content == (TextBlock("ab"), image)

    def test_other_values_are_a_list(self) -> None:
        def give() -> Iterator[Any]:
            yield {"n": 1}
            yield 2

        assert _call(give).data == [{"n": 1}, 2]

    def test_nothing(self) -> None:
        def give() -> Iterator[Any]:
            yield from ()

        assert _call(give).text == "null"

    @pytest.mark.parametrize("kind", ["coroutine", "generator", "async_generator", "awaitable"])
    def test_what_a_plain_function_returns_unfinished(self, kind: str) -> None:
        async def later() -> str:
            await asyncio.sleep(0)
            return "x"

        def drawn() -> Iterator[str]:
            yield "x"

        async def drawn_later() -> AsyncIterator[str]:
            yield "x"

        class Awaitable:
            def __await__(self) -> Any:
                return later().__await__()

        made: list[Any] = [later, drawn, drawn_later, Awaitable]
        kinds = ["coroutine", "generator", "async_generator", "awaitable"]

        def give() -> Any:
            return made[kinds.index(kind)]()

        assert _call(give).text == "x"

    def test_of_an_async_function_too(self) -> None:
        async def later() -> str:
            return "x"

        async def give() -> Any:
            return later()

        assert _call(give).text == "x"


def _call(function: Callable[..., Any]) -> ToolResult:
    """The result of a function, the same from plain code and from a loop."""
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(function, name="give")
        results = [
            toolkit.call_sync("give"),
            asyncio.run(toolkit.call("give")),
            *toolkit.call_many_sync([("give", {})] * 2),
        ]
    assert len({(each.status, each.text) for each in results}) == 1, results
    assert results[0].status is Status.SUCCESS, results[0]
    return results[0]


class TestFrozen:
    @pytest.mark.parametrize("value", ["x", 1, [1], None])
    def test_nothing_can_be_set(self, value: Any) -> None:
        result = result_of(value)
        for name in ("status", "value", "text", "data", "content", "duration", "new"):
            with pytest.raises(AttributeError):
                setattr(result, name, 1)
        with pytest.raises(AttributeError):
            del result.status

    def test_what_happens_to_a_returned_value_later_changes_nothing(self) -> None:
        @dataclasses.dataclass
        class Record:
            items: list[int]

        for value, change in (
            ([1], lambda v: v.append(2)),
            ({"a": [1]}, lambda v: v["a"].append(2)),
            (Record([1]), lambda v: v.items.append(2)),
            (bytearray(b"ab"), lambda v: v.extend(b"cd")),
            ({1}, lambda v: v.add(2)),
        ):
            with Toolkit(plugins=()) as toolkit:
                toolkit.register(_giver(value), name="give")
                results = [toolkit.call_sync("give"), asyncio.run(toolkit.call("give"))]
            expected = json.dumps(results[0].to_dict()["content"])
            change(value)  # type: ignore[no-untyped-call]
            assert [json.dumps(each.to_dict()["content"]) for each in results] == [expected, expected]
            assert "2" not in results[0].text

    def test_data_is_not_the_tools_own_object(self) -> None:
        value = {"a": [1]}
        result = result_of(value)
        result.data["a"].append(2)
        assert value == {"a": [1]}

    def test_every_result_says_whose_it_is(self) -> None:
        for value in ("x", [1], ValueError("x")):
            result = result_of(value)
            assert result.name == "give"
            assert result.call_id
            assert result.duration >= 0
            assert result.attempts == 1


def _giver(value: Any) -> Callable[[], Any]:
    return lambda: value


class TestConverters:
    class Frame:
        def __init__(self, rows: int) -> None:
            self.rows = rows

    class Wide(Frame):
        pass

    def test_of_the_program(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(lambda: self.Wide(3), name="give")
        toolkit.register_converter(Converter(self.Frame, lambda frame: f"{frame.rows} rows"))
        assert toolkit.call_sync("give").text == "3 rows"

    def test_the_nearest_class_wins_and_the_program_over_plugins(self) -> None:
        frame, wide = self.Frame, self.Wide

        class Plugin:
            @hookimpl
            def provide_converters(self) -> list[Converter]:
                return [Converter(frame, lambda f: "frame"), Converter(wide, lambda f: "wide")]

        toolkit = Toolkit(plugins=[Plugin()])
        toolkit.register(lambda: wide(1), name="give")
        assert toolkit.call_sync("give").text == "wide"
        toolkit.register_converter(Converter(lambda cls: cls.__name__ == "Wide", lambda f: "program"))
        assert toolkit.call_sync("give").text == "program"

    def test_of_builtin_kinds_can_be_replaced(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register_converter(Converter(bytes, lambda content: f"{len(content)} bytes"))
        toolkit.register(lambda: PNG, name="give")
        assert toolkit.call_sync("give").text == f"{len(PNG)} bytes"

    @pytest.mark.parametrize(
        ("made", "text"),
        [("text", "text"), ({"a": 1}, '{"a": 1}'), (TextBlock("b"), "b"), ([TextBlock("c"), "d"], "c\nd")],
    )
    def test_of_one_tool(self, made: Any, text: str) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(tool(converter=lambda value: made)(lambda: 7), name="give")
        result = toolkit.call_sync("give")
        assert (result.text, result.value) == (text, 7)

    def test_one_that_fails(self) -> None:
        def convert(value: Any) -> Any:
            raise ValueError("cannot")

        toolkit = Toolkit(plugins=())
        toolkit.register(tool(converter=convert)(lambda: 7), name="give")
        result = toolkit.call_sync("give")
        assert result.status is Status.ERROR
        assert "cannot" in result.text


class TestMaxOutput:
    def test_says_how_much_was_cut(self) -> None:
        text = "start" + "x" * 10_000 + "end"
        result = result_of(text, max_output=300)
        assert len(result.text) < 400
        assert result.text.startswith("start")
        assert result.text.endswith("end")
        assert "9708 of 10008 characters cut" in result.text
        assert result.value is text
        assert result.data == text

    def test_json_too(self) -> None:
        result = result_of(list(range(1000)), max_output=300)
        assert "characters cut" in result.text
        assert result.data == list(range(1000))

    def test_shorter_text_stays(self) -> None:
        assert result_of("x" * 300, max_output=300).text == "x" * 300

    def test_of_one_tool_beats_the_toolkit(self) -> None:
        toolkit = Toolkit(plugins=(), max_output=300)
        toolkit.register(tool(max_output=1000)(lambda: "x" * 900), name="more")
        toolkit.register(tool(max_output=100)(lambda: "x" * 900), name="less")
        toolkit.register(lambda: "x" * 900, name="same")
        lengths = [len(toolkit.call_sync(name).text) for name in ("less", "same", "more")]
        assert lengths == sorted(lengths)
        assert lengths[2] == 900

    def test_too_small_a_limit_is_refused(self) -> None:
        with pytest.raises(ValueError, match="max_output"):
            Toolkit(plugins=(), max_output=10)


class TestRepr:
    def test_shows_name_status_and_the_beginning(self) -> None:
        assert repr(result_of("x" * 100)) == f"ToolResult('give', success, '{'x' * 57}...')"


def test_the_text_of_data_is_that_of_the_moment_when_the_call_ended() -> None:
    kept = {"items": [1]}
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(lambda: kept, name="keep")
        early, late = toolkit.call_sync("keep"), toolkit.call_sync("keep")
    late.data["items"].append(2)
    kept["items"].append(3)
    assert (early.text, early.data) == ('{"items": [1]}', {"items": [1]})
    assert late.text == '{"items": [1]}'
