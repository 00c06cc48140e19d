"""The log: one record for each call, on one line, without secrets."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Final

from pegboard._model.result import ToolResult
from pegboard._results.factory import masked, shortened, written

if TYPE_CHECKING:
    import logging

__all__ = ["DEBUG", "INFO", "listened", "log_call", "logger"]

DEBUG: Final = 10  # as in `logging`, which a call need not load
INFO: Final = 20
_MAX_NAME = 200
_MAX_MESSAGE = 2_000


@cache
def logger() -> logging.Logger:
    """The logger `pegboard`."""
    import logging

    found = logging.getLogger("pegboard")
    found.addHandler(logging.NullHandler())
    return found


def listened() -> logging.Logger | None:
    """The logger; None while nobody has loaded `logging`, for then nobody can be listening."""
    return logger() if "logging" in sys.modules else None


def log_call(result: ToolResult, secrets: Iterable[str] = ()) -> None:
    """Log a call that ended: DEBUG for one without error, INFO with the message and the traceback for any other.

    The record has `tool`, `call_id`, `status`, `duration` (seconds) and `attempts` as attributes, for programs that
    keep structured logs. Neither arguments nor returned values are logged.
    """
    level = DEBUG if result._fault is None else INFO  # not `error`, which perhaps nobody will ever ask for
    log = listened()
    if log is None or not log.isEnabledFor(level):
        return
    line, details = "%s %s: %s in %.6f s", [_one_line(result.name, _MAX_NAME), _one_line(result.call_id, _MAX_NAME)]
    facts = {
        "tool": result.name,
        "call_id": result.call_id,
        "status": result.status.value,
        "duration": result.duration,
        "attempts": result.attempts,
    }
    arguments = (*details, result.status.value, result.duration)
    if result.error is not None:
        line, arguments = f"{line}: %s", (*arguments, _one_line(masked(result.error.message, secrets), _MAX_MESSAGE))
    record = log.makeRecord(log.name, level, "(pegboard)", 0, line, arguments, None, "log_call", facts)
    if result.error is not None and result.error.kind == "exception" and result.error.exception is not None:
        # Written here, not by the formatter: there secrets are not known, and a broken exception would break the log.
        record.exc_text = written(result.error.exception, secrets)
    log.handle(record)


def _one_line(text: str, limit: int) -> str:
    """Ids and names come from models: a line break in one must not begin a line of its own in the log."""
    text = shortened(text, limit)
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
