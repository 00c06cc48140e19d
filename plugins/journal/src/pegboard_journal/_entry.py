"""Entries: what the journal says of one call, and the rows that it is stored in."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import attrs

__all__ = ["COLUMNS", "PRUNED", "RUNNING", "Entry", "Row", "canonical", "chained", "decoded", "fingerprint", "plain"]

RUNNING: Final = "running"
"""The status of an intent: a call with an effect that has begun, as far as the journal knows."""
PRUNED: Final = "pruned"
"""The status of an anchor: `turn` is the last row that was removed, `fingerprint` its hash."""
MAX_NAME: Final = 500
"""Characters of a name or an id: models and programs bring their own."""


class Row(NamedTuple):
    """A row of the journal, in the order of its columns. `hash` chains it to the row before."""

    seq: int = 0
    follows: int | None = None
    """The row whose place this one takes: the intent of the call, or the row that said it was suspended."""
    id: str = ""
    call_id: str = ""
    tool: str = ""
    version: str | None = None
    origin: str | None = None
    session: str | None = None
    subject: str | None = None
    agent: str | None = None
    parent: str | None = None
    backend: str | None = None
    started: float = 0.0
    """Seconds since 1970."""
    duration: float | None = None
    status: str = ""
    attempts: int = 0
    arguments: str | None = None
    result: str | None = None
    decided_by: str | None = None
    key: str | None = None
    claim: str | None = None
    """A digest of tool, session and key, for a tool that runs once."""
    turn: int | None = None
    """How often that key was claimed before."""
    fingerprint: str | None = None
    """A digest of the arguments that the key was claimed with."""
    kept: str | None = None
    """The whole result, for who calls with that key again."""
    process: str | None = None
    """The process that the call runs in."""
    hash: str = ""


COLUMNS: Final = Row._fields


@attrs.frozen
class Entry:
    """What the journal says of one call.

    `arguments` and `result` are digests, JSON text without secrets, or None, as the setting `content` says.

    Args:
        id: Id of the entry, which is unique.
        call_id: Id of the call, which a model may use twice.
        tool: Name that was called.
        version: Version of the tool's pack.
        origin: Distribution of the tool's pack.
        session: Id of the session.
        subject: For whom the session acts.
        agent: Name of the agent.
        parent: Id of the call that made this one.
        backend: Where the tool runs, if it names a place.
        started: When it began, in UTC.
        duration: Seconds that it took. None until the outcome is known.
        status: Status of the result; `"running"` until the outcome is known.
        attempts: Number of runs of the function.
        arguments: The arguments.
        result: The result.
        decided_by: What allowed or denied the call if anything was asked: `"permission"`, `"approver"` or `"guard"`.
        key: Key of a tool that runs once.
    """

    id: str
    call_id: str
    tool: str
    version: str | None
    origin: str | None
    session: str | None
    subject: str | None
    agent: str | None
    parent: str | None
    backend: str | None
    started: datetime
    duration: float | None
    status: str
    attempts: int
    arguments: str | None
    result: str | None
    decided_by: str | None
    key: str | None

    @classmethod
    def of(cls, row: Row) -> Entry:
        """The entry in a row."""
        members = {name: getattr(row, name) for name in _NAMES}
        return cls(**{**members, "started": datetime.fromtimestamp(row.started, UTC)})

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON-able data; `started` as ISO 8601."""
        return {**attrs.asdict(self), "started": self.started.isoformat()}


_NAMES: Final = tuple(field.name for field in attrs.fields(Entry))
_encode: Final = json.JSONEncoder(separators=(",", ":"), default=repr).encode
_encode_sorted: Final = json.JSONEncoder(separators=(",", ":"), sort_keys=True, default=repr).encode


def decoded(arguments: Any) -> Any:
    """What arguments say that came as JSON text: a secret may be escaped in it. Other text stays text."""
    if isinstance(arguments, bytes | bytearray):
        arguments = bytes(arguments).decode("utf-8", "replace")
    if isinstance(arguments, str):
        with suppress(ValueError):
            return json.loads(arguments or "{}")
    return {} if arguments is None else arguments


def canonical(data: Any) -> str:
    """JSON text of data, in ASCII and with sorted keys."""
    try:
        return _encode_sorted(data)
    except Exception:  # noqa: BLE001 - keys of several kinds, no end, or an object whose own text fails
        return _encode(f"a {type(data).__name__} that JSON cannot carry")


def fingerprint(text: str, key: str | None = None) -> str:
    """The SHA-256 of a text, or with a key its HMAC, in hexadecimal."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest() if key is None else hmac.new(key.encode(), data, "sha256").hexdigest()


def plain(text: Any) -> str | None:
    """A name or an id as every database can keep it: without NUL and lone surrogates, and not too long."""
    if text is None:
        return None
    name = str(text)[:MAX_NAME]
    if name.isascii() and name.isprintable():
        return name
    return name.encode("utf-8", "replace").decode().replace("\0", "?")


def chained(before: str, members: Sequence[Any]) -> str:
    """The hash of a row, of which these are all other members, after a row with the hash `before`."""
    return hashlib.sha256(f"{before}\n{_encode(members)}".encode()).hexdigest()
