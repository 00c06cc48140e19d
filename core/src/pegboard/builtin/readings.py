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
from pegboard._model.shapes import JsonSchema, RepairedText

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# RFC 3339 full-time; the newline is what `$` of a pattern lets through, in every validator that uses one.
_TIME = re.compile(
    r"([01][0-9]|2[0-3])(:[0-5][0-9]){2}(\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])\n?", re.IGNORECASE
)
_BASE64 = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?$"
# ISO 8601 without years and months, which have no fixed length; that something stands after P or T is the format's.
_DURATION = r"^-?P([0-9]{1,8}W|([0-9]{1,8}D)?(T([0-9]{1,9}H)?([0-9]{1,9}M)?([0-9]{1,9}(\.[0-9]{1,6})?S)?)?)$"


_SECONDS: Final = {"S": 1, "M": 60, "H": 3600, "D": 86_400, "W": 604_800}


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
        raise BareMismatch
    return dt.date.fromisoformat(text)


def _time(text: str) -> dt.time:
    if _TIME.fullmatch(text) is None and type(text) is not RepairedText:
        raise BareMismatch
    return dt.time.fromisoformat(text.strip().upper())


def _datetime(text: str) -> dt.datetime:
    date, separator, time = text[:10], text[10:11], text[11:]
    timed = type(text) is RepairedText or _TIME.fullmatch(time)
    if separator not in ("T", "t") or not _DATE.fullmatch(date) or not timed:
        raise BareMismatch
    return dt.datetime.fromisoformat(text.strip().upper())


def _timedelta(text: str) -> dt.timedelta:
    found = re.fullmatch(_DURATION, text)
    if found is None or text[-1] in "PT":
        raise BareMismatch
    # Decimals: a float would round microseconds.
    span = sum(Decimal(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9.]+)([WDHMS])", text))
    return dt.timedelta(microseconds=int(span * 10**6)) * (-1 if text[0] == "-" else 1)


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


# What repair reads besides: other spellings of the same value, as the text that the parser takes ---------------------

# Each raises, whatever it is, for what it does not read.

_CLOCK = r"((?:[01][0-9]|2[0-3]):[0-5][0-9])(:[0-5][0-9](?:\.[0-9]+)?)? ?(Z|[+-][0-9]{2}:?[0-9]{2})?"
_SPAN = r"(-?)([0-9]{1,4}):([0-5][0-9]):([0-5][0-9](?:\.[0-9]{1,6})?)"


def _matched(pattern: str, text: str) -> re.Match[str]:
    found = re.fullmatch(pattern, text, re.IGNORECASE)
    if found is None:
        raise BareMismatch
    return found


def _repair_time(sent: Any) -> str:
    minutes, seconds, zone = _matched(_CLOCK, sent).groups()
    time = minutes + (seconds or ":00")
    if zone is None:
        return RepairedText(time)
    return time + (zone if len(zone) == 1 else f"{zone[:3]}:{zone[-2:]}")


def _repair_datetime(sent: Any) -> str:
    """A moment with a space, without seconds or without a zone; a date is its midnight."""
    time = _repair_time(sent[11:] if sent[10:11] in {"T", "t", " "} else "00:00" + sent[10:])
    return type(time)(f"{sent[:10]}T{time}")


def _repair_date(sent: Any) -> str:
    """The date of a midnight; one with a zone is another date elsewhere."""
    return _matched(r"([0-9-]{10})[Tt ]00:00(:00(\.0+)?)?", sent)[1]


def _repair_timedelta(sent: Any) -> str:
    return "{}PT{}H{}M{}S".format(*_matched(_SPAN, sent).groups())


def _repair_uuid(sent: Any) -> str:
    return str(UUID(_matched(r"(urn:uuid:)?\{?[0-9a-fA-F-]+\}?", sent.strip())[0]))


def _repair_decimal(sent: Any) -> str:
    return str(sent).strip()


def _repair_bytes(sent: Any) -> str:
    """Base64 of the other alphabet, or without its padding; not what would lose bits, as most words would."""
    bare = _matched(r"[a-z0-9+/]*={0,2}|[a-z0-9_-]*={0,2}", sent)[0].rstrip("=").translate(str.maketrans("-_", "+/"))
    padded = bare + "=" * (-len(bare) % 4)
    return _matching(f"^{re.escape(padded)}$", _base64(base64.b64decode(padded)))


# What the schema says besides `type`, the parser, what writes a value, and what repair reads.
_Text: TypeAlias = tuple[JsonSchema, Callable[[str], Any], Callable[[Any], str], Callable[[Any], str] | None]

TEXTS: Final[Mapping[type, _Text]] = {
    bytes: ({"contentEncoding": "base64", "pattern": _BASE64}, _bytes, _base64, _repair_bytes),
    dt.datetime: ({"format": "date-time"}, _datetime, dt.datetime.isoformat, _repair_datetime),
    dt.date: ({"format": "date"}, _date, dt.date.isoformat, _repair_date),
    dt.time: ({"format": "time"}, _time, dt.time.isoformat, _repair_time),
    dt.timedelta: ({"format": "duration", "pattern": _DURATION}, _timedelta, _duration, _repair_timedelta),
    UUID: ({"format": "uuid"}, _uuid, str, _repair_uuid),
    Decimal: ({"pattern": _DECIMAL}, _decimal, str, _repair_decimal),
    re.Pattern: ({"format": "regex"}, re.compile, lambda pattern: pattern.pattern, None),
    IPv4Address: ({"format": "ipv4"}, IPv4Address, str, None),
    IPv6Address: ({"format": "ipv6"}, _ipv6, str, None),
}
