"""Snapshots: programs that wait for an answer, in memory or as sealed files that another program can take up, once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, final

from attrs import asdict, evolve, frozen

from pegboard import Secret, ToolError

__all__ = ["Owed", "Parked", "Snapshots", "TakenError"]

VERSION: Final = 1
SHORTEST_KEY: Final = 16
SUFFIX: Final = ".snapshot"
USED: Final = ".used"


class TakenError(ToolError):
    """Another program was first."""

    def __init__(self) -> None:
        super().__init__("the program was taken up already, by another program; nothing was run now")


@final
@frozen
class Owed:
    """A call of a program whose answer is owed: its number there, its id, the tool, the arguments, the reason.

    One that `asks` has not begun: the answer is that of its approver, True, False or an `Approval`.
    """

    number: int
    call_id: str
    name: str
    arguments: Mapping[str, Any]
    reason: str
    asks: bool = False


@final
@frozen
class Parked:
    """A program that waits: `answers` are those that it has not been given yet, `left` its seconds.

    `blocks` and `shown` are as `Block.to_dict` writes them.
    """

    call_id: str
    session: str | None
    code: str
    dump: bytes
    owed: Sequence[Owed]
    answers: Mapping[int, dict[str, Any]]
    moment: str
    left: float
    calls: int
    covered: Sequence[str]
    printed: str
    blocks: Sequence[Mapping[str, Any]]
    shown: Sequence[Mapping[str, Any]]

    @property
    def reason(self) -> str:
        """What the next answer is asked for with."""
        return f"{self.owed[0].name}: {self.owed[0].reason}"

    def answered(self, answer: dict[str, Any]) -> Parked:
        """The same with the answer of the first call that is owed."""
        return evolve(self, owed=self.owed[1:], answers={**self.answers, self.owed[0].number: answer})

    def to_bytes(self) -> bytes:
        """The record as JSON."""
        return json.dumps({**asdict(self), "dump": base64.b64encode(self.dump).decode()}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Parked:
        """The record that `to_bytes` has written."""
        members = json.loads(data)
        dump, owed = base64.b64decode(members["dump"]), [Owed(**each) for each in members["owed"]]
        answers = {int(number): answer for number, answer in members["answers"].items()}
        return cls(**{**members, "dump": dump, "owed": owed, "answers": answers})


@final
class Snapshots:
    """A folder of sealed snapshots. Each is a file of mode 600 that is renamed by the program that takes it up.

    The seal is an HMAC with the program's key over everything; the files are not encrypted. Raises ValueError for a key
    that is too short.
    """

    def __init__(self, folder: str | os.PathLike[str], key: str | bytes | Secret[str], tool: str) -> None:
        given = key.value if isinstance(key, Secret) else key
        self._key = given.encode() if isinstance(given, str) else bytes(given)
        if len(self._key) < SHORTEST_KEY:
            raise ValueError(f"key= takes at least {SHORTEST_KEY} bytes, such as secrets.token_bytes(32) gives")
        self._folder = Path(folder)
        self._tool = tool

    def __repr__(self) -> str:
        return f"Snapshots({str(self._folder)!r})"

    def keep(self, parked: Parked) -> Path:
        """Write a snapshot, whole or not at all, and durably."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        head = json.dumps({"version": VERSION, "tool": self._tool, "id": parked.call_id, "session": parked.session})
        body = b"\n".join([head.encode(), parked.to_bytes()])
        path = self._folder / f"{self._prefix(parked.session)}-{secrets.token_hex(12)}{SUFFIX}"
        draft = path.with_suffix(".draft")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(self._seal(body).encode() + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        self._sync_folder()
        return path

    def waiting(self, session: str | None) -> dict[str, Path]:
        """The files of the programs of a session that wait, or were begun and not ended, by their ids.

        What they say is believed once they are taken.
        """
        found: dict[str, Path] = {}
        for suffix in (USED, SUFFIX):  # one that waits again counts for more than one that was not ended
            for path in sorted(self._folder.glob(f"{self._prefix(session)}-*{suffix}")):
                with suppress(OSError, ValueError, IndexError, TypeError, KeyError):
                    found[str(json.loads(path.read_bytes().split(b"\n", 2)[1])["id"])] = path
        return found

    def take(self, path: Path, call_id: str, session: str | None) -> tuple[Parked, Path]:
        """Take a snapshot up, so that no other program can. Raises `ToolError` saying why it cannot go on."""
        used = path.with_suffix(USED)
        if path.suffix == USED:
            path.unlink(missing_ok=True)
            raise ToolError("the program was taken up before, by a program that did not end it; nothing was run now")
        self.read(path, call_id, session)  # one that cannot be used stays as it is
        try:
            path.rename(used)
        except OSError:
            raise TakenError from None
        self._sync_folder()
        return self.read(used, call_id, session), used

    def read(self, path: Path, call_id: str, session: str | None) -> Parked:
        """What a snapshot holds. Raises `ToolError` for one that this program did not seal, for this call."""
        try:
            seal, _, body = path.read_bytes().partition(b"\n")
        except OSError:
            raise TakenError from None
        if not hmac.compare_digest(seal, self._seal(body).encode()):
            raise ToolError("the snapshot of the program was changed, or sealed with another key; nothing was run")
        head, _, record = body.partition(b"\n")
        wanted = {"version": VERSION, "tool": self._tool, "id": call_id, "session": session}
        if json.loads(head) != wanted:
            raise ToolError("the snapshot of the program belongs to another call; nothing was run")
        return Parked.from_bytes(record)

    def _seal(self, body: bytes) -> str:
        return hmac.new(self._key, body, hashlib.sha256).hexdigest()

    def _prefix(self, session: str | None) -> str:
        return hashlib.sha256(json.dumps([self._tool, session]).encode()).hexdigest()[:24]

    def _sync_folder(self) -> None:
        with suppress(OSError):  # not every system opens folders
            handle = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
