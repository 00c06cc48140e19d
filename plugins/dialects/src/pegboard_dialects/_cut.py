"""Calls that were cut: the response ended before they were complete, and the calls do not show it.

Models write one call after the other, so an early end cuts the last one. Servers send the part that they have as an
empty object, as text that breaks off, or as an object that they have closed themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pegboard import Fault, Status, ToolCall, ToolResult

__all__ = ["BROKEN_OFF", "LENGTH", "STOPPED", "UNFINISHED", "refuse", "why_cut"]

UNFINISHED: Final = "unfinished"
"""The reason for a stream whose end has not come."""

LENGTH: Final = "the response reached its limit of tokens before this call was complete"
STOPPED: Final = "the provider ended the response before this call was complete"
BROKEN_OFF: Final = "the response broke off before this call was complete"


def why_cut(reason: str, reasons: Mapping[str, str], arguments: Any, *, last: bool) -> str:
    """Why a call is not complete, as a text for the model; empty for a complete call.

    `reason` is why the provider ended the response. `reasons` are those that cut its `last` call, with their meaning.
    """
    if last and reason in reasons:
        return reasons[reason]
    return BROKEN_OFF if reason == UNFINISHED and _is_open(arguments) else ""


def _is_open(arguments: Any) -> bool:
    """Whether this is only the beginning of arguments, as text: the end of a JSON object can be read from the text."""
    if not isinstance(arguments, str):
        return arguments is None
    try:
        json.loads(arguments)
    except json.JSONDecodeError:
        return True
    except (ValueError, RecursionError):  # a number, or a depth, that Python does not read
        pass
    return False


def refuse(call: ToolCall, why: str) -> None:
    """Give a call that was cut its result: it never runs."""
    message = f"{call.name or 'the call'} was not run: {why}; send the whole call again, and less at once"
    fault = Fault("incomplete_call", message)
    call.result = ToolResult(call.id, call.name, Status.INVALID, f"Error: {message}", error=fault, attempts=0)
    call.status = Status.INVALID
