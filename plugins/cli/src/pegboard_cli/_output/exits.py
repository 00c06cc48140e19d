"""Exit codes: what a script can tell from how a command ended."""

from __future__ import annotations

from typing import Final

from pegboard import Status

__all__ = ["FAILED", "INTERRUPTED", "NOT_FOUND", "OK", "of_status"]

OK: Final = 0
FAILED: Final = 1
NOT_FOUND: Final = 4
INTERRUPTED: Final = 130

_OF_STATUS: Final = {
    "success": OK,
    "error": FAILED,
    "invalid": 3,
    "not_found": NOT_FOUND,
    "inactive": 5,
    "denied": 6,
    "timeout": 7,
    "cancelled": 8,
    "suspended": 9,
}


def of_status(status: Status) -> int:
    """The exit code of `pegboard call` for the outcome of a call."""
    return _OF_STATUS[status.value]
