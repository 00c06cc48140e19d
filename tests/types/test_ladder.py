"""The ladder of repairs for types that are written as text: what is read, and how a refusal helps."""

import base64
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from pegboard import Text, Toolkit, TypeHandler, shaped
from tests.types.table import same

MOMENT = datetime(2025, 1, 1, 10, tzinfo=UTC)
NAIVE = datetime(2025, 1, 1, 10)  # noqa: DTZ001 - the one without a zone is what is meant
KEY = uuid.UUID("12345678-1234-5678-1234-567812345678")


class Board:
    """Tools of one parameter, and what arrived in them."""

    def __init__(self) -> None:
        self.toolkit = Toolkit(plugins=())
        self.arrived: list[Any] = []

    def send(self, annotation: Any, value: Any) -> Any:
        return self.text(annotation, json.dumps({"value": value}))

    def text(self, annotation: Any, sent: str | bytes) -> Any:
        def keep(value: Any) -> str:
            self.arrived.append(value)
            return "kept"

        keep.__annotations__["value"] = annotation
        self.toolkit.register(keep, on_conflict="replace")
        return self.toolkit.call_sync("keep", sent)


@pytest.fixture
def board() -> Iterator[Board]:
    made = Board()
    with made.toolkit:
        yield made


@pytest.mark.parametrize(
    ("annotation", "sent", "wanted"),
    [
        (datetime, "2025-01-01T10:00:00", NAIVE),
        (datetime, "2025-01-01T10:00:00.25", NAIVE.replace(microsecond=250_000)),
        (datetime, "2025-01-01 10:00", NAIVE),
        (datetime, "2025-01-01", NAIVE.replace(hour=0)),
        (datetime, "2025-01-01 10:00Z", MOMENT),
        (datetime, "2025-01-01 10:00:00+00:00", MOMENT),
        (datetime, "2025-01-01T10:00:00 +0000", MOMENT),
        (datetime, "2025-01-01T12:00:00+0200", datetime(2025, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))),
        (datetime | None, "2025-01-01T10:00:00", NAIVE),
        (datetime | int, "2025-01-01T10:00:00", NAIVE),
        (list[datetime], ["2025-01-01T10:00:00"], [NAIVE]),
        (list[datetime], "2025-01-01T10:00:00", [NAIVE]),
        (dict[str, datetime], {"a": "2025-01-01"}, {"a": NAIVE.replace(hour=0)}),
        (dict[datetime, int], {"2025-01-01T10:00:00": 1}, {NAIVE: 1}),
        (time, "10:00", time(10)),
        (time, "10:00:00", time(10)),
        (time, "10:00Z", time(10, tzinfo=UTC)),
        (date, "2025-01-01T00:00:00", date(2025, 1, 1)),
        (date, "2025-01-01 00:00", date(2025, 1, 1)),
        (date, "2025-01-01T00:00:00.000", date(2025, 1, 1)),
        (timedelta, "01:30:00", timedelta(minutes=90)),
        (timedelta, "-100:00:00.5", -timedelta(hours=100, seconds=0.5)),
        (Decimal, 1.5, Decimal("1.5")),
        (Decimal, 1, Decimal(1)),
        (Decimal, " 1.50 ", Decimal("1.50")),
        (uuid.UUID, KEY.hex, KEY),
        (uuid.UUID, KEY.hex.upper(), KEY),
        (uuid.UUID, f"{{{KEY}}}", KEY),
        (uuid.UUID, KEY.urn, KEY),
        (uuid.UUID, f" {KEY}\n", KEY),
        (bytes, "-_-_", b"\xfb\xff\xbf"),
        (bytes, "QQ", b"A"),
        (bytes, base64.urlsafe_b64encode(b"\xff" * 5).decode().rstrip("="), b"\xff" * 5),
    ],
)
def test_read_with_a_note(annotation: Any, sent: Any, wanted: Any, board: Board) -> None:
    result = board.send(annotation, sent)
    assert result.status == "success", result.text
    assert result.notes
    assert not [note for note in result.notes if "Python" in note]
    assert same(board.arrived.pop(), wanted)


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ("1.50", "1.50"),
        ("0.1", "0.1"),
        ("-2.5e-3", "-0.0025"),
        ("12345678901234567890.12", "12345678901234567890.12"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
    ],
)
@pytest.mark.parametrize("form", [str, str.encode])
def test_a_number_for_a_decimal_keeps_its_own_digits(sent: str, wanted: str, form: Any, board: Board) -> None:
    assert board.text(Decimal, form(f'{{"value": {sent}}}')).status == "success"
    assert str(board.arrived.pop()) == wanted
    assert board.text(list[Decimal], form(f'{{"value": "[{sent}]"}}')).status == "success"
    assert [str(each) for each in board.arrived.pop()] == [wanted]


