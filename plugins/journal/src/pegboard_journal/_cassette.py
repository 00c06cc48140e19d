"""Cassettes: recorded calls in a text file, which answer the same calls later."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final, final

from pegboard import Note, PegboardError, Redaction, Status, Tool, ToolCall, ToolResult
from pegboard_journal._entry import canonical
from pegboard_journal._results import from_data, refused, to_data, without_secrets

__all__ = ["Cassette"]

_KEPT: Final = frozenset({Status.SUCCESS, Status.ERROR, Status.TIMEOUT})
"""What a tool came to. The rest depends on the program, or is no answer."""
MAX_SHOWN: Final = 80
"""Characters of a value in a message."""


@final
class Cassette:
    """The calls of one run: of a toolkit, or of a test.

    A line is one call, as JSON: the `tool`, the hash of its `schema`, its `arguments` without secrets, that it was the
    `n`-th such call of the run, and the `result`. Raises `PegboardError` for a file that cannot be read.
    """

    _shared: ClassVar[dict[Path, Cassette]] = {}

    def __init__(self, path: Path, mode: str) -> None:
        self.path = path
        self.mode = mode
        self.refused: list[str] = []
        """Why calls were refused, a sentence each."""
        self._lock = threading.Lock()
        self._times: Counter[tuple[str, str, str]] = Counter()
        self._lines = list(self._read())
        self._known = {(_key(line), line["n"]): line for line in self._lines}

    @classmethod
    def at(cls, path: Path, mode: str) -> Cassette:
        """The cassette at a path: that of the test that runs, else a new one."""
        path = path.absolute()
        shared = cls._shared.get(path)
        return cls(path, mode) if shared is None or shared.mode != mode else shared

    @classmethod
    @contextmanager
    def shared(cls, path: Path, mode: str) -> Iterator[Cassette]:
        """One cassette for all toolkits of the block."""
        path = path.absolute()
        cls._shared[path] = cassette = cls(path, mode)
        try:
            yield cassette
        finally:
            del cls._shared[path]

    def _read(self) -> Iterator[dict[str, Any]]:
        try:
            text = self.path.read_text("utf-8")
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise PegboardError(f"{self.path}: the cassette cannot be read: {error}") from error
        for number, line in enumerate(text.splitlines(), 1):
            try:
                found = json.loads(line)
                _key(found), found["n"], found["result"]["status"]
            except (ValueError, KeyError, TypeError) as error:
                raise PegboardError(f"{self.path}, line {number}: it is no recorded call; record it again") from error
            yield found

    def look(self, call: ToolCall, tool: Tool, redact: Redaction | None) -> tuple[ToolResult | None, dict[str, Any]]:
        """The recorded answer, or the refusal, or None; and the line that this call is, without a result."""
        line = {"arguments": _arguments(call, redact), "schema": tool.schema_hash, "tool": tool.name}
        key = _key(line)
        with self._lock:
            self._times[key] += 1
            line["n"] = n = self._times[key]
        known = self._known.get((key, n))
        if known is not None:
            return from_data(call, known["result"], Note("the answer comes from the cassette", kind="replayed")), line
        if self.mode != "strict":
            return None, line
        reason = f"there is no recorded call of {call.name} like this one{self._nearest(line)}"
        self.refused.append(reason)
        return refused(call, "not_recorded", reason, cassette=str(self.path)), line

    def keep(self, line: Mapping[str, Any], result: ToolResult | None, redact: Redaction | None) -> None:
        """Write a call and what it came to. Raises `PegboardError` if the file cannot be written."""
        if self.mode != "record" or result is None or result.status not in _KEPT:
            return
        whole = {**line, "result": to_data(result, redact)}
        text = json.dumps(whole, sort_keys=True, ensure_ascii=True)
        try:
            with self._lock:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a", encoding="utf-8", newline="\n") as file:
                    file.write(f"{text}\n")
                self._lines.append(whole)
                self._known[_key(whole), whole["n"]] = whole
        except OSError as error:
            raise PegboardError(f"{self.path}: the cassette cannot be written: {error.strerror}") from error

    def _nearest(self, line: Mapping[str, Any]) -> str:
        """How the recorded call differs that is most like this one."""
        same = [each for each in self._lines if each["tool"] == line["tool"]]
        if not same:
            return "; none of this tool was recorded"
        nearest = min(same, key=lambda each: (len(_differences(each, line)), each["n"]))
        differences = _differences(nearest, line)
        if nearest["schema"] != line["schema"]:
            differences.append("the tool was described otherwise when it was recorded")
        elif not differences:
            differences.append(f"it was recorded {self._recorded(nearest)} times, and this is call {line['n']}")
        return f"; the nearest one differs: {'; '.join(differences)}"

    def _recorded(self, line: Mapping[str, Any]) -> int:
        return sum(_key(each) == _key(line) for each in self._lines)


def _key(line: Mapping[str, Any]) -> tuple[str, str, str]:
    return line["tool"], line["schema"], canonical(line["arguments"])


def _arguments(call: ToolCall, redact: Redaction | None) -> Any:
    """The arguments as JSON has them, without secrets; nothing of them where these are not known."""
    if redact is None:
        return {}
    return without_secrets(json.loads(canonical(call.arguments)), redact)


def _differences(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    before, after = recorded["arguments"], now["arguments"]
    names = sorted({*before, *after})
    return [
        f"{name}: recorded {_shown(before, name)}, now {_shown(after, name)}"
        for name in names
        if name not in before or name not in after or canonical(before[name]) != canonical(after[name])
    ]


def _shown(arguments: Mapping[str, Any], name: str) -> str:
    text = json.dumps(arguments[name], ensure_ascii=False) if name in arguments else "nothing"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
