"""Checks: what is wrong with a program before it runs, in sentences that a model can act on."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final, final

from attrs import frozen

from pegboard import Status
from pegboard_code._catalog import Catalog, modules
from pegboard_code._program import StoppedError
from pegboard_code._workers import workers

__all__ = ["SENTINEL", "Checks"]

MOST_SHOWN: Final = 10
KEPT: Final = 256
"""Programs that were found right, by what they were checked against."""
SENTINEL: Final = '"" + 0\n'
"""Stands before a program that is checked: it is always wrong, so that all findings come and nothing ever runs."""
_FINDING: Final = re.compile(r"main\.py:(\d+):(\d+): (\w+)\[([\w-]+)\] (.*)")
_RETURN: Final = "`return` statement outside of a function"
_COROUTINE: Final = "CoroutineType["


@final
@frozen
class Finding:
    """One thing that is wrong, at a line and a column of the program."""

    line: int
    column: int
    code: str
    message: str


@final
class Checks:
    """Checks programs, and remembers those that are right."""

    def __init__(self) -> None:
        self._right: OrderedDict[tuple[str, str], None] = OrderedDict()

    def knows(self, code: str, catalog: Catalog) -> bool:
        """Whether a program was found right before."""
        try:
            self._right.move_to_end((catalog.digest, code))
        except KeyError:
            return False
        return True

    def refusal(self, code: str, catalog: Catalog, seconds: float, memory: int) -> str:
        """Why a program is not run; empty if the type checker finds nothing.

        Raises `StoppedError` where the check takes more time or memory than a program may.
        """
        findings = list(_findings(code, catalog, seconds, memory))
        if findings:
            return _sentences(code, findings, catalog)
        self._right[catalog.digest, code] = None
        while len(self._right) > KEPT:
            self._right.popitem(last=False)
        return ""


def _findings(code: str, catalog: Catalog, seconds: float, memory: int) -> Iterator[Finding]:
    library = workers.library
    limits = {"max_feed_duration_secs": seconds, "max_memory": memory}
    worker = workers.checkout(
        limits=limits, type_check=True, type_check_stubs=catalog.checked, type_check_format="concise"
    )
    try:
        snapshot: Any = worker.session.feed_start(SENTINEL + code)
        while isinstance(snapshot, library.FunctionSnapshot):  # it asks for the stubs of unknown modules
            snapshot = snapshot.resume_not_handled()
    except library.MontyTypingError as error:
        for found in _FINDING.finditer(str(error)):
            line, column, severity, kind, message = found.groups()
            wrong = severity == "error" or kind == "unused-awaitable"
            if wrong and int(line) > 1 and message != _RETURN:
                yield Finding(int(line) - 1, int(column), kind, message)
    except library.MontyError as error:
        message = "the program was not run: it is too large to be checked; write a simpler one"
        raise StoppedError(Status.INVALID, "check", message) from error
    finally:
        worker.close()


def _sentences(code: str, findings: list[Finding], catalog: Catalog) -> str:
    lines = code.split("\n")
    count = f"{len(findings)} problems" if len(findings) > 1 else "1 problem"
    texts = [f"The program was not run: {count}."]
    for each in findings[:MOST_SHOWN]:
        source = lines[each.line - 1] if each.line <= len(lines) else ""
        texts.append(f"line {each.line}, column {each.column}: {each.message}")
        if source.strip():
            texts.append(f"    {source.strip()}")
        texts += _remedies(each, lines, catalog)
    if len(findings) > MOST_SHOWN:
        texts.append(f"... and {len(findings) - MOST_SHOWN} more")
    return "\n".join(dict.fromkeys(texts))


def _remedies(finding: Finding, lines: list[str], catalog: Catalog) -> list[str]:
    """What to write instead, and the stubs that were meant."""
    source = lines[finding.line - 1] if finding.line <= len(lines) else ""
    if finding.code == "unresolved-import":
        named = catalog.heads_in(source)
        instead = "Tools are there without an import; " if named else ""
        return [f"  {instead}remove this line. Modules that can be imported: {modules}.", *_meant(named)]
    if _COROUTINE in finding.message or finding.code == "unused-awaitable":
        return _awaited(finding.line, lines, catalog)
    if finding.code == "unresolved-reference" and (name := _quoted(finding.message)) in modules.split(", "):
        return [f"  write before it: import {name}"]
    texts = []
    if finding.code == "invalid-argument-type" and "found `dict[" in finding.message:
        texts.append("  write the dict where it is passed, or annotate its variable with the type that is expected")
    if finding.code == "unresolved-attribute" and "Object of type" in finding.message:
        texts.append(f'  results are dicts: write ["{_quoted(finding.message, last=True)}"]')
    return [*texts, *_meant(catalog.heads_in(f"{finding.message} {source}"))]


def _awaited(line: int, lines: list[str], catalog: Catalog) -> list[str]:
    """The line with the missing `await`: this one, or the nearest before it that calls a tool without one."""
    names = "|".join(map(re.escape, catalog.stubs))
    call = re.compile(rf"(?<!await )(?<![\w.])((?:{names}|find_tools|describe_tool)\()")
    for source in reversed(lines[:line]):
        if call.search(source) and "gather" not in source:
            written = call.sub(r"await \1", source).strip()
            return [f"  it is not awaited; write: {written}", *_meant(catalog.heads_in(source))]
    return ["  it is not awaited; write await before the call"]


def _meant(heads: list[str]) -> list[str]:
    return [f"  meant: {head}" for head in heads[:3]]


def _quoted(message: str, *, last: bool = False) -> str:
    words: list[str] = re.findall(r"`([^`]*)`", message)
    return words[-1 if last else 0] if words else ""
