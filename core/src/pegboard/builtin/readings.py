"""How types that are written as JSON strings are read and written: loaded when the first of them is met.

Each parser accepts exactly what the schema accepts: a format where JSON Schema has one, else a pattern.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, TypeAlias
from uuid import UUID

from pegboard._base.errors import BareMismatch
from pegboard._model.shapes import JsonSchema

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"([01][0-9]|2[0-3])(:[0-5][0-9]){2}(\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])\n?", re.IGNORECASE
)
"""RFC 3339 full-time; the newline is what `$` of a pattern lets through, in every validator that uses one."""
_BASE64 = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?$"
_DURATION = r"^-?P([0-9]{1,8}W|([0-9]{1,8}D)?(T([0-9]{1,9}H)?([0-9]{1,9}M)?([0-9]{1,9}(\.[0-9]{1,6})?S)?)?)$"
"""ISO 8601 without years and months, which have no fixed length; that something stands after P or T is the format's."""


def _matching(pattern: str | re.Pattern[str], text: str) -> str:
    if re.search(pattern, text) is None:
        raise BareMismatch
    return text


def _bytes(text: str) -> bytes:
    return base64.b64decode(_matching(_BASE64, text))


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _date(text: str) -> dt.date:
    if _DATE.fullmatch(text) is None:
        raise BareMismatch("write it as 2024-05-06")
    return dt.date.fromisoformat(text)


def _time(text: str) -> dt.time:
    if _TIME.fullmatch(text) is None:
        raise BareMismatch("write it as 07:08:09Z, with Z or an offset")
    return dt.time.fromisoformat(text.strip().upper())


def _datetime(text: str) -> dt.datetime:
    date, separator, time = text[:10], text[10:11], text[11:]
    if separator not in ("T", "t") or not _DATE.fullmatch(date) or not _TIME.fullmatch(time):
        raise BareMismatch("write it as 2024-05-06T07:08:09Z, with Z or an offset")
    return dt.datetime.fromisoformat(text.strip().upper())


def _timedelta(text: str) -> dt.timedelta:
    found = re.fullmatch(_DURATION, text)
    if found is None or text[-1] in "PT":
        raise BareMismatch("write it as P1DT2H30M, without years and months")
    sign = -1 if text[0] == "-" else 1
    parts = {unit: number for number, unit in re.findall(r"([0-9.]+)([WDHMS])", text)}
    whole = {unit: int(parts.get(unit, "0")) for unit in "WDHM"}
    seconds, _, fraction = parts.get("S", "0").partition(".")
    # The fraction as an integer: a float would round microseconds.
    return sign * dt.timedelta(
        weeks=whole["W"],
        days=whole["D"],
        hours=whole["H"],
        minutes=whole["M"],
        seconds=int(seconds),
        microseconds=int(fraction.ljust(6, "0")),
    )


def _duration(value: dt.timedelta) -> str:
    sign, span = ("-", -value) if value < dt.timedelta(0) else ("", value)
    minutes, seconds = divmod(span.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{span.microseconds:06}".rstrip("0") if span.microseconds else ""
    days = f"{span.days}D" if span.days else ""
    units = [(hours, "H"), (minutes, "M")]
    time = "".join(f"{count}{unit}" for count, unit in units if count)
    time += f"{seconds}{fraction}S" if seconds or fraction else ""
    return f"{sign}P{days}{'T' if time else ''}{time}" if days or time else "PT0S"


def _uuid(text: str) -> UUID:
    if any(text[position : position + 1] != "-" for position in (8, 13, 18, 23)):
        raise BareMismatch
    return UUID(text)


def _decimal(text: str) -> Decimal:
    return Decimal(_matching(_DECIMAL, text))


def _ipv6(text: str) -> IPv6Address:
    address = IPv6Address(text)
    if address.scope_id is not None:
        raise BareMismatch
    return address


_Text: TypeAlias = tuple[JsonSchema, Callable[[str], Any], Callable[[Any], str]]
"""What the schema says besides `type`, the parser, and what writes a value."""

TEXTS: Final[Mapping[type, _Text]] = {
    bytes: ({"contentEncoding": "base64", "pattern": _BASE64}, _bytes, _base64),
    dt.datetime: ({"format": "date-time"}, _datetime, dt.datetime.isoformat),
    dt.date: ({"format": "date"}, _date, dt.date.isoformat),
    dt.time: ({"format": "time"}, _time, dt.time.isoformat),
    dt.timedelta: ({"format": "duration", "pattern": _DURATION}, _timedelta, _duration),
    UUID: ({"format": "uuid"}, _uuid, str),
    Decimal: ({"pattern": _DECIMAL}, _decimal, str),
    re.Pattern: ({"format": "regex"}, re.compile, lambda pattern: pattern.pattern),
    IPv4Address: ({"format": "ipv4"}, IPv4Address, str),
    IPv6Address: ({"format": "ipv6"}, _ipv6, str),
}
