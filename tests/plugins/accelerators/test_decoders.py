"""Text is read by a library exactly as the core reads it, or by the core."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard import tool
from tests.plugins.accelerators.sides import DECODERS, LONG_ENOUGH, board, both, each_decoder
from tests.plugins.accelerators.texts import TEXTS, texts


@tool
def echo(**found: Any) -> str:
    """Show everything that was sent, with its types."""
    return repr(found)


def padded(text: str) -> str:
    """The same text, long enough for every decoder: white space at its end means nothing."""
    return text + " " * LONG_ENOUGH


@pytest.fixture(scope="module", params=DECODERS)
def call(request: pytest.FixtureRequest) -> Any:
    with both(request.param, echo) as found:
        yield found


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:40])
def test_every_text_has_one_reading(call: Any, text: str) -> None:
    call("echo", text)
    call("echo", padded(text))


@given(text=texts)
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_random_text_has_one_reading(call: Any, text: str) -> None:
    call("echo", padded(text))


@pytest.mark.slow
@given(text=texts)
@settings(max_examples=3_000, suppress_health_check=list(HealthCheck))
def test_much_random_text_has_one_reading(call: Any, text: str) -> None:
    call("echo", padded(text))


@each_decoder
@pytest.mark.parametrize("kind", [str, bytes, bytearray])
def test_other_forms_than_text(library: str, kind: Any) -> None:
    with both(library, echo) as call:
        text = padded('{"a": 12345678901234567890123}')
        assert call("echo", text if kind is str else kind(text.encode())).text == "{'a': 12345678901234567890123}"
        assert call("echo", {"a": 1}).text == "{'a': 1}"
        assert call("echo", None).text == "{}"


class TestUse:
    """The libraries are really asked: otherwise everything above would show nothing."""

    @pytest.fixture
    def reads(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        import json

        read: list[str] = []
        pytest.importorskip("orjson")

        def loads(data: bytes) -> Any:
            read.append(data.decode())
            return json.loads(data)

        monkeypatch.setattr("orjson.loads", loads)
        return read

    def test_long_text_is_read_by_the_library(self, reads: list[str]) -> None:
        with board("orjson", echo) as toolkit:
            assert toolkit.call_sync("echo", padded('{"a": 1}')).text == "{'a': 1}"
            assert reads == [padded('{"a": 1}')]

    @pytest.mark.parametrize("text", ['{"a": 1}', padded('{"a": 1234567890123456789}')])
    def test_short_text_and_long_numbers_are_not(self, text: str, reads: list[str]) -> None:
        with board("orjson", echo) as toolkit:
            assert toolkit.call_sync("echo", text).status == "success"
            assert reads == []

    def test_msgspec_reads_text_of_any_length(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("msgspec")

        class Decoder:
            def decode(self, text: str) -> Any:
                return {"read": text}

        monkeypatch.setattr("msgspec.json.Decoder", Decoder)
        with board("msgspec", echo) as toolkit:
            assert toolkit.call_sync("echo", '{"a":1}').text == repr({"read": '{"a":1}'})


@given(data=st.data())
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
def test_long_arrays_of_objects(call: Any, data: st.DataObject) -> None:
    """More than a hundred brackets take another way to the decoder."""
    kinds = st.sampled_from(['{"a": 1}', '{"a": ":"}', '{"a": [1]}'])
    rows = data.draw(st.lists(kinds, min_size=101, max_size=120))
    rows.insert(data.draw(st.integers(0, 100)), data.draw(st.sampled_from(["1", '{"a": 1, "a": 1}'])))
    call("echo", f'{{"rows": [{", ".join(rows)}]}}')
