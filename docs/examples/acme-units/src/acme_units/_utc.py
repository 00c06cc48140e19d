"""Timestamps: Pegboard's own mapping of `datetime`, narrowed to UTC."""

import re
from datetime import UTC, datetime
from typing import Any

import pegboard

PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$"


def parse(text: str) -> datetime:
    """Read `2024-05-06T07:08:09Z`. Raises ValueError."""
    if not re.search(PATTERN, text):
        raise ValueError("write it in UTC, with a Z at the end")
    return datetime.fromisoformat(text.strip())


def write(moment: datetime) -> str:
    """Write any moment with a zone in UTC; one without counts as UTC."""
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat().replace("+00:00", "Z")


def utc(annotation: Any, types: pegboard.Types) -> pegboard.TypePlan:
    """The format lets validators check the calendar, the pattern asks for the Z."""
    schema = {
        "type": "string",
        "format": "date-time",
        "pattern": PATTERN,
        "description": "UTC, as 2024-05-06T07:08:09Z",
    }
    return pegboard.shaped(schema, pegboard.Text(parse), write)
