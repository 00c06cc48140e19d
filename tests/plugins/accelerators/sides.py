"""The same board twice: with one library as accelerator, and without any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import pegboard_accelerators
from pegboard import Toolkit, ToolResult

LIBRARIES = ("msgspec", "orjson", "jsonschema-rs")
DECODERS = LIBRARIES[:2]
LONG_ENOUGH = 256
"""Shorter text is not worth the while of orjson."""

each_decoder = pytest.mark.parametrize("library", DECODERS)


def settings(library: str | None) -> dict[str, dict[str, str]]:
    """The settings under which this library alone is used."""
    decoder = library if library in DECODERS else "none"
    return {"accelerators": {"decoder": decoder, "validator": library if library == "jsonschema-rs" else "none"}}


def board(library: str | None, *tools: Any) -> Toolkit:
    """A toolkit that uses one library, or none; skips the test where it is not installed."""
    if library is not None:
        pytest.importorskip(library.replace("-", "_"))
    toolkit = Toolkit(plugins=[pegboard_accelerators], settings=settings(library), on_plugin_error="raise")
    assert list(toolkit.accelerators.values()) == ([library] if library else [])
    toolkit.register(*tools)
    return toolkit


@contextmanager
def both(library: str, *tools: Any) -> Iterator[Callable[[str, Any], ToolResult]]:
    """A function that calls a tool on both boards, and fails unless everything that can be told is equal."""
    with board(library, *tools) as quick, board(None, *tools) as plain:

        def call(name: str, arguments: Any) -> ToolResult:
            result, wanted = quick.call_sync(name, arguments), plain.call_sync(name, arguments)
            assert facts(result) == facts(wanted)
            one, other = quick.prepare(name, arguments), plain.prepare(name, arguments)
            assert repr(one.arguments) == repr(other.arguments)
            assert one.status == other.status
            return result

        yield call


def facts(result: ToolResult) -> tuple[Any, ...]:
    """What a result says, without what differs from call to call."""
    fault = None if result.error is None else (result.error.kind, result.error.message, dict(result.error.details))
    notes = [(str(note), note.kind) for note in result.notes]
    # By their spelling: 1 is not 1.0, and 0.0 is not -0.0.
    return result.status, result.text, repr(result.data), repr(result.value), fault, notes
