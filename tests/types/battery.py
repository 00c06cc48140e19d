"""What every core type accepts, refuses and becomes: written by hand from the standards, never from the code."""

import collections
import datetime as dt
import enum
import re
from collections import abc
from collections.abc import Callable
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal, NewType, Optional, TypeVar, Union
from uuid import UUID

from annotated_types import Ge, Gt, Interval, Le, Len, Lt, MaxLen, MinLen, MultipleOf
from attrs import field, frozen
from typing_extensions import TypeAliasType

from pegboard._base.markers import Param


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Level(enum.StrEnum):
    LOW = "low"
    HIGH = "high"


class Shape(str, enum.Enum):  # noqa: UP042 - the old way to write a StrEnum
    ROUND = "round"
    FLAT = "flat"


class Corner(enum.Enum):
    """Values that JSON does not have: sent by name."""

    ORIGIN = (0, 0)
    UNIT = (1, 1)


class Answer(enum.Enum):
    YES = True
    MAYBE = 0.5
    NONE = None


UserId = NewType("UserId", int)
Slug = NewType("Slug", Annotated[str, Param(pattern="^[a-z]+$")])
T = TypeVar("T")
Bound = TypeVar("Bound", bound=int)
Picked = TypeVar("Picked", int, str)
Names = TypeAliasType("Names", list[str])
Pair = TypeAliasType("Pair", tuple[T, T], type_params=(T,))
Json = TypeAliasType("Json", "str | int | list[Json] | dict[str, Json] | None")
Tree = TypeAliasType("Tree", "dict[str, Tree]")

Fits = Callable[[Any], bool]


@frozen(eq=False)
class Entry:
    """A type: `fits` tells its values, `good` maps JSON to Python values, `bad` is what it refuses.

    Each is itself alone, so that what is made of one can be kept.
    """

    annotation: Any
    fits: Fits
    good: tuple[tuple[Any, Any], ...]
    bad: tuple[Any, ...]
    fragment: dict[str, Any] = field(factory=dict)
    """Members that the schema has to have."""

    def __str__(self) -> str:
        name = str(self.annotation).replace("tests.types.battery.", "").replace("typing.", "")
        return name.replace("pathlib._local.", "pathlib.")  # where Python 3.13 moved them


def is_a(*types: type) -> Fits:
    return lambda value: type(value) in types


def many(container: Any, fits: Fits) -> Fits:
    return lambda value: type(value) is container and all(map(fits, value))


def mapping(key: Fits, value: Fits) -> Fits:
    return lambda found: type(found) is dict and all(key(k) and value(v) for k, v in found.items())


def either(*fits: Fits) -> Fits:
    return lambda value: any(fit(value) for fit in fits)


def is_json(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, list, dict))


def is_json_or_list(value: Any) -> bool:
    if type(value) is list:
        return all(map(is_json_or_list, value))
    if type(value) is dict:
        return all(map(is_json_or_list, value.values()))
    return value is None or type(value) in (str, int)


def is_tree(value: Any) -> bool:
    return type(value) is dict and all(map(is_tree, value.values()))


text, whole, real, truth, nothing = is_a(str), is_a(int), is_a(float), is_a(bool), is_a(type(None))
utc = dt.UTC
NOT_TEXT = (1, 1.5, True, None, ["a"], {"a": 1})
NOT_INTEGER = ("1", "", 1.5, -0.5, True, False, None, [1], {"a": 1})
NOT_NUMBER: tuple[Any, ...] = ("1", "1.5", True, False, None, [1.5], {})
NOT_ARRAY = ("abc", 1, None, True, {"0": 1})
NOT_OBJECT: tuple[Any, ...] = ("abc", 1, None, True, [], [["a", 1]])
SOME_UUID = "12345678-1234-5678-1234-567812345678"

