"""The log: one record for each call, on one line, without secrets."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pegboard._outcome import masked, shortened, written
from pegboard._result import ToolResult

__all__ = ["log_call"]

_MAX_NAME = 200
_MAX_MESSAGE = 2_000


def log_call(logger: logging.Logger, result: ToolResult, secrets: Iterable[str] = ()) -> None:
    """Log a call that ended: DEBUG for one without error, INFO with the message and the traceback for any other.

    The record has `tool`, `call_id`, `status`, `duration` (seconds) and `attempts` as attributes, for programs that
    keep structured logs. Neither arguments nor returned values are logged.
    """
    level = logging.DEBUG if result.error is None else logging.INFO
    if not logger.isEnabledFor(level):
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
    record = logger.makeRecord(logger.name, level, "(pegboard)", 0, line, arguments, None, "log_call", facts)
    if result.error is not None and result.error.kind == "exception" and result.error.exception is not None:
        # Written here, not by the formatter: there secrets are not known, and a broken exception would break the log.
        record.exc_text = written(result.error.exception, secrets)
    logger.handle(record)


def _one_line(text: str, limit: int) -> str:
    """Ids and names come from models: a line break in one must not begin a line of its own in the log."""
    text = shortened(text, limit)
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