def test_two_numbers_that_are_one_float_are_told_apart_or_refused(board: Board) -> None:
    text = '{"value": [0.1, 0.1000000000000000055511151231257827]}'
    assert board.text(list[Decimal], text).status == "invalid"
    assert board.text(list[Decimal], '{"value": [0.5, 0.50, 5e-1]}').status == "success"


@pytest.mark.parametrize(
    ("annotation", "sent", "form"),
    [
        (datetime, "12/05/2025", "2024-05-06T07:08:09Z"),
        (datetime, "yesterday", "2024-05-06T07:08:09Z"),
        (datetime, "20250101", "2024-05-06T07:08:09Z"),
        (datetime, "2025-13-01", "2024-05-06T07:08:09Z"),
        (datetime, "2025-01-01T25:00", "2024-05-06T07:08:09Z"),
        (datetime, "2025-01-01T10:00+2", "2024-05-06T07:08:09Z"),
        (datetime, 1715000000, "2024-05-06T07:08:09Z"),
        (time, "10:00 AM", "07:08:09Z"),
        (time, "9:30", "07:08:09Z"),
        (time, 10, "07:08:09Z"),
        (date, "12/05/2025", "2024-05-06"),
        (date, "2025-01-01T00:00:00Z", "2024-05-06"),
        (date, "2025-01-01T10:00:00", "2024-05-06"),
        (timedelta, "5 minutes", "P1DT2H30M"),
        (timedelta, "1:30", "P1DT2H30M"),
        (timedelta, 90, "P1DT2H30M"),
        (Decimal, "1,5", "12.50"),
        (Decimal, "12 EUR", "12.50"),
        (Decimal, True, "12.50"),
        (Decimal, [1], "12.50"),
        (uuid.UUID, "0x" + "1" * 30, "123e4567-e89b-12d3-a456-426614174000"),
        (uuid.UUID, "1" * 15 + "_" + "1" * 16, "123e4567-e89b-12d3-a456-426614174000"),
        (bytes, "hi", "aGVsbG8="),
        (bytes, "Hello, world!", "aGVsbG8="),
        (bytes, "+_+_", "aGVsbG8="),
        (list[str], "a, b", "[..., ...]"),
    ],
)
def test_refused_with_the_form_to_write(annotation: Any, sent: Any, form: str, board: Board) -> None:
    result = board.send(annotation, sent)
    assert (result.status, board.arrived) == ("invalid", [])
    assert form in result.text
    assert "^" not in result.text, "an example, never a pattern alone"


def test_bounds_hold_for_what_was_read(board: Board) -> None:
    from typing import Annotated

    from pegboard import Param

    assert board.send(Annotated[list[datetime], Param(max_length=1)], ["2025-01-01", "2025-01-02"]).status == "invalid"


def test_nothing_is_read_where_repair_is_off() -> None:
    def at(value: datetime) -> str:
        return value.isoformat()

    with Toolkit(plugins=(), repair="off") as toolkit:
        toolkit.register(at)
        assert toolkit.call_sync("at", {"value": "2025-01-01T10:00:00"}).status == "invalid"


def test_a_handler_says_itself_what_it_reads_and_how_to_write_it(board: Board) -> None:
    """What Pegboard's own types do, any handler can."""

    class Metres(float):
        pass

    def parse(text: str) -> Metres:
        number, unit = text.split(" ")
        if unit != "m":
            raise ValueError("in metres")
        return Metres(number)

    def repair(sent: Any) -> str:
        return f"{sent.removesuffix('m').strip()} m" if isinstance(sent, str) else f"{sent} m"

    plan = shaped({"type": "string", "pattern": "^[0-9.]+ m$"}, Text(parse, example="3.5 m", repair=repair))
    board.toolkit.register_type(TypeHandler(Metres, lambda annotation, types: plan))
    assert board.send(Metres, "3.5m").status == "success"
    assert board.send(Metres, 2).status == "success"
    assert board.text(Metres, '{"value": 1.10}').status == "success"
    assert board.arrived == [3.5, 2.0, 1.1]
    assert 'expected string such as "3.5 m"' in board.send(Metres, "far").text