BATTERY: tuple[Entry, ...] = (
    # Scalars
    Entry(
        str, text, (("a", "a"), ("", ""), ("\u00e4\n\x00", "\u00e4\n\x00"), ("1", "1")), NOT_TEXT, {"type": "string"}
    ),
    Entry(
        int,
        whole,
        ((1, 1), (-5, -5), (1.0, 1), (-2.0, -2), (1e20, 10**20), (2**70, 2**70)),
        NOT_INTEGER,
        {"type": "integer"},
    ),
    Entry(
        float,
        real,
        ((1.5, 1.5), (1, 1.0), (-0.0, -0.0), (1e308, 1e308), (2**70, 2.0**70)),
        NOT_NUMBER,
        {"type": "number"},
    ),
    Entry(bool, truth, ((True, True), (False, False)), (0, 1, 0.0, "true", "False", None, [], {}), {"type": "boolean"}),
    Entry(None, nothing, ((None, None),), (0, False, "", "null", [], {}), {"type": "null"}),
    Entry(type(None), nothing, ((None, None),), (0, False, "", "null", [], {}), {"type": "null"}),
    Entry(Any, is_json, ((None, None), (1, 1), ({"a": [1.5]}, {"a": [1.5]}), ("x", "x")), ()),
    Entry(object, is_json, ((None, None), (1, 1), ({"a": [1.5]}, {"a": [1.5]}), ("x", "x")), ()),
    # Text with a meaning
    Entry(
        bytes,
        is_a(bytes),
        (("", b""), ("QQ==", b"A"), ("QUI=", b"AB"), ("QUJD", b"ABC"), ("+/+/", b"\xfb\xff\xbf")),
        ("Q", "QQ", "QQ=", "QQ===", "Q=Q=", "-_-_", "QUJD QUJD", "\u00e4bcd", 1, None, [81]),
        {"type": "string", "contentEncoding": "base64"},
    ),
    Entry(
        dt.datetime,
        is_a(dt.datetime),
        (
            ("2024-05-06T07:08:09Z", dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=utc)),
            ("2024-05-06t07:08:09z", dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=utc)),
            (
                "2024-05-06T07:08:09.25+02:00",
                dt.datetime(2024, 5, 6, 7, 8, 9, 250000, dt.timezone(dt.timedelta(hours=2))),
            ),
            (
                "0001-01-01T00:00:00-23:59",
                dt.datetime(1, 1, 1, tzinfo=dt.timezone(-dt.timedelta(hours=23, minutes=59))),
            ),
        ),
        (
            "2024-05-06",
            "2024-05-06T07:08:09",
            "2024-05-06 07:08:09Z",
            "2024-13-06T07:08:09Z",
            "2023-02-29T07:08:09Z",
            "2024-05-06T24:00:00Z",
            "2024-05-06T07:08:60Z",
            "2024-05-06T07:08Z",
            "2024-05-06T07:08:09+0200",
            "2024-05-06T07:08:09+24:00",
            "2024-05-06T07:08:09,5Z",
            "20240506T070809Z",
            "0000-01-01T00:00:00Z",
            "\u0662024-05-06T07:08:09Z",
            "2024-W19-1T07:08:09Z",
            "2024-05-06T07",
            "yesterday",
            "",
            1715000000,
            None,
        ),
        {"type": "string", "format": "date-time"},
    ),
    Entry(
        dt.date,
        is_a(dt.date),
        (("2024-02-29", dt.date(2024, 2, 29)), ("0001-01-01", dt.date(1, 1, 1))),
        (
            "2023-02-29",
            "2024-2-9",
            "20240229",
            "2024-W09-4",
            "2024-02-29T00:00:00Z",
            "0000-01-01",
            "2024-02-29\n",
            "",
            1,
            None,
        ),
        {"type": "string", "format": "date"},
    ),
    Entry(
        dt.time,
        is_a(dt.time),
        (("07:08:09Z", dt.time(7, 8, 9, tzinfo=utc)), ("23:59:59.5+00:00", dt.time(23, 59, 59, 500000, utc))),
        ("07:08:09", "07:08Z", "7:08:09Z", "24:00:00Z", "07:60:00Z", "07:08:60Z", "07:08:09+2", "", 7, None),
        {"type": "string", "format": "time"},
    ),
    Entry(
        dt.timedelta,
        is_a(dt.timedelta),
        (
            ("P1D", dt.timedelta(days=1)),
            ("P2W", dt.timedelta(weeks=2)),
            ("PT1H2M3.5S", dt.timedelta(hours=1, minutes=2, seconds=3.5)),
            ("P1DT0.000001S", dt.timedelta(days=1, microseconds=1)),
            ("-PT90M", -dt.timedelta(minutes=90)),
            ("PT0S", dt.timedelta(0)),
        ),
        (
            "P",
            "PT",
            "P1DT",
            "-P",
            "1D",
            "P1Y",
            "P1M",
            "P1W1D",
            "PT1S1M",
            "PT1.5M",
            "PT,5S",
            "P1D\n",
            "p1d",
            "",
            60,
            None,
        ),
        {"type": "string", "format": "duration"},
    ),
    Entry(
        UUID,
        is_a(UUID),
        (
            (SOME_UUID, UUID(SOME_UUID)),
            ("ABCDEFAB-CDEF-ABCD-EFAB-CDEFABCDEFAB", UUID("abcdefab-cdef-abcd-efab-cdefabcdefab")),
        ),
        (
            SOME_UUID.replace("-", ""),
            "{" + SOME_UUID + "}",
            "urn:uuid:" + SOME_UUID,
            SOME_UUID[:-1],
            "g" + SOME_UUID[1:],
            "",
            1,
            None,
        ),
        {"type": "string", "format": "uuid"},
    ),
    Entry(
        Decimal,
        is_a(Decimal),
        (("1.50", Decimal("1.50")), ("-0", Decimal("-0")), ("12e3", Decimal("12e3")), ("0.1", Decimal("0.1"))),
        ("1,5", "NaN", "Infinity", "01", "+1", ".5", "5.", " 1", "1_000", "\u0661", "1e99999", "", 1.5, 1, None),
        {"type": "string"},
    ),
    Entry(
        Path,
        is_a(type(Path())),
        (("a/b", Path("a/b")), ("", Path()), ("/x", Path("/x"))),
        (1, None, ["a"], True),
        {"type": "string"},
    ),
    Entry(PurePosixPath, is_a(PurePosixPath), (("a/b", PurePosixPath("a/b")),), (1, None, ["a"]), {"type": "string"}),
    Entry(
        re.Pattern,
        is_a(re.Pattern),
        (("^a+$", re.compile("^a+$")), ("", re.compile(""))),
        ("(", "[", "*a", "(?P<x", 1, None),
        {"type": "string", "format": "regex"},
    ),
    Entry(re.Pattern[str], is_a(re.Pattern), (("a|b", re.compile("a|b")),), ("(", 1), {"format": "regex"}),
    Entry(
        IPv4Address,
        is_a(IPv4Address),
        (("127.0.0.1", IPv4Address("127.0.0.1")), ("0.0.0.0", IPv4Address("0.0.0.0"))),
        ("127.0.0", "256.0.0.1", "127.0.0.01", "127.0.0.1/8", "::1", "", 1, None),
        {"type": "string", "format": "ipv4"},
    ),
    Entry(
        IPv6Address,
        is_a(IPv6Address),
        (("::1", IPv6Address("::1")), ("2001:DB8::8", IPv6Address("2001:db8::8"))),
        ("127.0.0.1", "::1%eth0", ":::", "12345::", "::1/64", "", 1, None),
        {"type": "string", "format": "ipv6"},
    ),
    # Choices
    Entry(
        Literal["a", "b"],
        text,
        (("a", "a"), ("b", "b")),
        ("A", "", "c", 1, None, ["a"], {"a": 1}),
        {"type": "string", "enum": ["a", "b"]},
    ),
    Entry(Literal["only"], text, (("only", "only"),), ("", "other", 1, None), {"const": "only"}),
    Entry(Literal[1, 2], whole, ((1, 1), (2.0, 2)), (0, 3, True, "1", None, 1.5), {"type": "integer", "enum": [1, 2]}),
    Entry(Literal[True], truth, ((True, True),), (1, 1.0, False, "true", None), {"const": True}),
    Entry(
        Literal[1, True], is_a(int, bool), ((1, 1), (True, True), (1.0, 1)), (0, False, "1", None), {"enum": [1, True]}
    ),
    Entry(
        Literal["a", 1, None],
        is_a(str, int, type(None)),
        (("a", "a"), (1, 1), (None, None)),
        ("1", 2, True, [], {}),
        {"enum": ["a", 1, None]},
    ),
    Entry(
        Literal[Color.RED, "x"],
        is_a(Color, str),
        (("red", Color.RED), ("x", "x")),
        ("blue", "RED", 1),
        {"enum": ["red", "x"]},
    ),
    Entry(
        Color,
        is_a(Color),
        (("red", Color.RED), ("blue", Color.BLUE)),
        ("RED", "Red", "", 1, None, ["red"]),
        {"type": "string", "enum": ["red", "blue"]},
    ),
    Entry(
        Size,
        is_a(Size),
        ((1, Size.SMALL), (2.0, Size.LARGE)),
        (0, 3, True, "1", "SMALL", None, 1.5),
        {"type": "integer", "enum": [1, 2]},
    ),
    Entry(
        Level,
        is_a(Level),
        (("low", Level.LOW), ("high", Level.HIGH)),
        ("LOW", "", 1, None),
        {"type": "string", "enum": ["low", "high"]},
    ),
    Entry(
        Shape, is_a(Shape), (("round", Shape.ROUND),), ("ROUND", 1, None), {"type": "string", "enum": ["round", "flat"]}
    ),
    Entry(
        Corner,
        is_a(Corner),
        (("ORIGIN", Corner.ORIGIN), ("UNIT", Corner.UNIT)),
        ([0, 0], "origin", 1),
        {"type": "string", "enum": ["ORIGIN", "UNIT"]},
    ),
    Entry(
        Answer,
        is_a(Answer),
        ((True, Answer.YES), (0.5, Answer.MAYBE), (None, Answer.NONE)),
        (1, "YES", False, 0),
        {"enum": [True, 0.5, None]},
    ),
    # Arrays
    Entry(
        list[int],
        many(list, whole),
        (([], []), ([1, 2.0], [1, 2])),
        (*NOT_ARRAY, ["1"], [1, None], [[1]], [True]),
        {"type": "array", "items": {"type": "integer"}},
    ),
    Entry(
        list[str],
        many(list, text),
        (([], []), (["a", "b"], ["a", "b"])),
        (*NOT_ARRAY, [1], ["a", None]),
        {"items": {"type": "string"}},
    ),
    Entry(
        list[float],
        many(list, real),
        (([1, 2.5], [1.0, 2.5]),),
        (*NOT_ARRAY, ["1"], [True]),
        {"items": {"type": "number"}},
    ),
    Entry(list, is_a(list), (([], []), ([1, "a", None], [1, "a", None])), NOT_ARRAY, {"type": "array"}),
    Entry(
        list[list[dt.date]],
        many(list, many(list, is_a(dt.date))),
        (([["2024-01-01"], []], [[dt.date(2024, 1, 1)], []]),),
        ([["x"]], ["2024-01-01"], [[1]]),
    ),
    Entry(abc.Sequence[int], many(list, whole), (([1], [1]),), NOT_ARRAY, {"type": "array"}),
    Entry(abc.MutableSequence[int], many(list, whole), (([1], [1]),), NOT_ARRAY),
    Entry(abc.Iterable[int], many(list, whole), (([1], [1]),), NOT_ARRAY),
    Entry(abc.Collection[int], many(list, whole), (([1], [1]),), NOT_ARRAY),
    Entry(collections.deque[int], many(collections.deque, whole), (([1], collections.deque([1])),), NOT_ARRAY),
    Entry(
        tuple[int, str],
        lambda v: type(v) is tuple and same_kinds(v, int, str),
        (([1, "a"], (1, "a")), ([1.0, ""], (1, ""))),
        (*NOT_ARRAY, [], [1], ["a", 1], [1, "a", 2]),
        {"minItems": 2, "maxItems": 2},
    ),
    Entry(
        tuple[int, ...],
        many(tuple, whole),
        (([], ()), ([1, 2], (1, 2))),
        (*NOT_ARRAY, ["1"]),
        {"type": "array", "items": {"type": "integer"}},
    ),
    Entry(tuple[()], lambda v: v == (), (([], ()),), (*NOT_ARRAY, [1]), {"type": "array", "maxItems": 0}),
    Entry(tuple, is_a(tuple), (([1, "a"], (1, "a")),), NOT_ARRAY, {"type": "array"}),
    Entry(
        set[int],
        many(set, whole),
        (([], set()), ([1, 2.0], {1, 2})),
        (*NOT_ARRAY, [1, 1], [1, 1.0], ["1"], [True]),
        {"uniqueItems": True},
    ),
    Entry(set[str], many(set, text), ((["a", "b"], {"a", "b"}),), (*NOT_ARRAY, ["a", "a"], [1])),
    Entry(set, many(set, is_json), (([1, "a", None], {1, "a", None}),), (*NOT_ARRAY, ["a", "a"], [[1]], [{}])),
    Entry(
        set[tuple[int, int]],
        many(set, is_a(tuple)),
        (([[1, 2], [2, 1]], {(1, 2), (2, 1)}),),
        ([[1, 2], [1, 2]], [[1]], [1], [[1, 2], [1.0, 2]]),
    ),
    Entry(set[Color], many(set, is_a(Color)), ((["red"], {Color.RED}),), (["red", "red"], ["green"])),
    Entry(abc.Set[int], many(set, whole), (([1], {1}),), (*NOT_ARRAY, [1, 1])),
    Entry(abc.MutableSet[int], many(set, whole), (([1], {1}),), (*NOT_ARRAY, [1, 1])),
    Entry(
        frozenset[int],
        many(frozenset, whole),
        (([1, 2], frozenset({1, 2})),),
        (*NOT_ARRAY, [1, 1], [1.5]),
        {"uniqueItems": True},
    ),
    # Objects
    Entry(
        dict[str, int],
        mapping(text, whole),
        (({}, {}), ({"a": 1, "": 2.0}, {"a": 1, "": 2})),
        (*NOT_OBJECT, {"a": "1"}, {"a": None}),
        {"additionalProperties": {"type": "integer"}},
    ),
    Entry(dict[str, Any], mapping(text, is_json), (({"a": [1]}, {"a": [1]}),), NOT_OBJECT, {"type": "object"}),
    Entry(dict, mapping(text, is_json), (({"a": [1]}, {"a": [1]}),), NOT_OBJECT, {"type": "object"}),
    Entry(
        dict[int, str],
        mapping(whole, text),
        (({"1": "a", "-20": "b", "0": ""}, {1: "a", -20: "b", 0: ""}),),
        (
            *NOT_OBJECT,
            {"01": "a"},
            {"-0": "a"},
            {"+1": "a"},
            {"1.0": "a"},
            {" 1": "a"},
            {"\u0661": "a"},
            {"1_0": "a"},
            {"x": "a"},
            {"": "a"},
            {"1": 1},
        ),
    ),
    Entry(
        dict[Color, int],
        mapping(is_a(Color), whole),
        (({"red": 1}, {Color.RED: 1}),),
        (*NOT_OBJECT, {"RED": 1}, {"green": 1}),
    ),
    Entry(
        dict[Size, int],
        mapping(is_a(Size), whole),
        (({"1": 5}, {Size.SMALL: 5}),),
        (*NOT_OBJECT, {"3": 1}, {"SMALL": 1}, {"1.0": 1}),
    ),
    Entry(dict[Literal["a", "b"], int], mapping(text, whole), (({"a": 1}, {"a": 1}),), ({"c": 1}, {"a": "1"}, [])),
    Entry(
        dict[dt.date, int],
        mapping(is_a(dt.date), whole),
        (({"2024-01-01": 1}, {dt.date(2024, 1, 1): 1}),),
        ({"x": 1}, {"2024-1-1": 1}),
    ),
    Entry(
        dict[str, list[Color]],
        mapping(text, many(list, is_a(Color))),
        (({"a": ["red"]}, {"a": [Color.RED]}),),
        ({"a": "red"}, {"a": ["x"]}),
    ),
    Entry(abc.Mapping[str, int], mapping(text, whole), (({"a": 1}, {"a": 1}),), NOT_OBJECT, {"type": "object"}),
    Entry(abc.MutableMapping[str, int], mapping(text, whole), (({"a": 1}, {"a": 1}),), NOT_OBJECT),
    # Unions
    Entry(
        Optional[int],  # noqa: UP045 - the old spelling counts too
        either(whole, nothing),
        ((1, 1), (1.0, 1), (None, None)),
        ("1", "", True, 1.5, []),
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    ),
    Entry(
        str | None,
        either(text, nothing),
        (("a", "a"), (None, None)),
        (1, True, [], {}),
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
    ),
    Entry(
        None | dt.date,
        either(is_a(dt.date), nothing),
        ((None, None), ("2024-01-01", dt.date(2024, 1, 1))),
        ("x", 1, ""),
    ),
    Entry(
        int | str,
        either(whole, text),
        ((1, 1), ("1", "1"), (2.0, 2)),
        (1.5, True, None, []),
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    Entry(
        str | int,
        either(whole, text),
        ((1, 1), ("1", "1"), (2.0, 2)),
        (1.5, True, None, []),
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    ),
    Entry(Union[int, str, None], either(whole, text, nothing), ((1, 1), ("a", "a"), (None, None)), (1.5, True, [])),  # noqa: UP007 - the old spelling counts too
    Entry(int | float, either(whole, real), ((1, 1), (1.0, 1.0), (1.5, 1.5)), ("1", True, None)),
    Entry(float | int, either(whole, real), ((1, 1), (1.0, 1.0), (1.5, 1.5)), ("1", True, None)),
    Entry(bool | int, either(truth, whole), ((True, True), (1, 1), (0, 0), (1.0, 1)), ("1", None, 1.5)),
    Entry(int | bool, either(truth, whole), ((True, True), (1, 1), (0, 0), (1.0, 1)), ("1", None, 1.5)),
    Entry(
        dt.datetime | str,
        either(is_a(dt.datetime), text),
        (("2024-05-06T07:08:09Z", dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=utc)), ("x", "x")),
        (1, None),
    ),
    Entry(
        dt.datetime | dt.date,
        is_a(dt.datetime, dt.date),
        (("2024-01-01", dt.date(2024, 1, 1)), ("2024-01-01T00:00:00Z", dt.datetime(2024, 1, 1, tzinfo=utc))),
        ("x", 1),
    ),
    Entry(UUID | int, is_a(UUID, int), ((SOME_UUID, UUID(SOME_UUID)), (1, 1)), ("x", None)),
    Entry(
        list[int] | list[str],
        either(many(list, whole), many(list, text)),
        (([], []), ([1], [1]), (["a"], ["a"])),
        ([1, "a"], [None], "a"),
    ),
    Entry(
        list[str] | list[int],
        either(many(list, whole), many(list, text)),
        (([], []), ([1], [1]), (["a"], ["a"])),
        ([1, "a"], [None], "a"),
    ),
    Entry(str | list[str], either(text, many(list, text)), (("a", "a"), (["a"], ["a"])), (1, [1], None)),
    Entry(
        dict[str, int] | list[int] | None,
        either(mapping(text, whole), many(list, whole), nothing),
        (({"a": 1}, {"a": 1}), ([1], [1]), (None, None)),
        ("a", [None]),
    ),
    Entry(Size | float, is_a(Size, float), ((1, Size.SMALL), (3, 3.0), (1.0, 1.0)), ("1", True, None)),
    Entry(Literal["auto"] | int, either(text, whole), (("auto", "auto"), (3, 3)), ("x", True, None)),
    Entry(str | Literal["auto"], text, (("auto", "auto"), ("x", "x")), (1, None)),
    # Names for types
    Entry(UserId, whole, ((1, 1), (1.0, 1)), NOT_INTEGER, {"type": "integer"}),
    Entry(list[UserId], many(list, whole), (([1], [1]),), (["1"], 1)),
    Entry(Names, many(list, text), ((["a"], ["a"]),), ("a", [1]), {"type": "array"}),
    Entry(Pair[int], many(tuple, whole), (([1, 2], (1, 2)),), ([1], ["a", "b"], [1, 2, 3])),
    Entry(
        Json,
        is_json_or_list,
        ((1, 1), ("a", "a"), (None, None), ([1, ["a", {"b": []}]], [1, ["a", {"b": []}]])),
        (True, 1.5, [[True]], {"a": 1.5}),
    ),
    Entry(Tree, is_tree, (({}, {}), ({"a": {"b": {}}}, {"a": {"b": {}}})), ([], {"a": 1}, {"a": {"b": None}})),
    Entry(Final[int], whole, ((1, 1),), NOT_INTEGER, {"type": "integer"}),
    Entry(Bound, whole, ((1, 1),), NOT_INTEGER, {"type": "integer"}),
    Entry(Picked, either(whole, text), ((1, 1), ("a", "a")), (1.5, None)),
    # Bounds
    Entry(Annotated[int, Ge(1), Le(5)], whole, ((1, 1), (5.0, 5)), (0, 6, "1", 1.5), {"minimum": 1, "maximum": 5}),
    Entry(
        Annotated[int, Gt(1), Lt(5)],
        whole,
        ((2, 2), (4, 4)),
        (1, 5, 1.5),
        {"exclusiveMinimum": 1, "exclusiveMaximum": 5},
    ),
    Entry(
        Annotated[float, Interval(ge=0, lt=1)],
        real,
        ((0, 0.0), (0.5, 0.5)),
        (1, -0.1, "0"),
        {"minimum": 0, "exclusiveMaximum": 1},
    ),
    Entry(Annotated[float, Ge(0.5)], real, ((0.5, 0.5), (0.75, 0.75), (1, 1.0)), (0.25, 0, "1"), {"minimum": 0.5}),
    Entry(Annotated[float, Le(Decimal("0.5"))], real, ((0.5, 0.5), (-1, -1.0)), (0.75, 1), {"maximum": 0.5}),
    Entry(Annotated[str, MinLen(3)] | Literal["a"], text, (("abc", "abc"), ("a", "a")), ("ab", "", 1, None)),
    Entry(
        Annotated[Slug, MaxLen(3)], text, (("abc", "abc"),), ("abcd", "A", 1), {"pattern": "^[a-z]+$", "maxLength": 3}
    ),
    Entry(
        dict[str, int] | Annotated[list[int], Len(1)],
        either(mapping(text, whole), many(list, whole)),
        (({}, {}), ([1], [1])),
        ([], "a"),
    ),
    Entry(Annotated[int, MultipleOf(5)], whole, ((0, 0), (10, 10), (-5.0, -5)), (1, 5.5, 11), {"multipleOf": 5}),
    Entry(Annotated[float, MultipleOf(0.5)], real, ((1, 1.0), (1.5, 1.5)), (1.25, 0.1), {"multipleOf": 0.5}),
    Entry(
        Annotated[str, MinLen(1), MaxLen(3)],
        text,
        (("a", "a"), ("\U0001f600bc", "\U0001f600bc")),
        ("", "abcd", 1),
        {"minLength": 1, "maxLength": 3},
    ),
    Entry(
        Annotated[str, Param(pattern="^[a-z]+$")], text, (("abc", "abc"),), ("", "A", "a1", 1), {"pattern": "^[a-z]+$"}
    ),
    Entry(Annotated[str, Param(pattern="b")], text, (("abc", "abc"),), ("", "ac")),
    Entry(
        Annotated[list[int], Len(1, 2)],
        many(list, whole),
        (([1], [1]), ([1, 2], [1, 2])),
        ([], [1, 2, 3], ["a"]),
        {"minItems": 1, "maxItems": 2},
    ),
    Entry(Annotated[set[int], MinLen(2)], many(set, whole), (([1, 2], {1, 2}),), ([1], [1, 1])),
    Entry(
        Annotated[dict[str, int], MinLen(1)],
        mapping(text, whole),
        (({"a": 1}, {"a": 1}),),
        ({}, {"a": "x"}),
        {"minProperties": 1},
    ),
    Entry(Annotated[Path, MinLen(1)], is_a(type(Path())), (("a", Path("a")),), ("", 1), {"minLength": 1}),
    Entry(
        Annotated[int | None, Ge(1)],
        either(whole, nothing),
        ((1, 1), (None, None)),
        (0, "1"),
        {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
    ),
    Entry(Annotated[int | str, Ge(1)], either(whole, text), ((1, 1), ("", "")), (0, None)),
    Entry(
        list[Annotated[int, Ge(0)]],
        many(list, whole),
        (([0, 1], [0, 1]),),
        ([-1], [0, -1], 0),
        {"items": {"type": "integer", "minimum": 0}},
    ),
    Entry(Annotated[int, "how many"], whole, ((1, 1),), NOT_INTEGER, {"description": "how many"}),
)


def same_kinds(values: Any, *kinds: type) -> bool:
    return [type(value) for value in values] == list(kinds)
