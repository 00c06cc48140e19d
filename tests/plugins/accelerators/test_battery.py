"""Every type of the battery gives the same results with each library and without any."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pegboard import Toolkit, tool
from pegboard._schema.nodes import render
from tests.plugins.accelerators.sides import DECODERS, LONG_ENOUGH, board, facts

pytest.importorskip("annotated_types")
pytest.importorskip("typing_extensions")

from tests.support.thinning import one_in
from tests.types.battery import BATTERY, Entry
from tests.types.table import type_table

TABLE = type_table()
TYPES = list(enumerate(BATTERY))
ANYTHING: tuple[Any, ...] = ("12345678901234567890", 10**30, 1.0, "", {}, [[]])
each = pytest.mark.parametrize(("number", "entry"), one_in(4, TYPES), ids=[str(entry) for entry in BATTERY])


def typed(number: int, entry: Entry) -> Any:
    def take(value: Any) -> Any:
        return value

    take.__annotations__ = {"value": entry.annotation}
    return tool(name=f"take_{number}")(take)


class Foreign:
    """The same type as a stranger would offer it: a schema, and arguments that arrive as they are."""

    def __init__(self, number: int, entry: Entry) -> None:
        value = render(TABLE.plan(entry.annotation).schema)
        definitions = value.pop("$defs", {})
        self.name = f"take_{number}"
        self.description = "Give back what was sent."
        self.parameters = {
            "type": "object",
            "properties": {"value": value},
            "required": ["value"],
            "$defs": definitions,
        }

    def call(self, call: Any) -> Any:
        return call.arguments


def padded(value: Any) -> str:
    return json.dumps({"value": value}) + " " * LONG_ENOUGH


def boards(library: str, make: Any) -> Iterator[tuple[Toolkit, Toolkit]]:
    tools = [make(number, entry) for number, entry in TYPES]
    with board(library, *tools) as quick, board(None, *tools) as plain:
        yield quick, plain


@pytest.fixture(scope="module", params=DECODERS)
def decoding(request: pytest.FixtureRequest) -> Iterator[tuple[Toolkit, Toolkit]]:
    yield from boards(request.param, typed)


@pytest.fixture(scope="module")
def checking() -> Iterator[tuple[Toolkit, Toolkit]]:
    yield from boards("jsonschema-rs", Foreign)


@each
def test_decoders(number: int, entry: Entry, decoding: tuple[Toolkit, Toolkit]) -> None:
    quick, plain = decoding
    name = f"take_{number}"
    for sent, _ in entry.good:
        result = quick.call_sync(name, padded(sent))
        assert entry.fits(result.value)
        assert facts(result) == facts(plain.call_sync(name, padded(sent)))
    for sent in (*entry.bad, *ANYTHING):
        assert facts(quick.call_sync(name, padded(sent))) == facts(plain.call_sync(name, padded(sent))), sent


@each
def test_validators(number: int, entry: Entry, checking: tuple[Toolkit, Toolkit]) -> None:
    quick, plain = checking
    name = f"take_{number}"
    for sent, _ in entry.good:
        result = quick.call_sync(name, {"value": sent})
        assert result.status == "success"
        assert facts(result) == facts(plain.call_sync(name, {"value": sent}))
    for sent in (*entry.bad, *ANYTHING):
        assert facts(quick.call_sync(name, {"value": sent})) == facts(plain.call_sync(name, {"value": sent})), sent
